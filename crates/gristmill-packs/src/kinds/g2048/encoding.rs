//! The configuration of an encoder of 2048 -> the encoder. Refuses what it cannot make, with the field.
//! Reads a tokenizer's file and nothing else.

use std::path::Path;
use std::sync::Arc;

use gristmill_format::encode::Encoder;
use gristmill_format::g2048::encode::{
    Augment, Binner, Classes, DEFAULT_EDGES, StepEncoder, Target, Tokenizer, ValueShape, ValueTargets,
};
use gristmill_format::g2048::form::Columns;
use gristmill_format::g2048::log::KNOWN_VALUATIONS;
use gristmill_format::g2048::value::Support;
use gristmill_format::layout::Layout;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::store::files::read_text;
use gristmill_stages::config::{BoardForm, DrawnOn, G2048EncoderConfig, G2048Target};

use crate::kinds::Encoding;

/// Longest tokenizer that is read: 65 533 bins of all kinds fit.
const MOST_TOKENIZER_BYTES: u64 = 32 << 20;

impl Encoding for G2048EncoderConfig {
    fn of_stream(&self, _: &[String]) -> Result<Arc<dyn Encoder>> {
        if self.value_targets.is_some() {
            let text = "logs have no values; pack them, make values with `gristmill values`, and load rows of the pack";
            return Err(Error::config("value_targets", text));
        }
        Ok(Arc::new(g2048(self, &KNOWN_VALUATIONS)?))
    }

    fn of_rows(&self, tensors: &[String], layout: &Layout, valuations: &[String]) -> Result<Arc<dyn Encoder>> {
        if !tensors.is_empty() {
            let text = "rows of 2048 have those of their encoder; other packs have a choice";
            return Err(Error::config("tensors", text));
        }
        let encoder = g2048(self, valuations)?;
        let encoder = match Columns::of(layout) {
            Ok(columns) => encoder.reading(columns),
            Err(_) => encoder,
        };
        Ok(Arc::new(match value_targets(self)? {
            Some(targets) => encoder.valued(targets)?,
            None => encoder,
        }))
    }

    /// For a tokenizer what it says, not where it lies.
    fn decides(&self, mut said: serde_json::Value, _: &[String]) -> serde_json::Value {
        if self.tokenizer.is_some()
            && let Ok(tokenizer) = tokenizer_of(self)
        {
            let hash = xxhash_rust::xxh3::xxh3_64(tokenizer.to_json(0).as_bytes());
            said["g2048"]["tokenizer"] = format!("{hash:016x}").into();
            said["g2048"].as_object_mut().map(|said| said.remove("tokenizer_xxh3"));
        }
        said
    }
}

/// The 2048 encoder of a config, for rows whose valuation ids stand for `valuations`.
///
/// Errors: `Config` with the field, `Path` for the tokenizer, `Format` for what is in it.
fn g2048(config: &G2048EncoderConfig, valuations: &[impl AsRef<str>]) -> Result<StepEncoder> {
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
    let made = StepEncoder::new(target, augment, config.dtype.into());
    let encoder = made.map_err(|e| Error::config("dtype", e.detail()))?;
    let encoder = if config.board == BoardForm::Nibbles { encoder.nibbles() } else { encoder };
    match config.draw {
        DrawnOn::Host => Ok(encoder),
        DrawnOn::Device => encoder.drawn_on_device().map_err(|e| Error::config("draw", e.detail())),
    }
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
    let missing = || Error::path(path, &std::io::ErrorKind::NotFound.into());
    let text = read_text(path, MOST_TOKENIZER_BYTES)?.ok_or_else(missing)?;
    let tokenizer = Tokenizer::from_json(&text).map_err(|e| e.in_source(path.display().to_string()))?;
    Ok((tokenizer, xxhash_rust::xxh3::xxh3_128(text.as_bytes())))
}
