//! Steps of games while a model plays them -> self-play, version 1: shards, vectors beside them, and the database.
//! A shard appears whole, with its vectors; what a killed recorder had written is taken up by the next one.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use gristmill_format::container::npy::Spelling;
use gristmill_format::g2048::form::{Columns, Form};
use gristmill_format::layout::{DType, Order, Scalar};
use gristmill_format::{Error as FormatError, Kind};
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::store::publish::{self, Found, Staging};

use super::array::{ArrayFile, ArrayKind};
use super::metadata::{Metadata, MetadataWriter, Run};
use super::open::recognise;
use super::{METADATA, embeddings, shards};
use crate::row_files;

/// The default number of steps in a shard.
pub const SHARD_MAX_STEPS: u64 = 1_000_000;

/// Maximum number of numbers of a vector.
const MOST_NUMBERS: usize = 1 << 20;

/// Name under which a recorder stages the shard that it writes.
const STAGING: &str = "self-play";

/// The name of shard `number`, counted from 1.
pub fn shard_name(number: u64) -> String {
    format!("{}-{number:06}.npy", row_files::ROWS)
}

/// How to record.
#[derive(Debug, Clone, Default)]
pub struct RecorderOptions {
    /// Steps of every shard but the last; 0 for [`SHARD_MAX_STEPS`].
    pub shard_max_steps: u64,
    /// Numbers of the vector that comes with each step; none where none come.
    pub embedding_size: Option<usize>,
    /// Whether to resume in a folder that has shards already, or the data of a killed recorder.
    pub append: bool,
}

/// Writes self-play into a folder. One process at a time.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    staging: Staging,
    metadata: MetadataWriter,
    options: RecorderOptions,
    /// Number of the shard that is being written.
    number: u64,
    steps: ArrayFile,
    vectors: Option<ArrayFile>,
    recovered: u64,
    /// Runs of earlier recordings in this folder.
    earlier: HashSet<u64>,
}

impl Recorder {
    /// Opens `folder`, which is made where it does not exist.
    ///
    /// Errors: `Config` in `folder` where rows are there and `append` is off, or other rows or vectors than these; in
    /// `embedding_size`; `Path`, of kind `ResourceBusy` while another process records there; `Format` for damaged shards.
    pub fn open(folder: &Path, mut options: RecorderOptions) -> Result<Self> {
        if options.shard_max_steps == 0 {
            options.shard_max_steps = SHARD_MAX_STEPS;
        }
        if options.embedding_size.is_some_and(|size| size == 0 || size > MOST_NUMBERS) {
            return Err(Error::config("embedding_size", format!("expected 1 to {MOST_NUMBERS} numbers")));
        }
        let refuse = |text: &str| Error::config("folder", format!("{}: {text}", folder.display()));
        let staged = publish::is_staged(folder, STAGING);
        if !options.append && (staged || folder.is_dir() && !super::files(folder)?.is_empty()) {
            return Err(refuse("there is a recording already; append to it, or take another folder"));
        }
        let (staging, found) = Staging::open(folder, STAGING, STAGING)?;
        if found == Found::Unfinished {
            staging.owned()?;
        }
        let number = if shards::names(folder)?.is_empty() { 1 } else { next_number(folder, &options)? };
        let path = folder.join(row_files::beside(&shard_name(number), row_files::VECTORS));
        if staged && path.exists() {
            // Killed between the two renames of a shard.
            let back = staging.path(VECTORS);
            fs::rename(&path, back).map_err(|e| Error::path(&path, &e))?;
        }
        let mut earlier = HashSet::new();
        if folder.join(METADATA).exists() {
            Metadata::open(folder.join(METADATA))?.runs(&mut |run| {
                earlier.insert(run.id);
                Ok(())
            })?;
        }
        let metadata = MetadataWriter::open(folder.join(METADATA))?;
        let (steps, vectors) = take_up(&staging, &options)?;
        let recovered = steps.rows();
        let folder = folder.to_owned();
        staging.keep();
        let mut recorder = Recorder { folder, staging, metadata, options, number, steps, vectors, recovered, earlier };
        recorder.rotate_if_full()?;
        Ok(recorder)
    }

