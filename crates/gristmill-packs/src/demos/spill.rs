//! Trajectories, block by block -> a folder of columns, one plain `.npy` file for each field; published whole or not at all.
//! Holds a buffer for each file and the ends of trajectories, however many frames there are.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::demo::shard::ShardMeta;
use gristmill_format::demo::trajectory::{End, Trajectories};
use gristmill_format::layout::{DType, Field, Layout, Order, Scalar};
use gristmill_format::{Error as FormatError, Kind};
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::store::publish::{Found, Staging, is_interrupted};
use xxhash_rust::xxh3::xxh3_64;

use super::columns::{Columns, PLACE, kind};
use super::data::Demonstrations;
use super::manifest::{ENDS, FILE, METADATA, Manifest, Stored};

/// Name of the job in the folder.
const JOB: &str = "columns";

/// Bytes held for each file.
const BUFFER: usize = 1 << 18;

/// What there is of a folder of columns.
#[derive(Debug)]
pub enum Spilled {
    /// It is there, of the same files.
    There(Box<Demonstrations>),
    /// It is to be written.
    Fresh(Box<Spill>),
}

/// Columns that are being written.
#[derive(Debug)]
pub struct Spill {
    staging: Staging,
    folder: PathBuf,
    key: String,
    source: String,
    max: usize,
    manifest: Manifest,
    layout: Option<Arc<Layout>>,
    columns: Vec<Column>,
    extras: BTreeMap<String, Beside>,
    ends: Vec<(usize, End)>,
    meta: Option<ShardMeta>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Column {
    to: BufWriter<File>,
    path: PathBuf,
}

/// What has no fixed size: all bytes, and where those of each frame are.
#[derive(Debug)]
struct Beside {
    bytes: BufWriter<File>,
    places: BufWriter<File>,
    path: PathBuf,
    len: u64,
    rows: u64,
}

/// How far columns were written.
#[derive(Debug)]
pub(super) struct Mark {
    begun: bool,
    frames: usize,
    ends: usize,
    extras: BTreeMap<String, (u64, u64)>,
    files: usize,
}

impl Spill {
    /// The columns of the files `sources`, called `source` in errors and read as `how` says, in a folder of their own below
    /// `folder`: those that are there, where the files are as they were, else fresh ones. Once opened, not more than `max` bytes
    /// of one field are held in memory at once.
    ///
    /// Errors: `Path`, also (`ResourceBusy`) where another process writes the same columns now; `Format` for a damaged folder.
    pub fn open(folder: &Path, source: &Path, sources: &[PathBuf], how: &str, max: usize) -> Result<Spilled> {
        let stored = sources.iter().map(|path| Stored::of(path)).collect::<Result<Vec<_>>>()?;
        let manifest = Manifest::new(stored, how.to_owned());
        let canonical = std::fs::canonicalize(source).unwrap_or_else(|_| source.to_owned());
        let place = format!("{}\0{how}", canonical.display());
        let folder = folder.join(format!("{}-{:016x}", file_name(&key_of(source)), xxh3_64(place.as_bytes())));
        let key = key_of(sources.first().map_or(source, PathBuf::as_path));
        let source = source.display().to_string();
        let there = |source: &str| -> Result<Option<Spilled>> {
            let Some(there) = Manifest::read(&folder).filter(|there| there.is_of(&manifest)) else { return Ok(None) };
            let columns = Columns::open(&folder, there, max)?;
            let found = Demonstrations::columns(key.clone(), source.to_owned(), columns, max);
            Ok(Some(Spilled::There(Box::new(found))))
        };
        // Any number of processes may read what is whole.
        if !is_interrupted(&folder, JOB)
            && let Some(found) = there(&source)?
        {
            return Ok(found);
        }
        let (mut staging, found) = Staging::open(&folder, JOB, JOB)?;
        if let Some(found) = there(&source)? {
            staging.discard()?;
            return Ok(found);
        }
        if found == Found::Unfinished {
            staging.clear(JOB)?;
        }
        Ok(Spilled::Fresh(Box::new(Spill {
            staging,
            folder,
            key,
            source,
            max,
            manifest,
            layout: None,
            columns: Vec::new(),
            extras: BTreeMap::new(),
            ends: Vec::new(),
            meta: None,
            scratch: Vec::new(),
        })))
    }

