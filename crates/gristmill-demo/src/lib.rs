//! Demonstrations: trajectories of an agent in an environment, from any of the forms they are kept in.
//! Whatever the form, a trajectory becomes a chunk of records (`obs`, `acts`, `dones`, ...) with its extras beside it.
//! Pure: no files, threads, sockets, clock or printing; knows no other kind.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod budget;
pub mod encode;
pub mod form;
pub mod frames;
pub mod json;
mod names;
pub mod native;
pub mod pack;
pub mod pickled;
pub mod picture;
pub mod shard;
pub mod space;
pub mod strip;
pub mod trajectory;
pub mod value;

pub use trajectory::KIND;
