//! A path -> its demonstrations: one file of any form, or a folder of shards; in memory, by their place, or in columns.
//! Reads in order of name; every error names the file.

use std::path::{Path, PathBuf};

use gristmill_format::demo::budget::MAX_BYTES;
use gristmill_format::demo::form::DemoFile;
use gristmill_format::demo::form::{
    EXTENSIONS, ReadOptions, is_tar, or_games, read, read_pickle, refuse_nothing, refuse_packing,
};
use gristmill_format::demo::shard::{Packing, Shard, ShardMeta, room, shard_head, stream, unpack, unpack_into};
use gristmill_format::demo::trajectory::Tape;
use gristmill_format::detect::{Format, HEAD, detect_alone};
use gristmill_format::source::{Span, read_span};
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::facts::Facts;
use gristmill_runtime::store::files::{is_folder, names};
use gristmill_runtime::store::{Room, open_file};
use xxhash_rust::xxh3::xxh3_64;

use super::data::{Demonstrations, advise, told};
use super::indexed::{Indexed, facts_of, look};
use super::origin::Origins;
use super::packed::Packed;
use super::spill::{Spill, Spilled};
use crate::chunks;
use crate::kinds::demo::is_trajectories;

/// Bytes of records that are written at a time.
const BLOCK_BYTES: usize = 4 << 20;

/// Whether `path` holds demonstrations: a file that is one by name and first bytes, a folder with shards directly in it, or a pack
/// of trajectories.
///
/// Errors, with the path: `Io`; as of a pack's first file.
pub fn holds(path: &Path) -> Result<bool> {
    if is_folder(path)? {
        return Ok(!shards(path)?.is_empty() || is_trajectories(path)?);
    }
    // What `detect_alone` refuses is no demonstration; opening it reports why.
    Ok(matches!(detect_alone(&path.to_string_lossy(), &*open_file(path)?), Ok(Some(Format::Demonstrations))))
}

/// Reads a file in any form, or all shards directly in a folder, in order of name, as one: a trajectory that no `dones` ended
/// continues in the next shard.
///
/// Errors, with the file: as [`read`]; `Empty` for a folder without shards; `TooLarge` beyond the bound; `OutOfRange` for
/// shards whose metadata does not mix.
pub fn open_demos(path: &Path, options: &ReadOptions) -> Result<DemoFile> {
    if !is_folder(path)? {
        return one(path, options);
    }
    let names = shards(path)?;
    let Some((first, rest)) = names.split_first() else {
        return Err(no_shards(path));
    };
    let mut all = one(first, options)?;
    for shard in rest {
        let next = one(shard, options)?;
        all.append(next).map_err(|e| e.in_source(shard.display().to_string()))?;
    }
    Ok(all)
}

fn one(path: &Path, options: &ReadOptions) -> Result<DemoFile> {
    let place = |e: Error| e.in_source(path.display().to_string());
    let from = open_file(path)?;
    let mut bytes = Vec::new();
    read_span(&*from, Span::WHOLE, MAX_BYTES as u64, &mut bytes).map_err(place)?;
    let key = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    read(&key, &bytes, options).map_err(place)
}

/// How demonstrations are opened and kept.
#[derive(Debug, Clone, Default)]
pub struct DemosOptions {
    /// How native forms are read, and how much may be held in memory.
    pub read: ReadOptions,
    /// Folder of the side index; without it the headers of plain shards are read each time.
    pub index: Option<PathBuf>,
    /// Folder to keep columns in, instead of memory.
    pub spill: Option<PathBuf>,
}

