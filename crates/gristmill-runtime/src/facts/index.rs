//! The side index of one data directory: one append-only file, replayed when it is opened.
//! Never fails its user: what cannot be read is not known, what cannot be written is forgotten, and both are said.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gristmill_format::container::tar::TarIndex;
use gristmill_format::demo::shard::ShardIndex;
use gristmill_format::head::Head;
use xxhash_rust::xxh3::xxh3_128;

use super::record::{self, About, Fact, HEAD, MAGIC};
use crate::store::FileStat;
use crate::{Error, Result};

/// Facts about single chunks that are kept in memory before they are written.
const BUFFERED: usize = 4096;

/// A larger file is replaced by an empty one rather than read.
const MAX_FILE: u64 = 256 << 20;

/// Says that a chunk's frames are not known.
const UNKNOWN: u32 = u32::MAX;

/// Maximum number of chunks of one source whose frames are kept.
const MAX_CHUNKS: usize = 1 << 24;

/// What is known about the files of one directory. Shared by all threads; other processes may use the same file.
#[derive(Debug)]
pub struct Facts {
    path: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: Option<File>,
    known: HashMap<u128, Known>,
    /// What was learnt about single chunks and is not yet written.
    fresh: Vec<(FileStat, u32, Learnt)>,
    damaged: u64,
    fault: Option<String>,
}

/// One fact about one chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Learnt {
    Frames(u32),
    Weight { weigher: u64, weight: f32 },
    Head(Head),
}

/// What is known about one file, and for which state of it.
#[derive(Debug, Clone, Default)]
struct Known {
    size: u64,
    mtime_ns: i64,
    inode: u64,
    /// Where in the side index the tar's record lies: offset and length.
    tar: Option<(u64, usize)>,
    /// The same of the shard's record.
    shard: Option<(u64, usize)>,
    frames: Vec<u32>,
    /// Per weigher: the weight of each chunk, NaN where it is not known.
    weights: Vec<(u64, Vec<f32>)>,
    heads: HashMap<u32, Head>,
}

impl Known {
    fn of(about: About<'_>) -> Self {
        Known { size: about.size, mtime_ns: about.mtime_ns, inode: about.inode, ..Known::default() }
    }

    fn fits(&self, about: About<'_>) -> bool {
        (self.size, self.mtime_ns, self.inode) == (about.size, about.mtime_ns, about.inode)
    }

    /// Takes the facts of a record in.
    fn take(&mut self, fact: Fact) {
        match fact {
            Fact::Tar(_) | Fact::Shard(_) => {}
            Fact::Frames(frames) => frames.iter().for_each(|(chunk, n)| _ = self.learn(*chunk, Learnt::Frames(*n))),
            Fact::Heads(heads) => heads.iter().for_each(|(chunk, head)| _ = self.learn(*chunk, Learnt::Head(*head))),
            Fact::Weights(weigher, weights) => weights.iter().for_each(|(chunk, weight)| {
                self.learn(*chunk, Learnt::Weight { weigher, weight: *weight });
            }),
        }
    }

    /// Takes a fact in; `false` when it was known already.
    fn learn(&mut self, chunk: u32, fact: Learnt) -> bool {
        match fact {
            Learnt::Frames(frames) => put(&mut self.frames, chunk, frames, UNKNOWN),
            Learnt::Weight { weigher, weight } => {
                let found = self.weights.iter().position(|(id, _)| *id == weigher);
                let at = found.unwrap_or_else(|| {
                    self.weights.push((weigher, Vec::new()));
                    self.weights.len() - 1
                });
                put(&mut self.weights[at].1, chunk, weight, f32::NAN)
            }
            Learnt::Head(head) => self.heads.insert(chunk, head) != Some(head),
        }
    }
}

/// Sets an entry of a list that grows with `unset`; `false` when it had that value.
fn put<T: Copy + PartialEq>(list: &mut Vec<T>, chunk: u32, value: T, unset: T) -> bool {
    let chunk = chunk as usize;
    if chunk >= MAX_CHUNKS || list.get(chunk) == Some(&value) {
        return false;
    }
    if list.len() <= chunk {
        list.resize(chunk + 1, unset);
    }
    list[chunk] = value;
    true
}

impl Facts {
    /// The folder for side indexes: `$XDG_CACHE_HOME/gristmill`, else `~/.cache/gristmill`.
    pub fn default_folder() -> Option<PathBuf> {
        let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let cache = set("XDG_CACHE_HOME").filter(|p| p.is_absolute()).or_else(|| Some(set("HOME")?.join(".cache")))?;
        Some(cache.join("gristmill"))
    }

