//! Deals chunks to folders by the published hash of their names, as a loader's splitter does, or of who the game is.
//! By name it decodes nothing: damaged chunks go out too. Either way every chunk goes out byte for byte.

use std::path::{Component, Path};

use gristmill_engine::error::Error;
use gristmill_engine::stage::split::{Fold, Side, original};
use gristmill_format::Result;
use gristmill_format::chess::identity::identity;
use gristmill_format::source::Chunk;
use serde_json::json;

use super::{Fate, Rewrite};

/// Gives each chunk to one of several folders.
#[derive(Debug)]
pub struct Split {
    weights: Vec<u64>,
    sides: Vec<Side>,
    by: By,
    fold: Option<Fold>,
}

/// What decides where a chunk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// The name that it had as a file, wherever it lies now.
    #[default]
    Name,
    /// The file that it lies in, and its number there.
    File,
    /// What happened in it: a game, its copies and its colour mirror go to one folder, wherever they are.
    Content,
}

/// Refuses names of sides that are no names of folders, and two of one name.
///
/// Errors: `Config` in `into`.
pub(crate) fn check_sides<'a>(names: impl Iterator<Item = &'a String> + Clone) -> gristmill_engine::Result<()> {
    for (i, name) in names.clone().enumerate() {
        let mut parts = Path::new(name).components();
        let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
        if !plain || name.starts_with('.') || name.ends_with('/') {
            let text = format!("`{name}` is no name of a folder below OUT; expected one such as `train`");
            return Err(Error::config("into", text));
        }
        if names.clone().take(i).any(|before| before == name) {
            return Err(Error::config("into", format!("`{name}` is given twice")));
        }
    }
    Ok(())
}

/// The key of sides by content.
const CONTENT: &str = "content";

impl Split {
    /// A split by these weights, one for each folder. A fold deals the games of the first two folders once more.
    ///
    /// Errors: `Config` when no weight is positive, when their sum exceeds 64 bits, or when the fold does not exist.
    pub fn new(weights: Vec<u64>, by: By, fold: Option<Fold>) -> gristmill_engine::Result<Self> {
        let sides = Side::all(&weights, fold).map_err(|text| Error::config("into", text))?;
        Ok(Split { weights, sides, by, fold })
    }
}

impl Split {
    fn at(&self, key: &str, index: u64) -> usize {
        self.sides.iter().position(|side| side.holds(key, index)).unwrap_or(0)
    }
}

impl Rewrite for Split {
    fn settings(&self) -> serde_json::Value {
        let mut settings = match self.by {
            By::Name => json!({ "split": self.weights, "by": "name" }),
            // As it was before there was a choice, so that such a job can be resumed.
            By::File => json!({ "split": self.weights }),
            By::Content => json!({ "split": self.weights, "by": CONTENT }),
        };
        if let Some(Fold { of, number }) = self.fold {
            settings["fold"] = json!([number, of]);
        }
        settings
    }

    fn reads(&self) -> bool {
        self.by == By::Content
    }

    fn side(&self, key: &str, member: Option<&str>, index: usize) -> usize {
        let member = member.filter(|_| self.by == By::Name);
        let (key, index) = original(key, member, index as u64);
        self.at(key, index)
    }

    /// Errors: as [`identity`].
    fn side_of(&self, chunk: &Chunk) -> Result<Option<usize>> {
        if self.by != By::Content {
            return Ok(None);
        }
        let size = chunk.layout.as_ref().map_or(1, |layout| layout.size());
        Ok(Some(self.at(CONTENT, identity(chunk.records(), size)?.key as u64)))
    }

    fn chunk(&self, _: &[u8], _: &mut Chunk, _: &mut dyn FnMut(&str, u64)) -> Result<Fate> {
        Ok(Fate::Keep)
    }
}
