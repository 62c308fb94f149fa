//! The folder of a chunk pack -> its frames by number: mapped files, their indexes, and a table that makes tensors straight.
//! Each game is held against its checksum before its first position is read; nothing is ever changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::container::chunks::{ChunkFile, Codec as Tag};
use gristmill_format::container::shelf::Shelf;
use gristmill_format::encode::Encoder;
use gristmill_format::layout::Layout;
use gristmill_format::source::{Chunk, Kept, ReadAt};
use gristmill_format::{Error, Kind, Result as FormatResult};
use gristmill_runtime::error::Result;
use gristmill_runtime::names::STAGING;
use gristmill_runtime::store::publish::is_interrupted;
use gristmill_runtime::store::{HeldFile, Hold, Pool, Residence, open_file};
use gristmill_runtime::table::{Chunks, FrameTable, Needs, Parts, Pick, Straight, Weighed};
use xxhash_rust::xxh3::Xxh3;

use super::codec::Codec;
use super::{files, is_chunks, opening};
use crate::opening::From;

/// The most bytes of unpacked blocks that a pack keeps. A loader that reads the same pictures again finds them unpacked.
const MOST_UNPACKED: usize = 256 << 20;

/// From what a chunk file says of its chunks to their codec; an error for what is not known here.
pub(crate) type Codecs = fn(Tag) -> FormatResult<&'static dyn Codec>;

/// A chunk pack that is open for reading. Shared freely between threads.
#[derive(Debug)]
pub struct ChunkPack {
    folder: PathBuf,
    codec: &'static dyn Codec,
    layout: Arc<Layout>,
    pub(crate) files: Vec<File>,
    /// Number of the first frame and of the first game of each file, and those after the last.
    pub(crate) first: Vec<(u64, u64)>,
    identity: u64,
    /// Buffers of readers, kept between reads.
    tools: Mutex<Vec<Kept>>,
    /// Unpacked blocks of its chunks. Empty if its chunks have no blocks.
    pub(crate) unpacked: Arc<Shelf>,
    /// The weight of each game, by the id of the weigher.
    pub(super) sums: Mutex<BTreeMap<u64, Arc<[f32]>>>,
}

/// A chunk file of a pack.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    held: HeldFile,
    index: ChunkFile,
    codec: &'static dyn Codec,
    /// A bit for each game that was held against its checksum.
    checked: Vec<AtomicU64>,
    /// A bit for each game that was checked and ends with its records, as many as the index says.
    ending: Vec<AtomicU64>,
    /// Whether the index is read with the first game.
    outlined: bool,
}

impl File {
    pub(crate) fn open_as(path: PathBuf, residence: Residence, codecs: Codecs) -> FormatResult<Self> {
        let place = |e: Error| e.in_source(path.display().to_string());
        let from = open_file(&path)?;
        let held = HeldFile::open(&path, 0, from.len().map_err(place)?, residence)?;
        let index = match ChunkFile::open(&held) {
            Err(e) if !e.kind().is_of_reading() && held.again(&[(0, usize::MAX)])? => ChunkFile::open(&held),
            index => index,
        };
        let index = index.map_err(place)?;
        let codec = codecs(index.codec()).map_err(place)?;
        let [checked, ending] = [(), ()].map(|()| bits(index.len()));
        Ok(File { path, held, index, codec, checked, ending, outlined: false })
    }

    /// Takes an open file of a bucket. It reads the index together with the first game. If there is a pool, the cache keeps a part of the
    /// file.
    pub(super) fn outlined(
        path: PathBuf,
        from: Arc<dyn ReadAt>,
        index: ChunkFile,
        codec: &'static dyn Codec,
        (residence, pool): (Residence, Option<&Arc<Pool>>),
    ) -> FormatResult<Self> {
        let len = from.len().map_err(|e| e.in_source(path.display().to_string()))?;
        let held = match pool {
            Some(pool) => HeldFile::of_pool(&path, from, 0, len, pool)?,
            None => HeldFile::of(&path, from, 0, len, residence)?,
        };
        let [checked, ending] = [(), ()].map(|()| bits(index.len()));
        Ok(File { path, held, index, codec, checked, ending, outlined: true })
    }

