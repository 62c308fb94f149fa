//! Trajectories of demonstrations -> counts, lengths, returns and actions.

use std::collections::BTreeMap;

use gristmill_engine::runtime::numbers::{NumberTally, Numbers};
use gristmill_engine::runtime::spread::{Spread, Tally};
use gristmill_format::demo::form::DemoFile;
use gristmill_format::demo::trajectory::{End, Trajectories};
use gristmill_format::layout::{DType, Field, Scalar};
use serde::{Deserialize, Serialize};

/// Maximum number of different discrete actions that are counted by themselves.
const MOST_ACTIONS: usize = 1000;

/// At most this many components of an action are counted one by one.
const MOST_COMPONENTS: usize = 64;

/// What demonstrations are like.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DemoStats {
    /// Trajectories.
    pub trajectories: u64,
    /// Steps.
    pub steps: u64,
    /// Trajectories whose environment said that they were over.
    pub terminated: u64,
    /// Trajectories that were cut.
    pub truncated: u64,
    /// Trajectories whose end no `dones` marks; they are among those that were cut.
    pub unended: u64,
    /// Steps per trajectory.
    pub length: Spread,
    /// Sum of the rewards of each trajectory that has some.
    pub returns: Numbers,
    /// Steps by action, where actions are single whole numbers.
    pub actions: BTreeMap<i64, u64>,
    /// Steps whose action is none of the thousand smallest.
    pub other_actions: u64,
    /// Each component of the actions that are vectors.
    pub components: Vec<Numbers>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct DemoCounting {
    stats: DemoStats,
    length: Tally,
    returns: NumberTally,
    components: Vec<NumberTally>,
}

impl DemoCounting {
    pub(super) fn file(&mut self, file: &DemoFile) {
        let all = file.trajectories();
        for (i, (_, end)) in all.ends().iter().enumerate() {
            let Some(span) = all.span(i) else { continue };
            self.stats.trajectories += 1;
            self.stats.steps += span.len() as u64;
            self.length.add(span.len() as u64);
            let marked = span.clone().next_back().and_then(|last| all.field(last, "dones"));
            let marked = marked.is_some_and(|bytes| bytes.iter().any(|b| *b != 0));
            let last = span.clone().next_back().unwrap_or_default();
            let cut = *end == End::Truncated || all.field(last, "truncated").is_some_and(|b| b.iter().any(|b| *b != 0));
            *(if cut { &mut self.stats.truncated } else { &mut self.stats.terminated }) += 1;
            self.stats.unended += u64::from(!marked);
            if let Some(rews) = number(all, "rews").filter(|(field, _)| field.shape.is_empty()) {
                let reward = |frame: usize| all.field(frame, "rews").and_then(|bytes| rews.1.number(bytes));
                self.returns.add(span.clone().filter_map(reward).sum());
            }
            if let Some((field, scalar)) = number(all, "acts") {
                span.for_each(|frame| self.action(field, scalar, all.field(frame, "acts").unwrap_or_default()));
            }
        }
    }

    fn action(&mut self, field: &Field, scalar: Scalar, bytes: &[u8]) {
        let mut values = bytes.chunks_exact(scalar.size().max(1)).filter_map(|one| scalar.number(one));
        let float = matches!(scalar, Scalar::F16 | Scalar::F32 | Scalar::F64);
        if field.shape.is_empty() && !float {
            let Some(action) = values.next().map(|value| value as i64) else { return };
            *self.stats.actions.entry(action).or_default() += 1;
            return self.bound();
        }
        for (i, value) in values.take(MOST_COMPONENTS).enumerate() {
            if self.components.len() == i {
                self.components.push(NumberTally::default());
            }
            self.components[i].add(value);
        }
    }

    /// Keeps at most as many different actions as are listed: the smallest, in whatever order they came.
    fn bound(&mut self) {
        while self.stats.actions.len() > MOST_ACTIONS {
            self.stats.other_actions += self.stats.actions.pop_last().map_or(0, |(_, steps)| steps);
        }
    }

    /// Takes in what was counted elsewhere.
    pub(super) fn join(&mut self, other: DemoCounting) {
        let (stats, more) = (&mut self.stats, other.stats);
        stats.trajectories += more.trajectories;
        stats.steps += more.steps;
        stats.terminated += more.terminated;
        stats.truncated += more.truncated;
        stats.unended += more.unended;
        stats.other_actions += more.other_actions;
        for (action, steps) in more.actions {
            *stats.actions.entry(action).or_default() += steps;
        }
        self.bound();
        self.length.join(other.length);
        self.returns.join(other.returns);
        for (i, component) in other.components.into_iter().enumerate() {
            match self.components.get_mut(i) {
                Some(known) => known.join(component),
                None => self.components.push(component),
            }
        }
    }

    /// The counts, if there was a trajectory.
    pub(super) fn finish(self) -> Option<DemoStats> {
        (self.stats.trajectories > 0).then(|| DemoStats {
            length: self.length.spread(),
            returns: self.returns.numbers(),
            components: self.components.iter().map(NumberTally::numbers).collect(),
            ..self.stats
        })
    }
}

/// A field of numbers.
fn number<'a>(all: &'a Trajectories, name: &str) -> Option<(&'a Field, Scalar)> {
    let field = all.layout()?.field(name)?;
    match field.dtype {
        DType::Scalar(scalar, _) => Some((field, scalar)),
        DType::Record(_) => None,
    }
}
