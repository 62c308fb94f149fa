//! The rescorer: edits of sound games through [`gristmill_fuzz::rescore`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::rescore(data));
