//! A running loader elsewhere -> its documents, and what they say of the last seconds: rates, who waits, the rows of a table.
//! Draws nothing and knows no stage by name: what a loader publishes has its place.

pub mod client;
pub mod headline;
pub mod history;
pub mod numbers;
pub mod rows;
