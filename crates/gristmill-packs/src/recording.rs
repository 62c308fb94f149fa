//! Games of records while they are played -> `.records` files of a folder, for many processes at once. A file appears whole;
//! what a killed writer left is put in place, without the game that it had not finished, by the next writer or pack job.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gristmill_format::records::log::{ENDING, begin, entry};
use gristmill_format::records::{RecordFile, Schema};
use gristmill_format::source::ChunkSource;
use gristmill_format::{Error as FormatError, Kind};
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::store::open_file;
use gristmill_runtime::store::publish::sync_folder;

/// What the names of files begin with; those that are being written have a dot before it.
const GAMES: &str = "games-";

/// Bytes of a file, if nothing else is said, before the next one is begun.
pub const FILE_BYTES: u64 = 64 << 20;

/// Writes games into a folder. Any number of processes may do so at once.
///
/// ```
/// use gristmill_format::records::Schema;
/// use gristmill_packs::recording::{FILE_BYTES, GameWriter};
///
/// # let folder = tempfile::tempdir()?;
/// let schema = Schema::parse(r#"{"layout": "[('board', '|i1', (4,)), ('value', '<f4')]", "facts": [["elo", "int"]]}"#)?;
/// let mut games = GameWriter::open(folder.path(), schema, FILE_BYTES)?;
/// let mut rows = Vec::new();
/// for ply in 0..3 {
///     rows.extend([ply, 0, 0, 1]);
///     rows.extend(0.5f32.to_le_bytes());
/// }
/// games.write(&rows, "[1500]")?;
/// games.finish()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GameWriter {
    folder: PathBuf,
    schema: Schema,
    file_bytes: u64,
    open: Option<Open>,
    adopted: u64,
}

/// The file that is being written. It is locked for as long as its process lives.
#[derive(Debug)]
struct Open {
    file: File,
    path: PathBuf,
    target: PathBuf,
    /// Bytes of what is whole.
    whole: u64,
    /// The process that began it: a forked one begins its own.
    process: u32,
}

impl GameWriter {
    /// Opens a folder, which is made where it does not exist, for games of `schema`. A file of more than `file_bytes` is put in
    /// place, and the next one begun. What killed writers left is put in place first.
    ///
    /// Errors: `Path`; `Config` in `file_bytes`.
    pub fn open(folder: &Path, schema: Schema, file_bytes: u64) -> Result<Self> {
        if file_bytes == 0 {
            return Err(Error::config("file_bytes", "expected at least one byte"));
        }
        fs::create_dir_all(folder).map_err(|e| Error::path(folder, &e))?;
        let adopted = adopt(folder)?;
        Ok(GameWriter { folder: folder.to_owned(), schema, file_bytes, open: None, adopted })
    }

    /// How many games of killed writers were put in place when it was opened.
    pub fn adopted(&self) -> u64 {
        self.adopted
    }

    /// Writes a game: records back to back, and its facts as JSON, or nothing where they are unknown. It is in the file when
    /// this returns, all of it or nothing.
    ///
    /// Errors: `Format` as [`entry`]; `Path`.
    pub fn write(&mut self, records: &[u8], facts: &str) -> Result<()> {
        let bytes = entry(&self.schema, records, facts)?;
        if self.open.as_ref().is_some_and(|open| open.process != std::process::id()) {
            self.open = None;
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(Open::begin(&self.folder, &self.schema)?),
        };
        if let Err(e) = open.append(&bytes) {
            // Where not even that can be undone, what is whole stays, and the next writer puts it in place.
            if open.file.set_len(open.whole).is_err() {
                self.open = None;
            }
            return Err(e);
        }
        if open.whole >= self.file_bytes { self.flush() } else { Ok(()) }
    }

    /// Puts the file that is being written in place, durably, where readers see it. The next game begins another one.
    ///
    /// Errors: `Path`.
    pub fn flush(&mut self) -> Result<()> {
        let Some(open) = self.open.take_if(|open| open.process == std::process::id()) else { return Ok(()) };
        place(&open.file, &open.path, &open.target)
    }

    /// Flushes, and ends.
    ///
    /// Errors: as [`GameWriter::flush`].
    pub fn finish(mut self) -> Result<()> {
        self.flush()
    }
}

impl Drop for GameWriter {
    fn drop(&mut self) {
        // What cannot be put in place now, the next writer puts there.
        let _ = self.flush();
    }
}

