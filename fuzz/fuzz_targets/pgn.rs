//! Files of PGN: arbitrary bytes through [`gristmill_fuzz::pgn`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::pgn(data));
