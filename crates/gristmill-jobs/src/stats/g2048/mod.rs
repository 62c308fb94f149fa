//! Step rows of 2048 games, from packs and logs -> what the games are like: scores, lengths, tiles, valuations, EV gaps.
//! Counts alone; `verify` says what is wrong. EVs of different valuations are never put together.

mod gaps;
mod tally;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack::metadata::Metadata;
use gristmill_engine::pack::rows::{self, RowBlock, RowsOf};
use gristmill_engine::pack::{METADATA, open, shards};
use gristmill_engine::runtime::spread::{Spread, Tally};
use gristmill_format::g2048::StepRow;
use gristmill_format::g2048::log::{KNOWN_VALUATIONS, Sidecar};
use gristmill_format::source::Chunk;
use serde::{Deserialize, Serialize};

pub use self::gaps::{GapBar, Gaps};
use self::tally::RowTally;
use crate::in_order::InOrder;
use crate::inputs::Place;
use crate::sidecar;
use crate::word::{self, Word};

/// What 2048 games are like.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StepStats {
    /// Games.
    pub games: u64,
    /// Their steps.
    pub rows: u64,
    /// Score at the end; games without one are left out.
    pub score: Spread,
    /// Steps per game.
    pub length: Spread,
    /// Games by their highest tile, such as 32768.
    pub highest_tiles: BTreeMap<u64, u64>,
    /// Steps by move.
    #[serde(deserialize_with = "word::map")]
    pub moves: BTreeMap<Word, u64>,
    /// Steps by the number of legal moves.
    pub legal_moves: BTreeMap<u32, u64>,
    /// Steps by where their EVs come from. The scales of the EVs differ.
    pub valuations: BTreeMap<String, ValuationStats>,
}

/// Steps whose EVs come from one source.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ValuationStats {
    /// How many.
    pub rows: u64,
    /// Of those with two EVs or more, how many made the move with the highest.
    pub best_chosen: u64,
    /// By how much the highest EV of legal moves exceeds the second.
    pub gaps: Gaps,
}

/// Counts the games as they come.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct StepCounting {
    games: u64,
    score: Tally,
    length: Tally,
    highest_tiles: BTreeMap<u64, u64>,
    rows: RowTally,
    valuations: BTreeMap<String, tally::Valuation>,
}

/// What of a pack is counted among files.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) files: u64,
    pub(super) games: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

impl Counted {
    /// Takes in what is counted of other rows.
    pub(super) fn join(&mut self, more: Counted) {
        self.files += more.files;
        self.games += more.games;
        self.rows += more.rows;
        self.bytes += more.bytes;
    }
}

/// What is in a log, and what its sidecar says.
pub(super) struct LogTally {
    tally: RowTally,
    said: Option<Sidecar>,
    pub(super) stored_bytes: u64,
    pub(super) text_bytes: u64,
}

impl LogTally {
    /// Counts the rows of the log at `path`.
    pub(super) fn new(path: &str, stored_bytes: u64, chunk: &Chunk) -> Self {
        let mut tally = RowTally::default();
        chunk.records().as_chunks().0.iter().for_each(|row| tally.add(&StepRow::from_aligned(row)));
        // A sidecar that cannot be read says as much as none.
        let said = sidecar::beside(path).ok().flatten();
        LogTally { tally, said, stored_bytes, text_bytes: chunk.text }
    }

    /// Steps of the game.
    pub(super) fn rows(&self) -> u64 {
        self.tally.rows
    }
}

