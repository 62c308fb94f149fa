//! An epoch and places in it -> the rows there, and the random bits of these rows. Keeps the order of the last epoch that a caller asked for,
//! with tables once they save time. What it keeps never changes a row.

use std::sync::{Mutex, PoisonError};

use gristmill_format::encode::RandomBits;
use gristmill_runtime::runtime::seed::Key;
use gristmill_runtime::table::{Pick, add_picks, random_bits};
use gristmill_stages::stage::gather::{Epoch, Gather};

/// The order of the last epoch that a caller asked for.
#[derive(Debug, Default)]
pub(super) struct Orders(Mutex<Option<Kept>>);

#[derive(Debug)]
struct Kept {
    epoch: u64,
    order: Epoch,
    /// How many more places callers must ask for before tables save time. `None` if `order` has tables or never gets any.
    until: Option<u64>,
}

impl Orders {
    /// Replaces each place by the row there, in an epoch of `gather`. Every call must pass the same `gather`.
    pub(super) fn rows(&self, gather: &Gather, epoch: u64, places: &mut [u64]) {
        self.of(gather, epoch, places.len() as u64).rows(places);
    }

    /// Returns the order of an epoch. The caller asks it for `places` places.
    fn of(&self, gather: &Gather, epoch: u64, places: u64) -> Epoch {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = kept.take().filter(|known| known.epoch == epoch).unwrap_or_else(|| {
            let order = gather.epoch(epoch);
            Kept { epoch, until: order.breaks_even(), order }
        });
        known.until = match known.until {
            Some(left) if left <= places => {
                known.order = known.order.tabled();
                None
            }
            left => left.map(|left| left - places),
        };
        kept.insert(known).order.clone()
    }
}

/// The random bits of rows in one epoch.
#[derive(Debug, Clone, Copy)]
pub(in crate::pipeline::index) struct Augmentation(Key);

impl Augmentation {
    /// The bits of an epoch under a root seed.
    pub(in crate::pipeline::index) fn new(root: u64, epoch: u64) -> Self {
        Augmentation(Key::new(root, "augment").of(b"epoch", epoch))
    }

    /// Returns a row of the table, with its random bits if `draws`.
    pub(in crate::pipeline::index) fn pick(self, row: u64, draws: bool) -> Pick {
        Pick { row, bits: if draws { random_bits(&mut self.0.at(row)) } else { RandomBits::default() } }
    }

    /// Adds rows to `picks`, each as [`Augmentation::pick`] returns it.
    pub(in crate::pipeline::index) fn add(self, rows: &[u64], draws: bool, picks: &mut Vec<Pick>) {
        match draws {
            true => add_picks(self.0, rows, picks),
            false => picks.extend(rows.iter().map(|row| self.pick(*row, false))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_stages::stage::gather::Order;

    #[test]
    fn what_is_kept_changes_no_row() {
        for order in [Order::Stored, Order::Shuffled, Order::Blocks { rows: 7, blocks: 3 }] {
            let gather = Gather::new(Key::new(3, "rows"), 1000, order);
            let orders = Orders::default();
            for turn in 0..30 {
                // The caller asks for epochs one after another, and for an earlier one again.
                let epoch = [0, 0, 1, 1, 0, 5][turn % 6];
                let mut found: Vec<u64> = (0..1000).skip(turn * 17).take(turn * 31).collect();
                let alone: Vec<u64> = found.iter().map(|place| gather.epoch(epoch).row(*place)).collect();
                orders.rows(&gather, epoch, &mut found);
                assert_eq!(found, alone, "{order:?}, turn {turn}");
            }
        }
    }

    #[test]
    fn picks_of_many_rows_are_those_of_each() {
        for count in [0, 1, 5, 256, 257, 1000] {
            let rows: Vec<u64> = (0..count).map(|i| i * i).collect();
            let augmentation = Augmentation::new(9, count);
            for draws in [false, true] {
                let mut picks = Vec::new();
                augmentation.add(&rows, draws, &mut picks);
                assert_eq!(picks, rows.iter().map(|row| augmentation.pick(*row, draws)).collect::<Vec<_>>());
            }
        }
    }
}
