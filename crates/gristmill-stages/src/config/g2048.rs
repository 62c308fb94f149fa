//! What a 2048 encoder is to make, as data: the targets, the symmetries rows are shown in, the element type.
//! Read and written here; the encoder itself is built by `pipeline`.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use gristmill_format::g2048::encode::{Draw, Element, Form, Tokenizer, ValueShape};
use gristmill_format::g2048::value::ValueField;
use serde::{Deserialize, Serialize};

/// Which targets stand beside the exponents.
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

/// How exponents are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BoardForm {
    /// `tokens`: whole numbers (the default).
    #[default]
    Tokens,
    /// `board_nibbles`: ten bytes.
    Nibbles,
}

/// Where symmetries are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DrawnOn {
    /// By the loader, which turns the rows (the default).
    #[default]
    Host,
    /// By the device, which turns the rows. The tensor `symmetry_draws` tells it what to draw the symmetries from.
    Device,
}

/// What a config of before says: it knew one place.
fn is_host(draw: &DrawnOn) -> bool {
    *draw == DrawnOn::Host
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
    /// The same with a value at an edge one bin higher, as the reference's code has it.
    UpperBoundsCompat,
}

impl From<EdgeForm> for Form {
    fn from(form: EdgeForm) -> Self {
        match form {
            EdgeForm::SpecialZeroOne => Form::SpecialZeroOne,
            EdgeForm::Edges => Form::Edges,
            EdgeForm::UpperBounds => Form::UpperBounds,
            EdgeForm::UpperBoundsCompat => Form::UpperBoundsCompat,
        }
    }
}

/// How the value of a position is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueTarget {
    /// The number.
    Scalar,
    /// Its two-hot form.
    TwoHot,
}

impl From<ValueTarget> for ValueShape {
    fn from(target: ValueTarget) -> Self {
        match target {
            ValueTarget::Scalar => ValueShape::Scalar,
            ValueTarget::TwoHot => ValueShape::TwoHot,
        }
    }
}

/// Which number of a value row is aimed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the fields of value rows")]
pub enum ValueOf {
    Reward,
    RewardScaled,
    ReturnRaw,
    ReturnScaled,
}

impl From<ValueOf> for ValueField {
    fn from(of: ValueOf) -> Self {
        match of {
            ValueOf::Reward => ValueField::Reward,
            ValueOf::RewardScaled => ValueField::RewardScaled,
            ValueOf::ReturnRaw => ValueField::ReturnRaw,
            ValueOf::ReturnScaled => ValueField::ReturnScaled,
        }
    }
}

/// What was read of the file of a tokenizer, and the XXH3-128 of the file: read once for a config and all its copies, so that
/// a file that is replaced later changes nothing.
#[derive(Clone, Default)]
pub struct TokenizerRead(pub Arc<OnceLock<(Tokenizer, u128)>>);

impl std::fmt::Debug for TokenizerRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.get().is_some() { "TokenizerRead(read)" } else { "TokenizerRead(not read)" })
    }
}

impl PartialEq for TokenizerRead {
    /// Configs that say the same are the same, whether they were used or not.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What a config of before says: it knew one form.
fn is_default(board: &BoardForm) -> bool {
    *board == BoardForm::Tokens
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
    /// How exponents are given.
    #[serde(skip_serializing_if = "is_default")]
    pub board: BoardForm,
    /// Where symmetries are drawn.
    #[serde(skip_serializing_if = "is_host")]
    pub draw: DrawnOn,
    /// The fitted tokenizer, a `tokenizer.json`; `tokens` needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<PathBuf>,
    /// XXH3-128 of that file, as 32 hexadecimal digits; another file is refused. None takes the file as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer_xxh3: Option<String>,
    /// What was read of it.
    #[serde(skip)]
    pub tokenizer_read: TokenizerRead,
    /// Edges of `binned_ev`; the reference's when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<f64>>,
    /// What the edges mean.
    pub edge_form: EdgeForm,
    /// Add `value_targets`, of the values beside the rows of a pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_targets: Option<ValueTarget>,
    /// Which number of the values; `return_scaled` where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_field: Option<ValueOf>,
    /// Lowest and highest value of the two-hot form, and how many bins there are from one to the other; 0, 600 and 601 where
    /// nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_bins: Option<(f64, f64, u32)>,
    /// Take `tuple10` for id 1 and `tuple11` for id 2, whatever the pack says, as existing training code does by mistake.
    pub compat_swapped_tuple_ids: bool,
}
