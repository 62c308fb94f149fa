//! Packs through the public API: what raw games become, what is refused, what is left after a kill, and merging.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::type_complexity)]
#![allow(clippy::print_stdout, reason = "a skipped test must be seen")]

mod append;
mod bad_input;
mod checksums;
mod document;
mod drops;
mod merging;
mod packing;
mod resume;
mod valuing;
mod verifying;