    /// Reads the index if only its outline is known.
    fn complete(&self) -> FormatResult<()> {
        match self.index.complete(&self.held) {
            // A network may damage bytes: the file fetches them once more.
            Err(e) if !e.kind().is_of_reading() && self.held.again(&[self.index_range()])? => {
                self.index.complete(&self.held)
            }
            done => done,
        }
    }

    fn index_range(&self) -> (usize, usize) {
        let span = self.index.index_span();
        (span.offset as usize, (span.offset + span.len) as usize)
    }

    /// The name of game `i`. It is empty if the game has none, or if the index cannot be read.
    pub(crate) fn name(&self, i: usize) -> &str {
        let _ = self.complete();
        self.index.name(i)
    }

    /// Where the chunks of the file lie. An outline has no names of games.
    pub fn index(&self) -> &ChunkFile {
        &self.index
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error of game `i`, with its place.
    pub(crate) fn named(&self, i: usize, error: Error) -> Error {
        error.in_chunk(i).in_member(self.name(i)).in_source(self.path.display().to_string())
    }

    /// The stored bytes of game `i`, held against nothing.
    pub(crate) fn bytes(&self, i: usize) -> FormatResult<&[u8]> {
        let missing = || Error::new(Kind::Missing, format!("game {i} of {}", self.index().len()));
        let span = self.index().span(i).ok_or_else(missing)?;
        let (start, end) = (span.offset as usize, (span.offset + span.len) as usize);
        self.held.have(start, end)?;
        Ok(&self.held.bytes()[start..end])
    }

    /// The stored bytes of game `i`, and whether they were read before; `true` says that they were held against their checksum.
    pub(crate) fn stored(&self, i: usize) -> FormatResult<(&[u8], bool)> {
        let bytes = self.bytes(i)?;
        // A bounded file may have freed the game and fetched it again: it checks the game each time.
        let known = !self.held.is_bounded() && self.checked[i / 64].load(Ordering::Relaxed) & (1u64 << (i % 64)) != 0;
        if !known {
            self.complete()?;
        }
        if !known && let Err(e) = self.index().check(i, bytes) {
            // A network may damage bytes: the file fetches them once more.
            let span = self.index().span(i).unwrap_or_default();
            let range = (span.offset as usize, (span.offset + span.len) as usize);
            if !self.held.again(&[range])? {
                return Err(e);
            }
            self.index().check(i, bytes)?;
        }
        Ok((bytes, known))
    }

    /// The stored bytes of game `i`, held against their checksum.
    ///
    /// Errors, with the place: `Corrupt`; `Missing` for one that does not exist.
    pub fn game(&self, i: usize) -> FormatResult<&[u8]> {
        self.stored(i).map(|(bytes, _)| bytes).map_err(|e| self.named(i, e))
    }

    /// Notes that nothing is wrong with game `i`.
    pub(crate) fn pass(&self, i: usize) {
        self.checked[i / 64].fetch_or(1u64 << (i % 64), Ordering::Relaxed);
    }

    /// Notes that game `i`, which was checked, ends with its records, as many as the index says.
    pub(super) fn note_ending(&self, i: usize) {
        self.ending[i / 64].fetch_or(1u64 << (i % 64), Ordering::Relaxed);
    }

    /// Returns the bytes of the file for [`File::ending`], or `None` if a cache may free some of them.
    pub(super) fn lasting(&self) -> Option<&[u8]> {
        (!self.held.is_bounded()).then(|| self.held.bytes())
    }

    /// Finds a record of `size` bytes from the end of its game. `bytes` are [those of the file](File::lasting). `place` has the game, the
    /// number of records from this one to the end of the game, and the byte at which the game ends. Returns `None` if nobody
    /// [noted](File::note_ending) the game.
    #[inline]
    pub(super) fn ending<'a>(&self, bytes: &'a [u8], place: (usize, u64, u64), size: usize) -> Option<&'a [u8]> {
        let (game, behind, end) = place;
        let is_noted = self.ending[game / 64].load(Ordering::Relaxed) >> (game % 64) & 1 == 1;
        let start = end as usize - if is_noted { behind as usize * size } else { return None };
        bytes.get(start..start + size)
    }

    /// Fetches game `i`. It stays in the cache while this thread has the returned value. `None` if nothing frees bytes of the file.
    fn hold(&self, i: usize) -> FormatResult<Option<Hold>> {
        let span = self.index().span(i).unwrap_or_default();
        self.held.hold(&[(span.offset as usize, (span.offset + span.len) as usize)])
    }

    /// Replaces `out` by the fields of game `i` that weighers read, frame by frame.
    pub(super) fn judged(&self, i: usize, out: &mut Chunk) -> FormatResult<()> {
        let _held = self.hold(i)?;
        out.frames = 0;
        out.bytes.clear();
        let read = self.stored(i).and_then(|(bytes, known)| {
            self.codec.judged(bytes, out)?;
            if !known {
                self.pass(i);
            }
            Ok(())
        });
        read.map_err(|e| self.named(i, e))
    }
}

