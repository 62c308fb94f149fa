//! The config of an encoder -> the encoder: the one place of the engine that names every task's.
//! Refuses what an encoder cannot make, with the field. Reads a tokenizer's file and nothing else.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::chess::{ChessEncoder, Outputs};
use gristmill_format::demo::encode::FieldEncoder;
use gristmill_format::encode::Encoder;
use gristmill_format::g2048::encode::{
    Augment, Binner, Classes, DEFAULT_EDGES, StepEncoder, Target, Tokenizer, ValueShape, ValueTargets,
};
use gristmill_format::g2048::form::Columns;
use gristmill_format::g2048::log::KNOWN_VALUATIONS;
use gristmill_format::g2048::value::Support;
use gristmill_format::layout::Layout;

use crate::config::{EncoderConfig, G2048EncoderConfig, G2048Target, TensorGeneratorConfig};
use crate::error::{Error, Result};

/// Longest tokenizer that is read: 65 533 bins of all kinds fit.
const MOST_TOKENIZER_BYTES: u64 = 32 << 20;

/// The encoder that the generator called `stage` asks for.
pub(super) fn encoder(stage: &str, config: &TensorGeneratorConfig) -> Result<Arc<dyn Encoder>> {
    match &config.encoder {
        EncoderConfig::Chess => {
            let outputs = Outputs::parse(&config.tensors);
            let encoder = outputs.and_then(|outputs| ChessEncoder::new(&outputs));
            Ok(Arc::new(encoder.map_err(|e| Error::field(stage, "tensors", e.detail()))?))
        }
        EncoderConfig::G2048(G2048EncoderConfig { value_targets: Some(_), .. }) => {
            let text = "logs have no values; pack them, make values with `gristmill values`, and load rows of the pack";
            Err(Error::field(stage, "value_targets", text))
        }
        EncoderConfig::G2048(config) => Ok(Arc::new(g2048(config, &KNOWN_VALUATIONS).map_err(|e| e.in_stage(stage))?)),
        EncoderConfig::Fields => {
            let text = "fields are of packs of demonstrations, which a loader of rows reads";
            Err(Error::field(stage, "encoder", text))
        }
    }
}

/// The encoder of rows of a table of this layout, whose valuation ids stand for `valuations`. Whether it fits the rows is
/// its own to say.
///
/// Errors: `Config`, and as [`g2048`].
pub(super) fn of_rows(
    config: &EncoderConfig,
    tensors: &[String],
    layout: &Layout,
    valuations: &[String],
) -> Result<Arc<dyn Encoder>> {
    match config {
        EncoderConfig::Chess => {
            let outputs = if tensors.is_empty() { Ok(Outputs::standard()) } else { Outputs::parse(tensors) };
            let encoder = outputs.and_then(|outputs| ChessEncoder::new(&outputs));
            let encoder = encoder.map_err(|e| Error::config("tensors", e.detail()))?;
            if encoder.is_completed() {
                let text = "values:4 is known of whole games, which streams of games have: give the configuration of one, \
                            such as gristmill.presets.lc0 makes";
                return Err(Error::config("tensors", text));
            }
            Ok(Arc::new(encoder))
        }
        EncoderConfig::Fields => {
            let encoder = FieldEncoder::new(layout, tensors);
            Ok(Arc::new(encoder.map_err(|e| Error::config("tensors", e.detail()))?))
        }
        EncoderConfig::G2048(_) if !tensors.is_empty() => {
            Err(Error::config("tensors", "rows of 2048 have those of their encoder; other packs have a choice"))
        }
        EncoderConfig::G2048(config) => {
            let encoder = g2048(config, valuations)?;
            let encoder = match Columns::of(layout) {
                Ok(columns) => encoder.reading(columns),
                Err(_) => encoder,
            };
            Ok(Arc::new(match value_targets(config)? {
                Some(targets) => encoder.valued(targets)?,
                None => encoder,
            }))
        }
    }
}

/// The encoder of those tensors of [`of_rows`] that `keep` says, where it can be made without the others.
pub(super) fn some_of_rows(
    config: &EncoderConfig,
    tensors: &[String],
    keep: &dyn Fn(&str) -> bool,
) -> Option<Arc<dyn Encoder>> {
    let EncoderConfig::Chess = config else { return None };
    let mut outputs = if tensors.is_empty() { Outputs::standard() } else { Outputs::parse(tensors).ok()? };
    outputs.retain(|output| output.specs().iter().any(|spec| keep(&spec.name)));
    let is_whole = outputs.iter().all(|output| output.specs().iter().all(|spec| keep(&spec.name)));
    let encoder = is_whole.then(|| ChessEncoder::new(&outputs).ok()).flatten()?;
    Some(Arc::new(encoder))
}

