//! Headers of `.npy` files: arbitrary bytes through [`gristmill_fuzz::npy`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::npy(data));
