//! Bytes of a format with checksums -> the same bytes with right ones: an input reaches the code behind them.
//! Changes checksums, and lengths that follow from the length of the input. Gives back what is too short for that.

use std::io::Read;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}

fn put(bytes: &mut [u8], at: usize, word: u64) {
    if let Some(place) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = word.to_le_bytes();
    }
}

/// The last 8 bytes are the checksum of those before.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some((body, seal)) = bytes.split_last_chunk_mut() {
        *seal = xxh3_64(body).to_le_bytes();
    }
    bytes
}

/// A mark file: the bitmap ends where the checksum begins.
pub fn mark(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    if let Some(size) = (data.len() as u64).checked_sub(64).and_then(|room| room.checked_sub(word(data, 40))) {
        put(&mut bytes, 48, size);
    }
    sealed(bytes)
}

/// Sums of chunks: as many as there is room for.
pub fn sums(data: &[u8]) -> Vec<u8> {
    let chunks = data.len().saturating_sub(40) / 4;
    let mut bytes = data[..data.len().min(40 + 4 * chunks)].to_vec();
    put(&mut bytes, 24, chunks as u64);
    sealed(bytes)
}

/// A chunk file: its footer has the checksum of the index.
pub fn chunks(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    let Some(footer) = bytes.len().checked_sub(56) else { return bytes };
    let index = usize::try_from(word(&bytes, footer)).unwrap_or(usize::MAX).min(footer);
    let mut hash = Xxh3::new();
    hash.update(&bytes[index..footer + 40]);
    put(&mut bytes, footer + 40, hash.digest());
    bytes
}

/// A file of records: the schema and each game of `size` bytes a row have their checksum.
pub fn records(data: &[u8], size: impl FnOnce(&str) -> Option<usize>) -> Vec<u8> {
    let mut bytes = data.to_vec();
    let text = word(data, 8) as u32 as usize;
    let Some(schema) = data.get(24..24usize.saturating_add(text)) else { return bytes };
    put(&mut bytes, 16, xxh3_64(schema));
    let Some(size) = std::str::from_utf8(schema).ok().and_then(size) else { return bytes };
    let mut at = 24 + text;
    while at + 16 <= data.len() {
        let (frames, facts) = (word(data, at) as u32 as usize, (word(data, at) >> 32) as usize);
        let Some(body) = frames.checked_mul(size).and_then(|rows| rows.checked_add(facts)) else { break };
        let Some(game) = data.get(at + 16..).and_then(|rest| rest.get(..body)) else { break };
        let mut hash = Xxh3::new();
        hash.update(&data[at..at + 8]);
        hash.update(game);
        put(&mut bytes, at + 8, hash.digest());
        at += 16 + body;
    }
    bytes
}

/// A zip archive: the directory and each member have the checksum and length of what the member inflates to.
pub fn zip(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    let Some(end) = data.windows(4).rposition(|four| four == b"PK\x05\x06") else { return bytes };
    let field = |at: usize, width: usize| (word(data, at) & (u64::MAX >> (64 - 8 * width))) as usize;
    let (mut at, members) = (field(end + 16, 4), field(end + 10, 2));
    for _ in 0..members {
        if data.get(at..).is_none_or(|entry| !entry.starts_with(b"PK\x01\x02")) {
            break;
        }
        let (local, stored) = (field(at + 42, 4), field(at + 20, 4));
        let start = local + 30 + field(local + 26, 2) + field(local + 28, 2);
        let (Some(body), mut whole) = (data.get(start..).and_then(|rest| rest.get(..stored)), Vec::new()) else {
            break;
        };
        match field(at + 10, 2) {
            8 => _ = DeflateDecoder::new(body).take(1 << 20).read_to_end(&mut whole),
            _ => whole.extend_from_slice(body),
        }
        let mut crc = Crc::new();
        crc.update(&whole);
        let descriptor = start + stored;
        let described = data.get(descriptor..).is_some_and(|rest| rest.starts_with(b"PK\x07\x08"));
        let places = [(at + 16, at + 24), (local + 14, local + 22), (descriptor + 4, descriptor + 12)];
        for (sum, length) in places.into_iter().take(2 + usize::from(described)) {
            for (place, value) in [(sum, crc.sum()), (length, whole.len() as u32)] {
                if let Some(place) = bytes.get_mut(place..).and_then(<[u8]>::first_chunk_mut) {
                    *place = value.to_le_bytes();
                }
            }
        }
        at += 46 + field(at + 28, 2) + field(at + 30, 2) + field(at + 32, 2);
    }
    bytes
}

/// A tar: each header that a reader comes to has its checksum.
pub fn tar(data: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 512;
    let (mut data, mut at) = (data.to_vec(), 0usize);
    while let Some(block) = data.get_mut(at..at.saturating_add(BLOCK)).filter(|block| block.iter().any(|b| *b != 0)) {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let digits = block[124..136].iter().skip_while(|b| **b == b' ').take_while(|b| b.is_ascii_digit());
        let size = digits.fold(0usize, |n, b| n.saturating_mul(8).saturating_add(usize::from(b - b'0')));
        at = at.saturating_add(BLOCK).saturating_add(size.div_ceil(BLOCK).saturating_mul(BLOCK));
    }
    data
}
