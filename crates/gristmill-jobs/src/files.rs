//! A path -> its data files, opened one after another, in order of name, and the errors of those that cannot be opened.
//! Decodes nothing by itself; the jobs that read data share it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::names::MANIFEST;
use gristmill_engine::row_files;
use gristmill_engine::store::files::{is_file, is_folder};
use gristmill_engine::store::place::is_local;
use gristmill_engine::store::{self, Store, newest};
use gristmill_format::chess::pgn::source::PgnFile;
use gristmill_format::demo::form::DemoFile;
use gristmill_format::katago::shard::{MAX_BYTES, Shard};
use gristmill_format::source::{ChunkSource, Span, read_span};
use gristmill_format::{Error, Kind, Result, detect};

use crate::kinds;
use crate::reread::Reread;
use crate::unpacked::unpacked;
use crate::work::Opened;

pub use crate::work::is_unreadable;

/// What lies at a path.
pub(super) enum Found {
    /// A data file.
    File(Opened),
    /// The folder of a pack.
    Pack(PathBuf),
    /// A file in a directory that is of no format known here.
    Other,
    /// A file or folder that cannot be opened.
    Fault(Error),
    /// Files or folders that the walk of a directory could not read.
    Unlisted(Unlisted),
}

/// Files or folders that could not be read while a directory was listed.
pub(super) struct Unlisted {
    /// A short stable word for the cause.
    pub(super) kind: &'static str,
    /// How many.
    pub(super) count: u64,
    /// The latest, in words.
    pub(super) latest: String,
}

impl Unlisted {
    /// Whether the system refused to read, rather than that links or names are wrong.
    pub(super) fn is_unreadable(&self) -> bool {
        ["permission", "mount_lost", "away", "io"].contains(&self.kind)
    }
}

/// What lies at a path, with no file opened yet.
#[derive(Default)]
pub(super) struct Listing {
    /// Files, in order of name.
    pub(super) files: Vec<Closed>,
    /// Folders that are packs, in order of name.
    pub(super) packs: Vec<PathBuf>,
    /// The files of each pack below the path, with their lengths.
    pub(super) parts: Vec<Vec<(String, u64)>>,
    /// What could not be listed.
    pub(super) unlisted: Vec<Unlisted>,
}

/// A file that is not open yet.
#[derive(Clone)]
pub(super) struct Closed {
    store: Arc<dyn Store>,
    name: String,
    path: String,
    /// Its length, as the listing has it.
    bytes: u64,
    in_folder: bool,
}

impl Closed {
    /// Its length in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether its name ends so.
    pub(super) fn named(&self, suffix: &str) -> bool {
        self.name.ends_with(suffix)
    }

    /// Its path.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Its format, by its name and first bytes; none for what is of no known format, or cannot be read.
    pub(super) fn format(&self) -> Option<detect::Format> {
        detect::detect_alone(&self.name, &*self.store.open(&self.name).ok()?).ok()?
    }

    /// Opens it.
    pub(super) fn open(&self) -> Found {
        open(&*self.store, &self.name, self.path.clone(), self.in_folder)
    }
}

/// Gives what lies at `path` (a file, or all files and packs below a directory) to `each`, in order of name.
pub(super) fn walk(
    path: &Path,
    each: &mut dyn FnMut(Found) -> gristmill_engine::Result<()>,
) -> gristmill_engine::Result<()> {
    let listing = match list(path) {
        Ok(listing) => listing,
        Err(e) => return each(Found::Fault(e)),
    };
    for file in &listing.files {
        each(file.open())?;
    }
    for pack in listing.packs {
        each(Found::Pack(pack))?;
    }
    for unlisted in listing.unlisted {
        each(Found::Unlisted(unlisted))?;
    }
    Ok(())
}

