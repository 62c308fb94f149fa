//! Sources of known sizes, with weights -> one order of their rows. Numbers only; any position is as near as the first.
//! A source gives each row once in an order of its own before it gives one again: no gaps, no repeats within a pass.

use std::ops::Range;

use gristmill_runtime::runtime::permute::Permutation;
use gristmill_runtime::runtime::seed::Key;
use gristmill_runtime::runtime::share::{BLOCK, Shares};
use serde::{Deserialize, Serialize};

/// What happens when a source has given all its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exhausted {
    /// It starts over in a new order; the order of all has no end.
    #[default]
    Restart,
    /// The pass ends where it would have given another, and all sources start over.
    Stop,
    /// It is left out, and the weights of the others stand; the pass ends when all have given all.
    Drop,
}

/// The order: a function of key and position.
#[derive(Debug, Clone)]
pub struct Mix {
    key: Key,
    shuffled: bool,
    sizes: Vec<u64>,
    exhausted: Exhausted,
    /// In order of their start; one, unless sources are left out or weights change on the way.
    phases: Vec<Phase>,
    /// Rows of a pass; none where there is no end.
    length: Option<u64>,
}

/// From `start` on, sources are chosen by the same shares.
#[derive(Debug, Clone)]
struct Phase {
    start: u64,
    /// Rows that each source has given before.
    given: Vec<u64>,
    shares: Shares,
}

/// A row of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Number of its source.
    pub source: usize,
    /// Its number there.
    pub row: u64,
    /// The pass of that source, for which its order was drawn.
    pub pass: u64,
}

impl Mix {
    /// An order over sources of these sizes, chosen in proportion to `weights`; each in stored order unless `shuffled`.
    /// `None` for an empty source, 2^62 rows or more, another number of weights than of sources, weights below 0 or without
    /// end, or all 0.
    pub fn new(key: Key, sizes: &[u64], weights: &[f64], shuffled: bool, exhausted: Exhausted) -> Option<Self> {
        let total = sizes.iter().try_fold(0u64, |sum, size| sum.checked_add(*size))?;
        if sizes.len() != weights.len() || sizes.contains(&0) || total >= 1 << 62 {
            return None;
        }
        let (phases, length) = phases(key, sizes, weights, exhausted)?;
        Some(Mix { key, shuffled, sizes: sizes.to_vec(), exhausted, phases, length })
    }

    /// An order as of [`Mix::new`] over sources that start over, whose weights change: from each position of `later` on, which
    /// ascend from above 0, they are those beside it. `None` also for positions that do not ascend, or of 62 bits and more.
    pub fn changing(
        key: Key,
        sizes: &[u64],
        weights: &[f64],
        later: &[(u64, Vec<f64>)],
        shuffled: bool,
    ) -> Option<Self> {
        let mut mix = Mix::new(key, sizes, weights, shuffled, Exhausted::Restart)?;
        for (number, (start, weights)) in (1..).zip(later) {
            let ascends = mix.phases.last().is_some_and(|last| last.start < *start);
            if !ascends || *start >= 1 << 62 || weights.len() != sizes.len() {
                return None;
            }
            let (given, shares) = (mix.given(*start), Shares::new(key.of(b"phase", number), weights)?);
            mix.phases.push(Phase { start: *start, given, shares });
        }
        Some(mix)
    }

