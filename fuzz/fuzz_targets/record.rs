//! One inflated game: arbitrary bytes through [`gristmill_fuzz::record`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::record(data));
