//! A lane of a chain and what its rows go through -> their sizes. Numbers only.

use std::sync::Arc;

use gristmill_runtime::error::{Error, Result};
use gristmill_stages::stage::lane::HashLane;
use gristmill_stages::stage::{RowStage, Shared};

use crate::pipeline::plan::graph::Node;

/// A complete small loader over the chunks of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LanePlan {
    /// Absent where there is only one.
    pub(crate) lane: Option<HashLane>,
}

impl LanePlan {
    /// Its part of a size that all lanes share.
    pub(crate) fn share(&self, whole: u64) -> u64 {
        self.lane.map_or(whole, |lane| lane.share(whole))
    }
}

/// One stage over rows.
#[derive(Debug, Clone)]
pub(crate) struct StepPlan {
    pub(crate) stage: String,
    /// Its kind, such as `shuffling_frame_sampler`.
    pub(crate) kind: &'static str,
    pub(crate) of: Arc<dyn RowStage>,
    /// The size that lanes share.
    pub(crate) shared: Shared,
}

impl StepPlan {
    pub(in crate::pipeline) fn of(node: &Node<'_>) -> Result<Option<Self>> {
        let Some(of) = node.kind.row_stage() else { return Ok(None) };
        let shared = of.shared().map_err(|(field, text)| Error::field(node.name, field, text))?;
        Ok(Some(StepPlan { stage: node.name.to_owned(), kind: node.kind.name(), of, shared }))
    }

    /// Slots that rows take which it holds in one lane.
    pub(crate) fn slots(&self, lane: &LanePlan) -> usize {
        self.of.slots(lane.share(self.shared.size))
    }

    /// Bytes that it takes beside slots in one lane.
    pub(crate) fn bytes(&self, lane: &LanePlan) -> u64 {
        self.of.bytes(lane.share(self.shared.size))
    }
}
