//! Which row of a pack stands where in each batch of each rank: by "Rows of a pack" of docs/format/order.md alone.
//! Sequential, slow and obvious; nothing here calls gristmill.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::draws::{key, of, perm};

/// How rows are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they are stored.
    Off,
    /// By a permutation of all.
    Rows,
    /// By blocks of this number of neighbours, and this number of blocks at a time.
    Blocks(u64, u64),
}

/// What becomes of rows that fill no batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// They are a smaller batch.
    Keep,
    /// They are left out.
    Drop,
    /// They are filled up with zeros.
    Pad,
}

/// What decides the batches of rows.
#[derive(Debug, Clone)]
pub struct Rows {
    /// Root of all draws.
    pub seed: u64,
    /// The selected rows, ascending.
    pub selected: Vec<u64>,
    /// Their order.
    pub order: Order,
    /// How many passes.
    pub epochs: u64,
    /// Whether each pass has batches of its own.
    pub apart: bool,
    /// What becomes of the last batch.
    pub left: Left,
    /// Rows of a batch of all ranks.
    pub batch: u64,
    /// The order of each epoch that was asked for.
    pub known: RefCell<BTreeMap<u64, Rc<[u64]>>>,
}

impl Rows {
    fn count(&self) -> u64 {
        self.selected.len() as u64
    }

    /// How many batches there are.
    pub fn batches(&self) -> u64 {
        let (whole, passes) = if self.apart { (self.count(), self.epochs) } else { (self.count() * self.epochs, 1) };
        let of_one = if self.left == Left::Drop { whole / self.batch } else { whole.div_ceil(self.batch) };
        of_one * passes
    }

    /// The rows of a batch of one rank of several, each with its epoch; and how many rows the batch shows.
    pub fn of(&self, number: u64, rank: u64, ranks: u64) -> (Vec<(u64, u64)>, usize) {
        let count = self.count();
        let (first, end) = if self.apart {
            let each = self.batches() / self.epochs;
            (number / each * count + number % each * self.batch, (number / each + 1) * count)
        } else {
            (number * self.batch, count * self.epochs)
        };
        let places = (0..self.batch / ranks).map(|i| first + i * ranks + rank).filter(|place| *place < end);
        let at = |place: u64| self.epoch(place / count)[(place % count) as usize] as usize;
        let rows: Vec<(u64, u64)> = places.map(|place| (self.selected[at(place)], place / count)).collect();
        let shown = if self.left == Left::Pad { (self.batch / ranks) as usize } else { rows.len() };
        (rows, shown)
    }

    /// What stands at each place of an epoch, counted among the selected rows. Kept, since each batch asks for it.
    fn epoch(&self, epoch: u64) -> Rc<[u64]> {
        let known = &mut *self.known.borrow_mut();
        Rc::clone(known.entry(epoch).or_insert_with(|| self.ordered(epoch).into()))
    }

    fn ordered(&self, epoch: u64) -> Vec<u64> {
        let (count, of_epoch) = (self.count(), of(key(self.seed, "gather"), "epoch", epoch));
        match self.order {
            Order::Off => (0..count).collect(),
            Order::Rows => (0..count).map(perm(of_epoch, count)).collect(),
            Order::Blocks(size, together) => {
                let size = size.min(count);
                let blocks = count.div_ceil(size);
                let (nth, mut all) = (perm(of_epoch, blocks), Vec::new());
                for group in 0..blocks.div_ceil(together) {
                    let members = (group * together..blocks.min((group + 1) * together)).map(&nth);
                    let numbers = |block: u64| block * size..count.min((block + 1) * size);
                    let (whole, short): (Vec<u64>, Vec<u64>) =
                        members.partition(|block| numbers(*block).count() as u64 == size);
                    let listed: Vec<u64> = whole.into_iter().chain(short).flat_map(numbers).collect();
                    let length = listed.len() as u64;
                    let at = perm(of(of_epoch, "group", group), length);
                    all.extend((0..length).map(|place| listed[at(place) as usize]));
                }
                all
            }
        }
    }
}
