//! Files of demonstrations -> their trajectories, counted and within reach one at a time. One file is kept as it was read; of
//! several each is read alone and laid on the disk, so that memory holds one file, then one trajectory; those of a pack stay there.
//! A trajectory without an end in one shard continues in the next.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::demos::{Packed, open_demos};
use gristmill_engine::error::{Error, Result};
use gristmill_format::demo::budget::MAX_BYTES;
use gristmill_format::demo::form::DemoFile;
use gristmill_format::demo::form::ReadOptions;
use gristmill_format::demo::pack::PACKED;
use gristmill_format::demo::shard::ShardMeta;
use gristmill_format::demo::trajectory::{End, Trajectories};
use gristmill_format::demo::value::Extra;
use gristmill_format::layout::{DType, Layout, Scalar};
use gristmill_format::source::ChunkSource;
use gristmill_format::{Error as FormatError, Kind};

use super::spool::{Place, Spool};

/// What is read, and how.
pub(super) struct Reading<'a> {
    pub(super) files: &'a [PathBuf],
    pub(super) options: &'a ReadOptions,
    /// The forms that the files may have, by their benchmark.
    pub(super) forms: Option<&'static [&'static str]>,
    /// Stop after this many trajectories that ended.
    pub(super) enough: Option<usize>,
    /// Whose disk several files are laid on; nowhere, where trajectories are only counted.
    pub(super) scratch: Option<&'a Path>,
    pub(super) stop: &'a AtomicBool,
}

/// A trajectory: what it is called, and how long it is.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Name of the file in which it begins; empty where an older pack does not say it.
    pub(super) key: String,
    /// Which one of that file it is; without a name a hash of it.
    pub(super) index: u64,
    /// The number of its first frame among all.
    pub(super) first: usize,
    pub(super) frames: usize,
    pub(super) end: End,
    /// Whether its last `dones` is true.
    pub(super) done: bool,
    extras: Vec<Place>,
}

/// What was found in some files.
pub(super) struct Gathered {
    /// Short name of the form.
    pub(super) form: &'static str,
    pub(super) meta: Option<ShardMeta>,
    /// What a MAGICAL file says of its environment.
    pub(super) env_name: Option<String>,
    pub(super) layout: Arc<Layout>,
    pub(super) parts: Vec<Part>,
    /// Least and greatest action.
    pub(super) acts: Option<(f64, f64)>,
    kept: Kept,
}

enum Kept {
    Whole(Box<DemoFile>),
    Spooled(Box<Spool>),
    Packed(Box<Packed>),
    Counted,
}

/// One trajectory: records back to back, and what travels beside each.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) records: Vec<u8>,
    pub(super) extras: Vec<Vec<(String, Extra)>>,
}

impl Gathered {
    /// Reads all of it; `progress` gets the number of files that are done.
    ///
    /// Errors: `Format` with the file for what cannot be read, and for files that do not belong together; `Path`; `Stopped`.
    pub(super) fn read(reading: &Reading<'_>, progress: &mut dyn FnMut(u64)) -> Result<Gathered> {
        let mut found: Option<Gathered> = None;
        for (i, path) in reading.files.iter().enumerate() {
            if reading.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            let place = |e: FormatError| Error::from(e.in_source(path.display().to_string()));
            let file = open_demos(path, reading.options)?;
            check_form(&file, reading.forms).map_err(place)?;
            let next = match &mut found {
                None => found.insert(Gathered::begin(&file, reading).map_err(|e| located(e, path))?),
                Some(found) => {
                    found.fits(&file).map_err(place)?;
                    found
                }
            };
            next.take(&file)?;
            if reading.files.len() == 1 && reading.scratch.is_some() {
                next.kept = Kept::Whole(Box::new(file));
            }
            progress(i as u64 + 1);
            if reading.enough.is_some_and(|enough| next.ended() >= enough) {
                break;
            }
        }
        let nothing = || FormatError::new(Kind::Empty, "no files of demonstrations").into();
        found.ok_or_else(nothing)
    }

