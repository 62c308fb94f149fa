//! Sources -> draws. Holds the newest N chunks and hands each out once per pass, in random order.
//! Draws are a function of key and ordinal alone: nothing here waits for, or looks at, a byte of a chunk.

mod accept;
mod anchor;
mod cache;
mod law;
mod places;
mod undrawn;
mod window;

pub use accept::{Accept, AcceptCounts, AcceptState, Candidate, Chance, Contents, Decision};
pub use anchor::Anchor;
pub use cache::{CacheRules, CacheState, Kept, Lost};
pub use law::{Limit, RateLimitConfig, Window, WindowLawConfig};
pub use undrawn::Undrawn;
pub use window::{Pool, PoolState};
