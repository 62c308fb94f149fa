//! A path -> its demonstrations, whole in memory: one file of any form, or a folder of shards.
//! Reads in order of name; every error names the file.

use std::path::{Path, PathBuf};

use gristmill_format::demo::form::{ReadOptions, read};
use gristmill_format::demo::source::{DemoFile, MAX_BYTES};
use gristmill_format::detect::{Format, HEAD, detect_alone};
use gristmill_format::source::{Span, read_span};
use gristmill_format::{Error, Kind, Result};

use crate::store::open_file;

/// Names of shards.
const SHARDS: [&str; 4] = [".tar", ".tar.zst", ".tar.gz", ".tgz"];

/// Whether `path` holds demonstrations: a file that is one by name and first bytes, or a folder with shards directly in it.
///
/// Errors, with the path: `Io`.
pub fn holds(path: &Path) -> Result<bool> {
    if path.is_dir() {
        return Ok(!shards(path)?.is_empty());
    }
    let bytes = open_file(path)?;
    let mut head = Vec::new();
    let len = bytes.len()?.min(HEAD as u64);
    read_span(&*bytes, Span { offset: 0, len }, HEAD as u64, &mut head)?;
    // What `detect_alone` refuses is no demonstration; who opens it is told why.
    Ok(matches!(detect_alone(&path.to_string_lossy(), &head), Ok(Some(Format::Demonstrations))))
}

/// Reads a file in any form, or all shards directly in a folder, in order of name, as one: a trajectory that no `dones` ended
/// goes on in the next shard.
///
/// Errors, with the file: as [`read`]; `Empty` for a folder without shards; `TooLarge` beyond the bound; `OutOfRange` for
/// shards whose metadata does not mix.
pub fn open_demos(path: &Path, options: &ReadOptions) -> Result<DemoFile> {
    if !path.is_dir() {
        return one(path, options);
    }
    let names = shards(path)?;
    let Some((first, rest)) = names.split_first() else {
        let detail = format!("no shards directly in it; expected names that end in {}", SHARDS.join(", "));
        return Err(Error::new(Kind::Empty, detail).in_source(path.display().to_string()));
    };
    let mut all = one(first, options)?;
    for shard in rest {
        let next = one(shard, options)?;
        all.append(next).map_err(|e| e.in_source(shard.display().to_string()))?;
    }
    Ok(all)
}

fn one(path: &Path, options: &ReadOptions) -> Result<DemoFile> {
    let place = |e: Error| e.in_source(path.display().to_string());
    let from = open_file(path)?;
    let mut bytes = Vec::new();
    read_span(&*from, Span::WHOLE, MAX_BYTES as u64, &mut bytes).map_err(place)?;
    let key = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    read(&key, &bytes, options).map_err(place)
}

/// The shards directly in a folder, in natural order of name.
pub fn shards(folder: &Path) -> Result<Vec<PathBuf>> {
    let place = |e: std::io::Error| Error::from(e).in_source(folder.display().to_string());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(place)? {
        let name = entry.map_err(place)?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && SHARDS.iter().any(|ending| name.ends_with(ending)) {
            found.push(name);
        }
    }
    found.sort_unstable_by(|a, b| crate::key::natural_cmp(a, b));
    Ok(found.into_iter().map(|name| folder.join(name)).collect())
}
