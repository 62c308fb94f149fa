//! Where a loader stands, as data: references and counters, never a frame's bytes; and what it was made with.
//! A state of another configuration is refused with the differences.

use std::collections::BTreeMap;

use gristmill_format::encode::Provenance;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::{document, packed};
use gristmill_stages::config::{DataLoaderConfig, FilePathProviderConfig, SplitBy, StageConfig};
use gristmill_stages::options::{Effect, Options, without};
use gristmill_stages::stage::pool::{AcceptState, Anchor};
use gristmill_stages::stage::{Row, Standing};
use serde::{Deserialize, Serialize};

use crate::pipeline::draw::drawer::{Admission, DrawerState};
use crate::pipeline::draw::passes::Passes;
use crate::pipeline::draw::recorded::Recorded;
use crate::pipeline::plan::{Plan, plan};
use crate::pipeline::resume::envelope::{Of, opened};
use crate::pipeline::resume::journals::JournalMark;
use crate::pipeline::resume::needed::OldestNeeded;
use crate::pipeline::resume::parts::whole;

/// The part of a config that changes batches, as its options say of themselves; of tablebases, only which ones were loaded.
pub(in crate::pipeline) fn fingerprint(config: &DataLoaderConfig, plan: &Plan) -> serde_json::Value {
    let mut config = DataLoaderConfig { lanes: config.lanes.filter(|lanes| *lanes > 1), ..config.clone() };
    for stage in &mut config.stage {
        if let Some(files) = &mut stage.file_path_provider {
            // As states noted it before `watch` decided whether to wait.
            *files = FilePathProviderConfig { watch: Some(true), ..FilePathProviderConfig::default() };
        }
        if let Some(rescorer) = &mut stage.chunk_rescorer {
            let [tables, policies] = plan.reads(&stage.name).map(|hash| hash.map(|hash| format!("{hash:016x}")));
            rescorer.compat = rescorer.named_compat();
            (rescorer.syzygy_paths, rescorer.policy_directory) = (tables.unwrap_or_default(), policies.map(Into::into));
        }
    }
    let mut noted = serde_json::to_value(config).unwrap_or_default();
    reduced(&mut noted, &[Effect::Speed]);
    // What states say of these although it changes no batch.
    let usual = serde_json::to_value(DataLoaderConfig::default()).unwrap_or_default();
    for name in ["bad_chunks", "replay"] {
        noted[name] = usual[name].clone();
    }
    noted
}

/// What is compared of a config that was noted by this or an earlier version.
pub(in crate::pipeline) fn compared(noted: &serde_json::Value) -> serde_json::Value {
    let mut config = noted.clone();
    reduced(&mut config, &[Effect::Speed, Effect::Place, Effect::Apart]);
    let stages = config.get_mut("stage").and_then(serde_json::Value::as_array_mut);
    for kind in stages.into_iter().flatten().filter_map(serde_json::Value::as_object_mut) {
        if let Some(splitter) = kind.get_mut("chunk_source_splitter").and_then(serde_json::Value::as_object_mut) {
            splitter.entry("by").or_insert_with(|| SplitBy::File.name().into());
        }
    }
    config
}

/// Takes out of a config what never changes a batch, and of its stages the options with one of these effects.
fn reduced(config: &mut serde_json::Value, effects: &[Effect]) {
    without(DataLoaderConfig::OPTIONS, &[Effect::Speed, Effect::Place, Effect::Apart], config);
    let stages = config.get_mut("stage").and_then(serde_json::Value::as_array_mut);
    for stage in stages.into_iter().flatten() {
        for (kind, options) in StageConfig::KINDS {
            stage.get_mut(*kind).into_iter().for_each(|stage| without(options, effects, stage));
        }
    }
}

/// How a noted config differs from that of a run.
fn config_differences(noted: &serde_json::Value, config: &DataLoaderConfig, plan: &Plan) -> Vec<String> {
    let mut differences = Vec::new();
    let noted = compared(noted);
    compare("", &noted, &compared(&fingerprint(config, plan)), &mut differences);
    let splitter = |by: &SplitBy| format!("chunk_source_splitter.by: saved \"{}\"", by.name());
    if let Some(saved) = differences.iter_mut().find(|text| text.contains(&splitter(&SplitBy::File))) {
        saved.push_str(NAMED);
    }
    differences
}