    /// How many trajectories have ended.
    pub fn trajectories(&self) -> usize {
        self.ends.len()
    }

    /// Adds all trajectories of `demos`, each of them whole.
    ///
    /// Errors: what reading them gives; as [`Spill::add`].
    pub fn add_all(&mut self, demos: &Demonstrations) -> Result<()> {
        self.note(demos.format(), demos.meta(), &demos.about())?;
        let first = self.manifest.frames;
        self.close();
        demos.blocks(&mut |block| self.rows(block))?;
        self.ends.extend(demos.ends().iter().map(|(end, how)| (first + end, *how)));
        Ok(())
    }

    /// Notes what is known about the frames that follow.
    ///
    /// Errors: `Format` of kind `OutOfRange` for shards whose metadata does not mix.
    pub fn note(&mut self, format: &str, meta: Option<&ShardMeta>, about: &[(String, String)]) -> Result<()> {
        if let (Some(own), Some(other)) = (&self.meta, meta) {
            own.mixes_with(other)?;
        }
        if self.manifest.format.is_empty() {
            format.clone_into(&mut self.manifest.format);
            about.clone_into(&mut self.manifest.about);
        }
        if self.meta.is_none() {
            self.meta = meta.cloned();
        }
        Ok(())
    }

    /// Adds a block that begins where the one before ended: trajectories end where it says.
    ///
    /// Errors: `Format` of kind `WrongSize` for frames of another layout; `Path`.
    pub fn add(&mut self, block: &Trajectories) -> Result<()> {
        let first = self.manifest.frames;
        self.rows(block)?;
        self.ends.extend(block.ends().iter().map(|(end, how)| (first + end, *how)));
        Ok(())
    }

    /// Ends the trajectory after the last frame, if none did.
    pub fn close(&mut self) {
        if self.manifest.frames > self.ends.last().map_or(0, |(end, _)| *end) {
            self.ends.push((self.manifest.frames, End::Truncated));
        }
    }

    /// Notes that the frames which follow are of this file.
    pub(super) fn begin_file(&mut self, name: String) {
        let goes_on = self.manifest.frames > self.ends.last().map_or(0, |(end, _)| *end);
        self.manifest.origins.begin(name, self.ends.len() + usize::from(goes_on), goes_on);
    }

    /// Where it stands now.
    pub(super) fn mark(&self) -> Mark {
        let extras = self.extras.iter().map(|(name, beside)| (name.clone(), (beside.len, beside.rows))).collect();
        let (frames, files) = (self.manifest.frames, self.manifest.origins.len());
        Mark { begun: self.layout.is_some(), frames, ends: self.ends.len(), extras, files }
    }

    /// Takes back what was added since.
    ///
    /// Errors: `Path`.
    pub(super) fn back_to(&mut self, mark: Mark) -> Result<()> {
        self.manifest.frames = mark.frames;
        self.ends.truncate(mark.ends);
        self.manifest.origins.truncate(mark.files);
        let Some(layout) = self.layout.clone().filter(|_| mark.begun) else {
            (self.layout, self.columns, self.extras) = (None, Vec::new(), BTreeMap::new());
            (self.manifest.columns, self.manifest.extras) = (Vec::new(), Vec::new());
            return self.staging.clear(JOB);
        };
        for (field, column) in layout.fields().iter().zip(&mut self.columns) {
            let head = Header::write(&field.dtype, &shape_of(field, 0), Spelling::NumPy)?.len();
            cut(&mut column.to, &column.path, (head + mark.frames * field.bytes()) as u64)?;
        }
        let head = Header::write(&INT64, &[0, PLACE as u64], Spelling::NumPy)?.len() as u64;
        for (name, beside) in &mut self.extras {
            (beside.len, beside.rows) = mark.extras.get(name).copied().unwrap_or_default();
            cut(&mut beside.bytes, &beside.path, beside.len)?;
            cut(&mut beside.places, &beside.path, head + beside.rows * 8 * PLACE as u64)?;
        }
        Ok(())
    }

