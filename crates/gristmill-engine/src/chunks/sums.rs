//! What the games of a pack weigh by one rule <-> a small file beside them, so that they are weighed once.
//! Good for nothing but these very games: what does not fit or is damaged is not used.

use std::fs;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::store::publish::write_whole;

/// What a file begins with.
const MAGIC: [u8; 8] = *b"GMSUMS1\0";

/// Bytes before the sums.
const HEAD: usize = 32;

/// The file of sums by the rule of this id, in the folder of a pack.
fn path(folder: &Path, rule: u64) -> PathBuf {
    folder.join(format!("weights-{rule:016x}.sums"))
}

/// Magic, hash of the pack's indexes, id of the rule, number of games.
fn head(pack: u64, rule: u64, games: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&MAGIC);
    for (word, number) in head[8..].as_chunks_mut::<8>().0.iter_mut().zip([pack, rule, games as u64]) {
        *word = number.to_le_bytes();
    }
    head
}

/// What each of `games` games weighs by a rule, where it was found out before.
pub(super) fn read(folder: &Path, pack: u64, rule: u64, games: usize) -> Option<Vec<f32>> {
    let path = path(folder, rule);
    let len = HEAD + 4 * games + 8;
    if fs::metadata(&path).ok()?.len() != len as u64 {
        return None;
    }
    let bytes =
        fs::read(path).ok().filter(|bytes| bytes.len() == len && bytes.starts_with(&head(pack, rule, games)))?;
    let (data, hash) = bytes.split_at(len - 8);
    if xxh3_64(data).to_le_bytes() != *hash {
        return None;
    }
    Some(data[HEAD..].as_chunks().0.iter().map(|sum| f32::from_le_bytes(*sum)).collect())
}

/// Keeps what was found out, whole or not at all. Where the folder cannot be written to, it is found out again next time.
pub(super) fn keep(folder: &Path, pack: u64, rule: u64, sums: &[f32]) {
    let mut bytes = head(pack, rule, sums.len()).to_vec();
    sums.iter().for_each(|sum| bytes.extend_from_slice(&sum.to_le_bytes()));
    let hash = xxh3_64(&bytes).to_le_bytes();
    let _ = write_whole(&path(folder, rule), &[&bytes, &hash]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_come_back_for_the_very_games_and_rule() {
        let folder = tempfile::tempdir().unwrap();
        let sums = [1.5, 0.0, 3.25e7];
        assert_eq!(read(folder.path(), 7, 9, 3), None);
        keep(folder.path(), 7, 9, &sums);
        assert_eq!(read(folder.path(), 7, 9, 3).unwrap(), sums);
        for (pack, rule, games) in [(8, 9, 3), (7, 8, 3), (7, 9, 2), (7, 9, 4)] {
            assert_eq!(read(folder.path(), pack, rule, games), None);
        }
        let path = path(folder.path(), 9);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert_eq!(read(folder.path(), 7, 9, 3), None, "byte {at}");
        }
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(read(folder.path(), 7, 9, 3), None);
        keep(&folder.path().join("nowhere"), 7, 9, &sums);
    }
}
