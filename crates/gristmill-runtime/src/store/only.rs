//! What a user means of a tree of files: all of it, one file, or what a pattern names.
//! Looks at names only.

use std::path::{Component, Path, PathBuf};

use glob::{MatchOptions, Pattern};

use crate::{Error, Result};

/// A pattern's `*` ends at a folder; `**` does not.
const MATCHING: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// What is meant of a tree.
#[derive(Debug, Default)]
pub(super) enum Only {
    /// All.
    #[default]
    All,
    /// The file of this name.
    File(String),
    /// What a pattern names: files, and folders with all that is under them.
    Named(Pattern),
}

impl Only {
    /// Divides a place into the folder before the first part with a `*`, `?` or `[`, and what is meant of it.
    ///
    /// Errors: `Config` in `directory` for a pattern that is none.
    pub(super) fn divided(place: &Path) -> Result<(PathBuf, Self)> {
        let magic = |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
        let parts: Vec<Component<'_>> = place.components().collect();
        let first = parts.iter().position(magic).unwrap_or(parts.len());
        let root: PathBuf = parts[..first].iter().collect();
        if first == parts.len() {
            return Ok((root, Only::All));
        }
        let rest: PathBuf = parts[first..].iter().collect();
        let pattern = Pattern::new(&rest.to_string_lossy())
            .map_err(|e| Error::config("directory", format!("{}: no pattern: {e}", place.display())))?;
        Ok((root, Only::Named(pattern)))
    }

    /// Whether all is meant.
    pub(super) fn is_all(&self) -> bool {
        matches!(self, Only::All)
    }

    /// Whether a name is one of those that are meant: itself, or a folder that it is in.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut ends = name.match_indices('/').map(|(at, _)| at).chain([name.len()]);
        match self {
            Only::All => true,
            Only::File(file) => file == name,
            Only::Named(only) => ends.any(|end| only.matches_with(&name[..end], MATCHING)),
        }
    }

    /// The name or the pattern, below the tree's root; empty for all.
    pub(super) fn text(&self) -> &str {
        match self {
            Only::All => "",
            Only::File(name) => name,
            Only::Named(pattern) => pattern.as_str(),
        }
    }
}