    /// The trajectories of the pack in `folder`, which stay there.
    ///
    /// Errors: as [`Packed::open`]; `Empty` for a pack of none; those of its database.
    pub(super) fn of_pack(folder: &Path) -> Result<Gathered> {
        let pack = Packed::open(folder, MAX_BYTES)?;
        let Some(layout) = pack.layout().cloned() else {
            let e = FormatError::new(Kind::Empty, "there is no trajectory in it");
            return Err(e.in_source(folder.display().to_string()).into());
        };
        let last = |name: &str| -> gristmill_format::Result<Vec<bool>> {
            let Some(field) = layout.field(name) else { return Ok(vec![false; pack.ends().len()]) };
            let mut bytes = vec![0; pack.ends().len() * field.bytes()];
            pack.columns(pack.ends().iter().map(|(end, _)| end - 1), &mut [(name, &mut bytes)])?;
            Ok(bytes.chunks_exact(field.bytes().max(1)).map(|one| one.iter().any(|b| *b != 0)).collect())
        };
        let (done, keys) = (last("dones")?, pack.keys()?);
        let mut parts: Vec<Part> = Vec::with_capacity(done.len());
        for (((end, how), done), (key, index)) in pack.ends().iter().zip(done).zip(keys) {
            let first = parts.last().map_or(0, |part| part.first + part.frames);
            parts.push(Part { key, index, first, frames: end - first, end: *how, done, extras: Vec::new() });
        }
        let env_name = pack.about().iter().find(|(name, _)| name == "env_name").map(|(_, value)| value.clone());
        let acts = if pack.meta().is_none() { packed_range(&pack, &parts)? } else { None };
        let (form, meta) = (PACKED, pack.meta().cloned());
        Ok(Gathered { form, meta, env_name, layout, parts, acts, kept: Kept::Packed(Box::new(pack)) })
    }

    fn begin(file: &DemoFile, reading: &Reading<'_>) -> Result<Gathered> {
        let all = file.trajectories();
        let Some(layout) = all.layout().filter(|_| all.frames() > 0) else {
            return Err(FormatError::new(Kind::Empty, "there is no frame in it").into());
        };
        let several = reading.files.len() > 1;
        let kept = match reading.scratch.filter(|_| several) {
            Some(folder) => Kept::Spooled(Box::new(Spool::new(folder, layout.size())?)),
            None => Kept::Counted,
        };
        Ok(Gathered {
            form: file.describe().format,
            meta: file.meta().cloned(),
            env_name: env_name(file),
            layout: layout.clone(),
            parts: Vec::new(),
            acts: None,
            kept,
        })
    }

    /// Whether a further file belongs to those before.
    fn fits(&self, file: &DemoFile) -> gristmill_format::Result<()> {
        let differ = |what: &str, one: &str, two: &str| {
            let detail = format!("{what} `{two}` after files of `{one}`; convert them one by one");
            Err(FormatError::new(Kind::OutOfRange, detail))
        };
        if file.describe().format != self.form {
            return differ("it is of the form", self.form, file.describe().format);
        }
        match (&self.env_name, env_name(file)) {
            (Some(one), Some(two)) if *one != two => return differ("it is of the environment", one, &two),
            _ => {}
        }
        if let (Some(own), Some(other)) = (&self.meta, file.meta()) {
            own.mixes_with(other)?;
        }
        match file.trajectories().layout() {
            Some(layout) if **layout != *self.layout => {
                let (one, two) = (self.layout.to_descr(), layout.to_descr());
                Err(FormatError::new(Kind::WrongSize, format!("records of {two} after records of {one}")))
            }
            _ => Ok(()),
        }
    }

    fn take(&mut self, file: &DemoFile) -> Result<()> {
        let (all, key) = (file.trajectories(), &file.describe().key);
        let (shards, mut records) = (self.form == "demo.shard", Vec::new());
        self.acts = range(all, self.acts);
        for i in 0..all.ends().len() {
            let Some(span) = all.span(i) else { continue };
            let size = self.layout.size();
            let mut places = Vec::new();
            if let Kept::Spooled(spool) = &mut self.kept {
                records.clear();
                records.resize(span.len() * size, 0);
                all.copy_records(span.clone(), &mut records)?;
                spool.add(&records)?;
                let first = self.parts.last().map_or(0, |part| part.first + part.frames);
                let extras = beside(all, span.clone());
                let extras = extras.map(|(t, name, extra)| ((first + t - span.start) as u64, name, extra));
                places.push(spool.add_extras(extras)?);
            }
            let (last, mut end) = (span.end - 1, all.ends()[i].1);
            let done = flag(all, last, "dones");
            if flag(all, last, "truncated") {
                end = End::Truncated;
            }
            match self.parts.last_mut().filter(|last| i == 0 && shards && !last.done && last.end == End::Truncated) {
                Some(open) => {
                    open.frames += span.len();
                    (open.end, open.done) = (end, done);
                    open.extras.append(&mut places);
                }
                None => {
                    let first = self.parts.last().map_or(0, |part| part.first + part.frames);
                    let (key, index) = (key.clone(), i as u64);
                    self.parts.push(Part { key, index, first, frames: span.len(), end, done, extras: places });
                }
            }
        }
        Ok(())
    }

