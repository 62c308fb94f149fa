//! What a 2048 encoder is to make, as data: the targets, the symmetries rows are shown in, the element type.
//! Read and written here; the encoder itself is built by `pipeline`.

use std::path::PathBuf;

use gristmill_format::g2048::encode::{Draw, Element, Form, ValueTargets};
use serde::{Deserialize, Serialize};

/// Which targets stand beside the exponents (spec 6.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum G2048Target {
    /// None: `tokens`, `run_id`, `step_index` (the default).
    #[default]
    Steps,
    /// `branch_values` and `move_targets`.
    HardMove,
    /// `branch_values`, `branch_bin_targets`, `branch_mask`.
    BinnedEv,
    /// `targets`: classes by a fitted tokenizer.
    Tokens,
}

/// Whether rows are shown in other symmetries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Augmentation {
    /// As they are (the default).
    #[default]
    Off,
    /// Uniform over all choices, no change among them.
    Any,
    /// Uniform over the choices that change something.
    Changed,
}

impl From<Augmentation> for Draw {
    fn from(augmentation: Augmentation) -> Self {
        match augmentation {
            Augmentation::Off => Draw::Off,
            Augmentation::Any => Draw::Any,
            Augmentation::Changed => Draw::Changed,
        }
    }
}

/// Element type of whole-number tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WholeNumbers {
    /// 64-bit (the default).
    #[default]
    I64,
    /// 32-bit.
    I32,
    /// 8-bit.
    U8,
}

impl From<WholeNumbers> for Element {
    fn from(numbers: WholeNumbers) -> Self {
        match numbers {
            WholeNumbers::I64 => Element::I64,
            WholeNumbers::I32 => Element::I32,
            WholeNumbers::U8 => Element::U8,
        }
    }
}

/// What the edges of `binned_ev` mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeForm {
    /// Exact 0 and 1 have bins of their own (the default).
    #[default]
    SpecialZeroOne,
    /// Bins lie between the edges.
    Edges,
    /// Each edge is the upper end of a bin.
    UpperBounds,
}

impl From<EdgeForm> for Form {
    fn from(form: EdgeForm) -> Self {
        match form {
            EdgeForm::SpecialZeroOne => Form::SpecialZeroOne,
            EdgeForm::Edges => Form::Edges,
            EdgeForm::UpperBounds => Form::UpperBounds,
        }
    }
}

/// How the value of a position is shown (spec 5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueTarget {
    /// The rescaled return.
    Scalar,
    /// Its two-hot form over the whole numbers 0 to 600.
    TwoHot,
}

impl From<ValueTarget> for ValueTargets {
    fn from(target: ValueTarget) -> Self {
        match target {
            ValueTarget::Scalar => ValueTargets::Scalar,
            ValueTarget::TwoHot => ValueTargets::TwoHot,
        }
    }
}

/// An encoder of 2048 step rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct G2048EncoderConfig {
    /// The targets.
    pub target: G2048Target,
    /// Quarter turns.
    pub rotate: Augmentation,
    /// Mirrors, after the turn.
    pub flip: Augmentation,
    /// Element type of whole numbers.
    pub dtype: WholeNumbers,
    /// The fitted tokenizer, a `tokenizer.json`; `tokens` needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<PathBuf>,
    /// Edges of `binned_ev`; the reference's when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<f64>>,
    /// What the edges mean.
    pub edge_form: EdgeForm,
    /// Add `value_targets`, of the values beside the rows of a pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_targets: Option<ValueTarget>,
    /// Take `tuple10` for id 1 and `tuple11` for id 2, whatever the pack says, as existing training code does by mistake.
    pub compat_swapped_tuple_ids: bool,
}
