//! V7 records -> named tensor rows: planes, policy and masks in full and compact forms, values, the older tuple and ids.

mod compact;
mod encoder;
mod meta;
mod output;
mod position;
mod progress;
mod simd;

pub use compact::{LEAST_PAIRS, LEGAL_BYTES, MOST_PAIRS, PACKED_BYTES, PAIRS};
pub use encoder::ChessEncoder;
pub use meta::{MetaPlane, meta_planes};
pub use output::{Element, Output, Outputs};
pub use position::{CHANGES, MOST_CHANGES};