/// A bit for each of `games` games, none of them set.
fn bits(games: usize) -> Vec<AtomicU64> {
    (0..games.div_ceil(64)).map(|_| AtomicU64::new(0)).collect()
}

impl ChunkPack {
    /// Opens the pack in `folder`, whose chunks are of one of `codecs`.
    ///
    /// Errors: as [`ChunkPack::open`].
    pub(crate) fn open_as(folder: &Path, residence: Residence, codecs: Codecs) -> Result<Self> {
        let from = From::of(folder, residence)?;
        let folder = &*from.folder;
        let refuse = |kind, detail: &str| Error::new(kind, detail).in_source(folder.display().to_string());
        if is_interrupted(folder, STAGING) {
            let detail = format!(
                "a job was interrupted while it put its files in place; `gristmill recover {}` finishes it",
                folder.display()
            );
            return Err(refuse(Kind::Truncated, &detail).into());
        }
        if let Some((files, layout)) = opening::open(&from, residence, codecs)? {
            return Ok(ChunkPack::of(folder, files, layout));
        }
        let mut names = files(folder)?;
        names.retain(|name| is_chunks(name));
        if names.is_empty() {
            return Err(refuse(Kind::Missing, "there are no games-*.chunks here").into());
        }
        let opened = names.into_iter().map(|name| File::open_as(folder.join(name), residence, codecs));
        let opened = opened.collect::<FormatResult<Vec<_>>>()?;
        let (_, layout) = kind(&opened)?;
        Ok(ChunkPack::of(folder, opened, layout))
    }

