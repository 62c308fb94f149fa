//! What manifests of packs have in common: how they are read and written, and what they say was left out.
//! A manifest of another format, or of a newer version, is refused by name.

use std::path::Path;

use gristmill_format::{Error, Kind, Result as FormatResult};
use gristmill_runtime::error::Result;
use gristmill_runtime::names::MANIFEST;
use gristmill_runtime::store::VERSIONS;
use gristmill_runtime::store::files::read_text;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longest manifest that is read: of tens of millions of games that were left out.
const MOST_BYTES: u64 = 4 << 30;

/// Something that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Path below the folder that was packed, with `/`.
    pub file: String,
    /// A short stable word, such as `truncated` or `out_of_range`.
    pub kind: String,
    /// Line of the log, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Column (byte) of the line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// Byte of the text of the log, or of the file where it could not be inflated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What was expected and what was found.
    pub detail: String,
}

impl Skipped {
    /// An error in the file of this path.
    pub fn new(file: &str, e: &Error) -> Self {
        let place = e.place();
        Skipped {
            file: file.to_owned(),
            kind: e.kind().name().to_owned(),
            line: place.line.map(|(line, _)| line),
            column: place.line.map(|(_, column)| column),
            offset: place.offset,
            detail: e.detail().to_owned(),
        }
    }
}

/// The text of a manifest: two spaces of indent, a final line feed.
///
/// Errors: none that data could cause.
pub(crate) fn to_json(manifest: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(manifest).map_err(|e| Error::new(Kind::Corrupt, e.to_string()))?;
    Ok(text + "\n")
}

/// Reads the manifest of a pack; `None` where there is none.
///
/// Errors: `Format` with the path: `Io`, and as `parse`.
pub(crate) fn read<T>(pack: &Path, parse: &dyn Fn(&str) -> FormatResult<T>) -> Result<Option<T>> {
    let path = pack.join(MANIFEST);
    let place = |e: Error| e.in_source(path.display().to_string());
    let Some(text) = read_text(&path, MOST_BYTES)? else { return Ok(None) };
    Ok(Some(parse(&text).map_err(place)?))
}

/// Reads a manifest that says it is of `format`, in a version up to `newest`.
///
/// Errors: `Corrupt`, `UnknownFormat`, `UnknownVersion`.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, format: &str, newest: u32) -> FormatResult<T> {
    #[derive(Deserialize)]
    struct Head {
        format: String,
        version: u32,
    }
    let corrupt = |e: serde_json::Error| Error::new(Kind::Corrupt, format!("manifest: {e}"));
    let head: Head = serde_json::from_str(text).map_err(corrupt)?;
    if head.format == VERSIONS {
        let detail =
            "games were added to this pack in its bucket after it was opened; begin again with what is there now";
        return Err(Error::new(Kind::Refused("replaced"), detail));
    }
    if head.format != format {
        return Err(Error::new(Kind::UnknownFormat, format!("manifest of `{}`, expected `{format}`", head.format)));
    }
    if head.version > newest || head.version == 0 {
        let detail = format!("manifest version {}; this program knows 1 to {newest}", head.version);
        return Err(Error::new(Kind::UnknownVersion, detail));
    }
    serde_json::from_str(text).map_err(corrupt)
}
