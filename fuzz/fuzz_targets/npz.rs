//! Arbitrary bytes through [`gristmill_fuzz::npz`].
#![no_main]

#[path = "../src/oracles/npz.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    gristmill_fuzz::npz(data);
    oracle::npz(data);
});
