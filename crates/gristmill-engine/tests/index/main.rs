//! Packs of every form as users have them: opened, selected and split, fed in batches, recorded, converted.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod content;
mod converting;
mod copying;
mod counting;
#[path = "../resumed/damage.rs"]
mod damage;
mod damaging;
mod feeding;
mod fetching;
mod finding;
mod fixture;
mod forms;
mod ledgers;
mod ledgers_begun_again;
mod marking;
mod recording;
#[path = "../resumed/mod.rs"]
mod resumed;
mod resuming;
mod seeing;
mod selecting;
mod skipping;
mod stall;
mod telling;
mod viewing;
#[path = "../waited/mod.rs"]
mod waited;
