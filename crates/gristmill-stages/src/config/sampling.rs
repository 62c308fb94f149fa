//! Sampling by weight from a pack of whole games: the same names and meaning as on the pool of a stream.
//! Pure data; what fits the pack is judged by `pipeline`.

use serde::{Deserialize, Serialize};

use super::chunks::{HanseForm, PositionSamplingConfig};

/// How a position is drawn from the game that was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PositionChoice {
    /// In proportion to what it weighs by `position_sampling` (the default), as an unpacker with the same setting.
    #[default]
    Weighted,
    /// Each as likely as any, as an unpacker without one.
    Uniform,
}

/// Hanse sampling: each row is a draw of its own, of a game by its chance and of one of its positions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HanseSamplingConfig {
    /// What the chance of a game is made of; the largest weight is that of all selected games.
    pub hanse_sampling_form: HanseForm,
    /// Frames of a game that has the full chance, in the length form, which needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hanse_sampling_threshold: Option<u64>,
    /// Exponent of the chance.
    pub hanse_sampling_gamma: f64,
    /// What a position weighs: 1 each when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position_sampling: Option<PositionSamplingConfig>,
    /// How the position is drawn.
    pub positions: PositionChoice,
}

impl Default for HanseSamplingConfig {
    fn default() -> Self {
        HanseSamplingConfig {
            hanse_sampling_form: HanseForm::default(),
            hanse_sampling_threshold: None,
            hanse_sampling_gamma: 1.0,
            position_sampling: None,
            positions: PositionChoice::default(),
        }
    }
}
