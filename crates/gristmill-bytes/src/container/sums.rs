//! What each chunk of a chunk file weighs by one rule <-> the bytes of a small file beside it (docs/format/chunk-pack.md).
//! Good for that very file and rule: whatever else the bytes are, they are no sums.

use xxhash_rust::xxh3::xxh3_64;

/// What a file begins with.
pub const MAGIC: [u8; 8] = *b"GMSUMS2\0";

/// How its name ends.
pub const EXTENSION: &str = ".sums";

/// Bytes before the sums: magic, hash of the index of the chunk file, id of the rule, number of chunks.
const HEAD: usize = 32;

/// Bytes after them: XXH3-64 of all before.
const FOOT: usize = 8;

/// The name of the file for chunks in a file of name or path `chunks`, by the rule of this id: beside it.
pub fn beside(chunks: &str, rule: u64) -> String {
    let stem = chunks.strip_suffix(".chunks").unwrap_or(chunks);
    format!("{stem}.{rule:016x}{EXTENSION}")
}

/// The chunk file and the rule that a name is of; none where it is no such name.
pub fn named(name: &str) -> Option<(String, u64)> {
    let (stem, rule) = name.strip_suffix(EXTENSION)?.rsplit_once('.')?;
    let rule = u64::from_str_radix(rule, 16).ok()?;
    let chunks = format!("{stem}.chunks");
    (beside(&chunks, rule) == name).then_some((chunks, rule))
}

/// How many bytes the sums of `chunks` chunks take.
pub fn size(chunks: usize) -> u64 {
    (HEAD + FOOT) as u64 + 4 * chunks as u64
}

fn head(index: u64, rule: u64, chunks: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&MAGIC);
    for (word, number) in head[8..].as_chunks_mut::<8>().0.iter_mut().zip([index, rule, chunks as u64]) {
        *word = number.to_le_bytes();
    }
    head
}

/// The bytes of the sums of all chunks, in order. `index` is the checksum of the index of their file.
pub fn write(index: u64, rule: u64, sums: &[f32]) -> Vec<u8> {
    let mut bytes = head(index, rule, sums.len()).to_vec();
    sums.iter().for_each(|sum| bytes.extend_from_slice(&sum.to_le_bytes()));
    let hash = xxh3_64(&bytes);
    bytes.extend_from_slice(&hash.to_le_bytes());
    bytes
}

/// What each of `chunks` chunks weighs; none for bytes that are of another file, rule or version, damaged, or hold what no
/// chunk can weigh.
pub fn read(bytes: &[u8], index: u64, rule: u64, chunks: usize) -> Option<Vec<f32>> {
    if bytes.len() as u64 != size(chunks) || !bytes.starts_with(&head(index, rule, chunks)) {
        return None;
    }
    let (data, hash) = bytes.split_at(bytes.len() - FOOT);
    if xxh3_64(data).to_le_bytes() != *hash {
        return None;
    }
    let sums: Vec<f32> = data[HEAD..].as_chunks().0.iter().map(|sum| f32::from_le_bytes(*sum)).collect();
    sums.iter().all(|sum| sum.is_finite() && *sum >= 0.0).then_some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_come_back_for_the_very_file_and_rule() {
        let sums = [1.5, 0.0, 3.25e7];
        let bytes = write(7, 9, &sums);
        assert_eq!(bytes.len() as u64, size(3));
        assert_eq!(read(&bytes, 7, 9, 3).unwrap(), sums);
        for (index, rule, chunks) in [(8, 9, 3), (7, 8, 3), (7, 9, 2), (7, 9, 4)] {
            assert_eq!(read(&bytes, index, rule, chunks), None);
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(read(&damaged, 7, 9, 3), None, "byte {at}");
        }
        assert_eq!(read(&bytes[..bytes.len() - 1], 7, 9, 3), None);
        for wrong in [f32::NAN, f32::INFINITY, -1.0] {
            assert_eq!(read(&write(7, 9, &[wrong]), 7, 9, 1), None, "{wrong}");
        }
    }

    #[test]
    fn names_say_the_file_and_the_rule() {
        let name = beside("drop/games-00002.chunks", 0x1f);
        assert_eq!(name, "drop/games-00002.000000000000001f.sums");
        assert_eq!(named(&name), Some(("drop/games-00002.chunks".to_owned(), 0x1f)));
        for name in ["games-00002.sums", "games-00002.1f.sums", "games-00002.000000000000001F.sums", "a.chunks", ""] {
            assert_eq!(named(name), None, "{name}");
        }
    }

    #[test]
    fn the_page_has_the_numbers() {
        let page = include_str!("../../../../docs/format/chunk-pack.md");
        for said in ["`GMSUMS2` and a zero byte", "u64 XXH3-64", EXTENSION] {
            assert!(page.contains(said), "{said}");
        }
    }
}
