//! Records in, rows of named tensors out: the seam that every task's encoder fills.
//! An encoder is pure and stateless; it writes each output row wholly and never allocates per row.

use std::fmt::Debug;
use std::ops::Range;

use crate::error::Result;
use crate::layout::{Layout, Scalar};
use crate::source::Chunk;

/// Where a row came from: the 16 bytes that travel beside every record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Provenance {
    /// Number of the source in the loader's arrival log.
    pub source: u64,
    /// Chunk index within the source.
    pub chunk: u32,
    /// Frame index within the chunk.
    pub frame: u32,
}

/// Random bits with their origin. A key draws words for a number; these bits are the two words after the first `words`.
///
/// `docs/format/order.md` has the draws: a device that knows key, number and words draws the same bits itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct RandomBits {
    /// The bits.
    pub bits: u64,
    /// The key.
    pub key: u64,
    /// The number.
    pub number: u64,
    /// How many words of 32 bits are drawn before.
    pub words: u32,
}

impl RandomBits {
    /// What a device draws them of: key and number, the lower half first, and the words before.
    pub fn origin(&self) -> [u32; 5] {
        [self.key as u32, (self.key >> 32) as u32, self.number as u32, (self.number >> 32) as u32, self.words]
    }
}

impl From<u64> for RandomBits {
    /// Bits that were not drawn here.
    fn from(bits: u64) -> Self {
        RandomBits { bits, ..RandomBits::default() }
    }
}

/// One record to encode.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The bytes of the record, in the encoder's input layout.
    pub record: &'a [u8],
    /// Where it came from.
    pub provenance: Provenance,
    /// Random bits of this row, for encoders that [draw](Encoder::draws): a function of seed and row, never of threads.
    pub bits: RandomBits,
    /// The long vector of the record (the policy of chess), where the record itself does not hold it.
    pub sparse: Option<Sparse<'a>>,
}

/// A vector of which few entries differ from the rest.
#[derive(Debug, Clone, Copy)]
pub struct Sparse<'a> {
    /// Where those entries are, within the vector.
    pub indices: &'a [u16],
    /// What they are, one for each index.
    pub values: &'a [f32],
    /// What all others are.
    pub fill: f32,
}

impl Sparse<'_> {
    /// Writes the vector as little-endian `f32`; `out` is as long as it is.
    pub fn write(&self, out: &mut [u8]) {
        let entries = out.as_chunks_mut::<4>().0;
        entries.fill(self.fill.to_le_bytes());
        for (i, value) in self.indices.iter().zip(self.values) {
            entries[usize::from(*i)] = value.to_le_bytes();
        }
    }
}

/// The name, dtype and row shape of one output tensor; the batch axis is not included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// Name of the tensor in the batch.
    pub name: String,
    /// Element type, little-endian.
    pub dtype: Scalar,
    /// Shape of one row, for example `[112, 8, 8]`.
    pub row_shape: Vec<usize>,
}

impl TensorSpec {
    /// A spec from its parts.
    pub fn new(name: impl Into<String>, dtype: Scalar, row_shape: &[usize]) -> Self {
        TensorSpec { name: name.into(), dtype, row_shape: row_shape.to_vec() }
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.dtype.size() * self.row_shape.iter().product::<usize>()
    }
}

/// Turns records of one layout into rows of a fixed list of tensors.
pub trait Encoder: Send + Sync + Debug {
    /// The layout that `Row::record` must have.
    fn input(&self) -> &Layout;

    /// Whether rows can be made of records that are not in the input layout yet: fields that they lack would be zero.
    ///
    /// Errors: `Unfit`, saying which fields are missing and which encoder fits.
    fn fits(&self, _records: &Layout) -> Result<()> {
        Ok(())
    }

    /// Whether `Row::bits` matter: where not, they may be left 0.
    fn draws(&self) -> bool {
        false
    }

    /// Returns the part of a record that each tensor copies: its first byte and its number of bytes. `None` if a tensor is anything else.
    /// A table may copy the parts itself, without this encoder.
    fn parts(&self) -> Option<&[(usize, usize)]> {
        None
    }

    /// Whether its rows depend on the long vector of a record, or on a field that a packed record has by that vector alone. Where
    /// not, a reader may leave both out: [`Row::sparse`] then lists nothing.
    fn reads_sparse(&self) -> bool {
        true
    }

    /// Whether it makes rows only of records that [`complete`](Encoder::complete) has seen in their game.
    fn is_completed(&self) -> bool {
        false
    }

    /// Writes into the records of a whole game what they do not say alone and its rows need.
    ///
    /// Errors: `Unsupported` for records of another kind.
    fn complete(&self, _chunk: &mut Chunk) -> Result<()> {
        Ok(())
    }

    /// The bytes of a record, in the input layout, that say which position it is of, whatever was found out about it: the
    /// whole record, where nothing else is known.
    fn position(&self) -> Vec<Range<usize>> {
        std::iter::once(0..self.input().size()).collect()
    }

    /// The output tensors, in order.
    fn outputs(&self) -> &[TensorSpec];

    /// Encodes `rows` into `out`: one slice per output, each of `rows.len() * row_bytes` bytes.
    ///
    /// Errors: `OutOfRange` or `UnknownVersion`, with the frame, for a record it cannot encode.
    fn encode(&self, rows: &[Row<'_>], out: &mut [&mut [u8]]) -> Result<()>;
}
