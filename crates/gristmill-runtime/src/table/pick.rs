//! Rows and a key -> rows of a batch, each with its random bits and where these come from (key, number, words).

use gristmill_format::encode::RandomBits;

use crate::runtime::seed::{Draws, Key};

/// How many rows [`add_picks`] draws bits for before it adds them.
const TOGETHER: usize = 256;

/// One row of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    /// Its number in the table.
    pub row: u64,
    /// Random bits of the row in this epoch.
    pub bits: RandomBits,
}

/// The next bits of `draws`, with the place that they are drawn from.
pub fn random_bits(draws: &mut Draws) -> RandomBits {
    let (key, number, words) = draws.place();
    RandomBits { bits: draws.bits(), key, number, words: words as u32 }
}

/// Adds rows to `picks`. Each row gets the first [`random_bits`] of its stream under `key`.
pub fn add_picks(key: Key, rows: &[u64], picks: &mut Vec<Pick>) {
    for rows in rows.chunks(TOGETHER) {
        let mut drawn = [0; TOGETHER];
        let drawn = &mut drawn[..rows.len()];
        drawn.copy_from_slice(rows);
        key.first_bits(drawn);
        let pick = |(row, bits): (&u64, &u64)| {
            let bits = RandomBits { bits: *bits, key: key.value(), number: *row, words: 0 };
            Pick { row: *row, bits }
        };
        picks.extend(rows.iter().zip(&*drawn).map(pick));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_many_rows_are_those_of_each() {
        for count in [0, 1, 5, 256, 257, 1000] {
            let key = Key::new(9, "augment").of(b"epoch", count);
            let rows: Vec<u64> = (0..count).map(|i| i * i).collect();
            let mut picks = vec![Pick { row: 7, bits: RandomBits::default() }];
            add_picks(key, &rows, &mut picks);
            let each = rows.iter().map(|row| Pick { row: *row, bits: random_bits(&mut key.at(*row)) });
            assert_eq!(picks.split_off(1), each.collect::<Vec<_>>());
        }
    }
}