impl Open {
    /// Begins the next file of a folder under a name that no other writer has.
    fn begin(folder: &Path, schema: &Schema) -> Result<Self> {
        let mut number = next(folder)?;
        loop {
            let name = format!("{GAMES}{number:06}{ENDING}");
            number += 1;
            let (path, target) = (folder.join(format!(".{name}")), folder.join(name));
            let refuse = |e: std::io::Error| Error::path(&path, &e);
            let mut file = match OpenOptions::new().append(true).create_new(true).open(&path) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                opened => opened.map_err(refuse)?,
            };
            // Who looks for what killed writers left may have had it between the two calls.
            let mine = matches!(locked(&file, &path)?, Lock::Mine) && is_there(&file, &path);
            if !mine {
                continue;
            }
            if target.exists() {
                fs::remove_file(&path).map_err(refuse)?;
                continue;
            }
            let bytes = begin(schema);
            file.write_all(&bytes).map_err(refuse)?;
            let (whole, process) = (bytes.len() as u64, std::process::id());
            return Ok(Open { file, path, target, whole, process });
        }
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::path(&self.path, &e))?;
        self.whole += bytes.len() as u64;
        Ok(())
    }
}

/// Whose a file is.
enum Lock {
    Mine,
    Others,
}

fn locked(file: &File, path: &Path) -> Result<Lock> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(Lock::Others),
        Err(TryLockError::Error(e)) => Err(Error::path(path, &e)),
        Ok(()) => Ok(Lock::Mine),
    }
}

/// Whether an open file is the one that lies at `path`.
fn is_there(file: &File, path: &Path) -> bool {
    let id = |about: fs::Metadata| (about.dev(), about.ino());
    file.metadata().ok().map(id).is_some_and(|own| fs::metadata(path).ok().map(id) == Some(own))
}

/// The number after the highest in a folder.
fn next(folder: &Path) -> Result<u64> {
    let numbers = names(folder)?.into_iter().filter_map(|name| {
        let name = name.strip_prefix('.').unwrap_or(&name).to_owned();
        name.strip_prefix(GAMES)?.strip_suffix(ENDING)?.parse::<u64>().ok()
    });
    Ok(numbers.max().map_or(0, |highest| highest.saturating_add(1)))
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let refuse = |e: std::io::Error| Error::path(folder, &e);
    let entries = fs::read_dir(folder).map_err(refuse)?;
    let name = |entry: std::io::Result<fs::DirEntry>| Ok(entry.map_err(refuse)?.file_name().into_string().ok());
    entries.filter_map(|entry| name(entry).transpose()).collect()
}

/// Puts what killed writers left in a folder in place, without a last game that is not whole; gives the number of games. Files
/// whose writers live are not touched. What is no folder has none.
///
/// Errors: `Path`; `Format` with the file, of reading.
pub fn adopt(folder: &Path) -> Result<u64> {
    let mut games = 0;
    if !folder.is_dir() {
        return Ok(games);
    }
    let hidden = format!(".{GAMES}");
    let mut left = names(folder)?;
    left.retain(|name| name.starts_with(&hidden) && name.ends_with(ENDING));
    left.sort_unstable();
    for name in left {
        let (path, target) = (folder.join(&name), folder.join(&name[1..]));
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            opened => opened.map_err(|e| Error::path(&path, &e))?,
        };
        if matches!(locked(&file, &path)?, Lock::Mine) && is_there(&file, &path) {
            games += taken_up(&file, &path, &target)?;
        }
    }
    Ok(games)
}

/// Puts one file in place that has no writer any more, or removes it where it has no game.
fn taken_up(file: &File, path: &Path, target: &Path) -> Result<u64> {
    let refuse = |e: std::io::Error| Error::path(path, &e);
    let named = |e: FormatError| e.in_source(path.display().to_string());
    let from = open_file(path)?;
    let found = match RecordFile::open("", &*from) {
        Ok(found) => found,
        // Games come after the schema: there is none.
        Err(e) if matches!(e.kind(), Kind::Truncated | Kind::UnknownFormat) && from.len().map_err(named)? < 1 << 20 => {
            return fs::remove_file(path).map_err(refuse).map(|()| 0);
        }
        Err(e) if e.kind().is_of_reading() => return Err(named(e).into()),
        // What is damaged otherwise is put in place as it is, so that readers report it.
        Err(_) => return place(file, path, target).map(|()| 0),
    };
    let torn = found.torn(&*from).map_err(named)?;
    let last = found.locate(found.len().wrapping_sub(1)).map(|(span, _)| span.offset);
    let whole = found.len() as u64 - u64::from(torn.is_some() && torn == last);
    if let Some(cut) = torn {
        file.set_len(cut).map_err(refuse)?;
    }
    if whole == 0 && found.faults().iter().all(|fault| fault.kind() == Kind::Truncated) {
        return fs::remove_file(path).map_err(refuse).map(|()| 0);
    }
    place(file, path, target).map(|()| whole)
}