    /// Rows of a pass over all sources; `None` where short ones start over and there is no end.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// The order from `position`, below 2^62, on.
    pub fn rows(&self, position: u64) -> Rows<'_> {
        let (pass, within) = self.length.map_or((0, position), |length| (position / length, position % length));
        let phase = self.phases.partition_point(|phase| phase.start <= within) - 1;
        let mut rows =
            Rows { mix: self, pass, phase, place: 0, given: Vec::new(), orders: vec![None; self.sizes.len()] };
        rows.go(phase, within - self.phases[phase].start);
        rows
    }

    /// The positions of `within`, ascending, at which a source gives a row: the inverse of [`Mix::rows`], each at the same cost
    /// wherever it is. The end of `within` must be below 2^62.
    pub fn places(&self, source: usize, row: u64, within: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let size = self.sizes[source];
        let passes = self.passes(source, &within);
        let place = move |pass: u64| {
            let place = if self.shuffled { self.order(source, pass).invert(row) } else { row };
            let at = match self.length {
                Some(length) => pass * length + self.at(source, place, length)?,
                None => self.at(source, pass * size + place, within.end)?,
            };
            within.contains(&at).then_some(at)
        };
        passes.filter_map(place)
    }

    /// How many passes of a source there are, at least in part, between two positions: a row comes as often there, or up to twice less.
    pub fn often(&self, source: usize, within: &Range<u64>) -> u64 {
        let passes = self.passes(source, within);
        passes.end - passes.start
    }

    fn passes(&self, source: usize, within: &Range<u64>) -> Range<u64> {
        let size = self.sizes[source];
        match self.length {
            Some(length) => within.start / length..within.end.div_ceil(length),
            None => self.given(within.start)[source] / size..self.given(within.end)[source].div_ceil(size),
        }
    }

    /// The order of the rows of a source in one of its passes.
    fn order(&self, source: usize, pass: u64) -> Permutation {
        Permutation::new(self.key.of(b"source", source as u64).of(b"pass", pass), self.sizes[source])
    }

    /// The position before `end`, within a pass where passes end, at which a source gives its row number `count`.
    fn at(&self, source: usize, count: u64, end: u64) -> Option<u64> {
        let phase = &self.phases[self.phases.partition_point(|phase| phase.given[source] <= count) - 1];
        let own = count - phase.given[source];
        let (mut first, mut behind) = (0, end.checked_sub(phase.start)? / BLOCK + 1);
        while behind - first > 1 {
            let middle = first + (behind - first) / 2;
            if phase.shares.before(middle)[source] <= own { first = middle } else { behind = middle }
        }
        let left = own - phase.shares.before(first)[source];
        let positions = phase.shares.block(first);
        let mut mine = (0..BLOCK).filter(|place| positions.source(*place) == source);
        let at = phase.start + first * BLOCK + mine.nth(left as usize)?;
        (at < end).then_some(at)
    }

    /// How many rows each source gave before `position`: since the first pass began, or where passes end, since this one did.
    pub fn given(&self, position: u64) -> Vec<u64> {
        self.rows(position).given
    }
}

/// Rows of a [`Mix`] one after another, without end.
#[derive(Debug)]
pub struct Rows<'a> {
    mix: &'a Mix,
    pass: u64,
    phase: usize,
    /// Position within the phase.
    place: u64,
    given: Vec<u64>,
    /// Per source, the pass whose order is known, and that order.
    orders: Vec<Option<(u64, Permutation)>>,
}

impl Rows<'_> {
    /// Goes to a place of a phase.
    fn go(&mut self, phase: usize, place: u64) {
        let at = &self.mix.phases[phase];
        let (block, within) = (place / BLOCK, place % BLOCK);
        self.given = at.given.iter().zip(at.shares.before(block)).map(|(before, own)| before + own).collect();
        if let [only] = self.given.as_mut_slice() {
            *only += within;
        } else {
            let positions = at.shares.block(block);
            (0..within).for_each(|place| self.given[positions.source(place)] += 1);
        }
        (self.phase, self.place) = (phase, place);
    }

    /// The phase and pass that the next row belongs to.
    fn turn(&mut self) {
        let at = self.mix.phases[self.phase].start + self.place;
        if self.mix.length.is_some_and(|length| at == length) {
            self.pass += 1;
            self.go(0, 0);
        } else if self.mix.phases.get(self.phase + 1).is_some_and(|next| at == next.start) {
            self.go(self.phase + 1, 0);
        }
    }

    fn row(&mut self, source: usize) -> Row {
        let size = self.mix.sizes[source];
        let (pass, place) = match self.mix.exhausted {
            Exhausted::Restart => (self.given[source] / size, self.given[source] % size),
            Exhausted::Stop | Exhausted::Drop => (self.pass, self.given[source]),
        };
        self.given[source] += 1;
        if !self.mix.shuffled {
            return Row { source, row: place, pass };
        }
        let order = match self.orders[source].take() {
            Some((known, order)) if known == pass => order,
            _ => self.mix.order(source, pass),
        };
        let row = order.apply(place);
        self.orders[source] = Some((pass, order));
        Row { source, row, pass }
    }

    /// The next `count` rows.
    pub fn read(&mut self, count: usize) -> Vec<Row> {
        let mut rows = Vec::with_capacity(count);
        while rows.len() < count {
            self.turn();
            let mix = self.mix;
            let ends = [mix.phases.get(self.phase + 1).map(|next| next.start), mix.length];
            let start = mix.phases[self.phase].start;
            let end = ends.into_iter().flatten().min().map_or(u64::MAX, |end| end - start);
            let block = mix.phases[self.phase].shares.block(self.place / BLOCK);
            let last = end.min((self.place / BLOCK + 1) * BLOCK).min(self.place + (count - rows.len()) as u64);
            for place in self.place..last {
                let source = if mix.sizes.len() == 1 { 0 } else { block.source(place % BLOCK) };
                rows.push(self.row(source));
            }
            self.place = last;
        }
        rows
    }
}