/// The error where the sides of an earlier run were others.
pub(in crate::pipeline) const NAMED: &str = " (games of tars and packs went to sides by file and number; with `by = \"file\"` in the splitter, \
                                split_by=\"file\" of a preset, or --split-by file, they still do, and the run can be resumed)";

/// Reads a state, or the parts of several ranks in a list.
///
/// Errors: `State`.
pub(in crate::pipeline) fn read(text: &str) -> Result<LoaderState> {
    let values =
        match serde_json::from_str(text).map_err(|e| Error::State(format!("no JSON: {e}: {}", document::DAMAGED)))? {
            serde_json::Value::Array(parts) => parts,
            one => vec![one],
        };
    whole(values.into_iter().map(of_version).collect::<Result<_>>()?)
}

/// Reads a state, or the parts of several ranks in a list, and compares it with a config.
///
/// Errors: `State` with what differs.
pub(in crate::pipeline) fn parse(text: &str, config: &DataLoaderConfig, plan: &Plan) -> Result<LoaderState> {
    let state = read(text)?;
    let mut differences = config_differences(&state.config, config, plan);
    if let Some(seed) = config.seed.filter(|seed| *seed != state.seed) {
        differences.push(format!("seed: saved {}, configured {seed}", state.seed));
    }
    for chain in &plan.chains {
        let Some(output) = state.outputs.get(&chain.alias) else { continue };
        differences.extend(chain.skips.difference(&output.skipped, output.batch));
    }
    if differences.is_empty() { Ok(state) } else { Err(Error::State(differences.join("; "))) }
}

/// How the part of a config that changes batches differs from what was noted of it.
///
/// Errors: as `plan`.
pub fn differences(config: &DataLoaderConfig, noted: &serde_json::Value) -> Result<Vec<String>> {
    Ok(config_differences(noted, config, &plan(config)?))
}

/// The document of a state of a stream, of this version or of one before.
///
/// Errors: `State`.
pub(in crate::pipeline) fn of_version(value: serde_json::Value) -> Result<LoaderState> {
    let value = opened(value, Of::Stream)?;
    for part in ["files", "outputs"] {
        bounded(part, value.get(part).unwrap_or_default())?;
    }
    serde_json::from_value(value).map_err(|e| Error::State(e.to_string()))
}

/// Numbers of files, batches, draws and rows of any run stay below this, so that sums and products of them are numbers, too.
pub(in crate::pipeline) const BOUND: u64 = 1 << 44;

/// Errors: `State` with the place of a number that no run reaches.
fn bounded(at: &str, value: &serde_json::Value) -> Result<()> {
    use serde_json::Value::{Array, Number, Object};
    match value {
        // Sizes and times of files are compared, never counted with.
        Object(fields) => {
            let mut counts = fields.iter().filter(|(key, _)| *key != "size" && *key != "mtime");
            counts.try_for_each(|(key, value)| bounded(&format!("{at}.{key}"), value))
        }
        Array(items) => (0..).zip(items).try_for_each(|(i, item): (usize, _)| bounded(&format!("{at}[{i}]"), item)),
        Number(number) if number.as_u64().is_some_and(|number| number >= BOUND) => {
            Err(Error::State(format!("{at}: {number} is impossible, the limit is 2^44; the state is corrupt")))
        }
        _ => Ok(()),
    }
}

pub(in crate::pipeline) fn compare(
    at: &str,
    saved: &serde_json::Value,
    now: &serde_json::Value,
    differences: &mut Vec<String>,
) {
    use serde_json::Value::{Array, Null, Object};
    match (saved, now) {
        _ if saved == now => {}
        (Object(a), Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let (a, b) = (a.get(key).unwrap_or(&Null), b.get(key).unwrap_or(&Null));
                compare(&format!("{at}.{key}"), a, b, differences);
            }
        }
        (Array(a), Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{at}[{i}]"), a, b, differences);
            }
        }
        _ => differences.push(format!("{}: saved {saved}, configured {now}", at.trim_start_matches('.'))),
    }
}

