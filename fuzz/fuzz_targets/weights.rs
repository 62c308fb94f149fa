//! What games weigh: arbitrary bytes through [`gristmill_fuzz::weights`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::weights(data));
