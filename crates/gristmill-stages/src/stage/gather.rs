//! Position in the stream -> which of the selected rows stands there, in which epoch: the plan of index feeding.
//! Pure arithmetic in O(1) memory: any position at any time. Reads no row.

use std::ops::Range;

use gristmill_runtime::runtime::permute::Permutation;
use gristmill_runtime::runtime::seed::Key;

/// The most places whose rows are found side by side.
const TOGETHER: usize = 256;

/// In which order an epoch goes through its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they are stored.
    Stored,
    /// Any row anywhere.
    Shuffled,
    /// Blocks of `rows` neighbouring rows in random order, the rows of `blocks` of them at a time shuffled together:
    /// a reader needs only those blocks.
    Blocks {
        /// Rows of a block.
        rows: u64,
        /// Blocks whose rows are shuffled together.
        blocks: u64,
    },
}

/// The order of rows over all epochs. Each epoch has every row once.
#[derive(Debug, Clone)]
pub struct Gather {
    rows: u64,
    order: Order,
    key: Key,
}

impl Gather {
    /// The order of `rows` rows under `key`; the sizes of [`Order::Blocks`] are taken as at least 1.
    pub fn new(key: Key, rows: u64, order: Order) -> Self {
        let order = match order {
            Order::Blocks { rows: block, blocks } => {
                Order::Blocks { rows: block.clamp(1, rows.max(1)), blocks: blocks.max(1) }
            }
            other => other,
        };
        Gather { rows, order, key }
    }

    /// Rows of an epoch.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows of a whole group of blocks. `None` in other orders.
    pub fn group_rows(&self) -> Option<u64> {
        let Order::Blocks { rows, blocks } = self.order else { return None };
        Some(rows.saturating_mul(blocks))
    }

    /// The order of one epoch.
    pub fn epoch(&self, epoch: u64) -> Epoch {
        let key = self.key.of(b"epoch", epoch);
        let order = match self.order {
            Order::Stored => Inner::Stored,
            Order::Shuffled => Inner::Shuffled(Permutation::new(key, self.rows)),
            Order::Blocks { rows, blocks } => Inner::Blocks(Blocks::new(key, self.rows, rows, blocks)),
        };
        Epoch { order }
    }
}

/// The order of one epoch.
#[derive(Debug, Clone)]
pub struct Epoch {
    order: Inner,
}

#[derive(Debug, Clone)]
enum Inner {
    Stored,
    Shuffled(Permutation),
    Blocks(Blocks),
}

impl Epoch {
    /// The row at `place`, which must be below the number of rows. Quick for places in ascending order.
    pub fn row(&mut self, place: u64) -> u64 {
        match &mut self.order {
            Inner::Stored => place,
            Inner::Shuffled(permutation) => permutation.apply(place),
            Inner::Blocks(blocks) => {
                let mut place = [place];
                blocks.rows(&mut place);
                place[0]
            }
        }
    }

    /// Returns how many places a caller must ask for before [`Epoch::tabled`] saves time, or `None` if it never does.
    pub fn breaks_even(&self) -> Option<u64> {
        match &self.order {
            Inner::Shuffled(permutation) => permutation.breaks_even(),
            Inner::Stored | Inner::Blocks(_) => None,
        }
    }

    /// Returns the same order with tables, by which [`Epoch::rows`] takes less time.
    #[must_use]
    pub fn tabled(self) -> Self {
        let order = match self.order {
            Inner::Shuffled(permutation) => Inner::Shuffled(permutation.tabled()),
            order => order,
        };
        Epoch { order }
    }

    /// Replaces each of `places` by the row at that place, as [`Epoch::row`] finds it.
    pub fn rows(&mut self, places: &mut [u64]) {
        match &mut self.order {
            Inner::Stored => {}
            Inner::Shuffled(permutation) => permutation.apply_all(places),
            Inner::Blocks(blocks) => blocks.rows(places),
        }
    }

    /// The place of `row`, which must be below the number of rows: `place(row(place)) == place`.
    pub fn place(&mut self, row: u64) -> u64 {
        match &mut self.order {
            Inner::Stored => row,
            Inner::Shuffled(permutation) => permutation.invert(row),
            Inner::Blocks(blocks) => blocks.place(row),
        }
    }

    /// The group of blocks that `place` belongs to, and the ranges of rows that it is made of. None in other orders.
    pub fn group(&self, place: u64) -> Option<(u64, Vec<(u64, u64)>)> {
        let Inner::Blocks(blocks) = &self.order else { return None };
        let group = blocks.group_of(place);
        Some((group, blocks.members(group).map(|block| blocks.extent(block)).collect()))
    }

    /// The ranges of rows that the groups of blocks of some places, at least one, are made of. `None` in other orders.
    pub fn blocks(&self, places: Range<u64>) -> Option<Vec<(u64, u64)>> {
        let Inner::Blocks(blocks) = &self.order else { return None };
        let groups = blocks.group_of(places.start)..=blocks.group_of(places.end - 1);
        Some(groups.flat_map(|group| blocks.members(group)).map(|block| blocks.extent(block)).collect())
    }
}

