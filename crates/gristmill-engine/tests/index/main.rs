//! Index feeding as users have it: packs opened, selected and split, and batches of their rows.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod feeding;
mod fixture;
mod forms;
mod selecting;
