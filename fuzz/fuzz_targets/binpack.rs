//! Stockfish's binpacks: arbitrary bytes through [`gristmill_fuzz::binpack`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::binpack(data));
