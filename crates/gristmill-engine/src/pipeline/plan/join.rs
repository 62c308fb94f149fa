//! A stage that joins streams of frames, or one input alone -> the branches that it reads, and their weights over time.
//! Checks numbers and names; draws nothing.

use gristmill_runtime::error::{Error, Result};
use gristmill_stages::config::{Exhausted, JoinPositionsConfig, StageKind};
use gristmill_stages::stage::lane::HashLane;

use crate::pipeline::plan::graph::{Node, Port};
use crate::pipeline::plan::{BranchPlan, Lower};

/// How the branches of a chain are joined.
#[derive(Debug, Clone)]
pub(crate) struct JoinPlan {
    /// Name of the stage; empty without one.
    pub(crate) stage: String,
    /// Weights of the branches.
    pub(crate) weights: Vec<f64>,
    /// Weights that follow, by the frame of all lanes from which they hold.
    later: Vec<(u64, Vec<f64>)>,
    /// What happens at the end of an input.
    pub(crate) exhausted: Exhausted,
}

impl JoinPlan {
    /// One input alone.
    pub(crate) fn alone() -> Self {
        JoinPlan { stage: String::new(), weights: vec![1.0], later: Vec::new(), exhausted: Exhausted::Drop }
    }

    /// Weights that follow, by the frame of a lane from which they hold.
    pub(crate) fn later(&self, lane: Option<HashLane>) -> Vec<(u64, Vec<f64>)> {
        let own = |frame: u64| match lane {
            Some(lane) => frame.saturating_sub(u64::from(lane.index)).div_ceil(u64::from(lane.of.max(1))),
            None => frame,
        };
        self.later.iter().map(|(frame, weights)| (own(*frame), weights.clone())).collect()
    }
}

/// The branches of a join, and how it joins them.
pub(super) fn joined(
    lower: &mut Lower<'_>,
    node: &Node<'_>,
    config: &JoinPositionsConfig,
) -> Result<(Vec<BranchPlan>, JoinPlan)> {
    let (branches, of) = inputs(lower, &node.inputs)?;
    let shares = |weights: &[f64]| {
        let mut shares = vec![0.0; branches.len()];
        of.iter().zip(weights).for_each(|(branch, weight)| shares[*branch] += weight);
        shares
    };
    let equal = vec![1.0; node.inputs.len()];
    let weights = if config.weight.is_empty() { &equal } else { &config.weight };
    check(node, "weight", weights)?;
    let (mut later, mut before) = (Vec::new(), 0);
    for change in &config.later {
        check(node, "later.weight", &change.weight)?;
        if change.frame <= before {
            let text = format!("{}; expected a frame after {before}, in ascending order", change.frame);
            return Err(Error::field(node.name, "later.frame", text));
        }
        before = change.frame;
        later.push((change.frame, shares(&change.weight)));
    }
    let stage = node.name.to_owned();
    let join = JoinPlan { stage, weights: shares(weights), later, exhausted: config.exhausted };
    Ok((branches, join))
}

fn check(node: &Node<'_>, field: &str, weights: &[f64]) -> Result<()> {
    if weights.len() != node.inputs.len() {
        let text = format!("{} weights for {} inputs", weights.len(), node.inputs.len());
        return Err(Error::field(node.name, field, text));
    }
    if weights.iter().any(|w| !(w.is_finite() && *w > 0.0)) {
        return Err(Error::field(node.name, field, "expected positive numbers"));
    }
    Ok(())
}

/// The branches whose frames are joined, and the branch of each input. Frames from a pool's cache come in the order of its
/// draws, as those of its unpacker do: the two are one branch.
pub(super) fn inputs(lower: &mut Lower<'_>, inputs: &[Port]) -> Result<(Vec<BranchPlan>, Vec<usize>)> {
    let from_cache =
        |port: &Port| port.output == 1 && matches!(lower.node(*port).kind, StageKind::ShufflingChunkPool(_));
    let hits: Vec<bool> = inputs.iter().map(from_cache).collect();
    let (mut branches, mut of) = (Vec::new(), vec![0; inputs.len()]);
    for (at, port) in inputs.iter().enumerate().filter(|(at, _)| !hits[*at]) {
        of[at] = branches.len();
        branches.push(lower.branch(port.stage)?);
    }
    let apart = "its cached frames must be joined with those of the unpacker that reads it, in one join_positions";
    for (at, port) in inputs.iter().enumerate().filter(|(at, _)| hits[*at]) {
        let pool = lower.node(*port).name;
        let own = branches.iter().position(|branch: &BranchPlan| branch.stage == pool);
        of[at] = own.ok_or_else(|| Error::field(pool, "cachehit_output", apart))?;
    }
    let unread = |(number, branch): &(usize, &BranchPlan)| {
        branch.accept.as_ref().is_some_and(|accept| accept.cache.is_some())
            && !of.iter().zip(&hits).any(|(of, hit)| *hit && of == number)
    };
    match branches.iter().enumerate().find(unread) {
        Some((_, branch)) => Err(Error::field(&branch.stage, "cachehit_output", apart)),
        None => Ok((branches, of)),
    }
}
