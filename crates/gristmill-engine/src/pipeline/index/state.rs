//! Where an index loader stands, as JSON: the number of the next batch, and what that number means. Holds no row.

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::document;
use gristmill_runtime::table::{IndexInput, Recipe};
use gristmill_stages::config::{HanseSamplingConfig, IndexConfig, LastBatch, MixConfig, Shuffle, View};
use serde::{Deserialize, Serialize};

use crate::pipeline::plan::skip::Skips;
use crate::pipeline::resume::envelope::{Of, VERSION, opened};

/// The state of an index loader (docs/format/state.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IndexState {
    gristmill_state: u32,
    of: Of,
    /// Number of the next batch.
    pub(super) batch: u64,
    /// Root of the order and of augmentation.
    pub(super) seed: u64,
    pub(super) batch_size: usize,
    pub(super) shuffle: Shuffle,
    /// How rows are drawn, where not each once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sampling: Option<HanseSamplingConfig>,
    /// Of several packs, how their rows are mixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mix: Option<MixConfig>,
    /// Hash of the selected rows and of their pack, hexadecimal.
    pub(super) data: String,
    /// What decides the rows of tensors.
    encoder: serde_json::Value,
    /// What stands for a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) view: Option<View>,
    /// What becomes of the rows left over at the end of each pass, where each has batches of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_batch: Option<LastBatch>,
    /// The pass that the next batch belongs to, from 0, where each has batches of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pass: Option<u64>,
    /// Batches before it that were left out: first, and the one after the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) skipped: Vec<(u64, u64)>,
    /// How the rows were selected, for tools that name them; a restore compares their hash alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) selection: Option<Recipe>,
}

impl IndexState {
    /// The state before batch `batch`.
    pub(super) fn new(
        config: &IndexConfig,
        seed: u64,
        input: &IndexInput,
        encoder: serde_json::Value,
        (batch, skips, per_pass): (u64, &Skips, Option<u64>),
    ) -> Self {
        IndexState {
            gristmill_state: VERSION,
            of: Of::Rows,
            batch,
            seed,
            batch_size: config.batch_size,
            shuffle: config.shuffle,
            sampling: config.sampling.clone(),
            mix: config.mix.clone(),
            data: format!("{:016x}", input.identity),
            encoder,
            view: config.view.clone(),
            last_batch: per_pass.map(|_| config.last_batch),
            pass: per_pass.map(|batches| batch / batches),
            skipped: skips.before(batch),
            selection: Some((*input.recipe).clone()),
        }
    }

    /// Reads JSON, of whatever rows and configuration.
    ///
    /// Errors: `State`.
    pub(super) fn read(text: &str) -> Result<Self> {
        let none =
            |e: serde_json::Error| Error::State(format!("no state of a loader of rows: {e}: {}", document::DAMAGED));
        serde_json::from_value(opened(serde_json::from_str(text).map_err(none)?, Of::Rows)?).map_err(none)
    }

    /// JSON text, with its checksum.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).and_then(document::seal).unwrap_or_default()
    }

    /// Reads JSON and compares it with `expected`, the state that this loader would save, but for batch and seed; the
    /// seed is compared where the config has one. Ranks, epochs and threads may differ, and up to batch `alike`, before which
    /// that changes nothing, how passes end.
    ///
    /// Errors: `State` with the differences.
    pub(super) fn parse(
        text: &str,
        expected: &IndexState,
        config: &IndexConfig,
        (skips, alike): (&Skips, u64),
    ) -> Result<Self> {
        let state = IndexState::read(text)?;
        let mut differences = Vec::new();
        let mut compare = |name: &str, saved: String, now: String| {
            if saved != now {
                differences.push(format!("{name}: saved {saved}, now {now}"));
            }
        };
        compare("batch_size", state.batch_size.to_string(), expected.batch_size.to_string());
        compare("shuffle", shown(&state.shuffle), shown(&expected.shuffle));
        if state.batch >= alike.max(1) {
            let ends = |state: &IndexState| match state.last_batch {
                None => "in the midst of batches (joined)".to_owned(),
                Some(LastBatch::Drop) => "with a batch, what is left over dropped".to_owned(),
                Some(LastBatch::Keep | LastBatch::Pad) => "with a batch, what is left over kept".to_owned(),
            };
            compare("passes end", ends(&state), ends(expected));
        }
        let known = |mix: &Option<MixConfig>| {
            let mut mix = mix.clone();
            mix.iter_mut().for_each(|mix| mix.later.retain(|later| later.batch < state.batch));
            shown(&mix)
        };
        compare("weights", known(&state.mix), known(&expected.mix));
        compare("sampling", shown(&state.sampling), shown(&expected.sampling));
        if state.data != expected.data {
            let parts =
                |state: &IndexState| state.selection.as_ref().map(|made| (made.pack.clone(), shown(&made.steps)));
            let ((pack, steps), (pack_now, steps_now)) =
                (parts(&state).unwrap_or_default(), parts(expected).unwrap_or_default());
            if (&pack, &steps) == (&pack_now, &steps_now) {
                let hint = |hash: &str| format!("{hash} (its games, or what a mark of it accepts, have changed)");
                compare("rows of the pack", state.data.clone(), hint(&expected.data));
            }
            compare("pack of the rows", pack, pack_now);
            compare("selection of rows", steps, steps_now);
        }
        compare("view", shown(&state.view), shown(&expected.view));
        compare("encoder", state.encoder.to_string(), expected.encoder.to_string());
        if let Some(seed) = config.seed {
            compare("seed", state.seed.to_string(), seed.to_string());
        }
        differences.extend(skips.difference(&state.skipped, state.batch));
        if differences.is_empty() { Ok(state) } else { Err(Error::State(differences.join("; "))) }
    }
}

fn shown(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
