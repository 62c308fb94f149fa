//! The rows of each pass over the files -> the batch that ends it: the one that completes its rows.
//! Counts rows, and never changes a batch: a reservoir mixes positions across the ends of passes as it did.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::pipeline::draw::branch::Branch;
use crate::pipeline::draw::drawer::Drawer;
use crate::pipeline::plan::{ChainPlan, DrawPlan};

/// The passes of a stream over whole files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::pipeline) struct Passes {
    /// Passes whose rows are in batches before the next one.
    over: u64,
    /// Of each pass after them that was drawn to its end: the rows of the stream up to there.
    ends: VecDeque<u64>,
    /// The passes that were over when the consumer took a batch last.
    #[serde(skip)]
    told: u64,
    /// The passes that were over at the start.
    #[serde(skip)]
    before: u64,
}

impl Passes {
    /// The passes of a chain; `None` where there is one, or no end of any: a pool draws forever, and of files that are
    /// joined each goes at its own pace.
    pub(in crate::pipeline) fn of(plan: &ChainPlan) -> Option<Self> {
        let [branch] = &plan.branches[..] else { return None };
        matches!(branch.draw, DrawPlan::Extract { epochs: 2.., .. }).then(Passes::default)
    }

    /// The passes of a chain that resumes: as they were saved; a state that does not say it counts those drawn to their end.
    pub(in crate::pipeline) fn resumed(saved: Option<&Passes>, head: u64, branch: &Branch) -> Self {
        let live = branch.drawer.as_ref().map_or(0, Drawer::live).max(1);
        let mut passes = saved.cloned().unwrap_or(Passes { over: head / live, ..Passes::default() });
        (passes.told, passes.before) = (passes.over, passes.over);
        passes
    }

    /// Draw `number` completes the first `rows` rows of the stream; notes the end of a pass where it is its last draw.
    pub(in crate::pipeline) fn drawn(&mut self, number: u64, live: u64, rows: u64) {
        if live > 0 && (number + 1).is_multiple_of(live) && number / live == self.known() {
            self.ends.push_back(rows);
        }
    }

    /// Passes whose ends are known.
    pub(in crate::pipeline) fn known(&self) -> u64 {
        self.over + self.ends.len() as u64
    }

    /// The batches that the consumer took hold `rows` rows of the stream.
    pub(in crate::pipeline) fn given(&mut self, rows: u64) {
        while self.ends.pop_front_if(|end| *end <= rows).is_some() {
            self.over += 1;
        }
    }

    /// The consumer took a batch.
    pub(in crate::pipeline) fn took(&mut self) {
        self.told = self.over;
    }

    /// How many passes ended with batches that the consumer took since the start.
    pub(in crate::pipeline) fn ended(&self) -> u64 {
        self.told - self.before
    }

    /// As they stood when `known` ends were known.
    pub(in crate::pipeline) fn before(&self, known: u64) -> Self {
        let ends = usize::try_from(known.saturating_sub(self.over)).unwrap_or(usize::MAX);
        Passes { ends: self.ends.iter().take(ends).copied().collect(), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_ends_with_the_batch_that_completes_its_rows() {
        let mut passes = Passes::default();
        for (number, rows) in [(0, 5), (1, 10), (1, 10), (2, 12), (3, 20)] {
            passes.drawn(number, 2, rows);
        }
        assert_eq!((passes.known(), passes.ends.clone()), (2, [10, 20].into()));
        assert_eq!(passes.before(1).ends, [10], "a mark that knew of one end");
        let mut ended = Vec::new();
        for batch in 0..6 {
            passes.given((batch + 1) * 4);
            passes.took();
            ended.push(passes.ended());
        }
        assert_eq!(ended, [0, 0, 1, 1, 2, 2]);
        passes.drawn(3, 2, 20);
        assert_eq!(passes.known(), 2, "an end is noted once");
    }
}