/// The phases of a pass, and its length.
fn phases(key: Key, sizes: &[u64], weights: &[f64], exhausted: Exhausted) -> Option<(Vec<Phase>, Option<u64>)> {
    let mut phases = Vec::new();
    let mut weights = weights.to_vec();
    let shares = |number: usize, weights: &[f64]| Shares::new(key.of(b"phase", number as u64), weights);
    let mut phase = Phase { start: 0, given: vec![0; sizes.len()], shares: shares(0, &weights)? };
    if exhausted == Exhausted::Restart {
        return Some((vec![phase], None));
    }
    loop {
        let (place, given) = phase.end(sizes);
        let start = phase.start + place;
        phases.push(phase);
        for (weight, _) in weights.iter_mut().zip(given.iter().zip(sizes)).filter(|(_, (given, size))| given == size) {
            *weight = 0.0;
        }
        match shares(phases.len(), &weights) {
            Some(shares) if exhausted == Exhausted::Drop => phase = Phase { start, given, shares },
            _ => return Some((phases, Some(start))),
        }
    }
}

impl Phase {
    /// The first place whose source has no row left, and what all have given before.
    fn end(&self, sizes: &[u64]) -> (u64, Vec<u64>) {
        let left: Vec<u64> = sizes.iter().zip(&self.given).map(|(size, given)| size - given).collect();
        let over = |block: &u64| self.shares.before(*block).iter().zip(&left).any(|(own, left)| own > left);
        // More positions than rows are left: some source must have run out there.
        let (mut fits, mut fails) = (0, left.iter().sum::<u64>() / BLOCK + 1);
        while fails - fits > 1 {
            let middle = fits + (fails - fits) / 2;
            if over(&middle) { fails = middle } else { fits = middle }
        }
        let (mut own, positions) = (self.shares.before(fits), self.shares.block(fits));
        let mut place = 0;
        while place < BLOCK {
            let source = positions.source(place);
            if own[source] == left[source] {
                break;
            }
            own[source] += 1;
            place += 1;
        }
        (fits * BLOCK + place, own.iter().zip(&self.given).map(|(own, given)| own + given).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_row_is_found_where_it_is_given(
            seed in any::<u64>(),
            sources in prop::collection::vec((1u64..400, 0u32..5), 1..5),
            (shuffled, start) in (any::<bool>(), 0u64..20_000),
            exhausted in prop::sample::select(vec![Exhausted::Restart, Exhausted::Stop, Exhausted::Drop]),
        ) {
            let (sizes, weights): (Vec<u64>, Vec<f64>) = sources.into_iter().map(|(n, weight)| (n, f64::from(weight))).unzip();
            let Some(order) = Mix::new(Key::new(seed, "mix"), &sizes, &weights, shuffled, exhausted) else { return Ok(()) };
            prop_assume!(order.length() != Some(0));
            let rows = order.rows(start).read(3000);
            let within = start..start + 3000;
            for (source, size) in sizes.iter().enumerate() {
                for row in [0, size / 2, size - 1] {
                    let given = (start..).zip(&rows).filter(|(_, one)| (one.source, one.row) == (source, row));
                    let found: Vec<u64> = order.places(source, row, within.clone()).collect();
                    prop_assert_eq!(found, given.map(|(at, _)| at).collect::<Vec<_>>(), "row {} of {}", row, source);
                }
            }
        }
    }

    #[test]
    fn rows_far_away_are_found_at_the_same_cost() {
        let order = mix(5, &[1000, 1 << 40, 3], &[1.0, 2.0, 1e-9], Exhausted::Restart);
        let start = 1u64 << 60;
        let rows = order.rows(start).read(5000);
        for (at, row) in (start..).zip(&rows).step_by(97) {
            assert!(order.places(row.source, row.row, start..start + 5000).any(|found| found == at), "{row:?}");
        }
    }

    fn mix(seed: u64, sizes: &[u64], weights: &[f64], exhausted: Exhausted) -> Mix {
        Mix::new(Key::new(seed, "mix"), sizes, weights, true, exhausted).unwrap()
    }

    /// What a source gave in a pass, sorted.
    fn rows_of(rows: &[Row], source: usize, pass: u64) -> Vec<u64> {
        let own = rows.iter().filter(|row| row.source == source && row.pass == pass);
        let mut own: Vec<u64> = own.map(|row| row.row).collect();
        own.sort_unstable();
        own
    }

    #[test]
    fn each_pass_of_a_source_is_a_permutation_of_its_own() {
        for size in [1u64, 2, 3, 100, 1023, 1024, 1025, 5000] {
            for exhausted in [Exhausted::Restart, Exhausted::Stop, Exhausted::Drop] {
                let rows = mix(1, &[size], &[1.0], exhausted).rows(0).read(6 * size as usize);
                for pass in 0..6 {
                    assert_eq!(rows_of(&rows, 0, pass), (0..size).collect::<Vec<_>>(), "{size} rows, {exhausted:?}");
                }
                let orders: Vec<&[Row]> = rows.chunks(size as usize).collect();
                let differ = |two: &[&[Row]]| two[0].iter().zip(two[1]).any(|(one, other)| one.row != other.row);
                assert!(size < 3 || orders.windows(2).any(differ), "{size} rows, {exhausted:?}");
            }
        }
    }

    #[test]
    fn sources_come_in_proportion_and_from_any_position_alike() {
        let order = mix(9, &[50, 7, 1000], &[1.0, 2.0, 1.0], Exhausted::Restart);
        let all = order.rows(0).read(20_000);
        for (source, share) in [(0, 5000), (1, 10_000), (2, 5000)] {
            let count = all.iter().filter(|row| row.source == source).count();
            assert!(count.abs_diff(share) < 30, "{count} of source {source}");
        }
        for start in [0, 1, 777, 1023, 1024, 1025, 12_345, 19_999] {
            assert_eq!(order.rows(start).read(20_000 - start as usize), all[start as usize..], "from {start}");
            let before = |source| all[..start as usize].iter().filter(|row| row.source == source).count() as u64;
            assert_eq!(order.given(start), [before(0), before(1), before(2)]);
        }
        let far = order.rows(1 << 61).read(3000);
        assert_eq!(order.rows((1 << 61) + 1234).read(1766), far[1234..]);
    }

    #[test]
    fn a_pass_that_drops_has_every_row_once_and_keeps_the_shares_of_the_rest() {
        let sizes = [50u64, 7, 3000, 900];
        let order = mix(3, &sizes, &[1.0, 1.0, 2.0, 1.0], Exhausted::Drop);
        assert_eq!(order.length(), Some(3957));
        let all = order.rows(0).read(3 * 3957);
        for (pass, rows) in (0..).zip(all.chunks(3957)) {
            for (source, size) in sizes.iter().enumerate() {
                assert_eq!(rows_of(rows, source, pass), (0..*size).collect::<Vec<_>>());
            }
            let last = |source| rows.iter().rposition(|row| row.source == source).unwrap();
            assert!(last(1) < 60 && last(0) < 300 && last(3) < 3000);
            // With both short ones gone, the long ones stand as 2 to 1.
            let third = rows[400..2400].iter().filter(|row| row.source == 3).count();
            assert!(third.abs_diff(667) < 30, "{third}");
        }
        for start in [1, 30, 60, 299, 1024, 3956, 3957, 5000] {
            assert_eq!(order.rows(start).read(4000), all[start as usize..start as usize + 4000], "from {start}");
        }
    }

    #[test]
    fn a_pass_that_stops_ends_where_a_source_has_no_row_left() {
        let order = mix(3, &[5000, 300], &[1.0, 1.0], Exhausted::Stop);
        let length = order.length().unwrap();
        assert!(length.abs_diff(600) < 60, "{length}");
        let all = order.rows(0).read(2 * length as usize);
        for (pass, rows) in (0..).zip(all.chunks(length as usize)) {
            assert_eq!(rows_of(rows, 1, pass), (0..300).collect::<Vec<_>>());
            let mut long = rows_of(rows, 0, pass);
            long.dedup();
            assert_eq!(long.len() as u64, length - 300, "none twice");
        }
        // Without that end the next row would have been one more of the short source.
        assert_eq!(mix(3, &[5000, 300], &[1.0, 1.0], Exhausted::Restart).rows(length).read(1)[0].source, 1);
    }

    #[test]
    fn weights_change_where_it_is_said_and_each_row_is_still_found() {
        let (sizes, key) = ([50u64, 7, 1000], Key::new(9, "mix"));
        let later = [(1000, vec![0.0, 0.0, 1.0]), (1500, vec![5.0, 0.0, 1.0]), (4001, vec![1.0, 2.0, 1.0])];
        let order = Mix::changing(key, &sizes, &[1.0, 2.0, 1.0], &later, true).unwrap();
        let plain = Mix::new(key, &sizes, &[1.0, 2.0, 1.0], true, Exhausted::Restart).unwrap();
        let all = order.rows(0).read(9000);
        assert_eq!(all[..1000], plain.rows(0).read(1000), "before the first change all is as without one");
        assert!(all[1000..1500].iter().all(|row| row.source == 2));
        let first = all[1500..4001].iter().filter(|row| row.source == 0).count();
        assert!(first.abs_diff(2501 * 5 / 6) < 30, "{first}");
        for start in [1, 999, 1000, 1001, 1499, 1500, 2600, 4000, 4001, 8999] {
            assert_eq!(order.rows(start).read(9000 - start as usize), all[start as usize..], "from {start}");
        }
        let mut given = BTreeMap::new();
        for (at, one) in (0u64..).zip(&all) {
            given.entry((one.source, one.row)).or_insert_with(Vec::new).push(at);
        }
        for (source, size) in sizes.iter().enumerate() {
            for row in 0..*size {
                let found: Vec<u64> = order.places(source, row, 0..9000).collect();
                assert_eq!(found, given.remove(&(source, row)).unwrap_or_default(), "row {row} of {source}");
            }
            let passes = all.iter().filter(|row| row.source == source).map(|row| row.pass).max().unwrap();
            (0..passes).for_each(|pass| assert_eq!(rows_of(&all, source, pass), (0..*size).collect::<Vec<_>>()));
        }
        for later in [vec![(0, vec![1.0; 3])], vec![(5, vec![1.0; 3]), (5, vec![1.0; 3])], vec![(5, vec![0.0; 3])]] {
            assert!(Mix::changing(key, &sizes, &[1.0; 3], &later, true).is_none());
        }
    }

    #[test]
    fn what_cannot_be_mixed_is_no_mix() {
        for (sizes, weights) in [
            (&[5u64, 0][..], &[1.0, 1.0][..]),
            (&[5], &[0.0]),
            (&[5], &[f64::NAN]),
            (&[5], &[-1.0]),
            (&[5], &[1.0, 1.0]),
            (&[1 << 62], &[1.0]),
            (&[u64::MAX, 5], &[1.0, 1.0]),
            (&[], &[]),
        ] {
            for exhausted in [Exhausted::Restart, Exhausted::Stop, Exhausted::Drop] {
                assert!(Mix::new(Key::new(1, "mix"), sizes, weights, true, exhausted).is_none());
            }
        }
        let order = mix(1, &[5, 9], &[1.0, 0.0], Exhausted::Drop);
        assert_eq!(order.length(), Some(5), "what weighs nothing is not waited for");
    }

    /// Which rows a seed gives is a promise: a change here is a change of format.
    #[test]
    fn orders_are_pinned_across_versions() {
        let rows = mix(42, &[1000, 20, 300], &[1.0, 2.0, 0.5], Exhausted::Drop).rows(2).read(6);
        let found: Vec<(usize, u64)> = rows.iter().map(|row| (row.source, row.row)).collect();
        assert_eq!(found, PINNED);
    }

    const PINNED: [(usize, u64); 6] = [(1, 8), (2, 269), (2, 239), (1, 10), (0, 445), (0, 309)];
}
