//! Chunk files: arbitrary bytes through [`gristmill_fuzz::chunks`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::chunks(data));