#[derive(Debug, Clone)]
struct Blocks {
    key: Key,
    rows: u64,
    /// Rows of a block, blocks of a group.
    size: u64,
    group: u64,
    order: Permutation,
    count: u64,
    /// The group that has the last, shorter block, and how many rows are missing there.
    short: (u64, u64),
    /// The last requested group, and the order of its rows.
    current: Option<(u64, Permutation)>,
}

impl Blocks {
    fn new(key: Key, rows: u64, size: u64, group: u64) -> Self {
        let count = rows.div_ceil(size).max(1);
        let order = Permutation::new(key, count);
        let short = (order.invert(count - 1) / group, count * size - rows);
        Blocks { key, rows, size, group, order, count, short, current: None }
    }

    /// Rows of a whole group.
    fn whole(&self) -> u64 {
        self.size.saturating_mul(self.group)
    }

    /// The group of a place.
    fn group_of(&self, place: u64) -> u64 {
        let (short, missing) = self.short;
        let shift = if place >= (short + 1).saturating_mul(self.whole()).saturating_sub(missing) { missing } else { 0 };
        (place + shift) / self.whole()
    }

    /// The first place of a group.
    fn begins(&self, group: u64) -> u64 {
        group * self.whole() - if group > self.short.0 { self.short.1 } else { 0 }
    }

    /// The blocks of a group, in their random order.
    fn members(&self, group: u64) -> impl Iterator<Item = u64> {
        let first = group * self.group;
        (first..(first + self.group).min(self.count)).map(|i| self.order.apply(i))
    }

    /// First row of a block, and the row after its last.
    fn extent(&self, block: u64) -> (u64, u64) {
        (block * self.size, ((block + 1) * self.size).min(self.rows))
    }

    /// The order of the rows of a group, which is kept for the next call.
    fn turn(&mut self, group: u64) -> &Permutation {
        let known = self.current.take().filter(|(current, _)| *current == group);
        let (key, blocks) = (self.key, self.group.min(self.count - group * self.group));
        let rows = blocks * self.size - if group == self.short.0 { self.short.1 } else { 0 };
        let order = || (group, Permutation::new(key.of(b"group", group), rows));
        &self.current.insert(known.unwrap_or_else(order)).1
    }

    /// Of the group with the shorter block: the place of that one among all blocks, and of the last of its group. Rows of a
    /// group are counted block by block, the shorter one last.
    fn swapped(&self, group: u64) -> Option<(u64, u64)> {
        let end = (group * self.group + self.group).min(self.count) - 1;
        (group == self.short.0 && self.short.1 > 0).then(|| (self.order.invert(self.count - 1), end))
    }

    /// Replaces places by the rows at them. The permutations of the places of one group run side by side.
    fn rows(&mut self, places: &mut [u64]) {
        let mut rest = places;
        while let Some(place) = rest.first() {
            let group = self.group_of(*place);
            let (begins, swapped, first) = (self.begins(group), self.swapped(group), group * self.group);
            let size = self.size;
            let turn = self.turn(group);
            let of_group = |place: &&u64| place.checked_sub(begins).is_some_and(|within| within < turn.len());
            let together = rest.iter().take(TOGETHER).take_while(of_group).count().max(1);
            let (now, later) = rest.split_at_mut(together);
            now.iter_mut().for_each(|place| *place -= begins);
            turn.apply_all(now);
            let mut members = [0; TOGETHER];
            let members = &mut members[..together];
            for (member, shuffled) in members.iter_mut().zip(&*now) {
                *member = first + shuffled / size;
                if let Some((at, end)) = swapped {
                    *member = if *member == end { at } else { *member + u64::from(*member >= at) };
                }
            }
            self.order.apply_all(members);
            for (shuffled, block) in now.iter_mut().zip(members) {
                *shuffled = *block * size + *shuffled % size;
            }
            rest = later;
        }
    }

