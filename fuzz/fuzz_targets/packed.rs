//! Packed chess games: arbitrary bytes through [`gristmill_fuzz::packed`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::packed(data));
