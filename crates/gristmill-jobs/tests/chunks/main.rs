//! Chunk packs through the engine's doors: packed from games, opened, selected from, fed by number.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod content;
mod document;
mod engines;
mod feeding;
mod fixture;
mod keeping;
mod kinds;
mod marking;
mod merging;
mod packing;
mod repeating;
mod reporting;
#[path = "../../../gristmill-engine/tests/resumed/mod.rs"]
mod resumed;
mod rewriting;
mod sharing;
mod siding;
mod verifying;
mod weighted;