/// The state of a loader, or of the lanes of one rank (docs/format/state.md).
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::pipeline) struct LoaderState {
    pub(in crate::pipeline) gristmill_state: u32,
    pub(in crate::pipeline) of: Of,
    /// The part of the config that changes batches.
    pub(in crate::pipeline) config: serde_json::Value,
    pub(in crate::pipeline) seed: u64,
    /// Which of several ranks it is of; absent for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::pipeline) part: Option<Part>,
    /// Per loader stage: every file that is known, under its lasting id.
    pub(in crate::pipeline) files: BTreeMap<String, Vec<Recorded>>,
    /// Per alias.
    pub(in crate::pipeline) outputs: BTreeMap<String, ChainState>,
    /// Chunk anchors, per pool.
    #[serde(default)]
    pub(in crate::pipeline) anchors: BTreeMap<String, Anchor>,
    /// Per loader stage: a run that resumes from this state needs no older file. Nothing is known of a stage that is
    /// not here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(in crate::pipeline) oldest_needed: BTreeMap<String, OldestNeeded>,
    /// How far the journals reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::pipeline) journals: Vec<JournalMark>,
}

impl LoaderState {
    /// JSON text, with its checksum.
    ///
    /// Errors: `State`.
    pub(in crate::pipeline) fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string(self).and_then(document::seal);
        text.map_err(|e| Error::State(e.to_string()))
    }

    /// Batches of all outputs together.
    pub(in crate::pipeline) fn step(&self) -> u64 {
        self.outputs.values().map(|output| output.batch).sum()
    }
}

/// One of several ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::pipeline) struct Part {
    pub(in crate::pipeline) rank: u32,
    pub(in crate::pipeline) world_size: u32,
}

/// The state of one output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::pipeline) struct ChainState {
    /// Number of the next batch.
    pub(in crate::pipeline) batch: u64,
    /// Batches before it that were left out: first, and the one after the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::pipeline) skipped: Vec<(u64, u64)>,
    /// Of several passes over the files, which are over and where others end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::pipeline) passes: Option<Passes>,
    /// By number.
    pub(in crate::pipeline) lanes: BTreeMap<u32, LaneState>,
}

/// The state of one lane of an output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::pipeline) struct LaneState {
    /// Ordinal of the next joined row, and the weights left.
    pub(in crate::pipeline) join: (u64, Vec<f64>),
    /// Draws that the reservoir made.
    pub(in crate::pipeline) reservoir_draws: u64,
    pub(in crate::pipeline) reservoir: HeldRows,
    /// Of other stages over rows, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(in crate::pipeline) steps: BTreeMap<String, StepState>,
    pub(in crate::pipeline) branches: Vec<BranchState>,
}

/// Where a stage over rows stands.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::pipeline) struct StepState {
    /// As the stage itself says it.
    pub(in crate::pipeline) own: serde_json::Value,
    /// What it holds.
    #[serde(default, skip_serializing_if = "HeldRows::is_empty")]
    pub(in crate::pipeline) rows: HeldRows,
}

/// The kind whose steps stand in fields of a lane that are older than steps.
const SAMPLER: &str = "shuffling_frame_sampler";

