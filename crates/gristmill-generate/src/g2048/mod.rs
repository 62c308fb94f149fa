//! A seed -> raw logs of 2048 games, played in parallel: a `.jsonl.gz` and a sidecar for each.
//! A game is a function of its own seed, the depth and the longest length alone.

mod game;
mod log;
mod search;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use gristmill_format::container::gzip;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::scheduler::Scheduler;

use self::game::Game;
use super::{Generated, publish};

/// Deepest search: each level costs some twenty times the one above.
const MAX_DEPTH: u32 = 7;

/// What to generate, and where.
#[derive(Debug, Clone)]
pub struct G2048Options {
    /// The folder; made when it does not exist.
    pub folder: PathBuf,
    /// How many games.
    pub games: u64,
    /// Number of the first game; games are numbered on from it.
    pub first: u64,
    /// Base seed: game n has seed `seed + n`, and depends on nothing else.
    pub seed: u64,
    /// Levels of chance that the player looks through, up to 7; 0 takes the best board after the move.
    pub depth: u32,
    /// Most moves of a game, from 1 on.
    pub moves_max: u64,
    /// Level of compression, 0 to 12.
    pub level: u8,
    /// Threads that play; never changes a byte.
    pub threads: usize,
}

/// Plays and writes games.
#[derive(Debug)]
pub struct G2048Generator {
    options: G2048Options,
    overwrite: bool,
}

impl G2048Generator {
    /// Checks the options; writes nothing yet.
    ///
    /// Errors: `Config` naming the option.
    pub fn new(options: G2048Options) -> Result<Self> {
        if options.depth > MAX_DEPTH {
            return Err(Error::config("depth", format!("0 to {MAX_DEPTH} levels")));
        }
        if options.moves_max == 0 {
            return Err(Error::config("moves_max", "a game has at least one move"));
        }
        if options.level > 12 {
            return Err(Error::config("level", "compression levels go from 0 to 12"));
        }
        if options.threads == 0 {
            return Err(Error::config("threads", "at least one thread plays"));
        }
        let last = options.first.checked_add(options.games).and_then(|last| last.checked_add(options.seed));
        if last.is_none() {
            return Err(Error::config("first", "the seeds of the games leave 64 bits"));
        }
        Ok(G2048Generator { options, overwrite: false })
    }

    /// Replaces existing files where `overwrite` is set.
    #[must_use]
    pub fn overwriting(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// The paths of game `n`: its lines and its sidecar, which is compressed for every fourth game.
    pub fn paths(&self, n: u64) -> [PathBuf; 2] {
        names(&self.options, n).map(|name| self.options.folder.join(name))
    }

    /// Plays and writes all games; calls `each` for every one, in any order.
    ///
    /// Errors: `Path` when a file cannot be written or exists already; of several, that of the first game. Games
    /// that were begun by then are finished and written.
    pub fn run(&self, each: &mut dyn FnMut(&Generated)) -> Result<()> {
        let folder = &self.options.folder;
        std::fs::create_dir_all(folder).map_err(|e| Error::path(folder, &e))?;
        let next = Arc::new(AtomicU64::new(0));
        let scheduler = Scheduler::new();
        let (sender, results) = mpsc::channel();
        let threads = (self.options.threads as u64).min(self.options.games);
        let overwrite = self.overwrite;
        for i in 0..threads {
            let (next, sender, options) = (Arc::clone(&next), sender.clone(), self.options.clone());
            let stop = scheduler.stop_flag();
            let work = move || {
                while !stop.load(Ordering::Relaxed) {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let told =
                        i < options.games && sender.send((i, write(&options, overwrite, options.first + i))).is_ok();
                    if !told {
                        break;
                    }
                }
            };
            scheduler.spawn(&format!("play-{i}"), work).map_err(|e| Error::path(folder, &e))?;
        }
        drop(sender);
        let (mut done, mut failed) = (0, None);
        for (i, result) in results {
            match result {
                Ok(generated) => {
                    done += 1;
                    each(&generated);
                }
                Err(e) => {
                    next.store(self.options.games, Ordering::Relaxed);
                    failed = failed.filter(|(first, _)| *first < i).or(Some((i, e)));
                }
            }
        }
        match failed {
            Some((_, e)) => Err(e),
            None if done == self.options.games => Ok(()),
            None => Err(Error::path(folder, &std::io::Error::other("a thread that plays ended before its game did"))),
        }
    }
}

/// The names of the files of game `n`.
fn names(options: &G2048Options, n: u64) -> [String; 2] {
    let base = format!("depth{:02}_worker00_seed{:010}_game{n:06}", options.depth, options.seed + n);
    [format!("{base}.jsonl.gz"), format!("{base}.meta.json{}", if n % 4 == 3 { ".gz" } else { "" })]
}

/// Plays and writes game `n`. The lines come first: a game counts when it has a sidecar.
fn write(options: &G2048Options, overwrite: bool, n: u64) -> Result<Generated> {
    let game = Game::play(options.seed + n, options.depth, options.moves_max);
    let [lines, sidecar] = names(options, n);
    let stored = gzip::compress(options.level, log::lines(&game, n).as_bytes())?;
    let facts = log::sidecar(&game, n, &lines);
    let facts = if sidecar.ends_with(".gz") { gzip::compress(options.level, facts.as_bytes())? } else { facts.into() };
    let path = publish::publish(&options.folder, &lines, &stored, overwrite)?;
    publish::publish(&options.folder, &sidecar, &facts, overwrite)?;
    Ok(Generated { path, games: 1, frames: game.steps.len() as u64, bytes: (stored.len() + facts.len()) as u64 })
}

#[cfg(test)]
mod tests;
