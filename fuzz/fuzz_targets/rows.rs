//! Rows of 2048 in any form: arbitrary bytes through [`gristmill_fuzz::rows`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::rows(data));
