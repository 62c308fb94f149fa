//! One number -> what a run over rows of a pack is: rows, order, ranks of each start, faults, crashes. Runs nothing.

use std::cell::RefCell;

use gristmill_engine::config::{EncoderConfig, IndexConfig, LastBatch, Shuffle, Skip};

use crate::chooser::Chooser;
use crate::less::Less;
use crate::oracle::rows::{Left, Order, Rows};

/// How a start ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// It is stopped.
    Stop,
    /// Its processes die.
    Crash,
}

/// Some processes that begin together: the ranks of one start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// How many ranks.
    pub ranks: u64,
    /// Batches that each rank takes, at most.
    pub batches: u64,
    /// How many of these batches the next start gives again, because its state is older.
    pub lost: u64,
    /// Batches that are taken before the first of them is used.
    pub ahead: u64,
    /// How it ends.
    pub ends: Ends,
    /// Threads that gather and encode.
    pub threads: usize,
    /// Batches that may wait.
    pub queue: usize,
    /// A row that cannot be read.
    pub broken: Option<u64>,
    /// Steps that the consumer takes before its first batch, and for each batch, at most.
    pub stall: u64,
    /// Steps from its last batch to its end.
    pub idle: u64,
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// The number that it is made of.
    pub seed: u64,
    /// Rows of the table.
    pub rows: u64,
    /// Those that are selected, as ranges.
    pub selected: Vec<(u64, u64)>,
    /// Whether rows are elsewhere.
    pub far: bool,
    /// Their order.
    pub order: Order,
    /// How many passes.
    pub epochs: u64,
    /// Whether each pass has batches of its own.
    pub apart: bool,
    /// What becomes of the last batch.
    pub left: Left,
    /// Rows of a batch.
    pub batch: u64,
    /// Batches that are left out.
    pub skips: Vec<(u64, u64)>,
    /// The batch that the first start begins with.
    pub seek: u64,
    /// What runs, one after the other.
    pub starts: Vec<Start>,
    /// Whether there is a ledger.
    pub ledger: bool,
}

impl Scenario {
    /// The run of a number.
    pub fn new(seed: u64) -> Self {
        let mut chooser = Chooser::new(seed).apart(0x0052_4F57);
        let c = &mut chooser;
        let rows = if c.once_in(6) { c.within(1, 2000) } else { c.within(1, 200) };
        let selected = if c.once_in(2) { vec![(0, rows)] } else { ranges(c, rows) };
        let count: u64 = selected.iter().map(|(start, end)| end - start).sum();
        let batch = if c.once_in(6) { 600 } else { c.of(&[1, 2, 4, 6, 12, 24, 60]) };
        let left = c.of(&[Left::Keep, Left::Drop, Left::Pad]);
        let epochs = c.within(1, 3);
        let size = c.within(1, 40);
        let order = match c.below(4) {
            0 => Order::Off,
            1 => Order::Rows,
            _ => Order::Blocks(size, c.within(1, 6)),
        };
        let apart = c.once_in(2) && (left != Left::Drop || count >= batch);
        let far = c.once_in(3);
        let start = |c: &mut Chooser| Start {
            ranks: c.of(&[1, 2, 3, 4, 6].into_iter().filter(|n| batch % n == 0).collect::<Vec<u64>>()),
            // A reader that is elsewhere fetches 64 batches ahead.
            batches: if c.once_in(8) { c.within(60, 120) } else { c.within(1, 12) },
            lost: if c.once_in(3) { c.below(4) } else { 0 },
            ahead: if c.once_in(3) { c.within(1, 4) } else { 0 },
            ends: c.of(&[Ends::Stop, Ends::Crash]),
            threads: c.within(1, 4) as usize,
            queue: c.within(1, 5) as usize,
            broken: c.once_in(6).then(|| c.below(rows)),
            stall: if c.once_in(3) { c.below(40) } else { 0 },
            idle: if c.once_in(3) { c.below(200) } else { 0 },
        };
        let starts = (0..c.within(1, 4)).map(|_| start(c)).collect();
        let mut made = Scenario {
            seed,
            rows,
            selected,
            far,
            order,
            epochs,
            apart,
            left,
            batch,
            skips: Vec::new(),
            seek: 0,
            starts,
            ledger: c.once_in(if batch == 600 { 4 } else { 12 }),
        };
        let batches = made.oracle().batches();
        if c.once_in(4) && batches > 2 {
            made.skips = ranges(c, batches.min(12));
        }
        if c.once_in(6) && !made.ledger {
            made.seek = c.below(batches + 1);
        }
        made
    }

