#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ffwd_fuzz::stream::run(data));
