//! The verbs that end: each takes options and gives back data. Faces render it; nothing here prints.

pub mod generate;
pub mod inspect;
pub mod stats;
pub mod verify;

mod files;
mod tally;
