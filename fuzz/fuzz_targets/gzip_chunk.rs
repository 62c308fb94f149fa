//! One file as a game: arbitrary bytes through [`gristmill_fuzz::gzip_chunk`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gristmill_fuzz::gzip_chunk(data));
