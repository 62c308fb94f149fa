//! The tools on the real binary: rescore, filter, split, convert, stats and inspect over games of our own.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod converting;
mod counting;
mod filtering;
pub(crate) mod folders;
mod rescoring;
mod resuming;
mod splitting;
mod unreadable;
mod usage;
