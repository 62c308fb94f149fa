//! The policy of a frame <-> which moves it lists and what each has: visits of a search, else values as they are.
//! Where the legal moves are what the record lists, none is stored.

use gristmill_bytes::error::{Error, Kind, Result};

use super::cursor::{Cursor, put_varint};
use crate::chess::record::POLICY;
use crate::chess::transform::PolicyMapping;

/// Maximum number of visits of a move: an `f32` counts exactly up to here.
const MOST: u32 = 1 << 24;

/// How the listed moves are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    /// They are the legal ones, under a mapping of policy indices.
    Legal(PolicyMapping),
    /// They are stored.
    Stored,
}

impl Listed {
    pub(super) const ALL: [Listed; 3] =
        [Listed::Legal(PolicyMapping::AsPlanes), Listed::Legal(PolicyMapping::HalfTurn), Listed::Stored];
}

/// Appends the list of moves, ascending.
pub(super) fn write_list(moves: &[u16], out: &mut Vec<u8>) {
    put_varint(moves.len() as u32, out);
    let mut next = 0;
    for &i in moves {
        put_varint(u32::from(i - next), out);
        next = i + 1;
    }
}

/// Reads a list of moves.
///
/// Errors: `Corrupt` for a policy index that does not exist, `Truncated`.
pub(super) fn read_list(from: &mut Cursor<'_>, moves: &mut Vec<u16>) -> Result<()> {
    moves.clear();
    let count = from.varint()?;
    let mut next = 0u32;
    for _ in 0..count {
        let i = next.saturating_add(from.varint()?);
        let index = u16::try_from(i).ok().filter(|i| usize::from(*i) < POLICY).ok_or_else(|| {
            Error::new(Kind::Corrupt, format!("policy index {i} of {POLICY}")).at_byte(from.at() as u64)
        })?;
        moves.push(index);
        next = i + 1;
    }
    Ok(())
}

/// The visits behind `values` if each is the share of some in all of them; `visits` is the record's own number.
pub(super) fn shares(values: &[f32], visits: u32, counts: &mut Vec<u32>) -> bool {
    let Some(least) = values.iter().copied().filter(|v| *v > 0.0).min_by(f32::total_cmp) else { return false };
    let guesses = (1..=16u8).map(|k| (f64::from(k) / f64::from(least)).round());
    let all = [f64::from(visits) - 1.0, f64::from(visits)].into_iter().chain(guesses);
    for all in all.filter(|all| *all >= 1.0 && *all <= f64::from(MOST)) {
        counts.clear();
        counts.extend(values.iter().map(|v| (f64::from(*v) * all).round() as u32));
        let exact = |(v, n): (&f32, &u32)| v.to_bits() == share(*n, all as u32).to_bits();
        if counts.iter().map(|n| u64::from(*n)).sum::<u64>() == all as u64 && values.iter().zip(&*counts).all(exact) {
            return true;
        }
    }
    false
}

fn share(count: u32, all: u32) -> f32 {
    count as f32 / all as f32
}

/// Appends numbers of visits, three bits a half byte, the lowest first; the fourth says that more follow.
pub(super) fn write_counts(counts: &[u32], out: &mut Vec<u8>) {
    let mut half = None;
    let mut put = |nibble: u8, out: &mut Vec<u8>| match half.take() {
        None => half = Some(nibble),
        Some(low) => out.push(low | nibble << 4),
    };
    for &count in counts {
        let mut rest = count;
        while rest >= 8 {
            put(rest as u8 & 7 | 8, out);
            rest >>= 3;
        }
        put(rest as u8, out);
    }
    if let Some(low) = half {
        out.push(low);
    }
}

