//! Files of records: arbitrary bytes through [`gristmill_fuzz::records`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::records(data));
