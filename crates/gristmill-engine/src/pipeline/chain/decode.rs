//! The work lane's first half: fetched bytes -> a weight to decide by, or a block with its selected rows; oldest first.
//! One fused task per chunk; what a bad chunk leaves is an empty block with the reason.

use std::sync::{Arc, MutexGuard};

use gristmill_format::layout::Conform;
use gristmill_format::source::Chunk;
use gristmill_format::weigh::total;
use gristmill_runtime::runtime::counted::Counted;
use gristmill_runtime::runtime::scheduler::Lane;
use gristmill_stages::stage::Draw;
use gristmill_stages::stage::load::Source;
use gristmill_stages::stage::pool::Contents;

use super::refill::Step;
use super::room::size_hint;
use super::{Chain, Fault, Inner, is_spare};
use crate::pipeline::draw::branch::{Block, Phase};
use crate::pipeline::draw::verdict::Scope;

/// A use of a chunk, as a task needs to know it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    pub(super) branch: usize,
    pub(super) id: u64,
    pub(super) draw: Draw,
    /// Further uses whose rows the cache keeps.
    pub(super) keep: u32,
    /// Frames of the chunk, where they are known.
    pub(super) frames: Option<usize>,
}

/// The rows of a use of a chunk, and how its records become the chain's.
struct Selected {
    conform: Arc<Conform>,
    rows: Vec<u32>,
    /// Whether the chunk holds just these rows.
    alone: bool,
}

impl Chain {
    pub(super) fn decode_one(&self, mut inner: MutexGuard<'_, Inner>) -> bool {
        let within = self.work_window();
        let inputs = self.plan.inputs();
        let decoding = |input| inner.branches.iter().skip(input).step_by(inputs).map(|branch| branch.decoding).sum();
        let decoding: Vec<usize> = (0..inputs).map(decoding).collect();
        let urgent = inner.urgent();
        let open = inner.branches.iter_mut().enumerate().filter_map(|(b, branch)| {
            let (head, free) = (branch.head, decoding[b % inputs] < branch.plan.ceiling);
            let (number, ticket) = branch.next_to_decode(within).filter(|_| free)?;
            let stored = match &ticket.phase {
                Phase::Read(_, bytes) => Some(size_hint(bytes)),
                _ => None,
            };
            Some((urgent != Some((b, number)), number - head, b, stored))
        });
        let Some((waits, _, b, size)) = open.min() else { return false };
        if let Some(size) = size
            && !inner.has_room_to_decode(size, !waits)
        {
            return false;
        }
        let mut chunk = if size.is_some() { inner.chunk() } else { Counted::default() };
        if let Some(size) = size {
            chunk.takes(size.min(self.shared.limits.max_chunk_bytes).max(chunk.bytes.capacity()));
        }
        let branch = &mut inner.branches[b];
        let Some((number, ticket)) = branch.next_to_decode(within) else { return false };
        let (taken, phase) = (ticket.taken, std::mem::replace(&mut ticket.phase, Phase::Busy));
        let (id, draw, keep) = (ticket.source, ticket.draw, ticket.keep);
        let known = branch.accept.as_ref().and_then(|accept| accept.known(draw.place));
        let frames = known.map(|contents| contents.frames as usize).filter(|frames| *frames > 0);
        let of = Use { branch: b, id, draw, keep, frames };
        branch.decoding += 1;
        inner.fold.refills.ticket(Step::Decode);
        self.further(&inner);
        drop(inner);
        self.shared.time.works();
        let mut spare = None;
        let (phase, contents, bytes) = match phase {
            Phase::Read(source, mut bytes) if taken => {
                let selected = self.read_rows(of, &source, &mut bytes, &mut chunk);
                bytes.takes(bytes.capacity());
                (self.block(of, selected, chunk), None, Some(bytes))
            }
            Phase::Read(source, mut bytes) => match self.weigh(of, &source, &mut bytes, &mut chunk) {
                Ok(contents) if source.is_judged_alone(draw.at.chunk as usize) => {
                    chunk.takes(chunk.bytes.capacity());
                    spare = Some(chunk);
                    (Phase::Read(source, bytes), Some(contents), None)
                }
                Ok(contents) => {
                    chunk.takes(chunk.bytes.capacity());
                    bytes.takes(bytes.capacity());
                    (Phase::Weighed(source, chunk), Some(contents), Some(bytes))
                }
                Err(fault) => (self.block(of, Err(fault), chunk), None, Some(bytes)),
            },
            Phase::Weighed(source, mut weighed) => {
                let refined = self.refine(b, &source, draw.at.chunk, &mut weighed);
                let selected = refined.and_then(|conform| self.select(of, &source, &weighed, conform));
                (self.block(of, selected, weighed), None, None)
            }
            other => (other, None, None),
        };
        let mut inner = self.lock();
        inner.spare_bytes.extend(bytes.filter(|bytes| is_spare(bytes.capacity())));
        inner.spare_chunks.extend(spare.filter(|chunk| is_spare(chunk.bytes.capacity())));
        let branch = &mut inner.branches[b];
        branch.decoding -= 1;
        if let Some(contents) = contents {
            branch.learn(draw.place, contents);
        }
        if let Some(ticket) = branch.ticket(number) {
            ticket.phase = phase;
        }
        self.settle(&mut inner);
        drop(inner);
        self.shared.signal.notify(Lane::Work);
        true
    }

