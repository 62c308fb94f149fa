//! Step rows -> tensors: symmetries, tokenizer and its fit, and the encoder that puts them together.

mod augment;
mod binner;
mod bins;
mod encoder;
mod fit;
mod found;
mod quantile;
mod symmetry;
mod tokenizer;
mod valued;

pub use augment::{Augment, DRAWS, Draw};
pub use binner::{Binner, DEFAULT_EDGES, Form};
pub use bins::Bins;
pub use encoder::{Classes, Element, NIBBLES_BYTES, StepEncoder, Target};
pub use fit::{Fit, FitOptions};
pub use found::{Counts, Found};
pub use quantile::Quantiles;
pub use symmetry::Symmetry;
pub use tokenizer::{Branches, MAX_BINS, Tokenizer, Valuation, ZERO_TOLERANCE};
pub use valued::{ValueShape, ValueTargets};
