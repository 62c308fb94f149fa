//! The value beside a row -> `value_targets`: the number, or its two-hot form.
//! Says which records rows and values make together; values are made in `g2048/value`.

use gristmill_bytes::encode::TensorSpec;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Field, Layout, Order, Scalar};

use crate::g2048::value::{Support, ValueField};

/// How the value of a position is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueShape {
    /// The number.
    Scalar,
    /// Its two-hot form.
    TwoHot,
}

/// Which number is shown, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueTargets {
    /// The number.
    pub field: ValueField,
    /// How.
    pub shape: ValueShape,
    /// What the bins of the two-hot form stand for.
    pub support: Support,
}

/// The targets, and the records that rows and values make together.
#[derive(Debug, Clone)]
pub(super) struct Valued {
    targets: ValueTargets,
    pub(super) input: Layout,
}

impl Valued {
    /// Records of the layout `rows` with a value after each.
    pub(super) fn new(targets: ValueTargets, rows: &Layout) -> Result<Self> {
        let dtype = DType::Scalar(Scalar::F32, Order::Little);
        let value = Field { name: targets.field.name().to_owned(), dtype, shape: Vec::new(), offset: rows.size() };
        let fields = rows.fields().iter().cloned().chain([value]).collect();
        Ok(Valued { targets, input: Layout::new(fields, rows.size() + Scalar::F32.size())? })
    }

    /// Name of the field that a row's value is in.
    pub(super) fn field(&self) -> &'static str {
        self.targets.field.name()
    }

    /// The tensor.
    pub(super) fn spec(&self) -> TensorSpec {
        let bins = [self.targets.support.bins()];
        let shape: &[usize] = match self.targets.shape {
            ValueShape::Scalar => &[],
            ValueShape::TwoHot => &bins,
        };
        TensorSpec::new("value_targets", Scalar::F32, shape)
    }

    /// Writes row `i` of the tensor; `value` is what follows the row in its record.
    ///
    /// Errors: `OutOfRange` for a value that is not finite.
    pub(super) fn put(&self, value: &[u8], i: usize, out: &mut [u8]) -> Result<()> {
        let value = value.first_chunk().map_or(f32::NAN, |bytes| f32::from_le_bytes(*bytes));
        if !value.is_finite() {
            let detail = format!("a value of {value} beside the row; `gristmill verify` lists what is wrong");
            return Err(Error::new(Kind::OutOfRange, detail));
        }
        match self.targets.shape {
            ValueShape::Scalar => out[4 * i..][..4].copy_from_slice(&value.to_le_bytes()),
            ValueShape::TwoHot => {
                let support = &self.targets.support;
                let row = &mut out[4 * support.bins() * i..][..4 * support.bins()];
                row.fill(0);
                let (bin, share) = support.two_hot(value);
                row[4 * bin..][..4].copy_from_slice(&(1.0 - share).to_le_bytes());
                if share > 0.0 {
                    row[4 * bin + 4..][..4].copy_from_slice(&share.to_le_bytes());
                }
            }
        }
        Ok(())
    }
}
