//! Position in a pass over several sources -> row of the table and pass of its source. Pure; any position is as near as the first.

use std::ops::Range;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::runtime::seed::Key;
use gristmill_runtime::table::Pick;
use gristmill_stages::config::{IndexConfig, MixConfig, Shuffle};
use gristmill_stages::stage::mix::{Exhausted, Mix};

/// How rows of packs are mixed that have these numbers of records; `rows` are those of all that are fed. Without weights each
/// pack is chosen equally often, and one that has given all its rows starts over.
///
/// Errors: `Config` in `source` for a pack without rows to be fed.
pub(super) fn sources(given: Option<MixConfig>, lens: &[u64], rows: &Intervals) -> Result<MixConfig> {
    let mut end = 0;
    let mut fed = |len: &u64| {
        let first = end;
        end += len;
        rows.rank(end) - rows.rank(first)
    };
    let sizes: Vec<u64> = lens.iter().map(&mut fed).collect();
    if let Some(empty) = sizes.iter().position(|size| *size == 0) {
        return Err(Error::config("source", format!("pack {empty} has no rows to be fed; leave it out")));
    }
    let given = given.unwrap_or_default();
    let weights = if given.weights.is_empty() { vec![1.0; sizes.len()] } else { given.weights };
    Ok(MixConfig { sizes, weights, packs: true, ..given })
}

/// Sources that lie one after another in the table, in one order.
#[derive(Debug)]
pub(super) struct Mixed {
    order: Mix,
    /// The first row of each source.
    first: Vec<u64>,
    /// Rows of a pass, and how many of the order it takes.
    length: u64,
    stride: u64,
    /// Whether these are rows of packs.
    packs: bool,
}

impl Mixed {
    /// The order of the sources of a config over a table of `rows` rows under a root seed.
    ///
    /// Errors: `Config` with the field.
    pub(super) fn new(config: &IndexConfig, mix: &MixConfig, root: u64, rows: u64) -> Result<Self> {
        let MixConfig { sizes, weights, later, exhausted, length, packs } = mix;
        let shuffled = config.shuffle != Shuffle::Off;
        let mut end = 0u64;
        let mut first = Vec::with_capacity(sizes.len());
        for size in sizes {
            first.push(end);
            end = end.saturating_add(*size);
        }
        if end != rows {
            return Err(Error::config("mix.sizes", format!("{end} rows of a table of {rows}")));
        }
        let key = Key::new(root, "mix");
        let order = match later.as_slice() {
            [] => Mix::new(key, sizes, weights, shuffled, *exhausted),
            _ if *exhausted != Exhausted::Restart => {
                let text = "weights change while sources start over: leave `exhausted` out, or give one set of weights";
                return Err(Error::config("weights", text));
            }
            later => {
                let row = |batch: u64| config.begins(batch, length.unwrap_or(end)).unwrap_or(u64::MAX);
                let later: Vec<_> = later.iter().map(|one| (row(one.batch), one.weights.clone())).collect();
                Mix::changing(key, sizes, weights, &later, shuffled)
            }
        };
        let order = order.ok_or_else(|| {
            let weights: Vec<&[f64]> =
                [weights].into_iter().chain(later.iter().map(|one| &one.weights)).map(|w| &**w).collect();
            let detail = "expected one weight of at least 0 for each source, not all 0, and no empty source";
            Error::config("weights", format!("{weights:?} for sources of {sizes:?} rows; {detail}"))
        })?;
        let whole = order.length();
        let length = length.or(whole).unwrap_or(end);
        if length == 0 || whole.is_some_and(|whole| length > whole) {
            let there = whole
                .map_or_else(|| "at least 1 is expected".to_owned(), |whole| format!("there are {whole} in a pass"));
            return Err(Error::config("nominal_length", format!("{length} rows; {there}")));
        }
        Ok(Mixed { stride: whole.unwrap_or(length), order, first, length, packs: *packs })
    }

    /// Rows of a pass, of all ranks.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Whether sources are rows of packs.
    pub(super) fn is_of_packs(&self) -> bool {
        self.packs
    }

    /// The places in a pass, ascending, at which a row comes, counted over the sources one after another. None for a pass that no
    /// position of 62 bits reaches.
    pub(super) fn places(&self, row: u64, pass: u64) -> impl Iterator<Item = u64> + '_ {
        let source = self.source(row);
        let found = move |within: Range<u64>| {
            let start = within.start;
            self.order.places(source, row - self.first[source], within).map(move |at| at - start)
        };
        self.span(pass).into_iter().flat_map(found)
    }

    /// How often a row comes in a pass, at most.
    pub(super) fn often(&self, row: u64, pass: u64) -> u64 {
        self.span(pass).map_or(0, |within| self.order.often(self.source(row), &within))
    }

    fn source(&self, row: u64) -> usize {
        self.first.partition_point(|first| *first <= row) - 1
    }

    /// The positions of a pass.
    fn span(&self, pass: u64) -> Option<Range<u64>> {
        let start = pass.checked_mul(self.stride).filter(|start| start.saturating_add(self.length) < 1 << 62)?;
        Some(start..start + self.length)
    }

    /// Appends the rows at `count` positions, `step` apart from `position` on, with the pass of the source as their bits. A
    /// position counts the rows of all passes.
    pub(super) fn picks(&self, position: u64, step: u64, count: usize, picks: &mut Vec<Pick>) {
        let (mut at, mut left) = (position, count as u64);
        while left > 0 {
            let (pass, within) = (at / self.length, at % self.length);
            let here = (self.length - within).div_ceil(step).min(left);
            let read = ((here - 1) * step + 1) as usize;
            let rows = self.order.rows(pass.saturating_mul(self.stride).saturating_add(within)).read(read);
            let pick = |row: &gristmill_stages::stage::mix::Row| Pick {
                row: self.first[row.source] + row.row,
                bits: row.pass.into(),
            };
            picks.extend(rows.iter().step_by(step as usize).map(pick));
            (at, left) = (at + here * step, left - here);
        }
    }
}
