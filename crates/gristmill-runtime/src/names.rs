//! Names of files -> what they are in a pack of whole games, and the names that every pack has.
//! Looks at names only; opens nothing.

use std::path::Path;

use gristmill_format::Result;

use crate::store::files::is_file;

/// Name of the database in a pack.
pub const METADATA: &str = "metadata.db";

/// Name of the manifest.
pub const MANIFEST: &str = "manifest.json";

/// Name of the file with what opening a pack needs.
pub const OPENING: &str = "opening.index";

/// The report of games that were left out, under the policy `quarantine`.
pub const QUARANTINE: &str = "quarantine.jsonl";

/// Name under which a job on a pack stages its files: see [`crate::store::publish`].
pub const STAGING: &str = "pack";

/// What the names of chunk files begin and end with.
const CHUNKS: (&str, &str) = ("games-", ".chunks");

/// The name of chunk file `i`.
pub fn file_name(i: usize) -> String {
    format!("{}{i:05}{}", CHUNKS.0, CHUNKS.1)
}

/// Whether a file of this name holds chunks of a pack.
pub fn is_chunks(name: &str) -> bool {
    name.strip_prefix(CHUNKS.0)
        .and_then(|rest| rest.strip_suffix(CHUNKS.1))
        .is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a file of this name holds what the games of a chunk file of a pack weigh.
pub fn is_sums(name: &str) -> bool {
    gristmill_format::container::sums::named(name).is_some_and(|(chunks, _)| is_chunks(&chunks))
}

/// Whether the folder is a chunk pack, or was to become one.
///
/// Errors: as [`is_file`].
pub fn is_pack(folder: &Path) -> Result<bool> {
    is_file(&folder.join(file_name(0)))
}
