//! The side index: what was learnt about files by reading them, kept so that a restart need not learn it again.
//! Facts change speed and never a result; losing them is harmless (`docs/format/side-index.md`).

mod index;
mod record;

pub use index::Facts;
pub use record::{MAGIC, MAX_PAYLOAD, VERSION};
