//! The river: stored bytes in, deterministic batches out. Threads live here and nowhere else.
//! Never prints, never exits the process, and knows neither Python nor the command line.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod chunks;
pub mod config;
pub mod content;
pub mod demos;
pub mod error;
pub mod facts;
pub mod holdings;
pub mod key;
pub mod kinds;
pub mod lineage;
pub mod marks;
pub mod names;
pub mod open;
pub mod pack;
pub mod pipeline;
pub mod preset;
pub mod rescorer;
pub mod runtime;
pub mod sink;
pub mod sql;
pub mod stage;
pub mod store;
pub mod table;
pub mod tablebase;

pub use error::{Error, Result};
pub use pipeline::{
    Batch, Column, ControlReply, ControlRequest, DataLoader, IndexLoader, Metrics, Missing, Next, OldestNeeded, Output,
    RowEncoder, Vanished, merge_states,
};
