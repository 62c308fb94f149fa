//! Fuzzes the reader of ledgers.
#![no_main]

#[path = "../src/ledger.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::ledger(data));
