//! Packs and demonstrations: frames laid out for random access, what is known of them, marks and selections; and the one
//! table of kinds, which says what each game needs.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod chunks;
pub mod database;
pub mod demos;
pub mod holdings;
pub mod kinds;
pub mod manifest;
pub mod marks;
mod opening;
pub mod pack;
pub mod pack_table;
pub mod recording;
pub mod row_files;
pub mod selection;
