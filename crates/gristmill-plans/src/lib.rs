//! The plan of a loader, a saved state or a ledger -> the rows that a loader fed or will feed, and what that promises and costs.
//! Uses the engine and not the jobs. Feeds nothing, writes nothing, and starts no thread.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod certificate;
pub mod selected;
pub mod verify_run;
pub mod when;
pub mod xray;
