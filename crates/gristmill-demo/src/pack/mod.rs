//! One trajectory <-> packed bytes: every record comes back to the bit, any step by itself, and a picture is stored once.
//! The layout is `docs/format/demonstration-pack.md`.
//!
//! | file | does |
//! |---|---|
//! | `header` | what a trajectory says once, and where its parts lie |
//! | `cut` | which fields are cut into pieces, and which pieces are the same |
//! | `beside` | what has no fixed size |
//! | `encode`, `decode` | whole trajectories in, steps out |
//! | `source` | a file of them as chunks |

mod beside;
mod cut;
mod decode;
mod encode;
mod header;
mod source;

#[cfg(test)]
mod tests;

pub use decode::{PackedTrajectory, Scratch};
pub use encode::{Blocks, Trajectory, content, pack};
pub use gristmill_bytes::container::shelf::Shelf;
pub use header::About;
pub use source::{CODEC, Demo, PACKED, PackedDemos};
