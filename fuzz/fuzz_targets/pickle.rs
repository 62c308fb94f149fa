//! Pickles: arbitrary bytes through [`gristmill_fuzz::pickle`].
#![no_main]

#[path = "../src/oracles/pickle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    gristmill_fuzz::pickle(data);
    oracle::pickle(data);
});
