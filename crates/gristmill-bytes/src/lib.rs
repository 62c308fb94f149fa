//! Stored bytes in, units out: containers, layouts, and what a source of chunks is.
//! Pure: no files, threads, sockets, clock or printing; knows no game.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod container;
pub mod encode;
pub mod error;
pub mod head;
pub mod layout;
pub mod plain;
pub mod source;
pub mod weigh;

pub use error::{Error, Kind, Place, Result};