impl StepCounting {
    /// Counts those blocks of rows of the pack in `folder` that are at `place`, on several threads.
    ///
    /// Errors: what of the pack cannot be read; `Stopped`.
    pub(super) fn rows(
        &mut self,
        folder: &Path,
        place: Place,
        workers: usize,
        stop: &Arc<AtomicBool>,
        counted: &mut Counted,
    ) -> Result<()> {
        let files =
            shards::list(folder)?.into_iter().map(|shard| Ok(RowsOf::open(shard)?)).collect::<Result<Vec<_>>>()?;
        let types = open::valuations(folder)?;
        counted.files += if place.begins() { files.len() as u64 } else { 0 };
        let total = files.iter().map(|file| file.shard.rows).sum();
        let mut blocks = rows::blocks(&files);
        blocks.retain(|block| place.has_rows(block.start, block.rows, total));
        for block in &blocks {
            counted.rows += block.rows;
            counted.bytes += block.rows * files[block.file].shard.layout.size() as u64;
        }
        let (number, blocks, files) = (blocks.len(), Arc::<[RowBlock]>::from(blocks), Arc::<[RowsOf]>::from(files));
        let count = move |i: usize| -> gristmill_format::Result<RowTally> {
            let (mut stored, mut aligned, mut tally) = (Vec::new(), Vec::new(), RowTally::default());
            let RowBlock { file, first, rows, .. } = blocks[i];
            files[file].read(first, rows, &mut stored, &mut aligned)?;
            aligned.as_chunks().0.iter().for_each(|row| tally.add(&StepRow::from_aligned(row)));
            Ok(tally)
        };
        let flow = InOrder::start(workers, number, stop.clone(), count);
        let mut flow = flow.map_err(|e| Error::path(folder, &e))?;
        let mut of_pack = RowTally::default();
        while let Some(block) = flow.next()? {
            of_pack.join(block?);
        }
        self.named(of_pack, types.names());
        Ok(())
    }

    /// Counts the games of the pack in `folder`, which its database has.
    ///
    /// Errors: a database that cannot be read.
    pub(super) fn games(&mut self, folder: &Path, counted: &mut Counted) -> Result<()> {
        Metadata::open(folder.join(METADATA))?.runs(&mut |run| {
            counted.games += 1;
            self.game(run.steps, Some(run.max_score), run.highest_tile);
            Ok(())
        })
    }

    /// Counts the game of a log.
    pub(super) fn log(&mut self, log: LogTally) {
        let tile = log.said.as_ref().map_or(log.tally.highest_tile(), |said| said.max_tile.into());
        self.game(log.rows(), log.said.map(|said| said.score), tile);
        self.named(log.tally, &KNOWN_VALUATIONS);
    }

    fn game(&mut self, steps: u64, score: Option<u64>, tile: u64) {
        self.games += 1;
        self.length.add(steps);
        score.into_iter().for_each(|score| self.score.add(score));
        *self.highest_tiles.entry(tile).or_default() += 1;
    }

    /// Takes in rows whose valuation ids stand for `names`.
    fn named(&mut self, mut tally: RowTally, names: &[impl AsRef<str>]) {
        for (id, of_id) in std::mem::take(&mut tally.valuations) {
            let name = names.get(usize::from(id)).map_or(format!("id {id}"), |name| name.as_ref().to_owned());
            self.valuations.entry(name).or_default().join(of_id);
        }
        self.rows.join(tally);
    }

    /// Takes in what was counted elsewhere.
    pub(super) fn join(&mut self, other: StepCounting) {
        self.games += other.games;
        self.score.join(other.score);
        self.length.join(other.length);
        for (tile, games) in other.highest_tiles {
            *self.highest_tiles.entry(tile).or_default() += games;
        }
        self.rows.join(other.rows);
        for (name, of_name) in other.valuations {
            self.valuations.entry(name).or_default().join(of_name);
        }
    }

    /// The result; none where there was no game.
    pub(super) fn finish(self) -> Option<StepStats> {
        let RowTally { rows, moves, legal, .. } = self.rows;
        (self.games > 0).then(|| StepStats {
            games: self.games,
            rows,
            score: self.score.spread(),
            length: self.length.spread(),
            highest_tiles: self.highest_tiles,
            moves: tally::by_move(moves),
            legal_moves: (0..).zip(legal).filter(|(_, count)| *count > 0).collect(),
            valuations: self.valuations.into_iter().map(|(name, of_name)| (name, of_name.finish())).collect(),
        })
    }
}
