//! Any encoder -> the same with some of its tensors. The others are made in a buffer of the call and forgotten.

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::Result;
use gristmill_format::encode::{Encoder, Row, TensorSpec};
use gristmill_format::layout::Layout;

/// Some tensors of an encoder, in its order.
#[derive(Debug)]
pub(super) struct Only {
    inner: Arc<dyn Encoder>,
    kept: Vec<bool>,
    outputs: Vec<TensorSpec>,
}

impl Only {
    /// Those tensors of `inner` that `keep` says.
    pub(super) fn new(inner: Arc<dyn Encoder>, keep: impl Fn(&str) -> bool) -> Self {
        let kept: Vec<bool> = inner.outputs().iter().map(|spec| keep(&spec.name)).collect();
        let of = |(spec, kept): (&TensorSpec, &bool)| kept.then(|| spec.clone());
        let outputs = inner.outputs().iter().zip(&kept).filter_map(of).collect();
        Only { inner, kept, outputs }
    }
}

impl Encoder for Only {
    fn input(&self) -> &Layout {
        self.inner.input()
    }

    fn fits(&self, records: &Layout) -> Result<()> {
        self.inner.fits(records)
    }

    fn draws(&self) -> bool {
        self.inner.draws()
    }

    fn reads_sparse(&self) -> bool {
        self.inner.reads_sparse()
    }

    fn position(&self) -> Vec<Range<usize>> {
        self.inner.position()
    }

    fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    fn encode(&self, rows: &[Row<'_>], out: &mut [&mut [u8]]) -> Result<()> {
        let specs = self.inner.outputs().iter().zip(&self.kept);
        let bytes: usize = specs.clone().filter(|(_, kept)| !**kept).map(|(spec, _)| spec.row_bytes()).sum();
        let mut unwanted = vec![0; bytes * rows.len()];
        let mut rest = &mut unwanted[..];
        let mut wanted = out.iter_mut();
        let mut columns: Vec<&mut [u8]> = Vec::with_capacity(self.kept.len());
        for (spec, kept) in specs {
            if *kept {
                columns.extend(wanted.next().map(|column| &mut **column));
            } else {
                let (column, left) = std::mem::take(&mut rest).split_at_mut(spec.row_bytes() * rows.len());
                columns.push(column);
                rest = left;
            }
        }
        self.inner.encode(rows, &mut columns)
    }
}
