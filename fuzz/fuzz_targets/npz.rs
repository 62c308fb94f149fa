//! Arbitrary bytes through [`gristmill_fuzz::npz`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::npz(data));
