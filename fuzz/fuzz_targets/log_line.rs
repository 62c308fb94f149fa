//! Lines of a log, plain or gzip: arbitrary bytes through [`gristmill_fuzz::log_line`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::log_line(data));
