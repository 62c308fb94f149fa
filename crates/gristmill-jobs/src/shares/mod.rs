//! The inputs of a job -> shares, and the folder `OUT.shares` in which processes on any number of machines put their shares until
//! one commit joins them. Knows no job but by its trait, needs no lock between machines, and decides nothing by a clock.

mod attempt;
mod away;
mod folder;
mod job;
mod look;
mod whole;

pub use gristmill_engine::shares::{Plan, Portion, Share, Unit};

pub use attempt::Attempt;
pub(crate) use away::Sheet;
pub use away::{Left, clean, left};
pub(crate) use folder::check_free;
pub use folder::{Folder, place};
pub(crate) use job::is_below;
pub use job::{Job, Outcome, Said, Shared, make};
pub use look::{Shares, State, Status, shares};
pub(crate) use whole::is_same;
pub use whole::{CommitOptions, Joining, Whole};