    /// Ends a shard: a trajectory that no `dones` ended continues in the next one, if there is one.
    pub fn end_shard(&mut self) {
        if self.layout.as_ref().is_some_and(|layout| layout.field("dones").is_none()) {
            self.close();
        }
    }

    fn rows(&mut self, block: &Trajectories) -> Result<()> {
        let Some(layout) = block.layout() else { return Ok(()) };
        match &self.layout {
            None => self.begin(layout)?,
            Some(own) if own != layout => {
                let detail = format!("records of {} after records of {}", layout.to_descr(), own.to_descr());
                return Err(FormatError::new(Kind::WrongSize, detail).into());
            }
            Some(_) => {}
        }
        for (field, column) in layout.fields().iter().zip(&mut self.columns) {
            self.scratch.resize(block.frames() * field.bytes(), 0);
            block.gather(&field.name, 0..block.frames(), &mut self.scratch)?;
            column.to.write_all(&self.scratch).map_err(|e| Error::path(&column.path, &e))?;
        }
        for (name, extras) in block.extras() {
            if !self.extras.contains_key(name) {
                let beside = self.beside(name)?;
                self.extras.insert(name.clone(), beside);
            }
            let Some(beside) = self.extras.get_mut(name) else { continue };
            for (frame, extra) in extras {
                let (kind, bytes) = kind(extra);
                let at = (self.manifest.frames + frame) as i64;
                let place: [i64; PLACE] = [at, kind, beside.len as i64, bytes.len() as i64];
                let place = place.map(i64::to_le_bytes);
                let written =
                    beside.bytes.write_all(bytes).and_then(|()| beside.places.write_all(place.as_flattened()));
                written.map_err(|e| Error::path(&beside.path, &e))?;
                beside.len += bytes.len() as u64;
                beside.rows += 1;
            }
        }
        self.manifest.frames += block.frames();
        Ok(())
    }

    /// Begins a file for each field.
    fn begin(&mut self, layout: &Arc<Layout>) -> Result<()> {
        for (i, field) in layout.fields().iter().enumerate() {
            let file = match file_name(&field.name) == field.name {
                true => format!("{}.npy", field.name),
                false => format!("_{i}.{}.npy", file_name(&field.name)),
            };
            let path = self.staging.path(&file);
            let to = npy(&path, &field.dtype, &shape_of(field, 0))?;
            self.columns.push(Column { to, path });
            self.manifest.columns.push((field.name.clone(), file));
        }
        self.manifest.layout = layout.to_descr();
        self.layout = Some(layout.clone());
        Ok(())
    }

    fn beside(&mut self, name: &str) -> Result<Beside> {
        let stem = format!("_extra{}.{}", self.extras.len(), file_name(name));
        let path = self.staging.path(&format!("{stem}.bin"));
        let bytes = File::create(&path).map_err(|e| Error::path(&path, &e))?;
        let places = npy(&self.staging.path(&format!("{stem}.places.npy")), &INT64, &[0, PLACE as u64])?;
        self.manifest.extras.push((name.to_owned(), stem));
        Ok(Beside { bytes: BufWriter::with_capacity(BUFFER, bytes), places, path, len: 0, rows: 0 })
    }

