//! Marks of a pack: which of its frames a rule accepts, in a file of their own beside the data, which they never change.
//! Reads, lists and writes these files (docs/format/marks.md); a mark of other frames than those that are there is refused.

pub mod columns;
mod frames;
pub mod rule;

use std::path::{Path, PathBuf};

use gristmill_format::container::marks::{IDENTITY_AT, MOST_RULE, Mark};
use gristmill_format::{Error as FormatError, Kind};
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::store::place::{is_local, writable};
use gristmill_runtime::store::publish::{sync_folder, withdraw, write_whole};
use gristmill_runtime::store::{files, pack_of};
use roaring::RoaringTreemap;
use serde::Serialize;

use crate::pack_table::PackTable;

/// Name of the folder of marks in a pack.
pub const FOLDER: &str = "marks";

/// What names of mark files end with.
const ENDING: &str = ".mark";

/// Longest name.
const MOST_NAME: usize = 64;

/// Whether a mark is of the frames that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// Of these.
    Fits,
    /// Of the first of them: the pack has grown.
    Grown,
    /// Of another pack.
    Foreign,
    /// It cannot be read.
    Damaged,
}

/// What is known of a mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// `rule`, `given` or `duplicates`; empty for one that cannot be read.
    pub origin: &'static str,
    /// Its rule.
    pub rule: String,
    /// How many frames are marked.
    pub marked: u64,
    /// Of how many.
    pub frames: u64,
    /// Whether it is of the frames that are there.
    pub fit: Fit,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Refuses what is no name of a mark: a letter or digit, then letters, digits, `.`, `-` and `_`, at most 64 of them.
///
/// Errors: `Config` in `name`.
pub fn check_name(name: &str) -> Result<()> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let known = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    if starts && known && name.len() <= MOST_NAME {
        return Ok(());
    }
    let text =
        format!("`{name}` is no name: a letter or digit, then letters, digits, `.`, `-` or `_`, {MOST_NAME} at most");
    Err(Error::config("name", text))
}

/// The file of a mark, by its name in the folder of the pack.
pub fn file_name(name: &str) -> String {
    format!("{FOLDER}/{name}{ENDING}")
}

/// The file of a mark.
fn path_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(file_name(name))
}

/// Names of the marks of a pack, sorted.
///
/// Errors: `Path`.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    let folder = folder.join(FOLDER);
    let files = match files::names(&folder) {
        Err(Error::Path { kind: std::io::ErrorKind::NotFound, .. }) => return Ok(Vec::new()),
        files => files?,
    };
    let is_name = |name: &&str| check_name(name).is_ok();
    let mut names: Vec<String> =
        files.iter().filter_map(|file| file.strip_suffix(ENDING).filter(is_name).map(str::to_owned)).collect();
    names.sort_unstable();
    Ok(names)
}

/// The files of the marks of a pack, by their names in its folder.
///
/// Errors: `Path`.
pub fn files(folder: &Path) -> Result<Vec<String>> {
    Ok(names(folder)?.iter().map(|name| file_name(name)).collect())
}

/// Whether a pack has a mark of this name.
///
/// Errors: those of looking there.
pub fn exists(folder: &Path, name: &str) -> Result<bool> {
    Ok(files::is_file(&path_of(folder, name))?)
}

/// Reads a mark, whatever it is of.
///
/// Errors: `Config` for what is no name; `Format` with the file: `Missing` with the names that there are, `TooLarge`, and as
/// [`Mark::from_bytes`].
pub fn read(pack: &dyn PackTable, name: &str) -> Result<Mark> {
    check_name(name)?;
    let path = path_of(pack.folder(), name);
    let place = |e: FormatError| Error::Format(e.in_source(path.display().to_string()));
    // A bitmap of frames chosen without pattern takes a bit for each; nothing takes twice as much.
    if let Some(len) = files::len(&path)?.filter(|len| *len > (1 << 20) + MOST_RULE as u64 + pack.total() / 4) {
        let detail = format!("{len} bytes for {} frames, which is more than any mark has", pack.total());
        return Err(place(FormatError::new(Kind::TooLarge, detail).at_byte(0)));
    }
    let Some(bytes) = files::read(&path, u64::MAX)? else {
        let known = names(pack.folder())?.join(", ");
        let known = if known.is_empty() { "none; `gristmill mark` makes them".to_owned() } else { known };
        return Err(place(FormatError::new(Kind::Missing, format!("there is no mark `{name}`; there are: {known}"))));
    };
    Mark::from_bytes(&bytes).map_err(place)
}

/// Whether a mark is of the frames of `pack`.
pub fn fit(pack: &dyn PackTable, mark: &Mark) -> Fit {
    match pack.identity_of(mark.frames) {
        Some(identity) if identity != mark.identity => Fit::Foreign,
        Some(_) if mark.frames == pack.total() => Fit::Fits,
        Some(_) => Fit::Grown,
        None => Fit::Foreign,
    }
}