    /// Steps that a killed recorder had left and that are in the first shard now.
    pub fn recovered(&self) -> u64 {
        self.recovered
    }

    /// Records of self-play rows (28 bytes each), and with them as many vectors of little-endian `f4`.
    ///
    /// Errors: `Format`: `WrongSize` for other lengths, `OutOfRange` with the row for an exponent above 16
    /// and for a run of an earlier recording; `Path`.
    /// A refused step is not written.
    pub fn write(&mut self, mut records: &[u8], mut vectors: &[u8]) -> Result<()> {
        let (size, vector) = (Form::SelfPlay.layout().size(), self.options.embedding_size.unwrap_or(0) * 4);
        let rows = records.len() / size;
        if !records.len().is_multiple_of(size) || Some(vectors.len()) != rows.checked_mul(vector) {
            let detail = format!(
                "{} bytes of {size}-byte rows with {} bytes of vectors, expected {vector} for each row",
                records.len(),
                vectors.len()
            );
            return Err(FormatError::new(Kind::WrongSize, detail).into());
        }
        let columns = Columns::of(Form::SelfPlay.layout())?;
        for (i, record) in records.chunks_exact(size).enumerate() {
            let step = columns.step(record).map_err(|e| e.in_frame(i))?;
            if self.earlier.contains(&step.run_id) {
                let detail = format!("run {} is one of an earlier recording in this folder", step.run_id);
                return Err(FormatError::new(Kind::OutOfRange, detail).in_frame(i).into());
            }
        }
        while !records.is_empty() {
            let room = usize::try_from(self.options.shard_max_steps - self.steps.rows()).unwrap_or(usize::MAX);
            let rows = room.min(records.len() / size);
            let (now, later) = records.split_at(rows * size);
            // Vectors first: a row without its vector is what a reader refuses.
            if let Some(file) = &mut self.vectors {
                let (now, later) = vectors.split_at(rows * vector);
                file.append(now)?;
                vectors = later;
            }
            self.steps.append(now)?;
            records = later;
            self.rotate_if_full()?;
        }
        Ok(())
    }

    /// Writes a game into the database, over what was there under its id. It is there at once, and a process that is
    /// killed later loses no step that was written before.
    ///
    /// Errors: `Path`; `Format` with the database.
    pub fn put_run(&mut self, run: &Run) -> Result<()> {
        if let Some(file) = &mut self.vectors {
            file.flush()?;
        }
        self.steps.flush()?;
        self.metadata.put_run(run)?;
        self.metadata.commit()
    }

    /// Writes an entry of the session, over what was there under its key. It is there at once.
    ///
    /// Errors: `Format` with the path.
    pub fn put_session(&mut self, key: &str, value: &str) -> Result<()> {
        self.metadata.put_session(key, value)?;
        self.metadata.commit()
    }

    /// An entry of the session.
    ///
    /// Errors: `Format` with the path.
    pub fn session(&self, key: &str) -> Result<Option<String>> {
        self.metadata.session(key)
    }

    fn rotate_if_full(&mut self) -> Result<()> {
        if self.steps.rows() < self.options.shard_max_steps { Ok(()) } else { self.rotate() }
    }

    /// Completes the shard that is being written, if it has steps, and begins the next one.
    ///
    /// Errors: `Path`.
    pub fn rotate(&mut self) -> Result<()> {
        if self.steps.rows() == 0 {
            return Ok(());
        }
        self.publish()?;
        self.number += 1;
        (self.steps, self.vectors) = fresh(&self.staging, &self.options)?;
        Ok(())
    }

