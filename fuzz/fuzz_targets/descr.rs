//! The text of a dtype: arbitrary bytes through [`gristmill_fuzz::descr`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::descr(data));