    /// Decodes a chunk, or what of it weighs, and weighs it as its bytes are, before any pass; the side index learns both.
    fn weigh(&self, of: Use, source: &Source, bytes: &mut Vec<u8>, chunk: &mut Chunk) -> Result<Contents, Fault> {
        let (b, index) = (of.branch, of.draw.at.chunk as usize);
        if source.is_judged_alone(index) {
            self.decode_judged(b, source, index, bytes, chunk)?;
        } else {
            self.decode(b, source, of.draw.at.chunk, bytes, chunk)?;
        }
        self.branch_totals[b].weighed.add(1);
        let Some(accept) = &self.plan.branches[b].accept else { return Ok(Contents { frames: 0, weight: 0.0 }) };
        let mut weights = Vec::new();
        let refused = |e| (Scope::Branch(self.plan.branches[b].number), source.place(e, index));
        accept.weigher.weigh(chunk, &mut weights).map_err(refused)?;
        let weight = total(weights);
        if accept.weigher.uniform().is_none() {
            source.record_weight(accept.weigher.id(), index, weight);
        }
        Ok(Contents { frames: u32::try_from(chunk.frames).unwrap_or(0), weight })
    }

    /// Decodes as much of a chunk as the rows of a use need, sends it through the passes, and selects the rows.
    fn read_rows(&self, of: Use, source: &Source, bytes: &mut Vec<u8>, chunk: &mut Chunk) -> Result<Selected, Fault> {
        let (b, index) = (of.branch, of.draw.at.chunk);
        let plan = &self.plan.branches[b];
        let frames = of.frames.or_else(|| source.frames(index as usize).map(|frames| frames as usize));
        if let Some(frames) = frames.filter(|_| plan.passes.is_empty()) {
            if let Some(selected) = self.rows_alone(of, source, frames, bytes, chunk)? {
                return Ok(selected);
            }
            if plan.frame_weigher.is_none() {
                let rows = self.rows(of, source, frames, None);
                let needed = rows.iter().max().map_or(1, |last| *last as usize + 1);
                if self.decode_head(b, source, (index, needed, frames), bytes, chunk)? {
                    let conform = self.refine(b, source, index, chunk)?;
                    return Ok(Selected { conform, rows, alone: false });
                }
            }
        }
        self.decode(b, source, index, bytes, chunk)?;
        let conform = self.refine(b, source, index, chunk)?;
        self.select(of, source, chunk, conform)
    }

