//! The plan of a stream -> one without bytes: rows are drawn and dealt to batches as ever, and only their origins are
//! copied and encoded.

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::Result as FormatResult;
use gristmill_format::encode::{Encoder, Provenance, Row, TensorSpec};
use gristmill_format::layout::{Layout, Scalar};
use gristmill_runtime::runtime::handoff::WhenFull;

use crate::pipeline::plan::Plan;
use crate::pipeline::plan::skip::Skips;

/// Which chunks of a stream that is only planned are read. Where their bytes decide which rows are taken, all are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reads {
    /// Nothing: chunks whose frames were never counted are named and refused.
    #[default]
    Nothing,
    /// Those whose frames were never counted.
    Uncounted,
    /// All, so that those are found which went bad since they were counted.
    All,
}

/// Makes the plan one without bytes: rows become their origins, and batches below `first` are empty.
pub(in crate::pipeline) fn see(plan: &mut Plan, first: u64) {
    for chain in &mut plan.chains {
        let outputs = vec![TensorSpec::new("origin", Scalar::U64, &[3])];
        chain.encoder = Arc::new(Origins { of: Arc::clone(&chain.encoder), outputs });
        chain.skips = Skips::below(first);
        chain.when_full = WhenFull::Block;
    }
}

/// Where the real rows of a batch of such a plan come from.
pub(in crate::pipeline) fn origins(column: &[u8], rows: usize) -> impl Iterator<Item = Provenance> {
    column.as_chunks::<8>().0.as_chunks::<3>().0.iter().take(rows).filter_map(|place| {
        let [source, chunk, frame] = place.map(u64::from_le_bytes);
        Some(Provenance { source, chunk: u32::try_from(chunk).ok()?, frame: u32::try_from(frame).ok()? })
    })
}

/// Gives where rows come from, whatever they are rows of.
#[derive(Debug)]
struct Origins {
    of: Arc<dyn Encoder>,
    outputs: Vec<TensorSpec>,
}

impl Encoder for Origins {
    fn input(&self) -> &Layout {
        self.of.input()
    }

    fn fits(&self, records: &Layout) -> FormatResult<()> {
        self.of.fits(records)
    }

    fn position(&self) -> Vec<Range<usize>> {
        self.of.position()
    }

    fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    fn encode(&self, rows: &[Row<'_>], out: &mut [&mut [u8]]) -> FormatResult<()> {
        let places = out.iter_mut().flat_map(|column| column.as_chunks_mut::<8>().0.as_chunks_mut::<3>().0);
        for (row, place) in rows.iter().zip(places) {
            let from = row.provenance;
            *place = [from.source, from.chunk.into(), from.frame.into()].map(u64::to_le_bytes);
        }
        Ok(())
    }
}
