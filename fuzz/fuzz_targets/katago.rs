//! Shards of KataGo and packed rows: arbitrary bytes through [`gristmill_fuzz::katago`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::katago(data));
