//! Ranges of bytes of a file that is elsewhere -> the blocks that it is fetched in; blocks -> requests, of which each brings neighbours.
//! Numbers only; twins and rehearsals decide what they want.

use std::collections::BTreeSet;

/// Bytes of a block.
pub(super) const BLOCK: u64 = 256 << 10;

/// Bytes that one request asks for at most.
const REQUEST: u64 = 4 << 20;

/// The blocks of some ranges of bytes, as far as the file reaches, that are not there.
pub(super) fn missing(ranges: &[(u64, u64)], len: u64, is_there: impl Fn(u64) -> bool) -> BTreeSet<u64> {
    let mut wanted = BTreeSet::new();
    for (start, end) in ranges {
        let end = (*end).min(len);
        if *start < end {
            wanted.extend((start / BLOCK..end.div_ceil(BLOCK)).filter(|block| !is_there(*block)));
        }
    }
    wanted
}

/// Blocks in order -> requests: the first block of each, and the one after its last.
pub(super) fn requests(blocks: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for block in blocks {
        match runs.last_mut() {
            Some((first, behind)) if *behind == block && (*behind - *first) * BLOCK < REQUEST => *behind += 1,
            _ => runs.push((block, block + 1)),
        }
    }
    runs
}

/// Bytes that blocks `first..behind` of a file have.
pub(super) fn bytes(first: u64, behind: u64, len: u64) -> u64 {
    (behind * BLOCK).min(len) - (first * BLOCK).min(len)
}
