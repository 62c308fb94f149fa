//! What everything stands on: files, randomness, threads, memory, databases, pages over HTTP; and numbered frames.
//! Threads, clocks and files begin here. Knows no game, no stage and no option of a user.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod calendar;
pub mod error;
pub mod facts;
pub mod in_order;
pub mod key;
pub mod lineage;
pub mod names;
pub mod open;
pub mod runtime;
pub mod shares;
pub mod sink;
pub mod sql;
pub mod store;
pub mod table;
pub mod tablebase;

pub use error::{Error, Result};
