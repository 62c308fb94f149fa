//! Which bytes of files that are elsewhere are wanted, one call after the other -> the requests that their twins would make.
//! Asks nobody for anything and changes nothing: it begins with what is there now.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::path::Path;

use gristmill_format::Result;

use super::HeldFile;
use super::blocks::{BLOCK, bytes, missing, requests};
use super::bucket::at_once;

/// Requests to stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// Requests.
    pub requests: u64,
    /// Bytes of their answers.
    pub bytes: u64,
    /// How often one request at least is waited for before the next ones are made.
    pub turns: u64,
}

impl Asked {
    /// Adds the requests for blocks of a file of `len` bytes. `runs` are ranges of blocks, one for each request.
    pub(super) fn ask(&mut self, runs: Vec<(u64, u64)>, len: u64) {
        let bytes = runs.iter().map(|(first, behind)| bytes(*first, *behind, len)).sum();
        self.bytes += bytes;
        self.requests += runs.len() as u64;
        self.turns += runs.len().div_ceil(at_once(runs.len(), bytes)) as u64;
    }
}

impl AddAssign for Asked {
    fn add_assign(&mut self, other: Asked) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.turns += other.turns;
    }
}

/// What would be there of some files.
#[derive(Debug, Clone)]
pub struct Rehearsal<'a>(BTreeMap<&'a Path, Blocks>);

/// A bit for each block of a file that is there.
#[derive(Debug, Clone)]
struct Blocks {
    len: u64,
    there: Vec<u64>,
    missing: u64,
}

impl Blocks {
    fn has(&self, block: u64) -> bool {
        self.there[(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    fn bytes(&self) -> u64 {
        let all = self.len.div_ceil(BLOCK);
        (0..all).filter(|block| self.has(*block)).map(|block| bytes(block, block + 1, self.len)).sum()
    }
}

impl<'a> Rehearsal<'a> {
    /// Of these files, with what this process and the cache have of them.
    ///
    /// Errors, with the path: those of reading the cache.
    pub fn of(files: &[&'a HeldFile]) -> Result<Self> {
        let mut all = BTreeMap::new();
        for twin in files.iter().filter_map(|file| file.twin()) {
            let (len, there) = (twin.len(), twin.there()?);
            let known: u64 = there.iter().map(|bits| u64::from(bits.count_ones())).sum();
            all.insert(twin.path(), Blocks { len, there, missing: len.div_ceil(BLOCK) - known });
        }
        Ok(Rehearsal(all))
    }

    /// Has ranges of bytes of a file: what would be asked for, where not all of them are there yet.
    pub fn have(&mut self, file: &HeldFile, ranges: &[(usize, usize)]) -> Asked {
        let Some((twin, blocks)) = file.twin().and_then(|twin| Some((twin, self.0.get_mut(twin.path())?))) else {
            return Asked::default();
        };
        if blocks.missing == 0 {
            return Asked::default();
        }
        let wanted = missing(&file.within(ranges), twin.len(), |block| blocks.has(block));
        let mut asked = Asked::default();
        asked.ask(requests(wanted.iter().copied()), blocks.len);
        wanted.iter().for_each(|block| blocks.there[(block / 64) as usize] |= 1 << (block % 64));
        blocks.missing -= wanted.len() as u64;
        asked
    }

    /// Whether all bytes of all files are there.
    pub fn is_whole(&self) -> bool {
        self.0.values().all(|blocks| blocks.missing == 0)
    }

    /// Bytes of all files.
    pub fn total(&self) -> u64 {
        self.0.values().map(|blocks| blocks.len).sum()
    }

    /// Bytes that are there.
    pub fn bytes(&self) -> u64 {
        self.0.values().map(Blocks::bytes).sum()
    }

    /// Bytes of the disk that the cache takes for what is there: the bytes, and the checksums of all blocks.
    pub fn disk_bytes(&self) -> u64 {
        self.bytes() + self.0.values().map(|blocks| blocks.len.div_ceil(BLOCK) * 8).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{MemoryStore, Residence};

    #[test]
    fn a_rehearsal_counts_what_the_twin_then_asks_for() {
        let bytes: Vec<u8> = (0..40 * BLOCK + 7).map(|i| (i >> 9) as u8).collect();
        MemoryStore::named("rehearsal").write("rows", bytes);
        let path = Path::new("memory://rehearsal/rows");
        let file = HeldFile::open(path, 0, 40 * BLOCK + 7, Residence::Mapped).unwrap();
        let at = |block: u64| (block * BLOCK) as usize;
        file.have(at(3), at(4)).unwrap();
        let mut rehearsal = Rehearsal::of(&[&file]).unwrap();
        assert_eq!(rehearsal.bytes(), BLOCK);
        let asked = rehearsal.have(&file, &[(at(2), at(5)), (at(9), at(9) + 1), (at(9) + 5, at(10))]);
        assert_eq!(asked, Asked { requests: 3, bytes: 3 * BLOCK, turns: 1 }, "blocks 2, 4 and 9; block 3 is there");
        assert_eq!(rehearsal.have(&file, &[(at(2), at(5))]), Asked::default());
        let rest = rehearsal.have(&file, &[(0, usize::MAX)]);
        assert_eq!(
            rest,
            Asked { requests: 4, bytes: 36 * BLOCK + 7, turns: 1 },
            "0 to 2, 5 to 9, 10 to 41 in 4 MiB each"
        );
        assert!(rehearsal.is_whole() && rehearsal.disk_bytes() == 40 * BLOCK + 7 + 41 * 8);
        assert_eq!(Rehearsal::of(&[&file]).unwrap().bytes(), BLOCK, "nothing was fetched");
    }
}
