//! Packed trajectories: arbitrary bytes through [`gristmill_fuzz::trajectory`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::trajectory(data));
