//! The order of one lane's rows: a join, then the steps of the plan, one after the other, as a list.
//! Offers runs of rows to each in turn; knows none of them by name.

use gristmill_stages::stage::join::Join;
use gristmill_stages::stage::{Later, Row, RowStep, Standing};

/// What is offered to a lane and comes out of it, in buffers that are used again.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Run {
    /// Rows on their way.
    pub(in crate::pipeline) rows: Vec<Row>,
    /// Rows that a step let go for good.
    pub(in crate::pipeline) dropped: Vec<Row>,
    /// By slot, what stands for the position of the row there; empty where no stage reads positions.
    pub(in crate::pipeline) keys: Vec<u64>,
}

/// One lane.
#[derive(Debug)]
pub(in crate::pipeline) struct LaneFold {
    pub(in crate::pipeline) join: Join,
    pub(in crate::pipeline) steps: Vec<Box<dyn RowStep>>,
}

impl LaneFold {
    pub(in crate::pipeline) fn new(join: Join, steps: Vec<Box<dyn RowStep>>) -> Self {
        LaneFold { join, steps }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut dyn RowStep> {
        let steps = self.steps.iter_mut().map(|step| &mut **step as &mut dyn RowStep);
        std::iter::once(&mut self.join as &mut dyn RowStep).chain(steps)
    }

    /// Rows that it takes before one may come out.
    pub(in crate::pipeline) fn room(&self) -> usize {
        self.steps.iter().fold(0, |room, step| room.saturating_add(step.room()))
    }

    /// Whether the next row that it takes may make it give one.
    pub(in crate::pipeline) fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// Whether it may give a row in its turn: it is full, or no more rows come.
    pub(in crate::pipeline) fn gives(&self) -> bool {
        self.is_full() || self.join.choose().is_none()
    }

    /// Sends a run through all of it.
    pub(in crate::pipeline) fn offer(&mut self, run: &mut Run) {
        self.all().for_each(|step| step.offer(&mut run.rows, &mut run.dropped, &run.keys));
    }

    /// Puts one of the rows that are left at the end into an empty run, if there is one.
    pub(in crate::pipeline) fn drain(&mut self, run: &mut Run) {
        for first in 0..self.steps.len() {
            while let Some(row) = self.steps[first].drain() {
                run.rows.push(row);
                for step in &mut self.steps[first + 1..] {
                    step.offer(&mut run.rows, &mut run.dropped, &run.keys);
                }
                if !run.rows.is_empty() {
                    return;
                }
            }
        }
    }

    /// The step, by its place, that no row will come out of, and why.
    pub(in crate::pipeline) fn stuck(&self) -> Option<(usize, String)> {
        self.steps.iter().enumerate().find_map(|(at, step)| Some((at, step.stuck()?)))
    }

    /// A batch is complete. Returns the changes that were noted since the mark before.
    pub(in crate::pipeline) fn mark(&mut self) -> usize {
        self.all().map(RowStep::mark).sum()
    }

    /// The oldest mark is that of the consumer.
    pub(in crate::pipeline) fn advance(&mut self) {
        self.all().for_each(RowStep::advance);
    }

    /// Rows that it holds now.
    pub(in crate::pipeline) fn held(&self) -> usize {
        self.steps.iter().map(|step| step.held()).sum()
    }

    /// The rows that it holds, or held at the consumer's mark or later; most of them many times.
    pub(in crate::pipeline) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.steps.iter().flat_map(|step| step.rows())
    }

    /// Where each part stood at the consumer's mark: the join, then the steps.
    pub(in crate::pipeline) fn later(&self) -> Vec<Later> {
        std::iter::once(self.join.later()).chain(self.steps.iter().map(|step| step.later())).collect()
    }

    /// Takes over where each part stood.
    ///
    /// Errors: what does not fit.
    pub(in crate::pipeline) fn restore(&mut self, standings: Vec<Standing>) -> Result<(), String> {
        self.all().zip(standings).try_for_each(|(step, standing)| step.restore(standing))
    }
}