/// Opens a file in any form, all shards directly in a folder, in order of name, as one (a trajectory that no `dones`
/// ended continues in the next shard), or a pack of trajectories, of which only headers are read. Of plain shards it
/// reads headers, or nothing where the side index knows them; of packed ones all frames. It calls `go_on` now and then.
///
/// Errors, with the file: as [`open_demos`]; `Stopped` where `go_on` says so; `Path` for folders that cannot be written.
pub fn open(
    path: &Path,
    options: &DemosOptions,
    go_on: &mut dyn FnMut() -> bool,
) -> gristmill_runtime::Result<Demonstrations> {
    if chunks::is_chunks(&key_of(path)) {
        let detail = "one file of a pack; name its folder, or open the file as a source of chunks";
        return Err(Error::new(Kind::Unsupported, detail).in_source(path.display().to_string()).into());
    }
    let folder = is_folder(path)?;
    let pack = folder && is_trajectories(path)?;
    let files = match folder {
        true if pack => chunks::files(path)?.iter().map(|name| path.join(name)).collect(),
        true => shards(path)?,
        false => vec![path.to_owned()],
    };
    if files.is_empty() {
        return Err(no_shards(path).into());
    }
    let facts = facts_of(&files[0], options.index.as_deref());
    let spilled = options
        .spill
        .as_ref()
        .map(|folder| Spill::open(folder, path, &files, &how(&options.read), options.read.max_bytes))
        .transpose()?;
    match spilled {
        Some(Spilled::There(there)) => return Ok(*there),
        Some(Spilled::Fresh(mut spill)) if pack => {
            spill.add_all(&packed(path, options.read.max_bytes)?)?;
            return spill.finish();
        }
        Some(Spilled::Fresh(mut spill)) => {
            for file in &files {
                proceed(go_on)?;
                spill_file(&mut spill, file, facts.as_ref(), options, go_on)?;
            }
            return spill.finish();
        }
        None if pack => return packed(path, options.read.max_bytes),
        None => {}
    }
    let (max, source) = (options.read.max_bytes, path.display().to_string());
    if let Some(found) = indexed(&files, facts.as_ref(), options, go_on)? {
        return Ok(Demonstrations::indexed(key_of(&files[0]), source, found, max));
    }
    let mut all: Option<DemoFile> = None;
    let (mut left, mut origins) = (max, Origins::default());
    for file in &files {
        proceed(go_on)?;
        let next = one_held(file, &options.read, &mut left).map_err(advise)?;
        let of = |file: &DemoFile| file.trajectories().ends().len();
        let (before, own) = (all.as_ref().map_or(0, of), of(&next));
        match &mut all {
            None => all = Some(next),
            Some(all) => all.append(next).map_err(|e| advise(e.in_source(file.display().to_string())))?,
        }
        origins.begin(key_of(file), before, all.as_ref().map_or(0, of) < before + own);
    }
    let all = all.ok_or_else(|| no_shards(path))?;
    Ok(Demonstrations::held(source, all, origins, max))
}

/// The trajectories of a pack; not more than `max` bytes of one field are held in memory at once.
fn packed(path: &Path, max: usize) -> gristmill_runtime::Result<Demonstrations> {
    let source = path.display().to_string();
    Ok(Demonstrations::packed(key_of(path), source, Packed::open(path, max)?, max))
}

fn proceed(go_on: &mut dyn FnMut() -> bool) -> gristmill_runtime::Result<()> {
    if go_on() { Ok(()) } else { Err(gristmill_runtime::Error::Stopped) }
}

fn key_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn no_shards(path: &Path) -> Error {
    let detail = "no shards directly in it; expected names that end in .tar, .tar.zst, .tar.gz or .tgz";
    Error::new(Kind::Empty, detail).in_source(path.display().to_string())
}

/// The first bytes of a file say whether it is a plain tar.
fn is_plain_tar(path: &Path) -> Result<bool> {
    let from = open_file(path)?;
    let mut head = Vec::new();
    let len = from.len()?.min(HEAD as u64);
    read_span(&*from, Span { offset: 0, len }, HEAD as u64, &mut head)?;
    Ok(is_tar(&head))
}

/// What files are read by, as far as it changes what comes of them.
pub fn how(options: &ReadOptions) -> String {
    let video = options.pov.as_ref().map(|pov| (pov.shape.clone(), xxh3_64(&pov.bytes)));
    let lenient = if options.strict { "" } else { " without what follows the end" };
    format!(
        "{:?} {:?} null actions {} stack {} video {video:?}{lenient}",
        options.semantics, options.magical, options.remove_null_actions, options.frame_stack
    )
}

/// The shards by the place of their frames, where all are plain and none has to be read from its start.
fn indexed(
    files: &[PathBuf],
    facts: Option<&Facts>,
    options: &DemosOptions,
    go_on: &mut dyn FnMut() -> bool,
) -> gristmill_runtime::Result<Option<Indexed>> {
    let max = options.read.max_bytes;
    for file in files {
        if !is_plain_tar(file)? {
            return Ok(None);
        }
    }
    let mut all = Indexed::new();
    for file in files {
        proceed(go_on)?;
        let Some((from, index)) = look(file, facts, &options.read)? else { return Ok(None) };
        all.add(file, from, index, max)?;
    }
    Ok(Some(all))
}

/// A file in memory; `left` is how many bytes the files that follow may take.
fn one_held(path: &Path, options: &ReadOptions, left: &mut usize) -> Result<DemoFile> {
    let place = |e: Error| e.in_source(path.display().to_string());
    let (key, from) = (key_of(path), open_file(path)?);
    let mut bytes = Vec::new();
    read_span(&*from, Span::WHOLE, *left as u64, &mut bytes).map_err(place)?;
    refuse_packing(&bytes).map_err(place)?;
    let packed = Packing::of(&bytes) != Packing::Tar;
    if !packed && !is_tar(&bytes) {
        return read(&key, &bytes, options).map_err(place);
    }
    let tape = unpacked(bytes, options, *left).map_err(place)?;
    refuse_nothing(tape.bytes()).map_err(place)?;
    if !is_tar(tape.bytes()) {
        return read_pickle(&key, tape.bytes(), packed, options).map_err(place);
    }
    let shard = Shard::over(&tape, *left).map_err(|e| if packed { or_games(e) } else { e }).map_err(place)?;
    options.judged(shard.behind.clone()).map_err(place)?;
    *left = left.saturating_sub(tape.bytes().len());
    Ok(DemoFile::of_shard(&key, shard))
}

