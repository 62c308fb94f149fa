//! Demonstrations on the real binary: convert, split, stats, inspect and verify over files of our own.

#[path = "../command/mod.rs"]
mod command;
#[path = "../terminal/mod.rs"]
#[allow(dead_code, reason = "this file uses a part of it")]
mod terminal;

mod converting;
mod counting;
mod files;
mod killing;
mod packing;
mod pictures;
mod refusing;
mod splitting;
mod unpacking;
mod verifying;
