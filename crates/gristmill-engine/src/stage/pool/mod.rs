//! Sources -> draws. Holds the newest N chunks and hands each out once per pass, in random order.
//! Draws are a function of key and ordinal alone: nothing here waits for, or looks at, a byte of a chunk.

mod undrawn;
mod window;

pub use undrawn::Undrawn;
pub use window::{Pool, PoolState};
