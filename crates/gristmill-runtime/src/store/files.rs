//! The path or URL of one file or folder, wherever it is -> its bytes, its length, the names in it.
//! Reads small files whole, up to a bound that the caller sets; writes and removes single files in buckets.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::source::{ReadAt, Span, read_span};
use gristmill_format::{Error, Kind, Result};

use super::dir::OpenFile;
use super::place::elsewhere;
use super::{DirStore, FileStat, Store};

/// Opens one file, for positioned reads.
///
/// Errors, with the path: `Io` with the cause.
pub fn open_file(path: &Path) -> Result<Arc<dyn ReadAt>> {
    let named = |e: Error| e.in_source(path.display().to_string());
    match elsewhere(path) {
        None => Ok(Arc::new(OpenFile::new(path).map_err(|e| named(e.into()))?)),
        Some(found) => {
            let (store, name) = found.map_err(crate::Error::of_reading)?;
            store.open(&name).map_err(named)
        }
    }
}

/// All bytes of a file of at most `most` bytes; none where there is no such file.
///
/// Errors, with the path: `TooLarge`; `Io`.
pub fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    let named = |e: Error| e.in_source(path.display().to_string());
    let file = match open_file(path) {
        Err(e) if e.kind() == Kind::Io(ErrorKind::NotFound) => return Ok(None),
        file => file?,
    };
    let len = file.len().map_err(named)?;
    if len > most {
        return Err(named(Error::new(Kind::TooLarge, format!("{len} bytes; at most {most} are read"))));
    }
    let mut bytes = Vec::new();
    read_span(&*file, Span { offset: 0, len }, most, &mut bytes).map_err(named)?;
    Ok(Some(bytes))
}

/// The same as text.
///
/// Errors, with the path: as [`read`]; `Corrupt` for what is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> Result<Option<String>> {
    let Some(bytes) = read(path, most)? else { return Ok(None) };
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to() as u64;
        Error::new(Kind::Corrupt, "expected UTF-8 text").at_byte(at).in_source(path.display().to_string())
    });
    text.map(Some)
}

/// Writes all bytes of a file to `to`, which people call `name`.
///
/// Errors: those of reading; `Path` with `name`.
pub fn copy(path: &Path, to: &mut dyn Write, name: &Path) -> crate::Result<()> {
    let (from, mut offset, mut block) = (open_file(path)?, 0, vec![0; 1 << 20]);
    loop {
        let n = from.read_at(offset, &mut block).map_err(|e| e.in_source(path.display().to_string()))?;
        if n == 0 {
            return Ok(());
        }
        to.write_all(&block[..n]).map_err(|e| crate::Error::path(name, &e))?;
        offset += n as u64;
    }
}

/// Writes a file in a bucket, whole or not at all, and overwrites one of that name. An option called `field` named the place.
///
/// Errors: `Config` in `field` for a place that cannot be written; `Format` of writing.
pub fn write(path: &Path, bytes: Vec<u8>, field: &str) -> crate::Result<()> {
    let (store, name) = written(path, field)?;
    match store.writes() {
        Some(writes) => Ok(writes.put(&name, bytes, false).map(drop)?),
        None => Err(read_only(path, field)),
    }
}

/// Writes a file in a bucket unless its name is taken. Returns whether the file of this name has these bytes.
///
/// Errors: as [`write()`].
pub fn write_new(path: &Path, bytes: Vec<u8>, field: &str) -> crate::Result<bool> {
    let (store, name) = written(path, field)?;
    match store.writes() {
        Some(writes) => Ok(writes.put(&name, bytes, true)?),
        None => Err(read_only(path, field)),
    }
}

/// Removes a file in a bucket; does nothing where there is none.
///
/// Errors: as [`write()`].
pub fn remove(path: &Path, field: &str) -> crate::Result<()> {
    let (store, name) = written(path, field)?;
    match store.writes() {
        Some(writes) => Ok(writes.delete(&name)?),
        None => Err(read_only(path, field)),
    }
}

fn written(path: &Path, field: &str) -> crate::Result<(Arc<dyn Store>, String)> {
    elsewhere(path).unwrap_or_else(|| Err(crate::Error::config(field, format!("{} is no URL", path.display()))))
}

/// The refusal of a place that is neither of this machine nor in a bucket.
pub(super) fn read_only(place: &Path, field: &str) -> crate::Error {
    let detail = "is read only; write into a folder of this machine, or a bucket";
    crate::Error::config(field, format!("{}: {detail}", place.display()))
}

