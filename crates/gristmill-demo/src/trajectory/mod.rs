//! Frames -> trajectories: records of one layout, back to back, with extras and the ends of episodes beside them.

mod add;
mod held;
mod store;

pub use held::{End, Trajectories, layout};
pub use store::Tape;
pub(crate) use store::{Place, Places};

/// What sources of demonstrations say that their frames are of.
pub const KIND: &str = "demo";
