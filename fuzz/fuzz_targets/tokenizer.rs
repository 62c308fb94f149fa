//! A `tokenizer.json`: arbitrary bytes through [`gristmill_fuzz::tokenizer`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::tokenizer(data));
