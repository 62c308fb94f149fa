//! The river: stored bytes in, deterministic batches out. Threads live here and nowhere else.
//! Never prints, never exits the process, and knows neither Python nor the command line.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod pipeline;
pub mod preset;

pub use gristmill_packs::{
    chunks, database, demos, holdings, kinds, marks, pack, pack_table, recording, row_files, selection,
};
pub use gristmill_runtime::{
    Error, Result, calendar, error, facts, in_order, key, lineage, names, open, runtime, shares, sink, sql, store,
    table, tablebase,
};
pub use gristmill_stages::{config, options, rescorer, stage};
pub use pipeline::{
    Batch, Column, ControlReply, ControlRequest, DataLoader, Engine, IndexLoader, Metrics, Missing, Next, OldestNeeded,
    Output, RowEncoder, Vanished, merge_states,
};
