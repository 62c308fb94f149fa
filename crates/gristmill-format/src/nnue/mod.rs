//! A position of chess, whatever it was stored as -> the sparse features that trainers of NNUE take, as padded rows.
//! Knows men on squares alone: no file, no score, no game. The page is `docs/format/nnue-features.md`, which a test compares.

mod board;
mod feature;
mod tensor;

pub use board::{Board, Side};
pub use feature::{FeatureSet, MEN, NONE};
pub use tensor::{Tensor, Viewer};