/// Gives a file the name under which readers see it.
fn place(file: &File, path: &Path, target: &Path) -> Result<()> {
    file.sync_all().map_err(|e| Error::path(path, &e))?;
    fs::rename(path, target).map_err(|e| Error::path(target, &e))?;
    target.parent().map_or(Ok(()), sync_folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_format::source::{Chunk, read_span};

    const SCHEMA: &str = r#"{"layout": "[('a', '<u4')]", "facts": [["who", "text"]]}"#;

    fn games(folder: &Path) -> Vec<(Vec<u8>, String)> {
        let mut found = Vec::new();
        let mut listed = names(folder).unwrap();
        listed.retain(|name| !name.starts_with('.'));
        listed.sort_unstable();
        for name in listed {
            let from = open_file(&folder.join(&name)).unwrap();
            let file = RecordFile::open(name, &*from).unwrap();
            assert!(file.faults().is_empty());
            for i in 0..file.len() {
                let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
                read_span(&*from, file.locate(i).unwrap().0, 1 << 20, &mut stored).unwrap();
                file.decode(i, &stored, &file.limits(), &mut chunk).unwrap();
                found.push((chunk.records().to_vec(), chunk.said("facts").unwrap().to_owned()));
            }
        }
        found
    }

    fn game(i: u32) -> Vec<u8> {
        (0..=i % 3).flat_map(|row| (100 * i + row).to_le_bytes()).collect()
    }

    #[test]
    fn writers_at_once_lose_nothing_and_files_appear_whole() {
        let folder = tempfile::tempdir().unwrap();
        let open = || GameWriter::open(folder.path(), Schema::parse(SCHEMA).unwrap(), 400).unwrap();
        let mut writers = [open(), open(), open()];
        for i in 0..60 {
            writers[i as usize % 3].write(&game(i), &format!("[\"{i}\"]")).unwrap();
        }
        let seen = games(folder.path()).len();
        assert!(seen > 0 && seen < 60, "{seen}");
        assert_eq!(adopt(folder.path()).unwrap(), 0, "their writers live");
        assert_eq!(writers[0].write(&[1], "").unwrap_err().to_string().matches("expected records of 4").count(), 1);
        writers.into_iter().for_each(|writer| writer.finish().unwrap());
        let mut found = games(folder.path());
        found.sort_unstable();
        let mut expected: Vec<_> = (0..60).map(|i| (game(i), format!("[\"{i}\"]"))).collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert!(names(folder.path()).unwrap().iter().all(|name| !name.starts_with('.')));
    }

    #[test]
    fn a_file_that_was_cut_at_any_byte_keeps_its_whole_games() {
        let schema = Schema::parse(SCHEMA).unwrap();
        let (mut bytes, mut ends) = (begin(&schema), Vec::new());
        for i in 0..4 {
            ends.push(bytes.len());
            bytes.extend(entry(&schema, &game(i), "").unwrap());
        }
        for cut in 0..=bytes.len() {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(".games-000007.records"), &bytes[..cut]).unwrap();
            let whole = ends.iter().skip(1).chain([&bytes.len()]).filter(|end| **end <= cut).count();
            let mut writer = GameWriter::open(folder.path(), schema.clone(), FILE_BYTES).unwrap();
            assert_eq!(writer.adopted(), whole as u64, "{cut}");
            writer.write(&game(9), "").unwrap();
            writer.finish().unwrap();
            let found = games(folder.path());
            let expected: Vec<_> = (0..whole as u32).chain([9]).map(|i| (game(i), String::new())).collect();
            assert_eq!(found, expected, "{cut}");
        }
        let folder = tempfile::tempdir().unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(folder.path().join(".games-000000.records"), &bytes).unwrap();
        assert_eq!(adopt(folder.path()).unwrap(), 3, "the last game was not all written");
        assert_eq!(games(folder.path()).len(), 3);
    }
}