    fn publish(&mut self) -> Result<()> {
        // The next files of these names are made only after the renames.
        let (steps, vectors) = (self.staging.path(STEPS), self.staging.path(VECTORS));
        self.steps.complete()?;
        let name = shard_name(self.number);
        let put = |from: &Path, name: String| {
            let to = self.folder.join(name);
            fs::rename(from, &to).map_err(|e| Error::path(to, &e))
        };
        if let Some(file) = &mut self.vectors {
            file.complete()?;
            put(&vectors, row_files::beside(&name, row_files::VECTORS))?;
        }
        put(&steps, name)?;
        publish::sync_folder(&self.folder)
    }

    /// Completes the last shard and the database, which leaves no log beside it.
    ///
    /// Errors: `Path`; `Format` with the database.
    pub fn finish(mut self) -> Result<()> {
        self.rotate()?;
        self.metadata.finish()?;
        self.staging.discard()
    }
}

/// Names of the staged files.
const STEPS: &str = "steps.npy";
const VECTORS: &str = "embeddings.npy";

fn steps_kind() -> ArrayKind {
    let dtype = DType::Record((**Form::SelfPlay.layout()).clone());
    ArrayKind { dtype, row_shape: Vec::new(), spelling: Spelling::Spaced }
}

/// The kind of vectors of `size` numbers.
pub fn vectors_kind(size: usize) -> ArrayKind {
    let dtype = DType::Scalar(Scalar::F32, Order::Little);
    ArrayKind { dtype, row_shape: vec![size as u64], spelling: Spelling::Spaced }
}

fn fresh(staging: &Staging, options: &RecorderOptions) -> Result<(ArrayFile, Option<ArrayFile>)> {
    let vectors = options.embedding_size.map(vectors_kind);
    let vectors = vectors.map(|kind| ArrayFile::create(&staging.path(VECTORS), kind)).transpose()?;
    Ok((ArrayFile::create(&staging.path(STEPS), steps_kind())?, vectors))
}

/// What is staged, as far as it is whole: as many steps as have vectors.
fn take_up(staging: &Staging, options: &RecorderOptions) -> Result<(ArrayFile, Option<ArrayFile>)> {
    let most = options.shard_max_steps;
    let vectors = match options.embedding_size {
        Some(size) => ArrayFile::recover(&staging.path(VECTORS), vectors_kind(size), most)?,
        None => None,
    };
    let Some(mut steps) = ArrayFile::recover(&staging.path(STEPS), steps_kind(), most)? else {
        return fresh(staging, options);
    };
    if options.embedding_size.is_none() {
        if staging.path(VECTORS).exists() && steps.rows() > 0 {
            let text = "the killed recorder wrote vectors; give their size to resume";
            return Err(Error::config("embedding_size", text));
        }
        return Ok((steps, None));
    }
    let Some(mut vectors) = vectors else {
        return fresh(staging, options);
    };
    let rows = steps.rows().min(vectors.rows());
    steps.cut(rows)?;
    vectors.cut(rows)?;
    Ok((steps, Some(vectors)))
}

/// The number of the next shard of a recording that these options extend.
fn next_number(folder: &Path, options: &RecorderOptions) -> Result<u64> {
    let refuse = |text: String| Error::config("folder", format!("{}: {text}", folder.display()));
    let found = shards::list(folder)?;
    let form = recognise(&found)?.form();
    if form != Form::SelfPlay || found[0].layout != **Form::SelfPlay.layout() {
        let text = format!("there are {} rows of {} bytes already", form.name(), found[0].layout.size());
        return Err(refuse(text));
    }
    let size = embeddings::list(folder, &found)?.map(|vectors| vectors[0].size);
    if size != options.embedding_size {
        let shown = |size: Option<usize>| size.map_or("none".to_owned(), |size| size.to_string());
        let text = format!("numbers in a vector: {} there, {} here", shown(size), shown(options.embedding_size));
        return Err(Error::config("embedding_size", text));
    }
    let last = found.last().and_then(|shard| shard.path.file_stem()?.to_str()?.rsplit_once('-')?.1.parse::<u64>().ok());
    last.map(|last| last + 1).ok_or_else(|| refuse("its shards have no numbers".to_owned()))
}
