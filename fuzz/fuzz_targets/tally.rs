//! Counts of numbers: arbitrary bytes through [`gristmill_fuzz::tally`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::tally(data));
