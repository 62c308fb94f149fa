//! Bytes in, records and tensor rows out: every format gristmill reads or writes.
//! Pure: no files, threads, sockets, clock or printing; input is `&[u8]` or a [`source::ReadAt`].
//! Containers know no game, and games never name each other.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod binpack;
pub mod bullet;
pub mod chess;
pub mod detect;
pub mod g2048;
pub mod katago;
pub mod nnue;
pub mod positions;
pub mod records;

pub use gristmill_bytes::{Error, Kind, Place, Result, container, encode, error, head, layout, plain, source, weigh};
pub use gristmill_demo as demo;