    /// What the oracle is to know.
    pub fn oracle(&self) -> Rows {
        Rows {
            seed: self.seed,
            selected: self.selected.iter().flat_map(|(start, end)| *start..*end).collect(),
            order: self.order,
            epochs: self.epochs,
            apart: self.apart,
            left: self.left,
            batch: self.batch,
            known: RefCell::default(),
        }
    }

    /// Whether a batch is left out.
    pub fn skips(&self, number: u64) -> bool {
        self.skips.iter().any(|(first, end)| (*first..*end).contains(&number))
    }

    /// The configuration of one rank of a start, without a ledger.
    pub fn config(&self, start: &Start, rank: u64) -> IndexConfig {
        IndexConfig {
            encoder: EncoderConfig::Of("bullet".into()),
            batch_size: self.batch as usize,
            epochs: Some(self.epochs),
            apart: self.apart,
            shuffle: match self.order {
                Order::Off => Shuffle::Off,
                Order::Rows => Shuffle::Rows,
                Order::Blocks(rows, blocks) => Shuffle::Blocks { rows, blocks },
            },
            last_batch: match self.left {
                Left::Keep => LastBatch::Keep,
                Left::Drop => LastBatch::Drop,
                Left::Pad => LastBatch::Pad,
            },
            seed: Some(self.seed),
            threads: Some(start.threads),
            queue_capacity: start.queue,
            rank,
            world_size: start.ranks,
            skip: self.skips.iter().map(|(first, end)| Skip { output: None, first: *first, end: *end }).collect(),
            ..IndexConfig::default()
        }
    }
}

/// Some ranges of numbers below `end`, ascending, at least one.
fn ranges(c: &mut Chooser, end: u64) -> Vec<(u64, u64)> {
    let mut cuts: Vec<u64> = (0..2 * c.within(1, 3)).map(|_| c.below(end + 1)).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let found: Vec<(u64, u64)> = cuts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    if found.is_empty() { vec![(0, end)] } else { found }
}

impl Scenario {
    /// Every run that is one thing smaller.
    pub fn smaller(&self) -> Vec<Self> {
        let mut less = Less::of(self);
        less.push(|s| s.ledger = false);
        less.push(|s| s.far = false);
        less.push(|s| s.skips.clear());
        less.push(|s| s.seek = 0);
        less.push(|s| s.epochs = 1);
        less.push(|s| s.apart = false);
        less.push(|s| s.order = Order::Off);
        less.push(|s| s.selected = vec![(0, s.rows)]);
        less.push(|s| (s.rows, s.selected) = (s.rows.div_ceil(2), vec![(0, s.rows.div_ceil(2))]));
        (1..self.starts.len()).for_each(|i| less.push(|s| _ = s.starts.remove(i)));
        for i in 0..self.starts.len() {
            less.push(|s| s.starts[i].ranks = 1);
            less.push(|s| s.starts[i].batches = s.starts[i].batches.div_ceil(2));
            less.push(|s| s.starts[i].lost = 0);
            less.push(|s| s.starts[i].ahead = 0);
            less.push(|s| s.starts[i].stall = 0);
            less.push(|s| s.starts[i].idle = 0);
            less.push(|s| s.starts[i].ends = Ends::Stop);
            less.push(|s| (s.starts[i].threads, s.starts[i].queue) = (1, 1));
        }
        less.found()
    }
}
