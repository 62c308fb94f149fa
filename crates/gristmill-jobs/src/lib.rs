//! The verbs that end: each takes options and gives back data. Faces render it; nothing here prints.
//! Stands on the engine, which knows nothing of it; starts no thread of its own.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod bench;
pub mod checksum;
pub mod commit;
pub mod content;
pub mod convert;
pub mod dedup;
pub mod delivery;
pub mod demos;
pub mod doctor;
pub mod feed;
pub mod inspect;
pub mod mark;
pub mod merge;
pub mod meter;
pub mod notation;
pub mod pack;
pub mod recover;
pub mod reports;
pub mod rewrite;
pub mod shares;
pub mod stats;
pub mod tokenizer;
pub mod values;
pub mod verify;

mod files;
mod inputs;
mod kinds;
mod npy;
mod reread;
mod sidecar;
mod unpacked;
mod word;
mod work;

use gristmill_engine::in_order;
