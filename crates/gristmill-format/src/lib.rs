//! Bytes in, records and tensor rows out: every format gristmill reads or writes.
//! Pure: no files, threads, sockets, clock or printing; input is `&[u8]` or a [`source::ReadAt`].
//! `container` knows no game, and games never name each other.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod chess;
pub mod container;
pub mod demo;
pub mod detect;
pub mod encode;
pub mod error;
pub mod g2048;
pub mod head;
pub mod layout;
pub mod source;
pub mod weigh;

pub use error::{Error, Kind, Place, Result};