    /// The side index of the directory `root`, kept in `folder`, which is made if need be.
    ///
    /// Errors: `Path` where the folder cannot be made or the file not opened; running without facts is always right.
    pub fn open(folder: &Path, root: &Path) -> Result<Facts> {
        let root = fs::canonicalize(root).map_err(|e| Error::path(root, &e))?;
        let name = xxh3_128(root.as_os_str().as_encoded_bytes());
        let path = folder.join(format!("{name:032x}.facts"));
        let place = |e: io::Error| Error::path(&path, &e);
        fs::create_dir_all(folder).map_err(place)?;
        let file = OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(place)?;
        let meta = file.metadata().map_err(place)?;
        if !meta.is_file() {
            return Err(place(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        let mut bytes = Vec::new();
        match meta.len() > MAX_FILE {
            true => file.set_len(0).map_err(place)?,
            false => bytes.reserve_exact(meta.len() as usize),
        }
        (&file).take(MAX_FILE).read_to_end(&mut bytes).map_err(place)?;
        let (known, damaged) = replay(&bytes);
        let inner = Inner { file: Some(file), known, fresh: Vec::new(), damaged, fault: None };
        Ok(Facts { path, inner: Mutex::new(inner) })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The members of a tar, if it is the same as when they were noted.
    pub fn tar(&self, file: &FileStat) -> Option<TarIndex> {
        match self.stored(file, |known| known.tar)? {
            Fact::Tar(index) => Some(index),
            _ => None,
        }
    }

    /// Where the frames of a shard lie, if it is the same as when that was noted.
    pub fn shard(&self, file: &FileStat) -> Option<ShardIndex> {
        match self.stored(file, |known| known.shard)? {
            Fact::Shard(index) => Some(index),
            _ => None,
        }
    }

    /// A fact that is kept in the file alone.
    fn stored(&self, file: &FileStat, place: impl FnOnce(&Known) -> Option<(u64, usize)>) -> Option<Fact> {
        let inner = self.lock();
        let about = About::of(file);
        let (offset, len) = place(inner.known.get(&id(about.name)).filter(|k| k.fits(about))?)?;
        let mut bytes = vec![0; len];
        inner.file.as_ref()?.read_exact_at(&mut bytes, offset).ok()?;
        let (found, fact) = record::read(record::payload(&bytes)?)?;
        (found == about).then_some(fact)
    }

    /// Notes the members of a tar. One with faults is not noted: it is read again each time.
    pub fn record_tar(&self, file: &FileStat, index: &TarIndex) {
        if index.faults().is_empty() {
            self.store(file, &Fact::Tar(index.clone()), |known, at| known.tar = Some(at));
        }
    }

    /// Notes where the frames of a shard lie.
    pub fn record_shard(&self, file: &FileStat, index: &ShardIndex) {
        self.store(file, &Fact::Shard(index.clone()), |known, at| known.shard = Some(at));
    }

    fn store(&self, file: &FileStat, fact: &Fact, note: impl FnOnce(&mut Known, (u64, usize))) {
        let about = About::of(file);
        let mut bytes = Vec::new();
        if !record::write(about, fact, &mut bytes) {
            return;
        }
        let mut inner = self.lock();
        if let Some(end) = inner.append(&self.path, &bytes) {
            note(inner.about(about), (end - bytes.len() as u64, bytes.len()));
        }
    }

    /// How many frames a chunk has, if the file is the same as when that was noted.
    pub fn frames(&self, file: &FileStat, chunk: usize) -> Option<u32> {
        self.known(file, |known| known.frames.get(chunk).copied().filter(|&n| n != UNKNOWN))
    }

    /// What a chunk is held against when its head alone is inflated, if the file is the same as when that was noted.
    pub fn head(&self, file: &FileStat, chunk: usize) -> Option<Head> {
        let chunk = u32::try_from(chunk).ok()?;
        self.known(file, |known| known.heads.get(&chunk).copied())
    }

    /// What a chunk weighs by the weigher of this id, if the file is the same as when that was noted.
    pub fn weight(&self, file: &FileStat, weigher: u64, chunk: usize) -> Option<f32> {
        self.known(file, |known| {
            let (_, weights) = known.weights.iter().find(|(id, _)| *id == weigher)?;
            weights.get(chunk).copied().filter(|weight| !weight.is_nan())
        })
    }

    fn known<T>(&self, file: &FileStat, read: impl FnOnce(&Known) -> Option<T>) -> Option<T> {
        let about = About::of(file);
        let inner = self.lock();
        inner.known.get(&id(about.name)).filter(|k| k.fits(about)).and_then(read)
    }

    /// Notes how many frames a chunk has; written in bundles, and when the index is dropped.
    pub fn record_frames(&self, file: &FileStat, chunk: usize, frames: usize) {
        if let Ok(frames) = u32::try_from(frames) {
            self.record(file, chunk, Learnt::Frames(frames));
        }
    }

    /// Notes what a chunk weighs by the weigher of this id; written in bundles, and when the index is dropped.
    pub fn record_weight(&self, file: &FileStat, weigher: u64, chunk: usize, weight: f32) {
        self.record(file, chunk, Learnt::Weight { weigher, weight });
    }

    /// Notes what a chunk is held against from now on; written in bundles, and when the index is dropped.
    pub fn record_head(&self, file: &FileStat, chunk: usize, head: Head) {
        self.record(file, chunk, Learnt::Head(head));
    }

    fn record(&self, file: &FileStat, chunk: usize, fact: Learnt) {
        let Ok(chunk) = u32::try_from(chunk) else { return };
        let mut inner = self.lock();
        let new = inner.about(About::of(file)).learn(chunk, fact);
        if new && inner.file.is_some() {
            inner.fresh.push((file.clone(), chunk, fact));
        }
        if inner.fresh.len() >= BUFFERED {
            inner.flush(&self.path);
        }
    }

    /// Writes what is not written yet.
    pub fn flush(&self) {
        self.lock().flush(&self.path);
    }

    /// Stretches of the file that were damaged and left out, when it was opened.
    pub fn damaged(&self) -> u64 {
        self.lock().damaged
    }

    /// Why nothing more is written, if so.
    pub fn fault(&self) -> Option<String> {
        self.lock().fault.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Facts {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Inner {
    /// What is known about this very state of a file; facts about another state of it are dropped.
    fn about(&mut self, about: About<'_>) -> &mut Known {
        about_in(&mut self.known, about)
    }

    fn flush(&mut self, path: &Path) {
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        let mut bytes = Vec::new();
        for same in fresh.chunk_by(|a, b| a.0 == b.0) {
            facts_of(same).iter().for_each(|fact| _ = record::write(About::of(&same[0].0), fact, &mut bytes));
        }
        if !bytes.is_empty() {
            self.append(path, &bytes);
        }
    }

    /// Appends whole records by one write, so that those of several processes do not mix; returns where they end.
    /// After a failure nothing is written any more.
    fn append(&mut self, path: &Path, bytes: &[u8]) -> Option<u64> {
        let file = self.file.as_mut()?;
        let written = file.write(bytes).and_then(|n| {
            if n == bytes.len() { io::Seek::stream_position(file) } else { Err(io::ErrorKind::WriteZero.into()) }
        });
        match written {
            Ok(end) => Some(end),
            Err(e) => {
                self.fault = Some(format!("{}: {e}; facts are no longer kept", path.display()));
                self.file = None;
                self.fresh = Vec::new();
                None
            }
        }
    }
}

fn about_in<'k>(known: &'k mut HashMap<u128, Known>, about: About<'_>) -> &'k mut Known {
    let known = known.entry(id(about.name)).or_insert_with(|| Known::of(about));
    if !known.fits(about) {
        *known = Known::of(about);
    }
    known
}

/// What was learnt about the chunks of one file, as facts to write.
fn facts_of(learnt: &[(FileStat, u32, Learnt)]) -> Vec<Fact> {
    let (mut frames, mut weights, mut heads) = (Vec::new(), Vec::<(u64, Vec<(u32, f32)>)>::new(), Vec::new());
    for &(_, chunk, fact) in learnt {
        match fact {
            Learnt::Frames(n) => frames.push((chunk, n)),
            Learnt::Head(head) => heads.push((chunk, head)),
            Learnt::Weight { weigher, weight } => match weights.iter_mut().find(|(id, _)| *id == weigher) {
                Some((_, list)) => list.push((chunk, weight)),
                None => weights.push((weigher, vec![(chunk, weight)])),
            },
        }
    }
    let frames = (!frames.is_empty()).then_some(Fact::Frames(frames));
    let heads = (!heads.is_empty()).then_some(Fact::Heads(heads));
    let weights = weights.into_iter().map(|(id, list)| Fact::Weights(id, list));
    frames.into_iter().chain(weights).chain(heads).collect()
}

fn id(name: &str) -> u128 {
    xxh3_128(name.as_bytes())
}

/// Reads all records; counts the stretches between them that are none.
fn replay(bytes: &[u8]) -> (HashMap<u128, Known>, u64) {
    let mut known = HashMap::new();
    let (mut at, mut damaged, mut lost) = (0, 0, false);
    while at < bytes.len() {
        let Some(payload) = record::payload(&bytes[at..]) else {
            damaged += u64::from(!lost);
            lost = true;
            at += 1;
            at += bytes[at..].windows(4).position(|w| w == MAGIC).unwrap_or(bytes.len() - at);
            continue;
        };
        lost = false;
        let len = HEAD + payload.len();
        let place = Some((at as u64, len));
        match record::about(payload) {
            // What a container has is read when it is opened.
            Some((about, record::TAR)) => about_in(&mut known, about).tar = place,
            Some((about, record::SHARD)) => about_in(&mut known, about).shard = place,
            _ => _ = record::read(payload).map(|(about, fact)| about_in(&mut known, about).take(fact)),
        }
        at += len;
    }
    (known, damaged)
}

#[cfg(test)]
mod tests;
