//! The sidecar of a log: arbitrary bytes through [`gristmill_fuzz::sidecar`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::sidecar(data));
