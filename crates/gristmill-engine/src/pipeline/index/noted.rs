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

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use gristmill_format::layout::{Layout, Scalar};
    use gristmill_runtime::runtime::intervals::Intervals;
    use gristmill_runtime::store::Residence;
    use gristmill_runtime::table::{FileTable, Part, Recipe};
    use gristmill_stages::config::{HanseSamplingConfig, MixConfig, Pad, Shuffle, View};

    use super::*;

    /// Twenty rows of two bytes.
    pub(in crate::pipeline::index) fn input(folder: &std::path::Path) -> IndexInput {
        let (layout, path) = (Layout::packed(&[("bytes", Scalar::U8, &[2])]).unwrap(), folder.join("rows"));
        std::fs::write(&path, [1; 40]).unwrap();
        let table = FileTable::open(layout, vec![Part { path, offset: 0, rows: 20 }], Residence::Mapped).unwrap();
        let recipe = Arc::new(Recipe { pack: "00ff".into(), steps: Vec::new() });
        let rows = Arc::new(Intervals::all(20));
        IndexInput { table: Arc::new(table), rows, identity: 0xabc, valuations: Vec::new(), recipe }
    }

    #[test]
    fn a_ledger_records_what_decides_the_batches_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let input = input(folder.path());
        let mix = MixConfig { sizes: vec![12, 8], weights: vec![1.0, 2.0], ..MixConfig::default() };
        let decides = IndexConfig {
            shuffle: Shuffle::Off,
            sampling: Some(HanseSamplingConfig::default()),
            mix: Some(mix),
            view: Some(View::Window { offsets: vec![-1, 0], pad: Pad::default(), tensors: Vec::new() }),
            batch_size: 6,
            apart: true,
            ..IndexConfig::default()
        };
        let config = IndexConfig {
            seed: Some(1),
            epochs: Some(3),
            threads: Some(5),
            rank: 1,
            world_size: 2,
            skip: vec!["2..4".parse().unwrap()],
            ledger: Some("ledger".into()),
            ..decides.clone()
        };
        let plan = Plan::new(&IndexConfig { sampling: None, mix: None, ..config.clone() }, 7, Arc::clone(&input.rows));
        let plan = plan.unwrap();
        let noted = begin(&config, &input, (7, &plan), (By::Seek, 5)).unwrap();
        assert_eq!((noted.rank, noted.world_size, noted.by), (1, 2, By::Seek));
        assert_eq!(noted.from, BTreeMap::from([(String::new(), 5)]));
        assert_eq!(noted.skip, BTreeMap::from([(String::new(), vec![(2, 4)])]));
        let PlanOf::Rows { config, epochs, data, rows, selection, .. } = noted.plan else { panic!("{noted:?}") };
        let expected = IndexConfig { seed: Some(7), epochs: None, ..decides };
        assert_eq!(config, serde_json::to_value(expected).unwrap());
        assert_eq!((epochs, data.as_str(), rows, &selection), (Some(3), "0000000000000abc", 20, &*input.recipe));
        // A ledger counts whole batches.
        let e = begin(&IndexConfig::default(), &input, (7, &plan.late(0, 3)), (By::State, 0)).unwrap_err().to_string();
        assert!(e.contains("it stands within a batch"), "{e}");
    }
}
