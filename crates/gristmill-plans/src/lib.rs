//! The plan of a loader, a saved state or a ledger -> what was or will be fed, row by row, and what that promises and costs.
//! Stands on the engine, beside the jobs; feeds nothing, writes nothing, and starts no thread.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod certificate;
pub mod selected;
pub mod verify_run;
pub mod when;
pub mod xray;
