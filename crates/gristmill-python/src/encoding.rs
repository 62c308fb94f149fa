//! Rows of a pack and an encoder in, tensors out.
//! Everything that reads is called with the GIL released.

use gristmill_engine::RowEncoder;
use gristmill_format::encode::TensorSpec;
use gristmill_format::layout::Order;
use pyo3::prelude::*;

use crate::array::{Contiguous, Memory};
use crate::chess::Tensor;
use crate::error::Fault;

/// Whole numbers of 64 bits in a buffer.
pub(crate) fn numbers(buffer: &Contiguous) -> Vec<u64> {
    buffer.bytes().as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

/// What makes tensors of some rows.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct RowEncoding(pub(crate) RowEncoder);

#[pymethods]
impl RowEncoding {
    /// Tensors of the rows at these places (u64), as they look in an epoch under a seed.
    fn encode(&self, py: Python<'_>, places: Contiguous, seed: u64, epoch: u64) -> Result<Vec<Tensor>, Fault> {
        py.detach(|| encoded(&self.0, &numbers(&places), seed, epoch))
    }
}

/// Tensors of the rows at these places, with their names.
fn encoded(encoder: &RowEncoder, places: &[u64], seed: u64, epoch: u64) -> Result<Vec<Tensor>, Fault> {
    let specs = encoder.outputs();
    let zeroed = |spec: &TensorSpec| Memory::zeroed(places.len() * spec.row_bytes());
    let mut out = specs.iter().map(zeroed).collect::<Result<Vec<_>, _>>()?;
    let slices = out.iter_mut().map(Memory::bytes_mut).collect::<Result<Vec<_>, _>>()?;
    encoder.encode(places, seed, epoch, slices)?;
    let tensor = |(spec, memory): (&TensorSpec, Memory)| {
        let shape = [&[places.len()], &spec.row_shape[..]].concat();
        (spec.name.clone(), spec.dtype.type_str(Order::Little), shape, memory)
    };
    Ok(specs.iter().zip(out).map(tensor).collect())
}
