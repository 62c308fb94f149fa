//! The work lane's second half: frames from blocks into slots, slots into the rows of a batch, reservoirs refilled.
//! Each frame is copied here twice and nowhere else.

use gristmill_format::encode::Row;
use gristmill_format::layout::Conform;
use gristmill_format::source::Chunk;

use super::{Chain, Refill, keep};
use crate::error::Error;
use crate::pipeline::fold::{Fill, Piece};
use crate::pipeline::roster::Roster;
use crate::runtime::scheduler::Lane;

impl Chain {
    pub(super) fn fill_one(&self, fill: Fill) {
        if let Some(conform) = &fill.block.conform {
            self.totals.filling.during(|| self.copy(&fill.block.chunk, conform, &fill.rows));
        }
        let mut inner = self.lock();
        inner.fold.filled(fill.number);
        keep(&mut inner.spare_chunks, fill.block);
        drop(inner);
        self.shared.signal.notify(Lane::Work);
    }

    fn copy(&self, chunk: &Chunk, conform: &Conform, rows: &[(u32, u32)]) {
        let size = self.conforms.size();
        for &(frame, slot) in rows {
            self.arena.fill(slot, |bytes| conform.record(chunk.record(frame as usize), &mut bytes[..size]));
        }
    }

    pub(super) fn encode_one(&self, piece: Piece) {
        let Piece { batch, first, rows, sheet, .. } = piece;
        let slots: Vec<u32> = rows.iter().map(|(slot, _)| *slot).collect();
        let size = self.conforms.size();
        let encoder = &*self.plan.encoder;
        let ordinal = batch * self.plan.batch_size as u64 + first as u64;
        let bits = |row: u64| if encoder.draws() { self.row_key.at(ordinal + row).bits() } else { 0 };
        let encoded = self.totals.encoding.during(|| {
            self.arena.drain(&slots, |views| {
                let rows = (0..).zip(views.iter().zip(&rows));
                let input: Vec<Row<'_>> = rows
                    .map(|(i, (record, (_, from)))| Row { record: &record[..size], provenance: *from, bits: bits(i) })
                    .collect();
                sheet.write(first, input.len(), |columns| encoder.encode(&input, columns))
            })
        });
        drop(sheet);
        let mut inner = self.lock();
        inner.encoding -= 1;
        inner.fold.encoded(batch, slots.into_iter());
        if let Err(error) = encoded {
            self.fail(&mut inner, error.into());
        }
        self.settle(&mut inner);
        drop(inner);
        self.shared.signal.notify(Lane::Work);
    }

    /// Reads the rows of one chunk that a restored reservoir held.
    pub(super) fn refill_one(&self, refill: Refill, roster: &Roster, mut chunk: Chunk) {
        let mut bytes = Vec::new();
        let read = roster.open(refill.source).and_then(|source| {
            source.fetch(refill.chunk as usize, &self.shared.limits, &mut bytes)?;
            let conform = self.prepare(refill.branch, &source, refill.chunk, &bytes, &mut chunk).map_err(|(_, e)| e)?;
            match refill.rows.iter().find(|(frame, _)| *frame as usize >= chunk.frames) {
                Some((frame, _)) => Err(Error::State(format!("{} has no frame {frame} any more", source.path()))),
                None => Ok(conform),
            }
        });
        if let Ok(conform) = &read {
            self.copy(&chunk, conform, &refill.rows);
        }
        let mut inner = self.lock();
        inner.refilling -= 1;
        inner.spare_chunks.push(chunk);
        if let Err(error) = read {
            self.fail(&mut inner, error);
        }
        self.settle(&mut inner);
        drop(inner);
        self.shared.signal.notify(Lane::Work);
    }
}
