//! One file as a tar of games: arbitrary bytes through [`gristmill_fuzz::tar`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::tar(data));
