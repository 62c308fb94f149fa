//! The inputs of a job -> shares, and the folder `OUT.shares` in which processes on any number of machines put their shares until
//! one commit joins them. Knows no job, needs no lock between machines, and decides nothing by a clock.

mod attempt;
mod folder;
mod look;
mod plan;
mod share;

pub use attempt::Attempt;
pub use folder::{Folder, PACK};
pub use look::{Shares, State, Status, shares};
pub use plan::{Plan, Unit, cut};
pub use share::Share;
