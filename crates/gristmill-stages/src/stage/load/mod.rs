//! Numbered files -> chunk sources: the source log, unbounded, read by every consumer from its own place.
//! A single game is not touched before it is fetched; a tar is indexed once, at its first use, and a solid file read whole.

mod barren;
mod index;
mod kept;
mod left;
mod log;
mod solid;
mod source;

pub use log::{Arrival, Entry, LogFaults, LogSpec, SourceLog, Spawn};
pub use solid::Solids;
pub use source::Source;