impl LaneState {
    /// Of a lane whose first branch is number `first`; `standings` are of its join and of each step, by name and kind.
    pub(in crate::pipeline) fn of<'a>(
        branches: Vec<BranchState>,
        first: u32,
        join: &Standing,
        steps: impl Iterator<Item = (&'a str, &'static str, Standing)>,
    ) -> Self {
        let join = serde_json::from_value(join.own.clone()).unwrap_or_default();
        let (mut reservoir_draws, mut reservoir) = (0, HeldRows::default());
        let mut others = BTreeMap::new();
        for (stage, kind, Standing { own, rows }) in steps {
            let rows = HeldRows::of(&rows, first);
            if kind == SAMPLER {
                (reservoir_draws, reservoir) = (own.as_u64().unwrap_or(0), rows);
            } else {
                others.insert(stage.to_owned(), StepState { own, rows });
            }
        }
        LaneState { join, reservoir_draws, reservoir, steps: others, branches }
    }

    /// What the join says of itself.
    pub(in crate::pipeline) fn join(&self) -> serde_json::Value {
        serde_json::json!([self.join.0, self.join.1])
    }

    /// What a step says of itself, and what it holds; `None` where the state has no such step.
    pub(in crate::pipeline) fn step(&self, stage: &str, kind: &str) -> Option<(serde_json::Value, &HeldRows)> {
        if kind == SAMPLER {
            return Some((self.reservoir_draws.into(), &self.reservoir));
        }
        self.steps.get(stage).map(|step| (step.own.clone(), &step.rows))
    }

    /// The rows that its steps hold.
    pub(in crate::pipeline) fn held(&self) -> impl Iterator<Item = &HeldRows> {
        std::iter::once(&self.reservoir).chain(self.steps.values().map(|step| &step.rows))
    }

    /// The same, to be changed.
    pub(in crate::pipeline) fn held_mut(&mut self) -> impl Iterator<Item = &mut HeldRows> {
        std::iter::once(&mut self.reservoir).chain(self.steps.values_mut().map(|step| &mut step.rows))
    }
}

/// What a reservoir holds.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::pipeline) struct HeldRows {
    /// Per source of any row: the input, and the id.
    #[serde(with = "packed")]
    pub(in crate::pipeline) inputs: Vec<u32>,
    #[serde(with = "packed")]
    pub(in crate::pipeline) sources: Vec<u64>,
    /// Per row: place of its source in these lists, chunk, frame.
    #[serde(with = "packed")]
    pub(in crate::pipeline) rows: Vec<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::pipeline) struct BranchState {
    /// Draw whose rows come next, and how many of them were taken.
    pub(in crate::pipeline) head: u64,
    pub(in crate::pipeline) taken: usize,
    /// The draw that was next when the state was taken: `admissions` are all that were made up to here.
    pub(in crate::pipeline) drawn: u64,
    /// The drawer as it was at some draw at or before `head`; absent before the first scan was in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::pipeline) drawer: Option<DrawerState>,
    /// Admissions from there on.
    pub(in crate::pipeline) admissions: Vec<Admission>,
    /// Files that are known and were not taken in yet, each with the one that it replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::pipeline) waiting: Vec<(u64, Option<u64>)>,
    /// The same of files that had left when they were to be taken in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::pipeline) gone: Vec<(u64, Option<u64>)>,
    /// What was decided on the draws before `head`, where not every one is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::pipeline) accept: Option<AcceptState>,
}

impl HeldRows {
    /// Of rows of a lane whose first branch is number `first`.
    pub(in crate::pipeline) fn of(held: &[Row], first: u32) -> Self {
        let mut places: BTreeMap<(u32, u64), u32> =
            held.iter().map(|r| ((r.branch - first, r.from.source), 0)).collect();
        places.values_mut().zip(0..).for_each(|(place, number)| *place = number);
        let row = |row: &Row| [places[&(row.branch - first, row.from.source)], row.from.chunk, row.from.frame];
        HeldRows {
            rows: held.iter().flat_map(row).collect(),
            inputs: places.keys().map(|(input, _)| *input).collect(),
            sources: places.into_keys().map(|(_, source)| source).collect(),
        }
    }

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many rows there are.
    pub(in crate::pipeline) fn len(&self) -> usize {
        self.rows.len() / 3
    }

    /// Input, source, chunk and frame of each row; `None` for one that has no source.
    pub(in crate::pipeline) fn rows(&self) -> impl Iterator<Item = Option<(u32, Provenance)>> + '_ {
        self.rows.chunks(3).map(|row| {
            let &[place, chunk, frame] = row else { return None };
            let (input, source) = (*self.inputs.get(place as usize)?, *self.sources.get(place as usize)?);
            Some((input, Provenance { source, chunk, frame }))
        })
    }
}

#[cfg(test)]
mod tests;
