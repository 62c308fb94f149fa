//! Drops the games that break a rule; the others go out byte for byte.
//! What the validating stage of a loader drops is dropped here, for the same reason.

use gristmill_engine::stage::ChunkPass;
use gristmill_engine::stage::validate::Validate;
use gristmill_format::Result;
use gristmill_format::chess::check::Rules;
use gristmill_format::source::Chunk;
use serde_json::json;

use super::{Fate, Rewrite};

/// Keeps the games that break none of its rules.
#[derive(Debug)]
pub struct Filter {
    rules: Rules,
}

impl Filter {
    /// A filter by these rules.
    pub fn new(rules: Rules) -> Self {
        Filter { rules }
    }
}

impl Rewrite for Filter {
    fn settings(&self) -> serde_json::Value {
        json!({ "filter": self.rules.iter().map(|rule| rule.name()).collect::<Vec<_>>() })
    }

    /// Errors: `Refused` by the first rule that is broken.
    fn chunk(&self, _: &[u8], chunk: &mut Chunk, _: &mut dyn FnMut(&str, u64)) -> Result<Fate> {
        Validate::new(self.rules).run(chunk, &mut |_, _| {}).map(|_| Fate::Keep)
    }
}
