//! A pack -> rewards and returns of its rows, in files that mirror those of the rows. Published all together.
//! The rows are read once, from the last to the first; nothing of the pack is changed.

mod backwards;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::config::parse;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::lineage::Step;
use gristmill_engine::pack;
use gristmill_engine::pack::manifest::RowFile;
use gristmill_engine::pack::rows::{RowBlock, RowsOf};
use gristmill_engine::pack::shards::{self, Shard};
use gristmill_engine::pack::values::{self, Made};
use gristmill_engine::pack::writer::hash_rows;
use gristmill_engine::row_files;
use gristmill_engine::store::place::writable;
use gristmill_engine::store::publish::{self, Found, Staging};
use gristmill_engine::store::{newest, settled};
use gristmill_format::g2048::value::{VALUE_BYTES, ValueOptions, ValueRow};
use serde::{Deserialize, Serialize};

pub(super) use self::backwards::Backwards;
use super::meter::{Meter, peak_rss};
use super::pack::known_of;

/// What the job is called in its staging.
const JOB: &str = "values";

/// Which pack, and how its values are made.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ValuesOptions {
    /// The pack.
    pub pack: PathBuf,
    /// Folder of the values; absent: that of the pack.
    pub output: Option<PathBuf>,
    /// Discount of the next reward, 0 to 1.
    pub gamma: f64,
    /// Factor of `reward_scaled`, above 0.
    pub reward_scale: f64,
    /// Share of the return itself in `return_scaled`, 0 to 1.
    pub epsilon: f64,
    /// Worker threads, from 1 on. Changes no byte.
    pub workers: usize,
    /// Whether existing values are replaced.
    pub overwrite: bool,
    /// Look at every row, and write nothing.
    pub dry_run: bool,
    /// Set from another thread to end early.
    #[serde(skip)]
    pub stop: Arc<AtomicBool>,
}

impl Default for ValuesOptions {
    /// What JSON starts from: no folder.
    fn default() -> Self {
        ValuesOptions::new("")
    }
}

impl ValuesOptions {
    /// Reads the options from JSON; what is absent has its default, and what is unknown is refused with the nearest
    /// known one.
    ///
    /// Errors: `Config`.
    pub fn from_json(text: &str) -> Result<Self> {
        parse::options(text)
    }

    /// Values of `pack` as the defaults have it: beside its rows, one worker per core.
    pub fn new(pack: impl Into<PathBuf>) -> Self {
        let ValueOptions { gamma, reward_scale, epsilon } = ValueOptions::default();
        ValuesOptions {
            pack: pack.into(),
            output: None,
            gamma,
            reward_scale,
            epsilon,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            overwrite: false,
            dry_run: false,
            stop: Arc::default(),
        }
    }

    /// The folder of the values.
    fn target(&self) -> &Path {
        self.output.as_deref().unwrap_or(&self.pack)
    }
}

/// What came of it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Valued {
    /// The folder of the values.
    pub output: String,
    /// Rows that have values.
    pub rows: u64,
    /// Runs that they are of.
    pub runs: u64,
    /// Files of values.
    pub files: u64,
    /// Discount of the next reward.
    pub gamma: f64,
    /// Factor of `reward_scaled`.
    pub reward_scale: f64,
    /// Share of the return itself in `return_scaled`.
    pub epsilon: f64,
    /// Sum of all rewards.
    pub reward: f64,
    /// Highest `return_scaled`.
    pub highest: f32,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// How long it took by the clock.
    pub seconds: f64,
    /// How long all threads worked.
    pub cpu_seconds: f64,
    /// Peak resident memory of the process, in bytes; `None` where the system does not say.
    pub peak_rss: Option<u64>,
}

