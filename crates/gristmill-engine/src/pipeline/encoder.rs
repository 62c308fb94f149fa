//! The config of a tensor generator -> its encoder: the one place of the engine that names every task's.
//! Refuses what an encoder cannot make, with stage and field; reads no file.

use std::sync::Arc;

use gristmill_format::chess::{ChessEncoder, Outputs};
use gristmill_format::encode::Encoder;

use crate::config::{EncoderConfig, TensorGeneratorConfig};
use crate::error::{Error, Result};

/// The encoder that the generator called `stage` asks for.
pub(super) fn encoder(stage: &str, config: &TensorGeneratorConfig) -> Result<Arc<dyn Encoder>> {
    match config.encoder {
        EncoderConfig::Chess => {
            let outputs = Outputs::parse(&config.tensors);
            let encoder = outputs.and_then(|outputs| ChessEncoder::new(&outputs));
            Ok(Arc::new(encoder.map_err(|e| Error::field(stage, "tensors", e.detail()))?))
        }
    }
}
