//! Frames -> shards in files: one, or several with numbered names; all of them published together at the end, or none.
//! Streams: holds one frame at a time. A new shard begins at the start of a trajectory only.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use gristmill_format::container::zstd::ZstdWriter;
use gristmill_format::demo::shard::{Members, ShardWriter};
use gristmill_format::{Error as FormatError, Kind};
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::store::publish::{Found, Staging};

/// How names of shards may end: the ending says what they are packed with.
pub const SHARD_ENDINGS: [&str; 4] = [".tar.zst", ".tar.gz", ".tgz", ".tar"];

/// The ending of a shard's name, if it is one.
pub fn shard_ending(name: &str) -> Option<&'static str> {
    SHARD_ENDINGS.into_iter().find(|ending| name.len() > ending.len() && name.ends_with(ending))
}

/// What the job is called in its staging.
const JOB: &str = "shards";

/// How shards are cut and packed.
#[derive(Debug, Clone)]
pub struct ShardOptions {
    /// Level of Zstandard, 1 to 22; gzip, which has no more than 9, takes the least of both.
    pub level: i32,
    /// Frames after which the next trajectory begins a new shard; without it there is one shard.
    pub max_frames: Option<u64>,
    /// How the values of frames are written.
    pub members: Members,
    /// Whether shards of this name are replaced.
    pub overwrite: bool,
}

/// Shards that are being written. What is staged of them goes with this value, unless they are finished.
#[derive(Debug)]
pub struct ShardFiles {
    staging: Staging,
    folder: PathBuf,
    stem: String,
    ending: &'static str,
    metadata: Vec<u8>,
    options: ShardOptions,
    shard: Option<ShardWriter<Sink>>,
    names: Vec<String>,
    between: bool,
}

#[derive(Debug)]
enum Sink {
    Plain(BufWriter<File>),
    Packed(ZstdWriter<BufWriter<File>>),
    Gzip(GzEncoder<BufWriter<File>>),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Plain(to) => to.write(bytes),
            Sink::Packed(to) => to.write(bytes),
            Sink::Gzip(to) => to.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Plain(to) => to.flush(),
            Sink::Packed(to) => to.flush(),
            Sink::Gzip(to) => to.flush(),
        }
    }
}

impl ShardFiles {
    /// Shards called `path`, or like it with a number before their ending (one of [`SHARD_ENDINGS`]), with this metadata (a
    /// pickle). Nothing is there under its name before [`ShardFiles::finish`].
    ///
    /// Errors: `Config` for another ending or a bound of 0; `Path` where the folder cannot be written, where shards of the
    /// name exist (`AlreadyExists`), or another process writes them (`ResourceBusy`).
    pub fn create(path: &Path, metadata: Vec<u8>, options: ShardOptions) -> Result<Self> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(ending) = shard_ending(&name) else {
            let detail = format!("`{name}`: expected a name that ends in {}", SHARD_ENDINGS.join(", "));
            return Err(Error::config("path", detail));
        };
        if options.max_frames == Some(0) {
            return Err(Error::config("max_frames", "expected at least 1 frame, or none for one shard"));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let stem = name.strip_suffix(ending).unwrap_or(&name).to_owned();
        let (mut staging, found) = Staging::open(folder, &stem, JOB)?;
        if found == Found::Unfinished {
            staging.clear(JOB)?;
        }
        let files = ShardFiles {
            staging,
            folder: folder.to_owned(),
            stem,
            ending,
            metadata,
            options,
            shard: None,
            names: Vec::new(),
            between: true,
        };
        if !files.options.overwrite
            && let Some(there) = files.existing()?.first()
        {
            let e = io::Error::new(io::ErrorKind::AlreadyExists, "it exists; overwrite it, or choose another name");
            return Err(Error::path(files.folder.join(there), &e));
        }
        Ok(files)
    }

    /// Adds a frame: fields and their values as pickles. `last` says that its trajectory ends with it.
    ///
    /// Errors: `Format` for names that cannot be, and for what the system refuses.
    pub fn frame(&mut self, fields: &[(String, Vec<u8>)], last: bool) -> Result<()> {
        let full = self.shard.as_ref().is_some_and(|shard| Some(shard.frames()) >= self.options.max_frames);
        if full && self.between && self.options.max_frames.is_some() {
            self.end_shard()?;
        }
        let shard = match &mut self.shard {
            Some(shard) => shard,
            None => {
                let shard = self.begin_shard()?;
                self.shard.insert(shard)
            }
        };
        shard.frame(fields)?;
        self.between = last;
        Ok(())
    }

    /// Publishes all shards; gives their paths.
    ///
    /// Errors: `Format` of kind `Empty` without frames, and for what the system refuses; `Path`. Nothing is published then.
    pub fn finish(mut self) -> Result<Vec<PathBuf>> {
        if self.names.is_empty() {
            return Err(FormatError::new(Kind::Empty, "no frames were written, so there is no shard").into());
        }
        self.end_shard()?;
        let gone: Vec<String> = self.existing()?.into_iter().filter(|name| !self.names.contains(name)).collect();
        self.staging.publish(&gone)?;
        Ok(self.names.iter().map(|name| self.folder.join(name)).collect())
    }

    /// Gives up what was written.
    ///
    /// Errors: `Path`.
    pub fn abort(self) -> Result<()> {
        self.staging.discard()
    }

    fn begin_shard(&mut self) -> Result<ShardWriter<Sink>> {
        let name = match self.options.max_frames {
            Some(_) => format!("{}-{:06}{}", self.stem, self.names.len(), self.ending),
            None => format!("{}{}", self.stem, self.ending),
        };
        let path = self.staging.path(&name);
        let file = BufWriter::new(File::create(&path).map_err(|e| Error::path(&path, &e))?);
        let sink = match self.ending {
            ".tar" => Sink::Plain(file),
            ".tar.zst" => Sink::Packed(ZstdWriter::new(file, self.options.level)?),
            _ => Sink::Gzip(GzEncoder::new(file, Compression::new(self.options.level.clamp(1, 9).cast_unsigned()))),
        };
        self.names.push(name);
        Ok(ShardWriter::new(sink, &self.metadata, self.options.members)?)
    }

    fn end_shard(&mut self) -> Result<()> {
        let Some(shard) = self.shard.take() else { return Ok(()) };
        let file = match shard.finish()? {
            Sink::Plain(file) => file,
            Sink::Packed(packed) => packed.finish()?,
            Sink::Gzip(packed) => packed.finish().map_err(FormatError::from)?,
        };
        let path = || self.staging.path(self.names.last().map_or("", String::as_str));
        file.into_inner().map(drop).map_err(|e| Error::path(path(), e.error()))
    }

    /// Shards of this name in the folder: the one, and numbered ones.
    fn existing(&self) -> Result<Vec<String>> {
        let refuse = |e: io::Error| Error::path(&self.folder, &e);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.folder).map_err(refuse)? {
            let name = entry.map_err(refuse)?.file_name().to_string_lossy().into_owned();
            let middle = name.strip_prefix(&self.stem).and_then(|rest| rest.strip_suffix(self.ending));
            let number = |middle: &str| {
                middle.strip_prefix('-').is_some_and(|n| n.len() >= 6 && n.bytes().all(|b| b.is_ascii_digit()))
            };
            if middle.is_some_and(|middle| middle.is_empty() || number(middle)) {
                found.push(name);
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}