    /// Joins the open chunk files of a folder into a pack. `files` holds at least one.
    fn of(folder: &Path, files: Vec<File>, layout: Arc<Layout>) -> Self {
        let (mut first, mut hash) = (vec![(0, 0)], Xxh3::new());
        for file in &files {
            let (frames, games) = first[first.len() - 1];
            first.push((frames + file.index().total_frames(), games + file.index().len() as u64));
            hash.update(&file.index().identity().to_le_bytes());
        }
        ChunkPack {
            folder: folder.to_owned(),
            codec: files[0].codec,
            layout,
            files,
            tools: Mutex::default(),
            unpacked: Arc::new(Shelf::new(MOST_UNPACKED)),
            first,
            identity: hash.digest(),
            sums: Mutex::default(),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What its chunks hold.
    pub fn codec(&self) -> &'static dyn Codec {
        self.codec
    }

    /// Calls `read` with buffers of an earlier read, and keeps them for a later one.
    pub(crate) fn with_tools<T>(&self, read: impl FnOnce(&mut Kept) -> FormatResult<T>) -> FormatResult<T> {
        let waiting = || self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tools = waiting().pop().unwrap_or_default();
        let done = read(&mut tools)?;
        waiting().push(tools);
        Ok(done)
    }

    /// A hash of the indexes, and so of all that the pack holds. The same wherever it lies.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Name and checksum of the index of each file, in order.
    pub fn checksums(&self) -> impl Iterator<Item = (String, u64)> {
        let name = |file: &File| file.path.file_name().map(|name| name.to_string_lossy().into_owned());
        self.files.iter().map(move |file| (name(file).unwrap_or_default(), file.index().identity()))
    }

    /// How many games there are.
    pub fn games(&self) -> u64 {
        self.first.last().map_or(0, |(_, games)| *games)
    }

    /// The file and number there of game `i`.
    pub(crate) fn place(&self, game: u64) -> Option<(&File, usize, u64)> {
        let file = self.first.partition_point(|(_, first)| *first <= game).checked_sub(1)?;
        let within = (game - self.first[file].1) as usize;
        Some((self.files.get(file)?, within, self.first[file].0))
    }

    /// Number of the first frame of game `i`, and how many it has; none where there is no such game.
    pub fn frames(&self, game: u64) -> Option<(u64, u64)> {
        let (file, within, first) = self.place(game)?;
        Some((first + file.index().first_frame(within), file.index().frames(within).into()))
    }

    /// The stored bytes of game `i`, held against their checksum.
    ///
    /// Errors, with the place: `Corrupt`; `Missing` for one that does not exist.
    pub fn stored(&self, game: u64) -> FormatResult<&[u8]> {
        let missing = || Error::new(Kind::Missing, format!("game {game} of {}", self.games()));
        let (file, within, _) = self.place(game).ok_or_else(missing)?;
        file.game(within)
    }

    /// Replaces `out` by the fields of game `i` that weighers read, frame by frame.
    pub(super) fn judged(&self, game: u64, out: &mut Chunk) -> FormatResult<()> {
        let missing = || Error::new(Kind::Missing, format!("game {game} of {}", self.games()));
        let (file, within, _) = self.place(game).ok_or_else(missing)?;
        file.judged(within, out)
    }

    /// Number of the game that a frame belongs to; none where there is no such frame.
    pub fn game_of(&self, frame: u64) -> Option<u64> {
        let file = self.first.partition_point(|(first, _)| *first <= frame).checked_sub(1)?;
        let (game, _) = self.files.get(file)?.index().locate(frame - self.first[file].0)?;
        Some(self.first[file].1 + game as u64)
    }

    /// [`ChunkPack::identity`] as it was when the files held the first `frames` frames and no more; none where they never did.
    pub fn identity_up_to(&self, frames: u64) -> Option<u64> {
        let files = self.first.iter().position(|(first, _)| *first == frames)?;
        let mut hash = Xxh3::new();
        self.files[..files].iter().for_each(|file| hash.update(&file.index().identity().to_le_bytes()));
        Some(hash.digest())
    }

    /// Where game `i` came from: the file that was packed, and the member.
    pub fn source(&self, game: u64) -> &str {
        self.place(game).map_or("", |(file, within, _)| file.name(within))
    }

    /// Fetches the bytes that these rows are read from. They stay in the cache while this thread has the returned values. Empty if nothing
    /// frees bytes of the pack.
    pub(super) fn hold(&self, rows: impl Iterator<Item = u64>) -> FormatResult<Vec<Hold>> {
        let mut held = Vec::new();
        if self.files.iter().any(|file| file.held.is_bounded()) {
            let rows: Vec<Range<u64>> = rows.map(|row| row..row + 1).collect();
            self.needs(&rows, &mut |file, ranges| {
                held.extend(file.hold(ranges)?);
                Ok(())
            })?;
        }
        Ok(held)
    }

    /// Number of the file of frame `row`, counted over all files, of its game there, and its number in that.
    pub(crate) fn find(&self, row: u64) -> Option<(usize, usize, u32)> {
        let file = self.first.partition_point(|(first, _)| *first <= row).checked_sub(1)?;
        let (game, frame) = self.files.get(file)?.index().locate(row - self.first[file].0)?;
        Some((file, game, frame))
    }
}

impl FrameTable for ChunkPack {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn len(&self) -> u64 {
        self.first.last().map_or(0, |(frames, _)| *frames)
    }

    fn gather(&self, rows: &[u64], out: &mut [u8]) -> FormatResult<()> {
        let size = self.layout.size();
        if rows.len().checked_mul(size) != Some(out.len()) {
            let detail = format!("{} bytes for {} records of {size}", out.len(), rows.len());
            return Err(Error::new(Kind::WrongSize, detail));
        }
        let _held = self.hold(rows.iter().copied())?;
        self.codec.gather(self, rows, out)
    }

