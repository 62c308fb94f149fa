//! Arbitrary bytes through [`gristmill_fuzz::shard`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::shard(data));
