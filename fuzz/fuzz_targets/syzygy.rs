//! Tablebases: arbitrary bytes as a table among sound ones through [`gristmill_fuzz::syzygy`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::syzygy(data));
