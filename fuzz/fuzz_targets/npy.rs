//! Headers of `.npy` files: arbitrary bytes through [`gristmill_fuzz::npy`].
#![no_main]

#[path = "../src/oracles/npy.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    gristmill_fuzz::npy(data);
    oracle::npy(data);
});
