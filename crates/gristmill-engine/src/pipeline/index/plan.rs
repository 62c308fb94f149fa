//! Batch number -> which rows of the table this rank puts into it, and in which epoch. Pure and in O(1).
//! All ranks together put the same rows into a batch, however many they are.

mod groups;
mod orders;

use std::sync::Arc;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::runtime::seed::Key;
use gristmill_runtime::table::Pick;
use gristmill_stages::config::{IndexConfig, LastBatch, Shuffle};
use gristmill_stages::stage::batch::WhenPartial;
use gristmill_stages::stage::gather::{Gather, Order};

use super::mixed::Mixed;
use super::weighted::Sampler;
use crate::pipeline::ledger::Digests;
use crate::pipeline::plan::skip::Skips;

pub(super) use groups::Ahead;
pub(super) use orders::Augmentation;
use orders::Orders;

/// Largest batch of one rank.
const MOST_ROWS: usize = 1 << 20;

/// What a loader delivers, by number.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    rows: Arc<Intervals>,
    gather: Gather,
    /// Keeps the order of `gather` in the last epoch that a task asked for.
    orders: Arc<Orders>,
    /// Rows of a batch of all ranks.
    batch: u64,
    rank: u64,
    world: u64,
    /// Positions in all epochs; none when there is no end.
    end: Option<u64>,
    /// Batches of a pass, where each has its own.
    per_pass: Option<u64>,
    /// Batches that are left out.
    skips: Skips,
    partial: WhenPartial,
    root: u64,
    /// Draws by weight, in place of the order of `gather`.
    sampler: Option<Arc<Sampler>>,
    /// Several sources, in place of the order of `gather`.
    mixed: Option<Arc<Mixed>>,
    /// The pass whose batches begin some rows later than those of others, and how many.
    late: Option<(u64, u64)>,
}

/// One batch of this rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Rows that hold data.
    pub(super) rows: usize,
    /// Rows that are shown.
    pub(super) shown: usize,
}

impl Plan {
    /// The plan of a config over `rows` under a root seed.
    ///
    /// Errors: `Config` with the field.
    pub(super) fn new(config: &IndexConfig, root: u64, rows: Arc<Intervals>) -> Result<Self> {
        let (size, world) = (config.batch_size as u64, config.world_size);
        if world == 0 || config.rank >= world {
            let text = format!("rank {} of {world}; ranks count from 0 to world_size - 1", config.rank);
            return Err(Error::config("rank", text));
        }
        if size == 0 || !size.is_multiple_of(world) || size / world > MOST_ROWS as u64 {
            let near = (size.min(world * MOST_ROWS as u64) / world).max(1) * world;
            let text = format!(
                "{size} rows for {world} ranks; it is the size of all ranks together, and they must divide it, with 1 to \
                 {MOST_ROWS} rows for each. {near} would do"
            );
            return Err(Error::config("batch_size", text));
        }
        if rows.is_empty() {
            return Err(Error::config("rows", "no rows are selected; loosen the conditions, or ask for len() first"));
        }
        if config.epochs == Some(0) {
            return Err(Error::config("epochs", "expected at least 1 pass"));
        }
        let mixed = match &config.mix {
            Some(_) if config.sampling.is_some() => {
                return Err(Error::config(
                    "sampling",
                    "sources that are mixed have an order of their own; leave it out",
                ));
            }
            Some(_) if matches!(config.shuffle, Shuffle::Blocks { .. }) => {
                return Err(Error::config("shuffle", "sources that are mixed have no blocks; shuffle their rows"));
            }
            Some(mix) => Some(Arc::new(Mixed::new(config, mix, root, rows.len())?)),
            None => None,
        };
        let pass = mixed.as_ref().map_or(rows.len(), |mixed| mixed.length());
        let end = config.epochs.map(|epochs| epochs.checked_mul(pass));
        let end = match end {
            Some(None) => return Err(Error::config("epochs", "more rows than 64 bits count; leave it out for no end")),
            Some(Some(end)) => Some(end),
            None => None,
        };
        let per_pass = config.per_pass(pass);
        if config.apart && per_pass == 0 {
            let text = format!("{pass} rows fill no batch of {size}, and what is left over is dropped; keep it");
            return Err(Error::config("last_batch", text));
        }
        let skips = skips(config)?;
        let order = match config.shuffle {
            Shuffle::Off => Order::Stored,
            Shuffle::Rows => Order::Shuffled,
            Shuffle::Blocks { rows: 0, .. } | Shuffle::Blocks { blocks: 0, .. } => {
                return Err(Error::config("shuffle", "expected blocks of at least 1 row, at least 1 at a time"));
            }
            Shuffle::Blocks { rows, blocks } => Order::Blocks { rows, blocks },
        };
        Ok(Plan {
            gather: Gather::new(Key::new(root, "gather"), rows.len(), order),
            orders: Arc::default(),
            rows,
            batch: size,
            rank: config.rank,
            world,
            end,
            per_pass: config.apart.then_some(per_pass),
            skips,
            partial: match config.last_batch {
                LastBatch::Keep => WhenPartial::Keep,
                LastBatch::Drop => WhenPartial::Drop,
                LastBatch::Pad => WhenPartial::Pad,
            },
            root,
            sampler: None,
            mixed,
            late: None,
        })
    }

