//! Shares of a job: how its inputs are cut, and the folder `OUT.shares` in which processes of any number of machines put what
//! they made until one commit joins it. Knows no job, needs no lock between machines, and decides nothing by a clock.

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