/// Makes the values of a pack. `progress` gets the number of rows that are done, and of all rows, now and then.
///
/// Errors: `Config` for options that make no sense or existing values; `Format` with file and row for rows that are
/// no step rows, have no move, or do not lie as `metadata.db` says; `Path`; `Stopped`. After an error everything is as it
/// was.
pub fn values(options: &ValuesOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<Valued> {
    let ValuesOptions { gamma, reward_scale, epsilon, .. } = *options;
    let by = ValueOptions { gamma, reward_scale, epsilon };
    by.check().map_err(|(name, why)| Error::config(name, why))?;
    crate::in_order::check(options.workers)?;
    let target = settled(&writable(options.target(), "output")?, options.dry_run)?.into_owned();
    let (pack, output) = (newest(&options.pack)?.into_owned(), options.output.as_ref().map(|_| target));
    let options = &ValuesOptions { pack, output, ..options.clone() };
    let meter = Meter::default();
    let before = meter.now();
    let valued = checked(options, by, progress)?;
    let now = meter.now();
    let (seconds, cpu_seconds) = (now.wall - before.wall, now.cpu - before.cpu);
    Ok(Valued { gamma, reward_scale, epsilon, seconds, cpu_seconds, peak_rss: peak_rss(), ..valued })
}

/// Makes values, with options that were checked.
fn checked(options: &ValuesOptions, by: ValueOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<Valued> {
    let target = options.target();
    if publish::is_interrupted(target, pack::STAGING) && !options.dry_run {
        // Whatever job it was, opening its staging puts its files in place.
        Staging::open(target, pack::STAGING, JOB)?.0.discard()?;
    }
    // Values without rows are no reason to replace them.
    let shards = shards::list(&options.pack)?;
    if !options.overwrite && !values::names(target)?.is_empty() {
        let message = format!("{}: there are values already; --overwrite replaces them", target.display());
        return Err(Error::config("output", message));
    }
    let files = shards.iter().cloned().map(RowsOf::open).collect::<gristmill_format::Result<Vec<_>>>()?;
    let mut rows = Backwards::start(&options.pack, files, by, options.workers, options.stop.clone())?;
    let valued = Valued {
        output: target.display().to_string(),
        rows: rows.rows(),
        runs: rows.runs(),
        files: shards.len() as u64,
        dry_run: options.dry_run,
        ..Valued::default()
    };
    if options.dry_run {
        return told(valued, &mut rows, &mut |_, _| Ok(()), progress);
    }
    let staging = stage(target)?;
    let lineage = lineage(options, valued.rows);
    // The pack is as it was: where this fails, the staging goes.
    let valued = write(&staging, &shards, (by, lineage), &mut |each| told(valued.clone(), &mut rows, each, progress))?;
    staging.publish(&values::names(target)?)?;
    Ok(valued)
}

/// How the values came to be.
fn lineage(options: &ValuesOptions, rows: u64) -> Step {
    let ValuesOptions { gamma, reward_scale, epsilon, .. } = *options;
    let step = Step::new("values").with("gamma", gamma).with("reward_scale", reward_scale).with("epsilon", epsilon);
    step.with("rows", rows).made_from(vec![known_of(&options.pack)])
}

type Each<'a> = dyn FnMut(&RowBlock, &[u8]) -> Result<()> + 'a;

/// Gives every block to `each`, and says what is in all of them.
fn told(
    mut valued: Valued,
    rows: &mut Backwards,
    each: &mut Each<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Valued> {
    let (mut bytes, mut done) = (Vec::new(), 0);
    while let Some(block) = rows.next(&mut bytes)? {
        for value in bytes.as_chunks().0 {
            let ValueRow { reward, return_scaled, .. } = ValueRow::from_bytes(value);
            valued.reward += f64::from(reward);
            valued.highest = valued.highest.max(return_scaled);
        }
        each(&block, &bytes)?;
        done += block.rows;
        progress(done, valued.rows);
    }
    Ok(valued)
}

/// The staging in the output, empty.
fn stage(target: &Path) -> Result<Staging> {
    let (mut staging, found) = Staging::open(target, pack::STAGING, JOB)?;
    let ours = |name: &String| row_files::is_values(name) || name == row_files::VALUES_MADE;
    if found == Found::Unfinished && !staging.names()?.iter().all(ours) {
        let message = format!(
            "{}: an interrupted job of `pack` or `merge` is here; resume it or give it up first (`gristmill pack` \
             with --resume, --overwrite or --abandon)",
            target.display()
        );
        return Err(Error::config("output", message));
    }
    staging.clear(JOB)?;
    Ok(staging)
}

/// Stages the files; `all` gives each block to whom it is given.
fn write(
    staging: &Staging,
    shards: &[Shard],
    (by, lineage): (ValueOptions, Step),
    all: &mut dyn FnMut(&mut Each<'_>) -> Result<Valued>,
) -> Result<Valued> {
    let mut files = Vec::new();
    for shard in shards {
        let name = row_files::beside(&shard.path.file_name().unwrap_or_default().to_string_lossy(), row_files::VALUES);
        files.push(ValueFile::create(staging.path(&name), name, shard.rows)?);
    }
    let valued = all(&mut |block, bytes| files[block.file].put(block.first, bytes))?;
    let files = files.into_iter().map(ValueFile::finish).collect::<Result<Vec<RowFile>>>()?;
    let made = Made::new(&by, files, vec![lineage]);
    publish::write_whole(&staging.path(row_files::VALUES_MADE), &[made.to_json()?.as_bytes()])?;
    Ok(valued)
}

/// A file of values whose length is known, filled in any order.
struct ValueFile {
    path: PathBuf,
    name: String,
    file: File,
    offset: u64,
    rows: u64,
}

impl ValueFile {
    fn create(path: PathBuf, name: String, rows: u64) -> Result<Self> {
        let header = values::kind().header(rows)?;
        let opened = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
        let file = opened.and_then(|file| file.write_all_at(&header, 0).map(|()| file));
        let file = file.map_err(|e| Error::path(&path, &e))?;
        Ok(ValueFile { path, name, file, offset: header.len() as u64, rows })
    }

    /// Writes values from row `first` on.
    fn put(&self, first: u64, bytes: &[u8]) -> Result<()> {
        let put = self.file.write_all_at(bytes, self.offset + first * VALUE_BYTES as u64);
        put.map_err(|e| Error::path(&self.path, &e))
    }

    /// What it holds now.
    fn finish(self) -> Result<RowFile> {
        let hash = hash_rows(&self.path, self.offset, self.rows * VALUE_BYTES as u64)?;
        Ok(RowFile { name: self.name, rows: self.rows, xxh3_128: format!("{hash:032x}") })
    }
}
