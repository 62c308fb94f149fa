//! Stored bytes -> a chunk as its branch wants it: decoded, through every pass, of a layout that the encoder takes.
//! The same for every use of a chunk, so that a refilled reservoir holds what the stream held.

use std::sync::Arc;

use gristmill_format::layout::Conform;
use gristmill_format::source::Chunk;
use gristmill_stages::stage::load::Source;

use super::{Chain, Fault};
use crate::pipeline::draw::verdict::Scope;

impl Chain {
    /// Decodes `bytes` into `chunk`, sends it through the passes of branch `b`, and finds the conversion of its records.
    pub(super) fn prepare(
        &self,
        b: usize,
        source: &Source,
        index: u32,
        bytes: &mut Vec<u8>,
        chunk: &mut Chunk,
    ) -> Result<Arc<Conform>, Fault> {
        self.decode(b, source, index, bytes, chunk)?;
        self.refine(b, source, index, chunk)
    }

    /// Decodes `bytes` into `chunk`. The side index learns how many frames there are, and what a head is held against.
    pub(super) fn decode(
        &self,
        b: usize,
        source: &Source,
        index: u32,
        bytes: &mut Vec<u8>,
        chunk: &mut Chunk,
    ) -> Result<(), Fault> {
        let totals = &self.branch_totals[b];
        let decode = || source.decode_taking(index as usize, bytes, &self.shared.limits, chunk);
        totals.decoding.during(decode).map_err(|e| (Scope::Bytes, e))?;
        source.learn(index as usize, bytes, chunk);
        totals.chunks.add(1);
        totals.frames_decoded.add(chunk.frames as u64);
        Ok(())
    }

    /// Decodes the first frames of a chunk alone. `false` where they cannot be had alone; the caller then decodes the whole.
    pub(super) fn decode_head(
        &self,
        b: usize,
        source: &Source,
        (index, first, frames): (u32, usize, usize),
        bytes: &[u8],
        chunk: &mut Chunk,
    ) -> Result<bool, Fault> {
        let totals = &self.branch_totals[b];
        let decode = || source.decode_head(index as usize, (first, frames), bytes, &self.shared.limits, chunk);
        let decoded = totals.decoding.during(decode).map_err(|e| (Scope::Bytes, e))?;
        if decoded {
            totals.chunks.add(1);
            totals.frames_decoded.add(chunk.frames as u64);
        }
        Ok(decoded)
    }

    /// Decodes frames of a chunk alone; `false`, and nothing done, where they cannot be.
    pub(super) fn decode_rows(
        &self,
        b: usize,
        source: &Source,
        (index, rows): (usize, &[u32]),
        bytes: &[u8],
        chunk: &mut Chunk,
    ) -> Result<bool, Fault> {
        let totals = &self.branch_totals[b];
        let decode = || source.decode_rows(index, rows, bytes, &self.shared.limits, chunk);
        let decoded = totals.decoding.during(decode).map_err(|e| (Scope::Bytes, e))?;
        if decoded {
            totals.chunks.add(1);
            totals.frames_decoded.add(rows.len() as u64);
        }
        Ok(decoded)
    }

    /// Decodes what weighs a chunk, without its records where they are stored apart.
    pub(super) fn decode_judged(
        &self,
        b: usize,
        source: &Source,
        index: usize,
        bytes: &[u8],
        chunk: &mut Chunk,
    ) -> Result<(), Fault> {
        let decode = || source.decode_judged(index, bytes, &self.shared.limits, chunk);
        self.branch_totals[b].decoding.during(decode).map_err(|e| (Scope::Bytes, e))
    }

    /// Sends a decoded chunk through the passes of branch `b` and finds the conversion of its records.
    pub(super) fn refine(
        &self,
        b: usize,
        source: &Source,
        index: u32,
        chunk: &mut Chunk,
    ) -> Result<Arc<Conform>, Fault> {
        let totals = &self.branch_totals[b];
        let branch = &self.plan.branches[b];
        let refused = |e| (Scope::Branch(branch.number), source.place(e, index as usize));
        for (plan, of) in branch.passes.iter().zip(&totals.passes) {
            let mut count = |i: usize, n: u64| of.counts[i].add(n);
            let passed = of.busy.during(|| plan.pass.run(chunk, &mut count));
            of.chunks.add(1);
            passed.map_err(|e| {
                of.dropped.add(1);
                refused(e)
            })?;
        }
        self.conforms.of(chunk).map_err(refused)
    }
}
