//! The inputs of a job -> even shares of them, and the plan of all shares, with a name that no other plan has. A function of names,
//! sizes, options and version: the same on every machine. Opens nothing.

mod plan;
mod portion;
mod share;

pub use plan::{Plan, Unit, cut};
pub use portion::Portion;
pub use share::Share;
