//! Deals chunks to folders by the published hash of source key and index, as a loader's splitter does, or of who the game is.
//! By key and index it decodes nothing: damaged chunks go out too. Either way every chunk goes out byte for byte.

use gristmill_format::Result;
use gristmill_format::chess::identity::identity;
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
    /// Whether the games themselves decide.
    content: bool,
}

/// The key of sides by content.
const CONTENT: &str = "content";

impl Split {
    /// A split by these weights, one for each folder.
    ///
    /// Errors: `Config` when no weight is positive, or their sum leaves 64 bits.
    pub fn new(weights: Vec<u64>) -> crate::Result<Self> {
        let sides: Option<Vec<Side>> = (0..weights.len()).map(|i| Side::new(&weights, i)).collect();
        match sides.filter(|sides| !sides.is_empty()) {
            Some(sides) => Ok(Split { weights, sides, content: false }),
            None => Err(Error::config("out", "expected folders with whole weights, at least one of them above 0")),
        }
    }
}

impl Split {
    /// The same by content: a game, its copies and its colour mirror go to one folder, wherever they are.
    #[must_use]
    pub fn by_content(self) -> Self {
        Split { content: true, ..self }
    }

    fn at(&self, key: &str, index: u64) -> usize {
        self.sides.iter().position(|side| side.holds(key, index)).unwrap_or(0)
    }
}

impl Rewrite for Split {
    fn settings(&self) -> serde_json::Value {
        if self.content { json!({ "split": self.weights, "by": CONTENT }) } else { json!({ "split": self.weights }) }
    }

    fn reads(&self) -> bool {
        self.content
    }

    fn side(&self, key: &str, index: usize) -> usize {
        self.at(key, index as u64)
    }

    /// Errors: as [`identity`].
    fn side_of(&self, chunk: &Chunk) -> Result<Option<usize>> {
        if !self.content {
            return Ok(None);
        }
        let size = chunk.layout.as_ref().map_or(1, |layout| layout.size());
        Ok(Some(self.at(CONTENT, identity(chunk.records(), size)?.key as u64)))
    }

    fn chunk(&self, _: &[u8], _: &mut Chunk, _: &mut dyn FnMut(&'static str, u64)) -> Result<Fate> {
        Ok(Fate::Keep)
    }
}
