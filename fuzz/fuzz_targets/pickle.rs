//! Pickles: arbitrary bytes through [`gristmill_fuzz::pickle`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::pickle(data));
