//! The work lane's second half: frames from blocks into slots, slots into the rows of a batch.
//! Each frame is copied here twice and nowhere else.

use gristmill_format::encode::{RandomBits, Row};
use gristmill_format::layout::Conform;
use gristmill_format::source::Chunk;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::scheduler::Lane;
use gristmill_runtime::table::random_bits;

use super::{Chain, keep};
use crate::pipeline::chain::pieces::{Fill, Piece};
use crate::pipeline::ledger::Digests;
use crate::pipeline::plan::ChainPlan;

impl Chain {
    pub(super) fn fill_one(&self, fill: Fill) {
        self.shared.time.works();
        let copied = match &fill.block.conform {
            Some(conform) => self.totals.filling.during(|| self.copy(&fill.block.chunk, conform, &fill.rows)),
            None => {
                self.fill_blindly(&fill.rows);
                Ok(())
            }
        };
        let mut inner = self.lock();
        if let Err(error) = copied {
            self.fail(&mut inner, error);
        }
        inner.fold.filled(fill.number);
        keep(&mut inner.spare_chunks, fill.block);
        self.further(&inner);
        drop(inner);
        self.shared.signal.notify(Lane::Work);
    }

    /// Errors: `Config` where records are not what a reservoir's memory was reckoned for.
    pub(super) fn copy(&self, chunk: &Chunk, conform: &Conform, rows: &[(u32, u32)]) -> Result<()> {
        if self.shared.sight.is_some() {
            self.fill_blindly(rows);
            return Ok(());
        }
        let mut scratch = self.slots.scratch();
        let mut fits = true;
        for &(frame, slot) in rows {
            let record = |bytes: &mut [u8]| conform.record(chunk.record(frame as usize), bytes);
            fits &= self.slots.fill(slot, &mut scratch, record).is_ok();
        }
        if fits { Ok(()) } else { Err(no_room(&self.plan)) }
    }

    pub(super) fn encode_one(&self, piece: Piece) {
        self.shared.time.works();
        let Piece { batch, first, rows, sheet, .. } = piece;
        let slots: Vec<u32> = rows.iter().map(|(slot, _)| *slot).collect();
        let encoder = &*self.plan.encoder;
        let ordinal = batch * self.plan.batch_size as u64 + first as u64;
        let bits = |row: u64| match encoder.draws() {
            true => random_bits(&mut self.row_key.at(self.plan.ranks.row(ordinal + row))),
            false => RandomBits::default(),
        };
        let encoded = self.totals.encoding.during(|| {
            self.slots.drain(&slots, |done, records| {
                let rows = (done..).zip(records.iter().zip(&rows[done..]));
                let input: Vec<Row<'_>> = rows
                    .map(|(i, (record, (_, from)))| Row {
                        record,
                        provenance: *from,
                        bits: bits(i as u64),
                        sparse: None,
                    })
                    .collect();
                sheet.write(first + done, input.len(), |columns| encoder.encode(&input, columns))
            })
        });
        drop(sheet);
        self.shared.time.works();
        let mut digests = Digests::default();
        if self.shared.book.is_some() {
            for (_, from) in &rows {
                digests.frame(self.files.of(from.source), from.chunk, from.frame);
            }
        }
        let mut inner = self.lock();
        inner.encoding -= 1;
        if self.shared.book.is_some() {
            inner.digests.entry(batch).or_default().merge(digests.iter());
        }
        inner.fold.encoded(batch, slots.into_iter());
        if let Err(error) = encoded {
            self.fail(&mut inner, error.into());
        }
        self.settle(&mut inner);
        drop(inner);
        self.shared.signal.notify(Lane::Work);
    }
}

/// The error where records do not fold as those of their task do, and the bound has no room for them unfolded.
fn no_room(plan: &ChainPlan) -> Error {
    let whole = plan.encoder.input().size() * plan.held();
    let text = format!(
        "too many records of this stream have long arrays of many different values, which no position has: the reservoir holds \
         them whole, up to {} MiB in all; raise the bound by as much, or lower the reservoir",
        whole >> 20
    );
    Error::config("memory", text)
}
