//! A seed -> chess games in files, written one by one at the caller's pace.
//! The door of the job; the player, the records and the files each have a file of their own.

mod game;
mod output;
mod player;
mod records;
mod repetition;
mod smooth;

use std::path::PathBuf;

use gristmill_format::chess::Version;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::seed::Key;

use super::{Generated, publish};

/// What to generate, and where.
#[derive(Debug, Clone)]
pub struct ChessOptions {
    /// The folder; made when it does not exist.
    pub folder: PathBuf,
    /// How many games.
    pub games: u64,
    /// Number of the first game; games are numbered on from it.
    pub first: u64,
    /// Seed; game n depends on the seed and n only.
    pub seed: u64,
    /// Most plies of a game, from 1 on.
    pub plies_max: usize,
    /// Record version, V6 or V7.
    pub version: Version,
    /// Games in each tar; none for one `.gz` per game.
    pub games_per_tar: Option<u64>,
}

/// Writes the files one by one, at the caller's pace.
#[derive(Debug)]
pub struct ChessGenerator {
    options: ChessOptions,
    overwrite: bool,
    /// Games done so far.
    done: u64,
    records: Vec<u8>,
}

impl ChessGenerator {
    /// Checks the options; writes nothing yet.
    ///
    /// Errors: `Config` naming the option.
    pub fn new(options: ChessOptions) -> Result<Self> {
        if options.plies_max == 0 {
            return Err(Error::config("plies_max", "a game has at least one ply"));
        }
        if options.games_per_tar == Some(0) {
            return Err(Error::config("games_per_tar", "a tar holds at least one game"));
        }
        if options.first.checked_add(options.games).is_none() {
            return Err(Error::config("first", "the game numbers leave 64 bits"));
        }
        if let Some(each) = options.games_per_tar
            && !options.first.saturating_sub(1).is_multiple_of(each)
        {
            return Err(Error::config("first", format!("a tar begins at game 1, {}, ...", each + 1)));
        }
        if !matches!(options.version, Version::V6 | Version::V7) {
            return Err(Error::config("version", "records are written as version 6 or 7"));
        }
        Ok(ChessGenerator { options, overwrite: false, done: 0, records: Vec::new() })
    }

    /// Replaces existing files where `overwrite` is set.
    #[must_use]
    pub fn overwriting(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// How many files there will be.
    pub fn files(&self) -> u64 {
        self.options.games.div_ceil(self.options.games_per_tar.unwrap_or(1))
    }

    /// The path of file `i`.
    pub fn path(&self, i: u64) -> PathBuf {
        let first = self.options.first;
        let name = match self.options.games_per_tar {
            None => output::game_name(first + i),
            Some(each) => output::tar_name(first.saturating_sub(1) / each + i),
        };
        self.options.folder.join(name)
    }

    /// Writes the next file; `None` when all are written.
    ///
    /// Errors: `Path` when it cannot be written or exists already.
    pub fn write_next(&mut self) -> Result<Option<Generated>> {
        let left = self.options.games - self.done;
        if left == 0 {
            return Ok(None);
        }
        let each = self.options.games_per_tar;
        let count = each.unwrap_or(1).min(left);
        let path = self.path(self.done / each.unwrap_or(1));
        let (mut games, mut frames) = (Vec::new(), 0);
        for n in (self.options.first + self.done..).take(count as usize) {
            frames += self.play(n)?;
            games.push((n, output::pack(&self.records)?));
        }
        let bytes = match each {
            None => games.swap_remove(0).1,
            Some(each) => output::tar(self.options.first.saturating_sub(1) / each + self.done / each, &games)?,
        };
        std::fs::create_dir_all(&self.options.folder).map_err(|e| Error::path(&self.options.folder, &e))?;
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        publish::publish(&self.options.folder, &name, &bytes, self.overwrite)?;
        self.done += count;
        Ok(Some(Generated { path, games: count, frames, bytes: bytes.len() as u64 }))
    }

    /// Plays game `n` into `self.records`; its number of positions.
    fn play(&mut self, n: u64) -> Result<u64> {
        let mut draws = Key::new(self.options.seed, "generate chess").at(n);
        let game = game::play(&mut draws, self.options.plies_max);
        records::write(&game, self.options.version, &mut self.records)?;
        Ok(game.plies.len() as u64)
    }
}

#[cfg(test)]
mod tests;
