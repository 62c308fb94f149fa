//! Ranges of bytes of a file that is elsewhere -> the blocks that it is fetched in; blocks -> requests, of which each brings neighbours.
//! Numbers only; twins and rehearsals decide what they want.

/// Bytes of a block.
pub(super) const BLOCK: u64 = 256 << 10;

/// Bytes that one request asks for at most.
const REQUEST: u64 = 4 << 20;

/// The blocks of some ranges of bytes, as far as the file reaches, that are not there: in ascending order, each once.
pub(super) fn missing(ranges: &[(u64, u64)], len: u64, is_there: impl Fn(u64) -> bool) -> Vec<u64> {
    let cut = |(start, end): &(u64, u64)| (*start, (*end).min(len));
    let full = ranges.iter().map(cut).filter(|(start, end)| start < end);
    let runs = full.map(|(start, end)| start / BLOCK..end.div_ceil(BLOCK));
    let first = runs.clone().map(|run| run.start).min().unwrap_or(0);
    let behind = runs.clone().map(|run| run.end).max().unwrap_or(0);
    // Rows of a batch name the same blocks thousands of times. A bit for each block is several times as quick as a sorted set.
    let mut wanted = vec![0u64; (behind - first).div_ceil(64) as usize];
    for block in runs.flatten() {
        wanted[((block - first) / 64) as usize] |= 1 << ((block - first) % 64);
    }
    let mut found = Vec::new();
    for (start, mut bits) in (first..).step_by(64).zip(wanted) {
        while bits != 0 {
            let block = start + u64::from(bits.trailing_zeros());
            bits &= bits - 1;
            if !is_there(block) {
                found.push(block);
            }
        }
    }
    found
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn missing_blocks_are_those_that_the_ranges_touch(
            ranges in prop::collection::vec((0..300 * BLOCK, 0..3 * BLOCK), 0..20),
            len in 0..280 * BLOCK,
            there in 0..300u64,
        ) {
            let ranges: Vec<(u64, u64)> = ranges.into_iter().map(|(start, size)| (start, start + size)).collect();
            let bytes = ranges.iter().flat_map(|(start, end)| {
                let end = (*end).min(len);
                [*start, start + BLOCK, start + 2 * BLOCK, end.saturating_sub(1)].into_iter().filter(move |at| (*start..end).contains(at))
            });
            let expected: BTreeSet<u64> = bytes.map(|at| at / BLOCK).filter(|block| *block != there).collect();
            prop_assert_eq!(missing(&ranges, len, |block| block == there), Vec::from_iter(expected));
        }
    }
}