/// The 2048 encoder of a config, for rows whose valuation ids stand for `valuations`.
///
/// Errors: `Config` with the field, `Path` for the tokenizer, `Format` for what is in it.
pub(crate) fn g2048(config: &G2048EncoderConfig, valuations: &[impl AsRef<str>]) -> Result<StepEncoder> {
    let target = match config.target {
        G2048Target::Steps => Target::Steps,
        G2048Target::HardMove => Target::HardMove,
        G2048Target::BinnedEv => {
            let edges = config.edges.clone().unwrap_or_else(|| DEFAULT_EDGES.to_vec());
            let binner = Binner::new(edges, config.edge_form.into());
            Target::BinnedEv(binner.map_err(|e| Error::config("edges", e.detail()))?)
        }
        G2048Target::Tokens => {
            let classes = Classes::new(tokenizer_of(config)?.clone(), valuations);
            Target::Tokens(if config.compat_swapped_tuple_ids { classes.with_swapped_tuple_ids() } else { classes })
        }
    };
    let augment = Augment { rotate: config.rotate.into(), flip: config.flip.into() };
    StepEncoder::new(target, augment, config.dtype.into()).map_err(|e| Error::config("dtype", e.detail()))
}

/// What a config wants of the values beside rows, where it wants something.
fn value_targets(config: &G2048EncoderConfig) -> Result<Option<ValueTargets>> {
    let said = [("value_field", config.value_field.is_some()), ("value_bins", config.value_bins.is_some())];
    let Some(shape) = config.value_targets.map(ValueShape::from) else {
        return match said.iter().find(|(_, is_said)| *is_said) {
            Some((name, _)) => Err(Error::config(name, "it says which value_targets; say value_targets, too")),
            None => Ok(None),
        };
    };
    let support = match config.value_bins {
        Some(_) if shape == ValueShape::Scalar => {
            return Err(Error::config("value_bins", "bins are of two-hot targets, these are single numbers"));
        }
        Some((low, high, bins)) => {
            Support::new(low, high, bins as usize).map_err(|e| Error::config("value_bins", e.detail()))?
        }
        None => Support::default(),
    };
    Ok(Some(ValueTargets { field: config.value_field.map(Into::into).unwrap_or_default(), shape, support }))
}

/// The tokenizer of a config: its file is read when it is first wanted, and never again for this config and its copies.
fn tokenizer_of(config: &G2048EncoderConfig) -> Result<&Tokenizer> {
    if config.tokenizer_read.0.get().is_none() {
        let path = config.tokenizer.as_deref();
        let path = path.ok_or_else(|| Error::config("tokenizer", "tokens need a tokenizer.json; fit one"))?;
        let (tokenizer, hash) = tokenizer(path)?;
        let found = format!("{hash:032x}");
        if let Some(said) = config.tokenizer_xxh3.as_ref().filter(|said| **said != found) {
            let text = format!(
                "{}: the file is another one than when the encoder was made: its XXH3-128 was {said} and is {found}; put the \
                 first one back, or make a new encoder",
                path.display()
            );
            return Err(Error::config("tokenizer", text));
        }
        let _ = config.tokenizer_read.0.set((tokenizer, hash));
    }
    match config.tokenizer_read.0.get() {
        Some((tokenizer, _)) => Ok(tokenizer),
        None => Err(Error::config("tokenizer", "it could not be kept")),
    }
}

/// Reads a `tokenizer.json`, and the XXH3-128 of the file.
///
/// Errors: `Path`; `Format` with the path.
pub fn tokenizer(path: &Path) -> Result<(Tokenizer, u128)> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|e| Error::path(path, &e))?;
    file.take(MOST_TOKENIZER_BYTES).read_to_string(&mut text).map_err(|e| Error::path(path, &e))?;
    let tokenizer = Tokenizer::from_json(&text).map_err(|e| e.in_source(path.display().to_string()))?;
    Ok((tokenizer, xxhash_rust::xxh3::xxh3_128(text.as_bytes())))
}

/// What of an encoder's config decides its rows: for a tokenizer what it says, not where it lies.
pub(super) fn fingerprint(config: &EncoderConfig) -> serde_json::Value {
    let mut value = serde_json::to_value(config).unwrap_or_default();
    if let EncoderConfig::G2048(config @ G2048EncoderConfig { tokenizer: Some(_), .. }) = config
        && let Ok(tokenizer) = tokenizer_of(config)
    {
        let hash = xxhash_rust::xxh3::xxh3_64(tokenizer.to_json(0).as_bytes());
        value["g2048"]["tokenizer"] = format!("{hash:016x}").into();
        value["g2048"].as_object_mut().map(|said| said.remove("tokenizer_xxh3"));
    }
    value
}

/// The same of an encoder of rows by number, with the tensors that were chosen.
pub(super) fn fingerprint_of_rows(config: &EncoderConfig, tensors: &[String]) -> serde_json::Value {
    let is_standard = Outputs::parse(tensors).is_ok_and(|outputs| outputs == Outputs::standard());
    match config {
        EncoderConfig::Chess if !tensors.is_empty() && !is_standard => serde_json::json!({ "chess": tensors }),
        EncoderConfig::Fields => serde_json::json!({ "fields": tensors }),
        _ => fingerprint(config),
    }
}
