//! The stages of a stream, as numbers: what each does to files, chunks and rows, and the options that say so.
//! Starts no thread; what flows in which order is decided above.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod config;
pub mod options;
pub mod rescorer;
pub mod stage;
