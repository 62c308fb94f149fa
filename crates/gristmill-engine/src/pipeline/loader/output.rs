//! What a loader gives: batches of named columns, shared with the consumer without a copy.
//! A column's memory goes back to its pool when the last holder lets go, on whatever thread that is.

use std::sync::Arc;

use gristmill_format::encode::TensorSpec;
use gristmill_format::layout::Scalar;
use gristmill_runtime::error::Error;
use gristmill_runtime::runtime::sheet::SharedSheet;

/// A batch, or an error at its place in the stream.
pub(in crate::pipeline) type Delivery = Result<Batch, Error>;

/// One batch: tensors in the order of the configuration.
#[derive(Debug)]
pub struct Batch {
    /// Number of the batch within its stream, from 0.
    pub number: u64,
    /// Real rows. Below `columns[i].shape()[0]` only where the last batch was padded.
    pub rows: usize,
    /// The tensors.
    pub columns: Vec<Column>,
}

impl Batch {
    pub(in crate::pipeline) fn new(
        number: u64,
        rows: usize,
        shown: usize,
        sheet: Arc<SharedSheet>,
        specs: &[TensorSpec],
    ) -> Self {
        let column = |(index, spec): (usize, &TensorSpec)| Column {
            sheet: Arc::clone(&sheet),
            index,
            name: spec.name.clone(),
            dtype: spec.dtype,
            shape: [&[shown], spec.row_shape.as_slice()].concat(),
        };
        Batch { number, rows, columns: specs.iter().enumerate().map(column).collect() }
    }

    /// The column called `name`.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// One dense, row-major tensor of a batch; its first byte is 64-byte aligned. Clones share the memory.
#[derive(Debug, Clone)]
pub struct Column {
    sheet: Arc<SharedSheet>,
    index: usize,
    name: String,
    dtype: Scalar,
    shape: Vec<usize>,
}

impl Column {
    /// Name of the tensor.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Element type, little-endian.
    pub fn dtype(&self) -> Scalar {
        self.dtype
    }

    /// Shape, batch axis first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements, row-major.
    pub fn bytes(&self) -> &[u8] {
        self.sheet.column(self.index, self.shape[0])
    }

    /// Lets GPUs read the memory of the whole batch by themselves: `device` is the number of one that the process uses.
    /// Whether they may.
    pub fn pin(&self, device: i32) -> bool {
        self.sheet.pin(device)
    }

    /// The first byte. The owner of the batch may write through it; `bytes` must not be held meanwhile.
    pub fn as_ptr(&self) -> *mut u8 {
        self.sheet.column_ptr(self.index)
    }
}
