//! The rescorer: published vectors, each pass on games and tablebases of our own, conversions, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conversion;
mod passes;
mod played;
mod refusals;
mod tables;
mod vectors;
