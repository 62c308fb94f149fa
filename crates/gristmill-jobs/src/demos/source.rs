//! A path -> the files of demonstrations at it, in order of name: one file, the shards of a folder, or its native files.
//! Opens nothing but the first bytes of a file whose name does not tell.

use std::path::{Path, PathBuf};

use gristmill_engine::demos::{holds, shards};
use gristmill_engine::key::natural_cmp;
use gristmill_engine::kinds::demo::is_trajectories;
use gristmill_engine::store::files::{is_folder, names};
use gristmill_engine::store::open_file;
use gristmill_format::demo::form::EXTENSIONS;
use gristmill_format::{Error, Kind, Result};

/// Whether `path` holds demonstrations: a file that is one, a folder directly in which the first file that could be one is, or a
/// pack of trajectories.
///
/// Errors, with the path: `Io`; as of a pack's first file.
pub fn is_demonstrations(path: &Path) -> Result<bool> {
    match is_folder(path)? {
        true if is_trajectories(path)? => Ok(true),
        true => listed(path)?.first().map_or(Ok(false), |first| holds(first)),
        false => holds(path),
    }
}

/// The files at `path`. A folder gives its shards, or its native files where it has no shards.
///
/// Errors: `Io`; `Empty` for a folder without either.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !is_folder(path)? {
        open_file(path)?;
        return Ok(vec![path.to_owned()]);
    }
    let found = listed(path)?;
    if found.is_empty() {
        let detail = format!("no demonstrations directly in it; expected shards, or {}", EXTENSIONS.join(", "));
        return Err(Error::new(Kind::Empty, detail).in_source(path.display().to_string()));
    }
    Ok(found)
}

/// The files that a pattern with `*` and `?` names, in order of name.
///
/// Errors: `Empty` where there are none, `Io`.
pub(super) fn matching(pattern: &str) -> Result<Vec<PathBuf>> {
    let refused = |detail: String| Error::new(Kind::Empty, detail).in_source(pattern);
    let mut found = Vec::new();
    for path in glob::glob(pattern).map_err(|e| refused(format!("no pattern: {e}")))? {
        found.push(path.map_err(|e| Error::from(std::io::Error::from(e)).in_source(pattern))?);
    }
    if found.is_empty() {
        return Err(refused("no file is called like this".to_owned()));
    }
    found.sort_unstable_by(|a, b| natural_cmp(&a.to_string_lossy(), &b.to_string_lossy()));
    Ok(found)
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let found = shards(folder)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let mut names = names(folder).map_err(gristmill_engine::Error::of_reading)?;
    names.retain(|name| !name.starts_with('.') && EXTENSIONS.iter().any(|ending| name.ends_with(ending)));
    names.sort_unstable_by(|a, b| natural_cmp(a, b));
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}
