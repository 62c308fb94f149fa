//! The work lane's second half: frames from blocks into slots, slots into the rows of a batch, reservoirs refilled.
//! Each frame is copied here twice and nowhere else.

use gristmill_format::encode::{Encoder, Row};
use gristmill_format::source::Chunk;

use super::{Chain, Refill, keep};
use crate::error::Error;
use crate::pipeline::fold::{Fill, Piece};
use crate::pipeline::roster::Roster;
use crate::runtime::scheduler::Lane;

impl Chain {
    pub(super) fn fill_one(&self, fill: Fill) {
        self.totals.filling.during(|| self.copy(&fill.block.chunk, &fill.rows));
        let mut inner = self.lock();
        inner.fold.filled(fill.number);
        keep(&mut inner.spare_chunks, fill.block);
        drop(inner);
        self.shared.signal.notify(Lane::Work);
    }

    fn copy(&self, chunk: &Chunk, rows: &[(u32, u32)]) {
        let size = self.encoder.input().size();
        let narrow = chunk.layout.as_ref().is_some_and(|layout| layout.size() < size);
        let conform = &self.widen[usize::from(!narrow)];
        for &(frame, slot) in rows {
            self.arena.fill(slot, |bytes| conform.record(chunk.record(frame as usize), &mut bytes[..size]));
        }
    }

    pub(super) fn encode_one(&self, piece: Piece) {
        let Piece { batch, first, rows, sheet, .. } = piece;
        let slots: Vec<u32> = rows.iter().map(|(slot, _)| *slot).collect();
        let size = self.encoder.input().size();
        let encoded = self.totals.encoding.during(|| {
            self.arena.drain(&slots, |views| {
                let views = views.iter().zip(&rows);
                let input: Vec<Row<'_>> =
                    views.map(|(record, (_, from))| Row { record: &record[..size], provenance: *from }).collect();
                sheet.write(first, input.len(), |columns| self.encoder.encode(&input, columns))
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
            source.decode(refill.chunk as usize, &bytes, &self.shared.limits, &mut chunk)?;
            match refill.rows.iter().find(|(frame, _)| *frame as usize >= chunk.frames) {
                Some((frame, _)) => Err(Error::State(format!("{} has no frame {frame} any more", source.path()))),
                None => Ok(()),
            }
        });
        if read.is_ok() {
            self.copy(&chunk, &refill.rows);
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
