//! Fuzzes configurations, presets and saved states.
#![no_main]

#[path = "../src/config.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::config(data));
