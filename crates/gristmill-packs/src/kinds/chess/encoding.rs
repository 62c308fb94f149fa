//! The tensors that were chosen -> the encoder of chess positions.
//! Refuses what cannot be made of positions alone, with the field.

use std::sync::Arc;

use gristmill_format::chess::{ChessEncoder, Output, Outputs};
use gristmill_format::encode::Encoder;
use gristmill_format::layout::Layout;
use gristmill_runtime::error::{Error, Result};
use serde_json::{Value, json};

use super::Chess;
use crate::kinds::{Encoding, of_tensors};

impl Encoding for Chess {
    fn of_stream(&self, tensors: &[String]) -> Result<Arc<dyn Encoder>> {
        of_tensors(Outputs::parse(tensors).and_then(|outputs| ChessEncoder::new(&outputs)))
    }

    fn of_rows(&self, tensors: &[String], _: &Layout, _: &[String]) -> Result<Arc<dyn Encoder>> {
        let encoder = chosen(tensors).and_then(|outputs| ChessEncoder::new(&outputs));
        let encoder = encoder.map_err(|e| Error::config("tensors", e.detail()))?;
        if encoder.is_completed() {
            let text = "values:4 is known of whole games, which streams of games have: give the configuration of one, \
                        such as gristmill.presets.lc0 makes";
            return Err(Error::config("tensors", text));
        }
        Ok(Arc::new(encoder))
    }

    fn some_of_rows(&self, tensors: &[String], keep: &dyn Fn(&str) -> bool) -> Option<Arc<dyn Encoder>> {
        let mut outputs = chosen(tensors).ok()?;
        outputs.retain(|output| output.specs().iter().any(|spec| keep(&spec.name)));
        let is_whole = outputs.iter().all(|output| output.specs().iter().all(|spec| keep(&spec.name)));
        let encoder = is_whole.then(|| ChessEncoder::new(&outputs).ok()).flatten()?;
        Some(Arc::new(encoder))
    }

    fn decides(&self, said: Value, tensors: &[String]) -> Value {
        let is_standard = Outputs::parse(tensors).is_ok_and(|outputs| outputs == Outputs::standard());
        if tensors.is_empty() || is_standard { said } else { json!({ "chess": tensors }) }
    }
}

/// The tensors of these names; the usual ones when none is named.
fn chosen(tensors: &[String]) -> gristmill_format::Result<Vec<Output>> {
    if tensors.is_empty() { Ok(Outputs::standard()) } else { Outputs::parse(tensors) }
}