    /// The same plan, with rows that are drawn by weight.
    pub(super) fn sampled(self, sampler: Option<Arc<Sampler>>) -> Self {
        Plan { sampler, ..self }
    }

    /// The same plan, with batches of pass `pass` that begin `rows` rows later, where each pass has its own.
    pub(super) fn late(self, pass: u64, rows: u64) -> Self {
        Plan { late: (rows > 0).then_some((pass, rows)), ..self }
    }

    /// Whether batches of some pass begin later than those of the plan.
    pub(super) fn is_late(&self) -> bool {
        self.late.is_some()
    }

    /// Whether rows are those of several sources, by weights.
    pub(super) fn is_mixed(&self) -> bool {
        self.mixed.is_some()
    }

    /// Rows of an epoch, of all ranks.
    pub(super) fn selected(&self) -> u64 {
        self.mixed.as_ref().map_or(self.rows.len(), |mixed| mixed.length())
    }

    /// Rows of a whole batch of this rank.
    pub(super) fn batch_rows(&self) -> usize {
        (self.batch / self.world) as usize
    }

    /// How many batches there are; none when there is no end.
    pub(super) fn batches(&self) -> Option<u64> {
        self.end.map(|end| match (self.per_pass, self.partial) {
            (Some(batches), _) => end / self.selected() * batches,
            (None, WhenPartial::Drop) => end / self.batch,
            (None, WhenPartial::Keep | WhenPartial::Pad) => end.div_ceil(self.batch),
        })
    }

    /// Batches that are left out.
    pub(super) fn skips(&self) -> &Skips {
        &self.skips
    }

    /// Batches of a pass, where each has its own.
    pub(super) fn per_pass(&self) -> Option<u64> {
        self.per_pass
    }

    /// Where batch `number` begins, and the end that it does not reach beyond: of its pass, or of all.
    fn span(&self, number: u64) -> (u64, Option<u64>) {
        match self.per_pass {
            Some(batches) => {
                let (pass, rows) = (number / batches, self.selected());
                let late = self.late.filter(|(late, _)| *late == pass).map_or(0, |(_, late)| late);
                let begins = pass.saturating_mul(rows);
                (begins.saturating_add(number % batches * self.batch + late), Some(begins.saturating_add(rows)))
            }
            None => (number.saturating_mul(self.batch), self.end),
        }
    }

    /// The first batch from `number` on that is not left out.
    pub(super) fn beyond(&self, number: u64) -> u64 {
        let next = self.skips.beyond(number);
        let (Some(batches), Some((pass, _))) = (self.per_pass, self.late) else { return next };
        // The pass that begins late may have one batch less.
        let (first, end) = self.span(next);
        let needs = if self.partial == WhenPartial::Drop { self.batch } else { 1 };
        let is_there = end.is_none_or(|end| first.saturating_add(needs) <= end);
        if next / batches != pass || is_there { next } else { self.skips.beyond((pass + 1) * batches) }
    }

    /// What this rank puts into batch `number`, which must exist.
    pub(super) fn share(&self, number: u64) -> Share {
        let (first, end) = self.span(number);
        let all = end.map_or(self.batch, |end| end.saturating_sub(first).min(self.batch));
        let rows = (all.saturating_sub(self.rank)).div_ceil(self.world) as usize;
        let shown = if self.partial == WhenPartial::Pad { self.batch_rows() } else { rows };
        Share { rows, shown }
    }

    /// Rows `from..to` of this rank's share of batch `number`.
    ///
    /// Errors: `Format`, with the file, where rows are drawn by weight and one cannot be weighed.
    pub(super) fn picks(&self, number: u64, from: usize, to: usize, picks: &mut Vec<Pick>, draws: bool) -> Result<()> {
        picks.clear();
        if let Some(sampler) = &self.sampler {
            let positions = (from..to).map(|i| self.position(number, i));
            return sampler.picks(self.root, positions, picks);
        }
        if let Some(mixed) = &self.mixed {
            mixed.picks(self.position(number, from), self.world, to - from, picks);
            if mixed.is_of_packs() {
                self.augment(picks, draws);
            }
            return Ok(());
        }
        self.each_epoch(number, (from, to), &mut Vec::new(), |epoch, rows| {
            Augmentation::new(self.root, epoch).add(rows, draws, picks);
        });
        Ok(())
    }

    /// Whether all rows come from one source and none is drawn by weight. Only then [`Plan::numbers`] gives them.
    pub(super) fn is_one_order(&self) -> bool {
        self.sampler.is_none() && self.mixed.is_none()
    }

    /// Replaces `rows` by the rows that [`Plan::picks`] gives. The plan must be [one order](Plan::is_one_order).
    pub(super) fn numbers(&self, number: u64, from: usize, to: usize, rows: &mut Vec<u64>) {
        self.each_epoch(number, (from, to), rows, |_, _| ());
    }