    /// Trajectories whose end `dones` marks.
    pub(super) fn ended(&self) -> usize {
        self.parts.iter().filter(|part| part.done).count()
    }

    /// Reads trajectory `i`. None, where they were only counted.
    ///
    /// Errors: `Path`.
    pub(super) fn steps(&mut self, i: usize, to: &mut Steps) -> Result<()> {
        let part = &self.parts[i];
        let (range, size) = (part.first..part.first + part.frames, self.layout.size());
        to.records.clear();
        to.extras.clear();
        to.extras.resize(part.frames, Vec::new());
        match &mut self.kept {
            Kept::Counted => {}
            Kept::Whole(file) => {
                let all = file.trajectories();
                to.records.resize(range.len() * size, 0);
                all.copy_records(range.clone(), &mut to.records)?;
                for (t, name, extra) in beside(all, range.clone()) {
                    to.extras[t - range.start].push((name.to_owned(), extra.clone()));
                }
            }
            Kept::Packed(pack) => {
                pack.trajectory(range.clone(), &mut to.records)?;
                for (name, values) in pack.extras(range)? {
                    for (t, extra) in values {
                        to.extras[t].push((name.clone(), extra));
                    }
                }
            }
            Kept::Spooled(spool) => {
                spool.read(part.first, part.frames, &mut to.records)?;
                for place in &part.extras {
                    for (t, name, extra) in spool.read_extras(*place)? {
                        to.extras[t as usize - range.start].push((name, extra));
                    }
                }
            }
        }
        Ok(())
    }
}

fn located(e: Error, path: &Path) -> Error {
    match e {
        Error::Format(e) => e.in_source(path.display().to_string()).into(),
        other => other,
    }
}

fn env_name(file: &DemoFile) -> Option<String> {
    file.about().iter().find(|(name, _)| *name == "env_name").map(|(_, value)| value.clone())
}

fn check_form(file: &DemoFile, forms: Option<&'static [&'static str]>) -> gristmill_format::Result<()> {
    let form = file.describe().format;
    match forms {
        Some(forms) if !forms.contains(&form) => {
            let detail = format!("a file of {form}; the benchmark that was named has {}", forms.join(", "));
            Err(FormatError::new(Kind::Unsupported, detail))
        }
        _ => Ok(()),
    }
}

/// What travels beside some frames, by field and in order of frame.
fn beside(all: &Trajectories, frames: std::ops::Range<usize>) -> impl Iterator<Item = (usize, &str, &Extra)> {
    all.extras().iter().flat_map(move |(name, extras)| {
        let start = extras.partition_point(|(t, _)| *t < frames.start);
        let end = extras.partition_point(|(t, _)| *t < frames.end);
        extras[start..end].iter().map(move |(t, extra)| (*t, name.as_str(), extra))
    })
}

/// Whether a field is there and true in a frame.
fn flag(all: &Trajectories, frame: usize, name: &str) -> bool {
    all.field(frame, name).is_some_and(|bytes| bytes.iter().any(|b| *b != 0))
}

/// Least and greatest action, those of `before` among them.
fn range(all: &Trajectories, before: Option<(f64, f64)>) -> Option<(f64, f64)> {
    let field = all.layout()?.field("acts")?;
    let DType::Scalar(scalar, _) = field.dtype else { return before };
    (0..all.frames()).fold(before, |found, frame| widened(found, scalar, all.field(frame, "acts").unwrap_or_default()))
}

/// Least and greatest action of a pack.
fn packed_range(pack: &Packed, parts: &[Part]) -> gristmill_format::Result<Option<(f64, f64)>> {
    let Some(field) = pack.layout().and_then(|layout| layout.field("acts")) else { return Ok(None) };
    let DType::Scalar(scalar, _) = field.dtype else { return Ok(None) };
    let (mut bytes, mut found) = (Vec::new(), None);
    for part in parts {
        bytes.resize(part.frames * field.bytes(), 0);
        pack.columns(part.first..part.first + part.frames, &mut [("acts", &mut bytes)])?;
        found = widened(found, scalar, &bytes);
    }
    Ok(found)
}

/// A range with the numbers that lie back to back in `bytes`.
fn widened(range: Option<(f64, f64)>, scalar: Scalar, bytes: &[u8]) -> Option<(f64, f64)> {
    let numbers = bytes.chunks_exact(scalar.size().max(1)).filter_map(|one| scalar.number(one));
    numbers.fold(range, |found, n| Some(found.map_or((n, n), |(low, high)| (low.min(n), high.max(n)))))
}