/// The length of a file; none where there is no such file.
///
/// Errors, with the path: what keeps a place elsewhere from saying so.
pub fn len(path: &Path) -> Result<Option<u64>> {
    let Some(found) = elsewhere(path) else {
        return Ok(std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|meta| meta.len()));
    };
    let (store, name) = match found {
        Err(e) if is_missing(&e) => return Ok(None),
        found => found.map_err(crate::Error::of_reading)?,
    };
    match store.stat(&name) {
        Ok(stat) => Ok(Some(stat.size)),
        Err(e) if e.kind() == Kind::Io(ErrorKind::NotFound) => Ok(None),
        Err(e) => Err(e),
    }
}

fn is_missing(e: &crate::Error) -> bool {
    matches!(e, crate::Error::Path { kind: ErrorKind::NotFound, .. })
}

/// What is known of a file without reading it.
///
/// Errors: as [`Store::stat`]; `Path` for a folder that is not there.
pub fn stat(path: &Path) -> crate::Result<FileStat> {
    if let Some(found) = elsewhere(path) {
        let (store, name) = found?;
        return Ok(store.stat(&name)?);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(DirStore::new(folder)?.stat(&name)?)
}

/// Whether there is such a file.
///
/// Errors: as [`len`].
pub fn is_file(path: &Path) -> Result<bool> {
    Ok(len(path)?.is_some())
}

/// Whether there is such a folder. Elsewhere than on this machine a folder is what names of files begin with.
///
/// Errors: as [`len`].
pub fn is_folder(path: &Path) -> Result<bool> {
    match elsewhere(path) {
        None => Ok(path.is_dir()),
        Some(Ok((store, name))) => Ok(!below(&*store, &name, 1)?.is_empty()),
        Some(Err(e)) if is_missing(&e) => Ok(false),
        Some(Err(e)) => Err(e.of_reading()),
    }
}

/// Names of the files and folders directly in a folder, sorted; elsewhere than on this machine without hidden ones.
///
/// Errors: `Path`, also where there is no such folder.
pub fn names(folder: &Path) -> crate::Result<Vec<String>> {
    let refuse = |e: std::io::Error| crate::Error::path(folder, &e);
    let mut names = Vec::new();
    match elsewhere(folder) {
        None => {
            for entry in std::fs::read_dir(folder).map_err(refuse)? {
                names.push(entry.map_err(refuse)?.file_name().to_string_lossy().into_owned());
            }
        }
        Some(found) => {
            let (store, name) = found?;
            names.extend(below(&*store, &name, usize::MAX)?);
            if names.is_empty() {
                return Err(refuse(ErrorKind::NotFound.into()));
            }
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Opens the files directly in a folder of a bucket whose names `is` accepts. `None` for a folder of this machine.
///
/// Errors: as [`Store::open_listed`].
pub fn listed(folder: &Path, is: &dyn Fn(&str) -> bool) -> crate::Result<BTreeMap<String, Arc<dyn ReadAt>>> {
    let Some(found) = elsewhere(folder) else { return Ok(BTreeMap::new()) };
    let (store, name) = found?;
    let above = if name.is_empty() { String::new() } else { format!("{name}/") };
    let own = |full: &str| full.strip_prefix(&above).filter(|rest| !rest.contains('/') && is(rest)).map(str::to_owned);
    let files = store.open_listed(&name, &|full| own(full).is_some())?;
    Ok(files.into_iter().filter_map(|(full, file)| Some((own(&full)?, file))).collect())
}

/// At most `most` names directly below a name of a store.
///
/// Errors: `Io` where not all could be listed.
fn below(store: &dyn Store, name: &str, most: usize) -> Result<BTreeSet<String>> {
    let folder = if name.is_empty() { String::new() } else { format!("{name}/") };
    let mut names = BTreeSet::new();
    let faults = store.list_below(name, &mut |stat| {
        if let Some(rest) = stat.name.strip_prefix(&folder) {
            names.insert(rest.split('/').next().unwrap_or(rest).to_owned());
        }
        if names.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    match faults.messages().last() {
        Some(why) => Err(Error::new(Kind::Io(ErrorKind::Other), why).in_source(format!("{}/{name}", store.root()))),
        None => Ok(names),
    }
}
