//! The number of a batch -> the groups of its epoch, if blocks of rows are shuffled, and the rows of each group. Other orders have no
//! groups. Pure, as the plan is.

use std::ops::Range;

use super::Plan;

/// The rows that the group of a batch and the next group are made of.
#[derive(Debug)]
pub(in crate::pipeline::index) struct Ahead {
    pub(in crate::pipeline::index) epoch: u64,
    pub(in crate::pipeline::index) group: u64,
    /// For each block, its first row and the row after its last one.
    pub(in crate::pipeline::index) rows: Vec<(u64, u64)>,
}

/// One group of shuffled blocks.
#[derive(Debug)]
pub(in crate::pipeline::index) struct Group {
    /// The batches that have rows of the group.
    pub(in crate::pipeline::index) batches: Range<u64>,
    /// For each block, its first row and the row after its last one.
    pub(in crate::pipeline::index) rows: Vec<(u64, u64)>,
}

impl Plan {
    /// The epoch and the group that batch `number` begins in, and the rows of this group and the next one. `None` if the order has no
    /// groups.
    pub(in crate::pipeline::index) fn ahead(&self, number: u64) -> Option<Ahead> {
        let position = self.span(number).0;
        let (epoch, place) = (position / self.gather.rows(), position % self.gather.rows());
        let order = self.gather.epoch(epoch);
        let (group, mut places) = order.group(place)?;
        let length: u64 = places.iter().map(|(start, end)| end - start).sum();
        if place + length < self.gather.rows() {
            places.extend(order.group(place + length).into_iter().flat_map(|(_, places)| places));
        }
        Some(Ahead { epoch, group, rows: self.ranges(&places) })
    }

    fn ranges(&self, places: &[(u64, u64)]) -> Vec<(u64, u64)> {
        places.iter().map(|(start, end)| (self.rows.row(*start), self.rows.row(end - 1) + 1)).collect()
    }

    /// The groups of the epoch that batch `number` begins in. Empty if the order has no groups.
    pub(in crate::pipeline::index) fn groups(&self, number: u64) -> Vec<Group> {
        if self.sampler.is_some() || self.mixed.is_some() {
            return Vec::new();
        }
        let epoch = self.span(number).0 / self.gather.rows();
        let (order, mut place, mut groups) = (self.gather.epoch(epoch), 0, Vec::new());
        while let Some((_, places)) = (place < self.gather.rows()).then(|| order.group(place)).flatten() {
            let length: u64 = places.iter().map(|(start, end)| end - start).sum();
            let [first, last] = [place, place + length - 1].map(|place| self.stands(epoch, place).0);
            groups.push(Group { batches: first..last.saturating_add(1), rows: self.ranges(&places) });
            place += length;
        }
        groups
    }

    /// The rows of the groups that batches `first..=last` have rows of, all of one epoch. `None` if the order has no groups, if the batches
    /// are of several epochs, or if they have no rows.
    pub(in crate::pipeline::index) fn groups_of(&self, first: u64, last: u64) -> Option<Vec<Range<u64>>> {
        if self.sampler.is_some() || self.mixed.is_some() {
            return None;
        }
        let (begin, (behind, end)) = (self.span(first).0, self.span(last));
        let behind = behind.saturating_add(self.batch).min(end.unwrap_or(u64::MAX));
        let epoch = begin / self.gather.rows();
        let (place, behind) = (begin % self.gather.rows(), behind.checked_sub(epoch * self.gather.rows())?);
        if behind > self.gather.rows() || behind <= place {
            return None;
        }
        let blocks = self.gather.epoch(epoch).blocks(place..behind)?;
        Some(self.ranges(&blocks).into_iter().map(|(start, end)| start..end).collect())
    }

    /// The most batches that have rows of one group. `None` if the order has no groups.
    pub(in crate::pipeline::index) fn group_batches(&self) -> Option<u64> {
        let rows = self.gather.group_rows().filter(|_| self.sampler.is_none() && self.mixed.is_none())?;
        Some(rows.min(self.gather.rows()).div_ceil(self.batch).saturating_add(1))
    }

    /// The batch after the last one of the epoch that batch `number` begins in.
    pub(in crate::pipeline::index) fn epoch_end(&self, number: u64) -> u64 {
        let epoch = self.span(number).0 / self.selected();
        match self.per_pass {
            Some(batches) => (epoch + 1).saturating_mul(batches),
            None => (epoch + 1).saturating_mul(self.selected()).div_ceil(self.batch),
        }
    }
}
