//! Deals chunks to folders by the published hash of source key and index, as a loader's splitter does.
//! Decodes nothing: every chunk goes out byte for byte, damaged ones too.

use gristmill_format::Result;
use gristmill_format::source::Chunk;
use serde_json::json;

use super::{Fate, Rewrite};
use crate::error::Error;
use crate::stage::split::Side;

/// Gives each chunk to one of several folders.
#[derive(Debug)]
pub struct Split {
    weights: Vec<u64>,
    sides: Vec<Side>,
}

impl Split {
    /// A split by these weights, one for each folder.
    ///
    /// Errors: `Config` when no weight is positive, or their sum leaves 64 bits.
    pub fn new(weights: Vec<u64>) -> crate::Result<Self> {
        let sides: Option<Vec<Side>> = (0..weights.len()).map(|i| Side::new(&weights, i)).collect();
        match sides.filter(|sides| !sides.is_empty()) {
            Some(sides) => Ok(Split { weights, sides }),
            None => Err(Error::config("out", "expected folders with whole weights, at least one of them above 0")),
        }
    }
}

impl Rewrite for Split {
    fn settings(&self) -> serde_json::Value {
        json!({ "split": self.weights })
    }

    fn reads(&self) -> bool {
        false
    }

    fn side(&self, key: &str, index: usize) -> usize {
        self.sides.iter().position(|side| side.holds(key, index as u64)).unwrap_or(0)
    }

    fn chunk(&self, _: &[u8], _: &mut Chunk, _: &mut dyn FnMut(&'static str, u64)) -> Result<Fate> {
        Ok(Fate::Keep)
    }
}
