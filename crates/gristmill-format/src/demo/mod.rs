//! Demonstrations: trajectories of an agent in an environment, from any of the forms they are kept in.
//! Whatever the form, a trajectory becomes a chunk of records (`obs`, `acts`, `dones`, ...) with its extras beside it.

mod budget;
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
pub mod source;
pub mod space;
pub mod strip;
pub mod trajectory;
pub mod value;
pub mod whole;

/// What sources of demonstrations say that their frames are of.
pub const KIND: &str = "demo";
