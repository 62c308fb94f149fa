//! The rules: edits of a sound game through [`gristmill_fuzz::check`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::check(data));