/// The marked frames of a pack.
///
/// Errors: as [`read`]; `Refused`, with the file and byte, for a mark of another pack, or of fewer frames than the pack has
/// now.
pub fn rows(pack: &dyn PackTable, name: &str) -> Result<Intervals> {
    let mark = read(pack, name)?;
    let refuse = |rule, detail: String| {
        let e = FormatError::new(Kind::Refused(rule), detail).at_byte(IDENTITY_AT);
        Error::Format(e.in_source(path_of(pack.folder(), name).display().to_string()))
    };
    match fit(pack, &mark) {
        Fit::Grown => Err(refuse(
            "mark_before_growth",
            format!(
                "the mark is of the first {} of {} frames: the pack has grown; `gristmill mark {} {name} --update` \
                 extends it",
                mark.frames,
                pack.total(),
                pack.folder().display()
            ),
        )),
        Fit::Fits => Ok(intervals(&mark.rows)),
        Fit::Foreign | Fit::Damaged => Err(refuse(
            "mark_of_another_pack",
            "the mark is of another pack; remove it, and mark these frames".to_owned(),
        )),
    }
}

/// What is known of every mark of a pack; one that cannot be read is listed with its fault.
///
/// Errors: `Path`.
pub fn list(pack: &dyn PackTable) -> Result<Vec<Listed>> {
    let listed = |name: String| match read(pack, &name) {
        Ok(mark) => {
            let (fit, marked) = (fit(pack, &mark), mark.rows.len());
            Listed { name, origin: mark.origin.name(), rule: mark.rule, marked, frames: mark.frames, fit, fault: None }
        }
        Err(e) => {
            let fault = Some(e.to_string());
            Listed { name, origin: "", rule: String::new(), marked: 0, frames: 0, fit: Fit::Damaged, fault }
        }
    };
    Ok(names(pack.folder())?.into_iter().map(listed).collect())
}

/// Refuses a folder of marks that is a link, and leads elsewhere.
///
/// Errors: `Format` of kind `Unsupported`; `Config` for a pack that is not on this machine.
pub fn own_folder(folder: &Path) -> Result<()> {
    let folder = &*pack_of(folder);
    writable(folder, "pack")?;
    let beside = folder.join(FOLDER);
    if std::fs::symlink_metadata(&beside).is_ok_and(|found| found.is_symlink()) {
        let detail = "the folder of marks is a link, in which nothing is written or removed; put a folder in its place";
        return Err(FormatError::new(Kind::Unsupported, detail).in_source(beside.display().to_string()).into());
    }
    Ok(())
}

/// Writes a mark: durable, and at no moment half written.
///
/// Errors: `Config`, `Path`, and as [`Mark::to_bytes`].
pub fn write(folder: &Path, name: &str, mark: &Mark) -> Result<()> {
    check_name(name)?;
    let folder = &*pack_of(folder);
    let path = path_of(folder, name);
    if !is_local(folder) {
        let bytes = mark.to_bytes().map_err(|e| e.in_source(path.display().to_string()))?;
        return files::write(&path, bytes, "pack");
    }
    own_folder(folder)?;
    let beside = folder.join(FOLDER);
    if !beside.is_dir() {
        std::fs::create_dir(&beside).map_err(|e| Error::path(&beside, &e))?;
        sync_folder(folder)?;
    }
    write_whole(&path, &[&mark.to_bytes().map_err(|e| e.in_source(path.display().to_string()))?])
}

/// Removes a mark; the folder of marks goes with the last.
///
/// Errors: as [`read`] for one that does not exist; `Path`.
pub fn remove(pack: &dyn PackTable, name: &str) -> Result<()> {
    check_name(name)?;
    if !exists(pack.folder(), name)? {
        read(pack, name)?;
    }
    let folder = &*pack_of(pack.folder());
    if !is_local(folder) {
        return files::remove(&path_of(folder, name), "pack");
    }
    own_folder(folder)?;
    withdraw(&path_of(folder, name))?;
    // It stays where something else is in it.
    let _left = std::fs::remove_dir(folder.join(FOLDER));
    Ok(())
}

/// The rows of a bitmap.
pub fn intervals(rows: &RoaringTreemap) -> Intervals {
    let mut found = Intervals::default();
    for (high, low) in rows.bitmaps() {
        let base = u64::from(high) << 32;
        let mut ranges = low.iter();
        while let Some(range) = ranges.next_range() {
            found.push(base + u64::from(*range.start()), base + u64::from(*range.end()) + 1);
        }
    }
    found
}

/// The bitmap of rows, in its smallest form.
pub fn bitmap(rows: &Intervals) -> RoaringTreemap {
    let mut found = RoaringTreemap::new();
    rows.iter().for_each(|(start, end)| _ = found.insert_range(start..end));
    found.optimize();
    found
}
