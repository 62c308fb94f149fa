//! Mark files: arbitrary bytes through [`gristmill_fuzz::marks`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::marks(data));
