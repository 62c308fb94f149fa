//! The config of an encoder -> the encoder, and what of it decides rows. What each kind makes of it is in `kinds`.

use std::sync::Arc;

use gristmill_format::encode::Encoder;
use gristmill_format::layout::Layout;
use gristmill_packs::kinds::encoding;
use gristmill_runtime::error::Result;
use gristmill_stages::config::{EncoderConfig, TensorGeneratorConfig};

/// The encoder that the generator called `stage` asks for.
pub(in crate::pipeline) fn encoder(stage: &str, config: &TensorGeneratorConfig) -> Result<Arc<dyn Encoder>> {
    // The names that stand there where nothing was said are of chess.
    let own = config.encoder == EncoderConfig::Chess || config.tensors != TensorGeneratorConfig::default().tensors;
    let tensors = if own { config.tensors.as_slice() } else { &[] };
    encoding(&config.encoder).and_then(|encoding| encoding.of_stream(tensors)).map_err(|e| e.in_stage(stage))
}

/// The encoder of rows of a table of this layout, whose valuation ids stand for `valuations`. Whether it fits the rows is
/// its own to say.
///
/// Errors: `Config` with the field; `Path` and `Format` for a file that is named.
pub(in crate::pipeline) fn of_rows(
    config: &EncoderConfig,
    tensors: &[String],
    layout: &Layout,
    valuations: &[String],
) -> Result<Arc<dyn Encoder>> {
    encoding(config)?.of_rows(tensors, layout, valuations)
}

/// The encoder of those tensors of [`of_rows`] that `keep` says, where it can be made without the others.
pub(in crate::pipeline) fn some_of_rows(
    config: &EncoderConfig,
    tensors: &[String],
    keep: &dyn Fn(&str) -> bool,
) -> Option<Arc<dyn Encoder>> {
    encoding(config).ok()?.some_of_rows(tensors, keep)
}

/// What of the config of an encoder of rows by number decides them, with the tensors that were chosen.
pub(in crate::pipeline) fn fingerprint_of_rows(config: &EncoderConfig, tensors: &[String]) -> serde_json::Value {
    let said = serde_json::to_value(config).unwrap_or_default();
    match encoding(config) {
        Ok(encoding) => encoding.decides(said, tensors),
        Err(_) => said,
    }
}
