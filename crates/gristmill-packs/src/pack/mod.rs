//! What a pack of 2048 games is on disk, beside its rows: database, valuation names, manifest, list of shards.
//! Reads and writes these files; the jobs that make packs and the readers that feed from them share it.

use std::io::ErrorKind;
use std::path::Path;

pub use gristmill_format::g2048::RowForm;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::lineage;
pub use gristmill_runtime::names::{MANIFEST, METADATA, OPENING, QUARANTINE, STAGING};
use gristmill_runtime::store::files::is_file;
use serde::{Deserialize, Deserializer};

use crate::row_files::{VALUATION_TYPES, is_checksums, listed};

pub mod array;
pub mod checksums;
pub mod embeddings;
pub mod games;
pub mod manifest;
pub mod metadata;
pub mod open;
pub mod opening;
pub mod recorder;
pub mod rows;
pub mod runs;
pub mod shards;
mod table;
pub mod valuation;
pub mod values;
pub mod writer;

/// The name of a form of rows in manifests and options.
pub fn layout_name(form: RowForm) -> &'static str {
    match form {
        RowForm::Aligned => "aligned48",
        RowForm::Packed => "packed46",
    }
}

/// The form of rows of this name.
pub fn layout_of(name: &str) -> Option<RowForm> {
    [RowForm::Aligned, RowForm::Packed].into_iter().find(|form| layout_name(*form) == name)
}

/// Reads the name of a form of rows.
///
/// Errors: an unknown name.
pub fn read_layout<'de, D: Deserializer<'de>>(text: D) -> Result<RowForm, D::Error> {
    let name = String::deserialize(text)?;
    let unknown = || serde::de::Error::unknown_variant(&name, &["aligned48", "packed46"]);
    layout_of(&name).ok_or_else(unknown)
}

/// Names of the files in a folder that belong to a pack, values of its rows included and vectors excepted, and of logs that SQLite may have left
/// beside the database.
///
/// Errors: `Path` when the folder cannot be listed; one that does not exist has none.
pub fn files(folder: &Path) -> Result<Vec<String>> {
    let mut names = match shards::names(folder) {
        Err(Error::Path { kind: ErrorKind::NotFound, .. }) => return Ok(Vec::new()),
        names => names?,
    };
    names.extend(listed(folder, is_checksums)?);
    names.extend(values::names(folder)?);
    let logs = ["-wal", "-shm"].map(|ending| format!("{METADATA}{ending}"));
    let others = [METADATA, VALUATION_TYPES, MANIFEST, OPENING, QUARANTINE, lineage::FILE].map(str::to_owned);
    for name in others.into_iter().chain(logs) {
        if is_file(&folder.join(&name))? {
            names.push(name);
        }
    }
    Ok(names)
}
