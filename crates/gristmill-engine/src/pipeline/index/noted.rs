//! A loader of rows that starts -> what its ledger records of this process: the plan, from which batch on, and how it came there.
//! Writes nothing.

use std::collections::BTreeMap;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::table::IndexInput;
use gristmill_stages::config::IndexConfig;

use super::plan::Plan;
use crate::pipeline::ledger::{Begin, By, PlanOf};

/// What the ledger of a loader records that starts with batch `first` of a plan under a root seed.
///
/// Errors: `State` where batches of a pass begin some rows late, and so are none of the plan; `Config` where JSON cannot say it.
pub(super) fn begin(
    config: &IndexConfig,
    input: &IndexInput,
    (root, plan): (u64, &Plan),
    (by, first): (By, u64),
) -> Result<Begin> {
    if plan.is_late() {
        let text = "it stands within a batch, and a ledger counts whole ones; leave the ledger out, or resume with the batch size";
        return Err(Error::State(text.to_owned()));
    }
    let decides = IndexConfig {
        shuffle: config.shuffle,
        sampling: config.sampling.clone(),
        view: config.view.clone(),
        mix: config.mix.clone(),
        batch_size: config.batch_size,
        seed: Some(root),
        epochs: None,
        apart: config.apart,
        ..IndexConfig::default()
    };
    let of = PlanOf::Rows {
        config: serde_json::to_value(decides).map_err(|e| Error::config("ledger", e.to_string()))?,
        epochs: config.epochs,
        last_batch: config.last_batch,
        data: format!("{:016x}", input.identity),
        rows: plan.selected(),
        selection: (*input.recipe).clone(),
    };
    let skip = plan.skips().before(u64::MAX);
    let skip = if skip.is_empty() { BTreeMap::new() } else { BTreeMap::from([(String::new(), skip)]) };
    let from = BTreeMap::from([(String::new(), first)]);
    Ok(Begin::new((config.rank, config.world_size), by, from, skip, of))
}