/// Lists what lies at `path`. The files that make up a pack are the pack.
///
/// Errors: `Io` for a path that does not exist, or a folder that cannot be read.
pub(super) fn list(path: &Path) -> Result<Listing> {
    let named = path.display().to_string();
    let refused = |e: std::io::Error| Error::from(e).in_source(&named);
    let unusable = |e: gristmill_engine::Error| match e.of_reading() {
        e if e.place().source.is_some() => e,
        e => e.in_source(&named),
    };
    let path = &*newest(path).map_err(unusable)?;
    let mut listing = Listing::default();
    if !is_folder(path)? && (is_file(path)? || std::fs::metadata(path).map_err(refused).is_ok()) {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().ok_or_else(|| refused(ErrorKind::InvalidInput.into()))?;
        let name = name.to_string_lossy().into_owned();
        let store = store::open(folder).map_err(unusable)?;
        let bytes = gristmill_engine::store::files::len(path)?.unwrap_or(0);
        listing.files.push(Closed { store, name, path: named, bytes, in_folder: false });
        return Ok(listing);
    }
    let store = store::open(path).map_err(unusable)?;
    let mut names: Vec<(Arc<str>, u64)> = Vec::new();
    let faults = store.list(&mut |stat| {
        names.push((stat.name, stat.size));
        ControlFlow::Continue(())
    });
    names.sort_unstable_by(|(a, _), (b, _)| gristmill_engine::key::natural_cmp(a, b));
    let mut grown = Vec::new();
    if !is_local(path) {
        for folder in names.iter().filter_map(|(name, _)| name.strip_suffix(&format!("/{MANIFEST}"))) {
            let newest = newest(&path.join(folder)).map_err(unusable)?.into_owned();
            grown.extend((newest != path.join(folder)).then(|| (format!("{folder}/"), newest)));
        }
        names.retain(|(name, _)| !grown.iter().any(|(folder, _)| name.starts_with(folder)));
    }
    let packs: BTreeSet<&str> = names
        .iter()
        .map(|(name, _)| split(name))
        .filter(|(_, name)| row_files::is_rows(name))
        .map(|(folder, _)| folder)
        .collect();
    listing.packs = packs.iter().map(|folder| path.join(folder)).collect();
    let mut parts: BTreeMap<&str, Vec<(String, u64)>> = packs.iter().map(|folder| (*folder, Vec::new())).collect();
    for (name, bytes) in &names {
        let (folder, base) = split(name);
        if let Some(parts) = parts.get_mut(folder).filter(|_| row_files::is_part(base)) {
            parts.push((name.to_string(), *bytes));
        } else {
            let path = path.join(&**name).display().to_string();
            let (store, name, bytes) = (store.clone(), name.to_string(), *bytes);
            listing.files.push(Closed { store, name, path, bytes, in_folder: true });
        }
    }
    listing.parts = parts.into_values().collect();
    for (_, newest) in grown {
        let within = newest.strip_prefix(path).unwrap_or(&newest).display().to_string();
        let own = list(&newest)?;
        listing.files.extend(own.files);
        listing.packs.extend(own.packs);
        let full = |(name, bytes)| (format!("{within}/{name}"), bytes);
        listing.parts.extend(own.parts.into_iter().map(|parts| parts.into_iter().map(full).collect()));
        listing.unlisted.extend(own.unlisted);
    }
    for (kind, count) in faults.counts() {
        let latest = faults.latest(kind).unwrap_or("no longer known").to_owned();
        listing.unlisted.push(Unlisted { kind, count, latest });
    }
    Ok(listing)
}

/// The folder and the last part of a name.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
}

/// The one file at `path`.
pub(super) fn file(path: &Path) -> Found {
    match list(path) {
        Ok(Listing { files, .. }) if files.len() == 1 => match is_folder(path) {
            Ok(false) => files[0].open(),
            Ok(true) => Found::Other,
            Err(e) => Found::Fault(e),
        },
        Ok(_) => Found::Other,
        Err(e) => Found::Fault(e),
    }
}

/// Opens one file of a store; `path` is its name for people. Only `in_folder` may it be something else than data.
pub(super) fn open(store: &dyn Store, name: &str, path: String, in_folder: bool) -> Found {
    let opened = || -> Result<Option<Opened>> {
        let mut bytes = store.open(name)?;
        let size = bytes.len()?;
        let Some(format) = detect::detect_alone(name, &*bytes)? else { return Ok(None) };
        let key = name.rsplit('/').next().unwrap_or(name);
        let (source, demo): (Arc<dyn ChunkSource>, _) = match format {
            detect::Format::Demonstrations => {
                // What comes after its end is a fault of the file; what lies before is still read.
                let file = Arc::new(DemoFile::open_as(key, bytes.as_ref(), false)?);
                (file.clone(), Some(file))
            }
            detect::Format::PackedPgn => {
                // Longer than memory, often: its text is read where it was unpacked to.
                let (plain, fault) = unpacked(&bytes)?;
                let games = PgnFile::open(key, &plain)?.noting(fault);
                bytes = Arc::new(plain);
                (Arc::new(games), None)
            }
            detect::Format::KataGo => {
                // A folder has thousands of them: rows are read when they are wanted, and not kept.
                let mut stored = Vec::new();
                read_span(bytes.as_ref(), Span::WHOLE, MAX_BYTES as u64, &mut stored)?;
                let shard = Shard::heads(key, &stored, MAX_BYTES)?;
                let len = shard.rows() as u64 * shard.form().layout().size() as u64;
                bytes = Arc::new(Reread::new(format, key, bytes, (len, MAX_BYTES)));
                (Arc::new(shard), None)
            }
            other => (detect::open(other, key, bytes.as_ref())?, None),
        };
        let kind = kinds::of(source.describe().kind)?;
        Ok(Some(Opened::new(path.clone(), (format, kind), (source, demo), (bytes, size))))
    };
    match opened() {
        Ok(Some(file)) => Found::File(file),
        Ok(None) if in_folder => Found::Other,
        Ok(None) => {
            let expected = gristmill_engine::kinds::files();
            let detail = format!("no format known here; expected {expected}");
            Found::Fault(Error::new(Kind::UnknownFormat, detail).in_source(&path))
        }
        Err(e) => Found::Fault(e.in_source(&path)),
    }
}
