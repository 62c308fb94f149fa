//! Boards of bulletformat: arbitrary bytes through [`gristmill_fuzz::bullet`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::bullet(data));
