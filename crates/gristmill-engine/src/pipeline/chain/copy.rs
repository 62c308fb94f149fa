//! The work lane's second half: frames from blocks into slots, slots into the rows of a batch, reservoirs refilled.
//! Each frame is copied here twice and nowhere else.

use gristmill_format::encode::{Provenance, RandomBits, Row};
use gristmill_format::layout::Conform;
use gristmill_format::source::Chunk;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::counted::Counted;
use gristmill_runtime::runtime::scheduler::Lane;
use gristmill_runtime::table::random_bits;
use gristmill_stages::stage::Row as Origin;

use super::{Chain, KEEP_BYTES, Refill, keep};
use crate::pipeline::chain::fold::{Fill, Piece};
use crate::pipeline::draw::outage::of_reading;
use crate::pipeline::draw::roster::Roster;
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
    fn copy(&self, chunk: &Chunk, conform: &Conform, rows: &[(u32, u32)]) -> Result<()> {
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

    /// Reads the rows of one chunk that a restored reservoir or cache held.
    pub(super) fn refill_one(&self, refill: Refill, roster: &Roster, mut chunk: Counted<Chunk>) {
        let read = if self.shared.sight.is_some() && refill.cached.is_empty() && self.position.is_empty() {
            self.fill_blindly(&refill.rows);
            Ok(Again::default())
        } else {
            self.refill_slots(&refill, roster, &mut chunk)
        };
        let mut inner = self.lock();
        inner.refilling -= 1;
        if let Err(Error::Format(error)) = &read
            && roster.may_have_moved(refill.source, error)
        {
            self.shared.outages.rest(refill.source);
            inner.refills.push(refill);
            return;
        }
        if chunk.bytes.capacity() <= KEEP_BYTES {
            inner.spare_chunks.push(chunk);
        }
        if let Err(error) = &read
            && let Some(refused) = of_reading(error)
        {
            match self.shared.outages.failed(refill.source, refused) {
                Ok(()) => inner.refills.push(refill),
                Err(error) => self.fail(&mut inner, error),
            }
            drop(inner);
            return;
        }
        self.shared.outages.over(refill.source, read.is_ok());
        match read {
            Ok(Again { cached, keys }) => {
                inner.branches[refill.branch].cached.extend(cached);
                inner.fold.keyed(keys.into_iter());
            }
            Err(error) if !refill.rows.is_empty() => self.fail(&mut inner, error),
            // It was bad when the cache was to keep it, and gives nothing when it is looked for.
            Err(_) => inner.fold.free.extend(refill.cached.iter().map(|(_, slot)| *slot)),
        }
        self.settle(&mut inner);
        drop(inner);
        self.shared.signal.notify(Lane::Work);
    }

    /// Decodes the chunk of a refill and copies its rows into their slots; finds the rows of the uses that the cache held.
    fn refill_slots(&self, refill: &Refill, roster: &Roster, chunk: &mut Counted<Chunk>) -> Result<Again> {
        let (b, index) = (refill.branch, refill.chunk);
        let source = roster.open(refill.source)?;
        let mut bytes = Vec::new();
        source.fetch(index as usize, &self.shared.limits, &mut bytes)?;
        let prepared = self.prepare(b, &source, index, &mut bytes, chunk);
        chunk.takes(chunk.bytes.capacity());
        let conform = prepared.map_err(|(_, e)| e)?;
        if let Some((frame, _)) = refill.rows.iter().find(|(frame, _)| *frame as usize >= chunk.frames) {
            return Err(Error::State(format!("{} has no frame {frame} any more", source.path())));
        }
        let weights = self.frame_weights(b, &source, index, chunk).map_err(|(_, e)| e)?;
        let row = |&((place, use_count), slot): &((u64, u16), u32)| {
            let mut rows = Vec::new();
            self.rows_of_use(b, &source, index, (chunk.frames, weights.as_deref()), use_count, &mut rows);
            let from = Provenance { source: refill.source, chunk: index, frame: *rows.first()? };
            Some(((place, use_count), Origin { slot, branch: u32::try_from(b).ok()?, from }))
        };
        let cached: Vec<Cached> = refill.cached.iter().filter_map(row).collect();
        let kept = cached.iter().map(|(_, row)| (row.from.frame, row.slot));
        let rows: Vec<(u32, u32)> = refill.rows.iter().copied().chain(kept).collect();
        self.copy(chunk, &conform, &rows)?;
        let keys = self.keys(chunk, &conform, rows.iter().map(|(frame, _)| *frame as usize));
        Ok(Again { keys: rows.iter().map(|(_, slot)| *slot).zip(keys).collect(), cached })
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

/// Place of a chunk and number of a use, and the row that the cache holds for it.
type Cached = ((u64, u16), Origin);

/// What was found where rows were read again.
#[derive(Debug, Default)]
struct Again {
    cached: Vec<Cached>,
    /// Slots, and what stands for the positions of their rows.
    keys: Vec<(u32, u64)>,
}