/// Reads as many shares as `values` has room for; gives the number of all visits.
///
/// Errors: `Corrupt` for numbers beyond what an `f32` counts, or none at all; `Truncated`.
pub(super) fn read_shares(
    from: &mut Cursor<'_>,
    counts: &mut Vec<u32>,
    moves: usize,
    values: &mut Vec<f32>,
) -> Result<u32> {
    let corrupt = |from: &Cursor<'_>| {
        Error::new(Kind::Corrupt, format!("visits beyond {MOST}, or none")).at_byte(from.at() as u64)
    };
    counts.clear();
    values.clear();
    let (mut byte, mut high) = (0, false);
    let mut all = 0u32;
    for _ in 0..moves {
        let (mut count, mut shift) = (0u32, 0);
        loop {
            if !high {
                byte = from.u8()?;
            }
            let nibble = if high { byte >> 4 } else { byte & 15 };
            high = !high;
            if shift > 24 {
                return Err(corrupt(from));
            }
            count |= u32::from(nibble & 7) << shift;
            shift += 3;
            if nibble < 8 {
                break;
            }
        }
        all = all.saturating_add(count);
        counts.push(count);
    }
    if all == 0 || all > MOST {
        return Err(corrupt(from));
    }
    values.extend(counts.iter().map(|count| share(*count, all)));
    Ok(all)
}

/// The listed move with the highest value, the first of them; 0 where there is none.
pub(super) fn best(moves: &[u16], values: &[f32]) -> u16 {
    let mut best = (f32::NEG_INFINITY, 0);
    for (i, value) in moves.iter().zip(values) {
        if *value > best.0 {
            best = (*value, *i);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_of_visits_come_back(counts in prop::collection::vec(0u32..2000, 1..80)) {
            prop_assume!(counts.iter().any(|n| *n > 0));
            let all: u32 = counts.iter().sum();
            let values: Vec<f32> = counts.iter().map(|n| share(*n, all)).collect();
            let (mut found, mut bytes) = (Vec::new(), Vec::new());
            prop_assert!(shares(&values, all + 1, &mut found));
            write_counts(&found, &mut bytes);
            let (mut scratch, mut read) = (Vec::new(), Vec::new());
            let mut cursor = Cursor::new(&bytes);
            prop_assert_eq!(read_shares(&mut cursor, &mut scratch, values.len(), &mut read).unwrap(), all);
            prop_assert!(cursor.is_over());
            prop_assert_eq!(read, values);
        }

        #[test]
        fn lists_come_back(moves in prop::collection::btree_set(0u16..1858, 0..200)) {
            let moves: Vec<u16> = moves.into_iter().collect();
            let (mut bytes, mut read) = (Vec::new(), Vec::new());
            write_list(&moves, &mut bytes);
            read_list(&mut Cursor::new(&bytes), &mut read).unwrap();
            prop_assert_eq!(read, moves);
        }
    }

    #[test]
    fn other_values_are_no_shares() {
        let mut counts = Vec::new();
        for values in [&[][..], &[0.0], &[f32::NAN, 0.5], &[0.3, -0.0, 0.7], &[0.123_456, 0.876_543], &[1e-30, 1.0]] {
            assert!(!shares(values, 800, &mut counts), "{values:?}");
        }
        assert!(shares(&[1.0], 0, &mut counts) && counts == [1]);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let (mut counts, mut values) = (Vec::new(), Vec::new());
        for (bytes, moves, kind) in [
            (&[0xff; 9][..], 1, Kind::Corrupt),
            (&[0x00], 2, Kind::Corrupt),
            (&[], 0, Kind::Corrupt),
            (&[0x11], 3, Kind::Truncated),
        ] {
            let error = read_shares(&mut Cursor::new(bytes), &mut counts, moves, &mut values).unwrap_err();
            assert_eq!(error.kind(), kind);
        }
        assert_eq!(read_list(&mut Cursor::new(&[1, 0xc2, 0x0e]), &mut Vec::new()).unwrap_err().kind(), Kind::Corrupt);
        assert_eq!(best(&[4, 5, 6], &[0.25, 0.5, 0.5]), 5);
    }
}