    /// Publishes the columns and opens them.
    ///
    /// Errors: `Format` of kind `Empty` without frames; `Path`. Nothing is published then.
    pub fn finish(mut self) -> Result<Demonstrations> {
        self.close();
        let rows = self.manifest.frames as u64;
        let Some(layout) = self.layout.take().filter(|_| rows > 0) else {
            self.staging.discard()?;
            return Err(FormatError::new(Kind::Empty, "no frames").in_source(self.source).into());
        };
        for (field, column) in layout.fields().iter().zip(std::mem::take(&mut self.columns)) {
            counted(column.to, &column.path, &field.dtype, &shape_of(field, rows))?;
        }
        for beside in std::mem::take(&mut self.extras).into_values() {
            counted(beside.places, &beside.path, &INT64, &[beside.rows, PLACE as u64])?;
            beside.bytes.into_inner().map_err(|e| Error::path(&beside.path, e.error()))?;
        }
        let path = self.staging.path(ENDS);
        let mut ends = npy(&path, &INT64, &[self.ends.len() as u64, 2])?;
        for (end, how) in &self.ends {
            let row = [*end as i64, i64::from(*how == End::Truncated)].map(i64::to_le_bytes);
            ends.write_all(row.as_flattened()).map_err(|e| Error::path(&path, &e))?;
        }
        ends.into_inner().map_err(|e| Error::path(&path, e.error()))?;
        self.manifest.metadata = self.meta.is_some();
        let mut files = vec![(FILE, self.manifest.text()?)];
        files.extend(self.meta.as_ref().map(|meta| (METADATA, meta.pickle.clone())));
        for (name, bytes) in files {
            let path = self.staging.path(name);
            std::fs::write(&path, bytes).map_err(|e| Error::path(&path, &e))?;
        }
        let before = Manifest::read(&self.folder);
        let staged = self.staging.names()?;
        let gone = stale(before.as_ref(), &staged);
        self.staging.publish(&gone)?;
        let columns = Columns::open(&self.folder, self.manifest, self.max)?;
        Ok(Demonstrations::columns(self.key, self.source, columns, self.max))
    }

    /// Gives up: nothing is published.
    ///
    /// Errors: `Path`.
    pub fn abandon(self) -> Result<()> {
        self.staging.discard()
    }
}

/// Files of columns that were there before and are not there any more.
fn stale(before: Option<&Manifest>, staged: &[String]) -> Vec<String> {
    let Some(before) = before else { return Vec::new() };
    let columns = before.columns.iter().map(|(_, file)| file.clone());
    let extras = before.extras.iter().flat_map(|(_, stem)| [format!("{stem}.bin"), format!("{stem}.places.npy")]);
    columns.chain(extras).chain([METADATA.to_owned()]).filter(|file| !staged.contains(file)).collect()
}

const INT64: DType = DType::Scalar(Scalar::I64, Order::Little);

/// The shape of a column of `rows` rows.
fn shape_of(field: &Field, rows: u64) -> Vec<u64> {
    [rows].into_iter().chain(field.shape.iter().map(|n| *n as u64)).collect()
}

fn key_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Cuts a file that is being written; writing continues from there.
fn cut(to: &mut BufWriter<File>, path: &Path, len: u64) -> Result<()> {
    let done = to.flush().and_then(|()| to.get_ref().set_len(len)).and_then(|()| to.seek(SeekFrom::Start(len)));
    done.map(drop).map_err(|e| Error::path(path, &e))
}

/// A name that is one of a file everywhere, made of `name`.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    let plain: String = name.chars().map(plain).take(80).collect();
    plain.trim_start_matches(['.', '_']).to_owned()
}

/// A `.npy` file that has its header.
fn npy(path: &Path, dtype: &DType, shape: &[u64]) -> Result<BufWriter<File>> {
    let place = |e: std::io::Error| Error::path(path, &e);
    let mut to = BufWriter::with_capacity(BUFFER, File::create(path).map_err(place)?);
    to.write_all(&Header::write(dtype, shape, Spelling::NumPy)?).map_err(place)?;
    Ok(to)
}

/// Puts the number of rows into the header, which is as long for every number.
fn counted(mut to: BufWriter<File>, path: &Path, dtype: &DType, shape: &[u64]) -> Result<()> {
    let header = Header::write(dtype, shape, Spelling::NumPy)?;
    let done = to.seek(SeekFrom::Start(0)).and_then(|_| to.write_all(&header)).and_then(|()| to.flush());
    done.map_err(|e| Error::path(path, &e))
}