    fn place(&mut self, row: u64) -> u64 {
        let stands = self.order.invert(row / self.size);
        let group = stands / self.group;
        let counted = match self.swapped(group) {
            Some((at, end)) if stands == at => end,
            Some((at, _)) if stands > at => stands - 1,
            _ => stands,
        };
        let shuffled = (counted - group * self.group) * self.size + row % self.size;
        self.begins(group) + self.turn(group).invert(shuffled)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BLOCKS: Order = Order::Blocks { rows: 7, blocks: 3 };

    fn epoch(rows: u64, order: Order, epoch: u64) -> Vec<u64> {
        let mut epoch = Gather::new(Key::new(5, "rows"), rows, order).epoch(epoch);
        let mut all: Vec<u64> = (0..rows).collect();
        epoch.rows(&mut all);
        assert!((0..rows).all(|place| epoch.row(place) == all[place as usize]));
        let mut again: Vec<u64> = (0..rows).collect();
        epoch.tabled().rows(&mut again);
        assert_eq!(again, all);
        all
    }

    #[test]
    fn every_epoch_has_each_row_once_and_its_own_order() {
        for rows in (1..120).chain([1000, 1001]) {
            for order in [Order::Stored, Order::Shuffled, BLOCKS, Order::Blocks { rows: 50, blocks: 1 }] {
                let found = epoch(rows, order, 3);
                let mut sorted = found.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..rows).collect::<Vec<_>>(), "{rows} rows, {order:?}");
                assert!(
                    rows < 50 || order == Order::Stored || found != epoch(rows, order, 4),
                    "{rows} rows, {order:?}"
                );
            }
        }
        assert_eq!(epoch(5, Order::Stored, 9), [0, 1, 2, 3, 4]);
    }

    proptest! {
        #[test]
        fn every_row_leads_back_to_its_place(
            rows in 1u64..5000,
            (size, blocks) in (1u64..300, 1u64..9),
            (seed, pass) in (any::<u64>(), 0u64..1000),
            at in any::<u64>(),
        ) {
            for order in [Order::Stored, Order::Shuffled, Order::Blocks { rows: size, blocks }] {
                let mut epoch = Gather::new(Key::new(seed, "rows"), rows, order).epoch(pass);
                for place in [at % rows, 0, rows - 1, at / 7 % rows] {
                    let row = epoch.row(place);
                    prop_assert_eq!(epoch.place(row), place);
                }
            }
        }
    }

    #[test]
    fn all_rows_of_all_sizes_lead_back() {
        for rows in (1..120).chain([1000, 1001]) {
            for order in [Order::Stored, Order::Shuffled, BLOCKS, Order::Blocks { rows: 50, blocks: 1 }] {
                let mut epoch = Gather::new(Key::new(5, "rows"), rows, order).epoch(3);
                for place in 0..rows {
                    let row = epoch.row(place);
                    assert_eq!(epoch.place(row), place, "{rows} rows, {order:?}");
                }
            }
        }
    }

    #[test]
    fn any_place_can_be_asked_for_at_once() {
        let gather = Gather::new(Key::new(5, "rows"), 1000, BLOCKS);
        let whole = epoch(1000, BLOCKS, 1);
        for place in [999, 0, 500, 20, 21, 998] {
            assert_eq!(gather.epoch(1).row(place), whole[place as usize]);
        }
    }

    #[test]
    fn rows_come_from_the_blocks_of_their_group_alone_and_mix_across_them() {
        for rows in [300, 301, 306, 20, 21, 22] {
            let gather = Gather::new(Key::new(8, "rows"), rows, BLOCKS);
            let mut order = gather.epoch(0);
            let mut mixed = 0;
            for place in 0..rows {
                let (_, ranges) = order.group(place).unwrap();
                assert!(ranges.len() <= 3);
                let row = order.row(place);
                assert!(ranges.iter().any(|(start, end)| (*start..*end).contains(&row)), "{rows}: {place}, {ranges:?}");
                let next = order.row((place + 1).min(rows - 1));
                mixed += usize::from(row / 7 != next / 7);
            }
            assert!(mixed * 3 > rows as usize, "{rows}: {mixed} changes of block");
        }
        assert!(Gather::new(Key::new(8, "rows"), 9, Order::Shuffled).epoch(0).group(0).is_none());
    }

    #[test]
    fn the_groups_of_an_epoch_have_each_row_in_one_range_and_a_whole_one_has_its_size() {
        for rows in [300, 301, 315, 20] {
            let gather = Gather::new(Key::new(8, "rows"), rows, BLOCKS);
            assert_eq!((gather.rows(), gather.group_rows()), (rows, Some(21)));
            let order = gather.epoch(1);
            let groups: std::collections::BTreeMap<_, _> = (0..rows).filter_map(|place| order.group(place)).collect();
            let mut found: Vec<u64> = groups.into_values().flatten().flat_map(|(start, end)| start..end).collect();
            found.sort_unstable();
            assert_eq!(found, (0..rows).collect::<Vec<_>>(), "{rows} rows");
        }
        assert_eq!(Gather::new(Key::new(8, "rows"), 9, Order::Shuffled).group_rows(), None);
    }

    /// Which rows a seed gives is a promise: a change here is a change of format.
    #[test]
    fn orders_are_pinned_across_versions() {
        let first = |order, pass| {
            let mut epoch = Gather::new(Key::new(5, "rows"), 1_000_000, order).epoch(pass);
            [0, 1, 2, 3].map(|place| epoch.row(place))
        };
        assert_eq!(first(Order::Shuffled, 0), PINNED[..4]);
        assert_eq!(first(Order::Blocks { rows: 4096, blocks: 8 }, 2), PINNED[4..]);
        // Blocks of one size: none is counted last.
        assert_eq!(epoch(12, Order::Blocks { rows: 2, blocks: 6 }, 2), [5, 9, 10, 0, 7, 6, 8, 11, 3, 2, 4, 1]);
    }

    const PINNED: [u64; 8] = [50360, 790_320, 770_022, 256_420, 84952, 801_409, 82821, 85888];
}
