//! A pack of 2048 -> the fields that rules may use, the hash that shows whether it only grew, and the identity of its
//! runs.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::g2048::StepRow;
use gristmill_format::g2048::identity::{Identity, RunIdentity};
use gristmill_format::layout::Conform;
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::table::{FrameTable, JoinedTable};
use xxhash_rust::xxh3::Xxh3;

use super::open::{Pack, sample_up_to};
use super::runs::SCANNED;
use crate::content::{Content, Contents};
use crate::marks::{Markable, Place};

/// What lies beside rows, where values do.
const VALUES: [&str; 3] = ["reward", "return_raw", "return_scaled"];

impl Markable for Arc<Pack> {
    fn folder(&self) -> &Path {
        Pack::folder(self)
    }

    fn records(&self) -> Result<Arc<dyn FrameTable>> {
        let mut table = Arc::clone(self.table());
        // Values of other rows count as none: a rule that names them gets the error that there is no such column.
        if let Ok(Some(values)) = self.values() {
            for name in VALUES {
                table = Arc::new(JoinedTable::new(table, values.table.clone(), name)?);
            }
        }
        Ok(table)
    }

    fn games_table(&self) -> &'static str {
        "runs"
    }

    fn place(&self, frame: u64) -> Result<Place> {
        let found = self.index().stretch_of(frame);
        let (first, end, game) =
            found.ok_or_else(|| Error::new(Kind::Missing, format!("row {frame} of {}", self.table().len())))?;
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
        self.table().len()
    }

    fn identity_of(&self, frames: u64) -> Option<u64> {
        if frames > self.table().len() {
            return None;
        }
        let mut hash = Xxh3::new();
        hash.update(self.table().layout().to_descr().as_bytes());
        for (first, run) in self.index().stretches().take_while(|(first, _)| *first < frames) {
            for number in [first, run.id, run.seed.unwrap_or(u64::MAX)] {
                hash.update(&number.to_le_bytes());
            }
        }
        sample_up_to(&**self.table(), frames, &mut hash).ok()?;
        Some(hash.digest())
    }
}

impl Contents for Arc<Pack> {
    fn count(&self) -> usize {
        self.index().runs().len()
    }

    fn contents(&self, from: usize, to: usize) -> Result<Vec<Content>> {
        let table = self.table();
        let size = table.layout().size();
        let run_id = table.layout().field("run_id").map_or(0..0, |field| field.offset..field.offset + field.bytes());
        let (mut records, mut found) = (Vec::new(), Vec::new());
        let ids = self.index().runs().iter().map(|run| run.id).skip(from);
        for (game, stretches) in ids.zip(self.index().stretches_of(from, to)) {
            let (mut run, mut hash) = (RunIdentity::default(), Xxh3::new());
            for (start, end) in stretches {
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
            found.push(Content { game, key, image, records: hash.digest128() });
        }
        Ok(found)
    }

    fn known(&self) -> gristmill_runtime::Result<Option<Vec<Content>>> {
        Ok(None)
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
        self.index().rows_of(&places.map(|place| place as u32).collect::<Vec<_>>(), &**self.table())
    }
}

impl Pack {
    /// The step of a record of this pack, or of one that begins with such a record.
    fn step(&self, record: &[u8]) -> Result<StepRow> {
        let layout = self.table().layout();
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
