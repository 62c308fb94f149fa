//! V7 records -> named tensor rows: planes in four forms, policy, values, the older tuple, masks and ids.

mod encoder;
mod meta;
mod output;
mod progress;
mod simd;

pub use encoder::ChessEncoder;
pub use meta::{MetaPlane, meta_planes};
pub use output::{Element, Output, Outputs};