    /// The rows of a use of a chunk of `frames` frames, read by themselves; `None` where they cannot be.
    fn rows_alone(
        &self,
        of: Use,
        source: &Source,
        frames: usize,
        bytes: &[u8],
        chunk: &mut Chunk,
    ) -> Result<Option<Selected>, Fault> {
        let (b, index) = (of.branch, of.draw.at.chunk as usize);
        if source.chunks.frames(index) != Some(frames) {
            return Ok(None);
        }
        if self.plan.branches[b].frame_weigher.is_some() {
            self.decode_judged(b, source, index, bytes, chunk)?;
        }
        let weights = self.frame_weights(b, source, of.draw.at.chunk, chunk)?;
        let rows = self.rows(of, source, frames, weights.as_deref());
        // All frames are not read one by one: the whole may need no copy.
        let all = rows.len() >= frames && self.plan.branches[b].frame_weigher.is_none();
        if all || !self.decode_rows(b, source, (index, &rows), bytes, chunk)? {
            return Ok(None);
        }
        let conform = self.refine(b, source, of.draw.at.chunk, chunk)?;
        Ok(Some(Selected { conform, rows, alone: true }))
    }

    /// The rows of a use of a decoded chunk.
    fn select(&self, of: Use, source: &Source, chunk: &Chunk, conform: Arc<Conform>) -> Result<Selected, Fault> {
        let weights = self.frame_weights(of.branch, source, of.draw.at.chunk, chunk)?;
        let rows = self.rows(of, source, chunk.frames, weights.as_deref());
        Ok(Selected { conform, rows, alone: false })
    }

    /// What the frames of a chunk weigh for the unpacker, where not all weigh the same.
    pub(super) fn frame_weights(
        &self,
        branch: usize,
        source: &Source,
        index: u32,
        chunk: &Chunk,
    ) -> Result<Option<Vec<f32>>, Fault> {
        let plan = &self.plan.branches[branch];
        let Some(weigher) = &plan.frame_weigher else { return Ok(None) };
        let mut weights = Vec::new();
        let refused = |e| (Scope::Branch(plan.number), source.place(e, index as usize));
        weigher.weigh(chunk, &mut weights).map_err(refused)?;
        Ok(Some(weights))
    }

    pub(super) fn rows(&self, of: Use, source: &Source, frames: usize, weights: Option<&[f32]>) -> Vec<u32> {
        let mut rows = Vec::new();
        for ahead in 0..=of.keep {
            let use_count = of.draw.use_count.wrapping_add(ahead as u16);
            self.rows_of_use(of.branch, source, of.draw.at.chunk, (frames, weights), use_count, &mut rows);
        }
        rows
    }

    /// Appends the rows of one use of a chunk: a function of the seed, the chunk and the use alone.
    pub(super) fn rows_of_use(
        &self,
        branch: usize,
        source: &Source,
        chunk: u32,
        (frames, weights): (usize, Option<&[f32]>),
        use_count: u16,
        rows: &mut Vec<u32>,
    ) {
        let own = self.unpack_keys[branch].of(source.key.as_bytes(), u64::from(chunk));
        self.plan.branches[branch].unpack.select(own, frames, weights, use_count, rows);
    }

    fn block(&self, of: Use, made: Result<Selected, Fault>, mut chunk: Counted<Chunk>) -> Phase {
        chunk.takes(chunk.bytes.capacity());
        let (b, index) = (of.branch, of.draw.at.chunk);
        let Selected { conform, rows, alone } = match made {
            Ok(made) => made,
            Err(fault) => return Phase::Done(self.bad(b, of.id, index, fault, chunk)),
        };
        let given = rows.len() - (of.keep as usize).min(rows.len());
        self.branch_totals[b].frames.add(given as u64);
        let frames = rows.iter().enumerate().map(|(at, frame)| if alone { at } else { *frame as usize });
        let keys = self.keys(&chunk, &conform, frames);
        let (source, conform, fault) = (of.id, Some(conform), None);
        Phase::Done(Arc::new(Block { chunk, rows, keys, alone, given, source, index, conform, fault }))
    }
}
