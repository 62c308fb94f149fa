//! A pack of rows as every pack is seen: its runs are games, with keys, sources and identities; the fields that rules may
//! use; the hash that shows whether it only grew.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::g2048::StepRow;
use gristmill_format::g2048::identity::{Identity, RunIdentity};
use gristmill_format::layout::Conform;
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::table::{FileTable, FrameTable, JoinedTable};
use xxhash_rust::xxh3::Xxh3;

use super::metadata::Run;
use super::open::{RowPack, sample_up_to};
use super::runs::SCANNED;
use crate::pack_table::{Content, PackTable, Place, Values};

/// What lies beside rows, where values do.
const VALUES: [&str; 3] = ["reward", "return_raw", "return_scaled"];

impl PackTable for RowPack {
    fn folder(&self) -> &Path {
        RowPack::folder(self)
    }

    fn form(&self) -> &'static str {
        RowPack::form(self).name()
    }

    fn identity(&self) -> u64 {
        RowPack::identity(self)
    }

    fn table(self: Arc<Self>) -> Arc<dyn FrameTable> {
        Arc::clone(RowPack::table(&self))
    }

    fn game_ids(&self) -> Vec<u64> {
        self.index().runs().iter().map(|run| run.id).collect()
    }

    fn stretches(&self, game: u64) -> Vec<(u64, u64)> {
        self.index().stretches_of(game)
    }

    fn split_keys(&self, games: &[u64]) -> gristmill_runtime::Result<Vec<(u64, u64)>> {
        let runs = self.index().runs();
        let key = |id: &u64| {
            let place = runs.binary_search_by_key(id, |run| run.id).ok()?;
            Some((*id, runs[place].seed.unwrap_or(*id)))
        };
        Ok(games.iter().filter_map(key).collect())
    }

    fn source(&self, game: u64) -> Option<String> {
        RowPack::source(self, game)
    }

    fn slices_games(&self) -> bool {
        false
    }

    fn names_of_valuations(&self) -> &[String] {
        self.valuations().names()
    }

    fn values(&self) -> gristmill_runtime::Result<Option<&Values>> {
        RowPack::values(self)
    }

    fn embeddings(&self) -> Option<&FileTable> {
        RowPack::embeddings(self)
    }

    fn records(self: Arc<Self>) -> Result<Arc<dyn FrameTable>> {
        let mut table = Arc::clone(RowPack::table(&self));
        // Values of other rows count as none: a rule that names them gets the error that there is no such column.
        if let Ok(Some(values)) = RowPack::values(&self) {
            for name in VALUES {
                table = Arc::new(JoinedTable::new(table, values.table.clone(), name)?);
            }
        }
        Ok(table)
    }

    fn games_table(&self) -> &'static str {
        "runs"
    }

    fn class_column(&self) -> Option<&'static str> {
        Some("highest_tile")
    }

    fn place(&self, frame: u64) -> Result<Place> {
        let found = self.index().stretch_of(frame);
        let (first, end, game) =
            found.ok_or_else(|| Error::new(Kind::Missing, format!("row {frame} of {}", RowPack::table(self).len())))?;
        Ok(Place { game, first, end })
    }

    fn derived(&self) -> &'static [&'static str] {
        &["max_exponent", "empty_cells", "tile_sum"]
    }

    fn derive(&self, i: usize, record: &[u8]) -> Result<i64> {
        let board = self.step(record)?.decoded_board();
        Ok(match i {
            0 => board.max_rank().into(),
            1 => board.ranks().iter().filter(|rank| **rank == 0).count() as i64,
            _ => board.sum_tile().cast_signed(),
        })
    }

    fn total(&self) -> u64 {
        RowPack::table(self).len()
    }

    fn identity_of(&self, frames: u64) -> Option<u64> {
        if frames > RowPack::table(self).len() {
            return None;
        }
        let mut hash = Xxh3::new();
        hash.update(RowPack::table(self).layout().to_descr().as_bytes());
        for (first, run) in self.index().stretches().take_while(|(first, _)| *first < frames) {
            for number in [first, run.id, run.seed.unwrap_or(u64::MAX)] {
                hash.update(&number.to_le_bytes());
            }
        }
        sample_up_to(&**RowPack::table(self), frames, &mut hash).ok()?;
        Some(hash.digest())
    }

    fn contents(&self, from: usize, to: usize) -> Result<Vec<Content>> {
        let table = RowPack::table(self);
        let size = table.layout().size();
        let run_id = table.layout().field("run_id").map_or(0..0, |field| field.offset..field.offset + field.bytes());
        let (mut records, mut found) = (Vec::new(), Vec::new());
        for Run { id: game, .. } in &self.index().runs()[from..to] {
            let (mut run, mut hash) = (RunIdentity::default(), Xxh3::new());
            for (start, end) in self.index().stretches_of(*game) {
                for first in (start..end).step_by(SCANNED as usize) {
                    let rows: Vec<u64> = (first..end.min(first + SCANNED)).collect();
                    records.resize(rows.len() * size, 0);
                    table.gather(&rows, &mut records)?;
                    for (row, record) in rows.iter().zip(records.chunks_exact_mut(size)) {
                        let step = self.step(record).map_err(|e| {
                            let (file, row) = table.locate(*row);
                            e.in_source(file).in_frame(usize::try_from(row).unwrap_or(usize::MAX))
                        })?;
                        run.step(step.board, step.tile_65536_mask, step.move_dir);
                        record[run_id.clone()].fill(0);
                    }
                    hash.update(&records);
                }
            }
            let Identity { key, image } = run.finish();
            found.push(Content { game: *game, key, image, records: hash.digest128() });
        }
        Ok(found)
    }

    fn sources(&self) -> gristmill_runtime::Result<HashMap<u64, String>> {
        let mut sources = HashMap::new();
        self.metadata()?.extras(&mut |extra| {
            sources.insert(extra.run_id, extra.source);
            Ok(())
        })?;
        Ok(sources)
    }

    fn frames_of(&self, games: &[u64]) -> gristmill_runtime::Result<Intervals> {
        let runs = self.index().runs();
        let places = games.iter().filter_map(|id| runs.binary_search_by_key(id, |run| run.id).ok());
        self.index().rows_of(&places.map(|place| place as u32).collect::<Vec<_>>(), &**RowPack::table(self))
    }
}

impl RowPack {
    /// The step of a record of this pack, or of one that begins with such a record.
    fn step(&self, record: &[u8]) -> Result<StepRow> {
        let layout = RowPack::table(self).layout();
        let own = record.get(..layout.size()).unwrap_or(record);
        let form = self.columns().form().layout();
        if layout == &**form {
            return Ok(self.columns().step(own)?.row);
        }
        let mut conformed = [0; 64];
        let to = &mut conformed[..form.size()];
        Conform::new(layout, form)?.record(own, to);
        Ok(self.columns().step(to)?.row)
    }
}
