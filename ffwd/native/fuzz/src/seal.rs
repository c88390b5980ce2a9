//! Payloads with the header and the checksum that a saved grammar or text has, so that fuzzing gets
//! past them.

use std::sync::Arc;

use ffwd_engine::engine::Engine;
use ffwd_engine::saved;

/// Where the payload begins.
pub const HEADER: usize = 4 + 1 + 2 + 16 + 8;

pub fn sealed(kind: u8, payload: &[u8], engine: &Arc<Engine>) -> Vec<u8> {
    // What a real one begins with: the format, its version, and which vocabulary it is for.
    let any = engine.compile_choice(&["a".to_owned()]).expect("one text is a grammar");
    let mut bytes = saved::save_grammar(&any).expect("a choice can be saved");
    bytes.truncate(HEADER);
    bytes[4] = kind;
    bytes[HEADER - 8..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(payload);
    let sum = checksum(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// By Fowler, Noll and Vo.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}