    fn want(&self, start: u64, end: u64) {
        for (i, file) in self.files.iter().enumerate() {
            let (first, behind) = (self.first[i].0, self.first[i + 1].0);
            if start >= behind || end <= first {
                continue;
            }
            let game = |frame: u64| file.index().locate(frame).and_then(|(game, _)| file.index().span(game));
            let last = game(end.min(behind) - first - 1);
            if let (Some(from), Some(last)) = (game(start.max(first) - first), last) {
                file.held.want(from.offset as usize, (last.offset + last.len) as usize);
            }
        }
    }

    fn files(&self) -> Vec<&HeldFile> {
        self.files.iter().map(|file| &file.held).collect()
    }

    fn needs<'a>(&'a self, rows: &[Range<u64>], each: &mut Needs<'_, 'a>) -> FormatResult<()> {
        let mut games: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.files.len()];
        for rows in rows {
            let mut start = rows.start;
            while let Some((file, game, frame)) = self.find(start).filter(|_| start < rows.end) {
                games[file].insert(game);
                // On to the next game.
                start += u64::from(self.files[file].index().frames(game) - frame);
            }
        }
        for (file, games) in self.files.iter().zip(games).filter(|(_, games)| !games.is_empty()) {
            let spans = games.into_iter().filter_map(|game| file.index().span(game));
            let mut ranges: Vec<_> =
                spans.map(|span| (span.offset as usize, (span.offset + span.len) as usize)).collect();
            ranges.extend(file.outlined.then(|| file.index_range()));
            each(&file.held, &ranges)?;
        }
        Ok(())
    }

    fn locate(&self, row: u64) -> (String, u64) {
        let file = self.first.partition_point(|(first, _)| *first <= row).saturating_sub(1);
        let path = self.files.get(file).map(|file| file.path.display().to_string()).unwrap_or_default();
        (path, row - self.first[file].0)
    }

    fn straight(&self) -> Option<&dyn Straight> {
        Some(self)
    }

    fn parts(&self) -> Option<&dyn Parts> {
        self.codec.is_plain().then_some(self as &dyn Parts)
    }

    fn weighed(&self) -> Option<&dyn Weighed> {
        self.codec.weigher().is_some().then_some(self as &dyn Weighed)
    }

    fn chunks(&self) -> FormatResult<&dyn Chunks> {
        Ok(self)
    }
}

impl Chunks for ChunkPack {
    fn bounds(&self, row: u64) -> Range<u64> {
        let Some((file, game, _)) = self.find(row) else { return row..row };
        let index = self.files[file].index();
        let start = self.first[file].0 + index.first_frame(game);
        start..start + u64::from(index.frames(game))
    }
}

impl Straight for ChunkPack {
    fn encode(&self, encoder: &dyn Encoder, picks: &[Pick], out: &mut [&mut [u8]]) -> FormatResult<()> {
        let _held = self.hold(picks.iter().map(|pick| pick.row))?;
        self.codec.encode(self, encoder, picks, out)
    }
}

/// What the chunks of some files hold, and the layout of their records.
pub(super) fn kind(files: &[File]) -> FormatResult<(&'static dyn Codec, Arc<Layout>)> {
    let Some(first) = files.first() else { return Err(Error::new(Kind::Missing, "there are no chunk files")) };
    if let Some(other) = files.iter().find(|file| file.codec.tag() != first.codec.tag()) {
        let (is, was) = (other.codec.name(), first.codec.name());
        let detail = format!("chunks of `{is}`, the first file has chunks of `{was}`: a pack holds one kind");
        return Err(Error::new(Kind::Unsupported, detail).in_source(other.path.display().to_string()));
    }
    let filled = files.iter().find(|file| !file.index.is_empty());
    let layout = first.codec.layout(&|| match filled {
        Some(file) => file.stored(0).map(|(bytes, _)| bytes.to_vec()),
        None => Err(Error::new(Kind::Empty, "there is no chunk, hence no layout")),
    });
    let named = |e: Error| match filled {
        Some(file) => file.named(0, e),
        None => e.in_source(first.path.display().to_string()),
    };
    Ok((first.codec, layout.map_err(named)?))
}