    /// Replaces `rows` by rows `from..to` of this rank's share of batch `number`, and calls `each` with those of each epoch.
    fn each_epoch(
        &self,
        number: u64,
        (from, to): (usize, usize),
        rows: &mut Vec<u64>,
        mut each: impl FnMut(u64, &[u64]),
    ) {
        rows.clear();
        let (first, mut at) = (self.position(number, 0), from as u64);
        while at < to as u64 {
            let position = first + at * self.world;
            let (epoch, place) = (position / self.gather.rows(), position % self.gather.rows());
            let of_epoch = (self.gather.rows() - place).div_ceil(self.world).min(to as u64 - at);
            let known = rows.len();
            rows.extend((0..of_epoch).map(|i| place + i * self.world));
            let found = &mut rows[known..];
            self.orders.rows(&self.gather, epoch, found);
            self.rows.rows(found);
            each(epoch, found);
            at += of_epoch;
        }
    }

    /// Places among the rows, with the pass of their source -> numbers in the table, with the random bits of that pass.
    fn augment(&self, picks: &mut [Pick], draws: bool) {
        let mut current: Option<(u64, Augmentation)> = None;
        for pick in picks {
            let pass = pick.bits.bits;
            let (_, augmentation) = match current {
                Some(known) if known.0 == pass => known,
                _ => *current.insert((pass, Augmentation::new(self.root, pass))),
            };
            *pick = augmentation.pick(self.rows.row(pick.row), draws);
        }
    }

    /// Whether there is a batch `number` in all epochs.
    pub(super) fn reaches(&self, number: u64) -> bool {
        let counted = number.checked_add(1).and_then(|behind| behind.checked_mul(self.batch)).is_some();
        counted && self.batches().is_none_or(|batches| number < batches)
    }

    /// The epoch of row `i` of this rank's share of batch `number`.
    pub(super) fn epoch(&self, number: u64, i: usize) -> u64 {
        self.position(number, i) / self.selected()
    }

    /// The batches that a row of the table is in during a pass that there is, and its number among the rows of all ranks in each; such a
    /// batch may be one of those that are dropped. None for a row that is not fed, one where sources are not mixed. Not for rows
    /// that are drawn.
    pub(super) fn found(&self, row: u64, epoch: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let place = self.rows.rank(row);
        let fed = place < self.rows.len() && self.rows.row(place) == row;
        let alone = fed && self.mixed.is_none();
        let mixed = self.mixed.iter().filter(move |_| fed).flat_map(move |mixed| mixed.places(place, epoch));
        let alone = alone.then(|| self.gather.epoch(epoch).place(place)).into_iter();
        alone.chain(mixed).map(move |within| self.stands(epoch, within))
    }

    /// How often a row of the table comes in a pass, at most.
    pub(super) fn often(&self, row: u64, epoch: u64) -> u64 {
        let place = self.rows.rank(row).min(self.rows.len() - 1);
        self.mixed.as_ref().map_or(1, |mixed| mixed.often(place, epoch))
    }

    /// The batch that a place in a pass is in, and its number there; [`u64::MAX`] for what follows the last batch of a pass and is
    /// dropped.
    fn stands(&self, epoch: u64, within: u64) -> (u64, u64) {
        match self.per_pass {
            Some(batches) => {
                let (batch, i) = (within / self.batch, within % self.batch);
                let number =
                    if batch < batches { epoch.saturating_mul(batches).saturating_add(batch) } else { u64::MAX };
                (number, i)
            }
            None => {
                let position = epoch.saturating_mul(self.selected()).saturating_add(within);
                (position / self.batch, position % self.batch)
            }
        }
    }

    /// Passes that there are; none where there is no end.
    pub(super) fn passes(&self) -> Option<u64> {
        self.end.map(|end| end / self.selected())
    }

    fn position(&self, number: u64, i: usize) -> u64 {
        self.span(number).0 + i as u64 * self.world + self.rank
    }

    /// Adds rows from `from` on of this rank's share of batch `number`, as [`Plan::picks`] gave them, to digests.
    pub(super) fn digest(&self, number: u64, from: usize, picks: &[Pick], digests: &mut Digests) {
        let (mut at, mut rest) = (from, picks);
        while !rest.is_empty() {
            let position = self.position(number, at);
            let (epoch, place) = (position / self.selected(), position % self.selected());
            let of_epoch = (self.selected() - place).div_ceil(self.world);
            let (now, later) = rest.split_at(rest.len().min(usize::try_from(of_epoch).unwrap_or(usize::MAX)));
            digests.rows(epoch, now.iter().map(|pick| pick.row));
            (at, rest) = (at + now.len(), later);
        }
    }
}

/// The batches that a config leaves out.
///
/// Errors: `Config` for a range that names an output, or that is further than 64 bits count.
pub(super) fn skips(config: &IndexConfig) -> Result<Skips> {
    let skips = Skips::of(&config.skip, &[String::new()])?.pop().unwrap_or_default();
    match skips.end().checked_mul(config.batch_size as u64) {
        Some(_) => Ok(skips),
        None => Err(Error::config("skip", format!("batch {} is further than 64 bits count", skips.end()))),
    }
}

#[cfg(test)]
mod tests;