/// What `bytes` unpack to, in memory that costs little to touch where its size is known.
fn unpacked(bytes: Vec<u8>, options: &ReadOptions, max: usize) -> Result<Tape> {
    if let Some(len) = room(&bytes).filter(|len| *len <= max) {
        let mut room = Room::new(len)?;
        if let Some(len) = unpack_into(&bytes, room.bytes_mut())? {
            return Ok(Tape::new(Part(room, len)));
        }
    }
    if Packing::of(&bytes) == Packing::Tar {
        return Ok(Tape::new(bytes));
    }
    let mut plain = Vec::new();
    options.judged(unpack(&bytes, max, &mut plain)?.behind)?;
    Ok(Tape::new(plain))
}

/// The first bytes of some room.
struct Part(Room, usize);

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.0.bytes()[..self.1]
    }
}

/// Writes a file into columns: a plain shard by the place of its frames, a packed one as it is unpacked, all else from memory.
fn spill_file(
    spill: &mut Spill,
    path: &Path,
    facts: Option<&Facts>,
    options: &DemosOptions,
    go_on: &mut dyn FnMut() -> bool,
) -> gristmill_runtime::Result<()> {
    let place = |e: Error| e.in_source(path.display().to_string());
    let max = options.read.max_bytes;
    if is_plain_tar(path)?
        && let Some((from, index)) = look(path, facts, &options.read)?
    {
        let mut shard = Indexed::new();
        shard.add(path, from, index, max)?;
        spill.note("demo.shard", shard.meta.as_ref(), &told_of(shard.meta.as_ref()))?;
        spill.begin_file(key_of(path));
        shard.blocks((0, shard.frames), None, max, &mut |_, block| {
            proceed(go_on).and_then(|()| spill.add(&block)).map_err(told)
        })?;
        spill.end_shard();
        return Ok(());
    }
    let Some(packing) = packed_tar(path).map_err(place)? else { return spill_held(spill, path, options) };
    let start = spill.mark();
    spill.begin_file(key_of(path));
    let read = stream(open_file(path)?, packing, BLOCK_BYTES, max, &mut |block| {
        proceed(go_on).and_then(|()| spill.add(&block)).map_err(told)
    });
    let read = read.map_err(|e| place(or_games(e)))?;
    options.read.judged(read.behind).map_err(place)?;
    if read.shuffled {
        // Frames are put into order of time in memory.
        spill.back_to(start)?;
        return spill_held(spill, path, options);
    }
    spill.note("demo.shard", read.meta.as_ref(), &told_of(read.meta.as_ref()))?;
    spill.end_shard();
    Ok(())
}

/// What a shard says about itself, for people.
fn told_of(meta: Option<&ShardMeta>) -> Vec<(String, String)> {
    meta.into_iter().flat_map(ShardMeta::about).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Writes a file into columns that has to be read whole.
fn spill_held(spill: &mut Spill, path: &Path, options: &DemosOptions) -> gristmill_runtime::Result<()> {
    let max = options.read.max_bytes;
    let large = |e: Error| match e.kind() {
        Kind::TooLarge => {
            let detail = format!("{}; it has to be read whole: raise `max_bytes`, or split the file", e.detail());
            Error::new(Kind::TooLarge, detail).in_source(path.display().to_string())
        }
        _ => e,
    };
    let mut left = max;
    let file = one_held(path, &options.read, &mut left).map_err(large)?;
    spill.close();
    spill.begin_file(key_of(path));
    spill.add_all(&Demonstrations::held(path.display().to_string(), file, Origins::default(), max))
}

/// How a file is packed whose contents are a tar.
fn packed_tar(path: &Path) -> Result<Option<Packing>> {
    let from = open_file(path)?;
    let mut magic = Vec::new();
    read_span(&*from, Span { offset: 0, len: from.len()?.min(4) }, 4, &mut magic)?;
    let packing = Packing::of(&magic);
    Ok((packing != Packing::Tar && is_tar(&shard_head(from, packing)?)).then_some(packing))
}

/// The shards directly in a folder, in natural order of name.
pub fn shards(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = names(folder).map_err(gristmill_runtime::Error::of_reading)?;
    let packed = |name: &str| EXTENSIONS.iter().any(|end| end.starts_with(".t") && name.ends_with(end));
    found.retain(|name| !name.starts_with('.') && (name.ends_with(".tar") || packed(name)));
    found.sort_unstable_by(|a, b| gristmill_runtime::key::natural_cmp(a, b));
    Ok(found.into_iter().map(|name| folder.join(name)).collect())
}
