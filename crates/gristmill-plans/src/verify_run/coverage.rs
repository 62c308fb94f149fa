//! Stretches of batches that ranks delivered -> what no rank delivered, and what came more than once. Numbers only.

use serde::Serialize;

/// At most this many residue classes of the rows of a batch are counted, though more ranks than that are allowed.
const MOST_CLASSES: u64 = 1 << 16;

/// Batches that one rank of several delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) rank: u64,
    pub(super) world: u64,
}

/// Rows of some batches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stretch {
    /// The first batch.
    pub first: u64,
    /// The one after the last.
    pub end: u64,
    /// Rows whose number, divided by this, leaves one of `rows`.
    pub every: u64,
    /// Remainders; all of them where whole batches are meant.
    pub rows: Vec<u64>,
}

impl Stretch {
    /// Whether a row of a batch is meant.
    pub(super) fn has(&self, row: u64) -> bool {
        self.rows.binary_search(&(row % self.every)).is_ok()
    }
}

/// What no rank delivered of batches below `until`, and what came more than once anywhere. `skip` is left out.
pub(super) fn faults(shares: &[Share], skip: &[(u64, u64)], until: u64) -> (Vec<Stretch>, Vec<Stretch>) {
    let ranges = shares.iter().map(|share| (share.first, share.end)).chain(skip.iter().copied()).chain([(0, until)]);
    let mut edges: Vec<u64> = ranges.flat_map(|(first, end)| [first, end]).collect();
    edges.sort_unstable();
    edges.dedup();
    let (mut missing, mut twice) = (Vec::new(), Vec::new());
    for (first, end) in edges.iter().zip(edges.iter().skip(1)).map(|(first, end)| (*first, *end)) {
        let here: Vec<&Share> = shares.iter().filter(|share| share.first <= first && end <= share.end).collect();
        let every = here.iter().fold(1, |every, share| common(every, share.world)).min(MOST_CLASSES);
        let mut counts = vec![0u32; every as usize];
        for share in &here {
            (share.rank..every).step_by(share.world.max(1) as usize).for_each(|row| counts[row as usize] += 1);
        }
        let of =
            |test: &dyn Fn(u32) -> bool| (0..every).filter(|row| test(counts[*row as usize])).collect::<Vec<u64>>();
        let left_out = skip.iter().any(|(from, to)| *from <= first && end <= *to);
        if first < until && !left_out {
            push(&mut missing, Stretch { first, end, every, rows: of(&|count| count == 0) });
        }
        push(&mut twice, Stretch { first, end, every, rows: of(&|count| count > 1) });
    }
    (missing, twice)
}

fn push(all: &mut Vec<Stretch>, next: Stretch) {
    match all.last_mut() {
        _ if next.rows.is_empty() => {}
        Some(last) if last.end == next.first && (last.every, &last.rows) == (next.every, &next.rows) => {
            last.end = next.end
        }
        _ => all.push(next),
    }
}

/// The least common multiple.
fn common(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a.max(1), b.max(1));
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a.max(1) / x).saturating_mul(b.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(shares: &[(u64, u64, u64, u64)]) -> Vec<Share> {
        shares.iter().map(|&(first, end, rank, world)| Share { first, end, rank, world }).collect()
    }

    fn stretch(first: u64, end: u64, every: u64, rows: &[u64]) -> Stretch {
        Stretch { first, end, every, rows: rows.to_vec() }
    }

    #[test]
    fn shares_of_changing_ranks_add_up() {
        let whole =
            shares(&[(0, 10, 0, 2), (0, 10, 1, 2), (10, 20, 2, 3), (10, 20, 0, 3), (10, 20, 1, 3), (25, 30, 0, 1)]);
        assert_eq!(faults(&whole, &[(20, 25)], 30), (vec![], vec![]));
        assert_eq!(faults(&whole, &[], 32).0, [stretch(20, 25, 1, &[0]), stretch(30, 32, 1, &[0])]);
        let torn = shares(&[(0, 10, 0, 2), (0, 8, 1, 2), (9, 20, 0, 1)]);
        assert_eq!(faults(&torn, &[], 20), (vec![stretch(8, 9, 2, &[1])], vec![stretch(9, 10, 2, &[0])]));
        let mixed = shares(&[(0, 4, 0, 2), (0, 4, 1, 3)]);
        assert_eq!(faults(&mixed, &[], 4), (vec![stretch(0, 4, 6, &[3, 5])], vec![stretch(0, 4, 6, &[4])]));
        assert!(stretch(0, 4, 6, &[3, 5]).has(11) && !stretch(0, 4, 6, &[3, 5]).has(12));
    }
}
