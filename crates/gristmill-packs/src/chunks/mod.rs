//! What a chunk pack is on disk: chunk files, a database with a row for each game, a manifest (docs/format/chunk-pack.md).
//! The job that makes packs and the readers that feed from them share it; `kinds` says what the chunks of each game are.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

pub mod codec;
pub mod manifest;
pub mod metadata;
pub mod open;
pub mod opening;
pub(crate) mod plain;
pub mod sums;
mod table;
pub mod weigh;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::names::{MANIFEST, METADATA, OPENING, QUARANTINE};
pub use gristmill_runtime::names::{file_name, is_chunks, is_pack, is_sums};
use gristmill_runtime::store;

/// Names of the files in a folder that belong to a chunk pack, the chunk files first and in order.
///
/// Errors: `Path` when the folder cannot be listed; one that does not exist has none.
pub fn files(folder: &Path) -> Result<Vec<String>> {
    let mut names = match store::files::names(folder) {
        Err(Error::Path { kind: ErrorKind::NotFound, .. }) => return Ok(Vec::new()),
        names => names?,
    };
    let there: BTreeSet<String> = names.iter().cloned().collect();
    names.retain(|name| is_chunks(name) || is_sums(name));
    // By number: file 100 000 has a longer name, and comes after 10 001.
    names.sort_unstable_by_key(|name| (is_sums(name), name.len(), name.clone()));
    let logs = ["-wal", "-shm"].map(|ending| format!("{METADATA}{ending}"));
    let others = [METADATA, MANIFEST, OPENING, QUARANTINE].map(str::to_owned);
    names.extend(others.into_iter().chain(logs).filter(|name| there.contains(name)));
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_files_come_in_the_order_of_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let numbers = [0, 9_999, 10_001, 99_999, 100_000, 100_001];
        let names = numbers.map(file_name);
        for name in names.iter().rev().map(String::as_str).chain([METADATA, MANIFEST]) {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = files(folder.path()).unwrap();
        assert_eq!(found[..names.len()], names);
        assert_eq!(found[names.len()..], [METADATA, MANIFEST]);
    }
}
