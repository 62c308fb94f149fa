//! A path -> its data files, opened one after another, in order of name; what cannot be opened is told too.
//! Decodes nothing by itself; the jobs that read data share it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::container::tar::{TarLimits, walk as walk_tar};
use gristmill_format::source::{Chunk, ChunkSource, Limits, ReadAt, Span, read_span};
use gristmill_format::{Error, Kind, Result, detect};

use crate::store::{DirStore, Store};

/// An opened data file.
pub(super) struct Opened {
    /// The path, as it was asked for or found.
    pub(super) path: String,
    /// Its length in bytes.
    pub(super) size: u64,
    pub(super) source: Arc<dyn ChunkSource>,
    bytes: Arc<dyn ReadAt>,
    limits: Limits,
}

impl Opened {
    /// Name of the member that holds chunk `i`, if it has one.
    pub(super) fn member(&self, i: usize) -> Option<&str> {
        self.source.locate(i)?.1
    }

    /// Reads the stored bytes of chunk `i`.
    ///
    /// Errors: `Truncated`, `TooLarge`, `Missing` or `Io`, with the place.
    pub(super) fn fetch(&self, i: usize, stored: &mut Vec<u8>) -> Result<()> {
        let len = self.source.len();
        let Some((span, member)) = self.source.locate(i) else {
            let detail = format!("there is no chunk {i}; there are {len}, counted from 0");
            return Err(Error::new(Kind::Missing, detail).in_source(&self.path));
        };
        read_span(self.bytes.as_ref(), span, self.limits.max_chunk_bytes as u64, stored).map_err(|e| {
            let e = e.in_chunk(i).in_source(&self.path);
            member.map(|name| e.clone().in_member(name)).unwrap_or(e)
        })
    }

    /// Decodes chunk `i` from its stored bytes.
    ///
    /// Errors: what the format finds, with the place.
    pub(super) fn decode(&self, i: usize, stored: &[u8], chunk: &mut Chunk) -> Result<()> {
        self.source.decode(i, stored, &self.limits, chunk).map_err(|e| e.in_chunk(i).in_source(&self.path))
    }

    /// The licences that a tar brings along: name and text.
    pub(super) fn licences(&self) -> Vec<(String, Vec<u8>)> {
        const MOST: u64 = 1 << 20;
        if self.source.describe().format != "lc0.tar" {
            return Vec::new();
        }
        let Ok(index) = walk_tar(self.bytes.as_ref(), &TarLimits::default()) else { return Vec::new() };
        let mut found = Vec::new();
        for entry in index.iter().filter(|entry| entry.base_name() == "LICENSE") {
            let mut text = Vec::new();
            let span = Span { offset: entry.offset, len: entry.len };
            if read_span(self.bytes.as_ref(), span, MOST, &mut text).is_ok() {
                found.push((entry.name.to_owned(), text));
            }
        }
        found
    }

    /// Most bytes of a decoded chunk.
    pub(super) fn max_chunk_bytes(&self) -> usize {
        self.limits.max_chunk_bytes
    }
}

/// What lies at a path.
pub(super) enum Found {
    /// A data file.
    File(Opened),
    /// A file in a directory that is of no format known here.
    Other,
    /// A file or folder that cannot be opened.
    Fault(Error),
    /// Files or folders that the walk of a directory could not read.
    Unlisted {
        /// A short stable word for the cause.
        kind: &'static str,
        /// How many.
        count: u64,
        /// The latest, in words.
        latest: String,
    },
}

/// Gives what lies at `path` (a file, or all files below a directory) to `each`, in order of name.
pub(super) fn walk(path: &Path, each: &mut dyn FnMut(Found) -> crate::Result<()>) -> crate::Result<()> {
    if !path.is_dir() {
        return each(file(path));
    }
    let store = match DirStore::new(path) {
        Ok(store) => store,
        Err(crate::Error::Path { kind, message, path }) => {
            return each(Found::Fault(Error::new(Kind::Io(kind), message).in_source(path.display().to_string())));
        }
        Err(e) => return Err(e),
    };
    let mut names = Vec::new();
    let faults = store.list(&mut |stat| {
        names.push(stat);
        ControlFlow::Continue(())
    });
    names.sort_unstable_by(|a, b| crate::key::natural_cmp(&a.name, &b.name));
    for stat in names {
        each(open(&store, &stat.name, path.join(&*stat.name).display().to_string(), true))?;
    }
    for (kind, count) in faults.counts() {
        let named = faults.messages().filter(|m| m.contains(kind)).last();
        let latest = named.or(faults.messages().last()).unwrap_or_default().to_owned();
        each(Found::Unlisted { kind, count, latest })?;
    }
    Ok(())
}

/// The one file at `path`.
pub(super) fn file(path: &Path) -> Found {
    let named = path.display().to_string();
    let refused = |e: std::io::Error| Found::Fault(Error::from(e).in_source(&named));
    if let Err(e) = std::fs::metadata(path) {
        return refused(e);
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(name) = path.file_name() else {
        return refused(std::io::ErrorKind::InvalidInput.into());
    };
    match DirStore::new(folder) {
        Ok(store) => open(&store, &name.to_string_lossy(), named, false),
        Err(e) => Found::Fault(Error::new(Kind::Io(std::io::ErrorKind::Other), e.to_string()).in_source(&named)),
    }
}

/// Opens one file of a store; `path` is its name for people. Only `in_folder` may it be something else than data.
pub(super) fn open(store: &DirStore, name: &str, path: String, in_folder: bool) -> Found {
    let opened = || -> Result<Option<Opened>> {
        let bytes = store.open(name)?;
        let mut head = [0; detect::HEAD];
        let n = bytes.read_at(0, &mut head)?;
        let size = bytes.len()?;
        let Some(format) = detect::detect_alone(name, &head[..n])? else { return Ok(None) };
        let key = name.rsplit('/').next().unwrap_or(name);
        let source = detect::open(format, key, bytes.as_ref())?;
        Ok(Some(Opened { path: path.clone(), size, source, bytes, limits: format.limits() }))
    };
    match opened() {
        Ok(Some(file)) => Found::File(file),
        Ok(None) if in_folder => Found::Other,
        Ok(None) => {
            let detail = "no format known here; expected a game (.gz, plain records, or .jsonl.gz), a .tar of games, \
                          or demonstrations (.tar.zst, .tgz, .pkl.gz, .pkl, .npz)";
            Found::Fault(Error::new(Kind::UnknownFormat, detail).in_source(&path))
        }
        Err(e) => Found::Fault(e.in_source(&path)),
    }
}
