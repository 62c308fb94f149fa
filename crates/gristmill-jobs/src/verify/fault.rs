//! One thing that is wrong: where, which check found it, what was expected; and a 2048 row drawn with it.

use std::path::Path;

use gristmill_format::Error;
use serde::Serialize;

use crate::files::Unlisted;
use crate::inspect::Step;
use crate::pack::is_unreadable;

/// One thing that is wrong, and where.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Fault {
    /// Path of the file.
    pub file: Option<String>,
    /// Name of the member in a container.
    pub member: Option<String>,
    /// Chunk in the file.
    pub chunk: Option<u64>,
    /// Run of a pack.
    pub run: Option<u64>,
    /// Frame in the chunk; of a pack, row of the file. From 0.
    pub frame: Option<u64>,
    /// Line of a text, from 1.
    pub line: Option<u64>,
    /// Column of that line in bytes, from 1.
    pub column: Option<u64>,
    /// Byte in the decoded chunk; where it could not be decoded and in a pack, in the file, or in the text that the
    /// file holds.
    pub offset: Option<u64>,
    /// A short stable word, such as `truncated` or `out_of_range`.
    pub kind: &'static str,
    /// Whether the system refused to read: the content is unknown.
    pub unreadable: bool,
    /// The rule that a readable game breaks.
    pub rule: Option<&'static str>,
    /// What was expected and what was found.
    pub detail: String,
    /// Whole records that can still be had from a damaged chunk.
    pub salvageable: Option<u64>,
}

impl Fault {
    pub(crate) fn new(e: &Error) -> Self {
        let place = e.place();
        Fault {
            file: place.source.clone(),
            member: place.member.clone(),
            chunk: place.chunk,
            frame: place.frame,
            line: place.line.map(|(line, _)| line),
            column: place.line.map(|(_, column)| column),
            offset: place.offset,
            kind: e.kind().name(),
            unreadable: is_unreadable(e),
            detail: e.detail().to_owned(),
            ..Fault::default()
        }
    }

    /// Files or folders at or below `path` that could not be read.
    pub(super) fn unlisted(path: &Path, unlisted: Unlisted) -> Self {
        let detail = format!("{} files or folders could not be read; the latest: {}", unlisted.count, unlisted.latest);
        let unreadable = unlisted.is_unreadable();
        Fault { file: Some(path.display().to_string()), kind: unlisted.kind, unreadable, detail, ..Fault::default() }
    }

    /// The check that found it: the rule, or else the kind.
    pub fn check(&self) -> &'static str {
        self.rule.unwrap_or(self.kind)
    }
}

/// The first fault that a check found in rows of 2048 games, with the rows.
#[derive(Debug, Clone, Serialize)]
pub struct Example {
    /// What is wrong.
    pub fault: Fault,
    /// The row before it in the same game.
    pub before: Option<Step>,
    /// The row.
    pub row: Step,
}
