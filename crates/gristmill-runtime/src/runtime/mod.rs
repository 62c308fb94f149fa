//! Machinery under the river: randomness, memory, threads, hand-off, metrics, numbers counted, the journal of arrivals.
//! Knows no stage, no store and no format.

pub mod aggregate;
pub mod arena;
pub mod cast;
pub mod cores;
pub mod counted;
pub mod document;
pub mod events;
pub mod handoff;
pub mod intervals;
pub mod journal;
pub mod metrics;
pub mod numbers;
pub mod packed;
pub mod pages;
pub mod period;
pub mod permute;
pub mod pinned;
pub mod scheduler;
pub mod sealed;
pub mod seed;
pub mod share;
pub mod sheet;
pub mod slots;
pub mod spread;
pub mod sum;
pub(crate) mod sync;
mod tail;
