//! Demonstrations on the real binary: convert, split, stats, inspect and verify over files of our own.

mod codecs;
mod converting;
mod counting;
mod endings;
mod examining;
pub(crate) mod files;
mod killing;
mod packing;
mod pictures;
mod refusing;
mod sharing;
mod splitting;
mod unpacking;
mod verifying;
