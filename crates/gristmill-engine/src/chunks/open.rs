//! The folder of a chunk pack -> its positions by number: mapped files, their indexes, and a table that packs tensors straight.
//! Each game is held against its checksum before its first position is read; nothing is ever changed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::chess::layout_v7;
use gristmill_format::chess::pack::{PackedGame, Position};
use gristmill_format::chess::record::V7_BYTES;
use gristmill_format::chess::weight::layout_judged;
use gristmill_format::container::chunks::ChunkFile;
use gristmill_format::demo::pack::{PackedTrajectory, Scratch};
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::layout::Layout;
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, Result as FormatResult};
use xxhash_rust::xxh3::Xxh3;

use super::chess::CHESS;
use super::codec::Codec;
use super::demo::DEMO;
use super::{files, is_chunks};
use crate::error::Result;
use crate::pack::STAGING;
use crate::store::publish::is_interrupted;
use crate::store::{HeldFile, Residence};
use crate::table::{Chunks, FrameTable, Pick, Straight, Weighed};

/// Positions that are encoded together: enough that rows are written past the cache.
const TOGETHER: usize = 16;

/// The records of one game have at most this many bytes.
const MOST_GAME: usize = 1 << 30;

/// A chunk pack that is open for reading. Shared freely between threads.
#[derive(Debug)]
pub struct ChunkPack {
    folder: PathBuf,
    codec: &'static Codec,
    layout: Arc<Layout>,
    pub(super) files: Vec<File>,
    /// Number of the first frame and of the first game of each file, and those behind the last.
    pub(super) first: Vec<(u64, u64)>,
    identity: u64,
    /// Buffers for reading steps of trajectories, kept between reads.
    pub(super) scratches: Mutex<Vec<Scratch>>,
    /// The same for positions, [`TOGETHER`] each.
    positions: Mutex<Vec<Vec<Position>>>,
    /// The weight of each game, by the id of the weigher.
    pub(super) sums: Mutex<BTreeMap<u64, Arc<[f32]>>>,
}

#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    held: HeldFile,
    index: ChunkFile,
    /// A bit for each game that was held against its checksum.
    checked: Vec<AtomicU64>,
}

impl File {
    pub(super) fn open(path: PathBuf, residence: Residence) -> FormatResult<Self> {
        let place = |e: Error| e.in_source(path.display().to_string());
        let len = std::fs::metadata(&path).map_err(|e| place(e.into()))?.len();
        let held = HeldFile::open(&path, 0, len, residence)?;
        let index = ChunkFile::open(held.bytes()).map_err(place)?;
        let checked = (0..index.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(File { path, held, index, checked })
    }

    pub(super) fn index(&self) -> &ChunkFile {
        &self.index
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// An error of game `i`, with its place.
    pub(super) fn named(&self, i: usize, error: Error) -> Error {
        error.in_chunk(i).in_member(self.index().name(i)).in_source(self.path.display().to_string())
    }

    /// The stored bytes of game `i`, held against nothing.
    pub(super) fn bytes(&self, i: usize) -> FormatResult<&[u8]> {
        let missing = || Error::new(Kind::Missing, format!("game {i} of {}", self.index().len()));
        let span = self.index().span(i).ok_or_else(missing)?;
        Ok(&self.held.bytes()[span.offset as usize..][..span.len as usize])
    }

    /// The stored bytes of game `i`, and whether they were read before; `true` says that they were held against their checksum.
    pub(super) fn stored(&self, i: usize) -> FormatResult<(&[u8], bool)> {
        let bytes = self.bytes(i)?;
        let known = self.checked[i / 64].load(Ordering::Relaxed) & (1u64 << (i % 64)) != 0;
        if !known {
            self.index().check(i, bytes)?;
        }
        Ok((bytes, known))
    }

    /// Notes that nothing is wrong with game `i`.
    pub(super) fn pass(&self, i: usize) {
        self.checked[i / 64].fetch_or(1u64 << (i % 64), Ordering::Relaxed);
    }

    /// Replaces `out` by the fields of game `i` that weighers read, frame by frame.
    pub(super) fn judged(&self, i: usize, out: &mut Chunk) -> FormatResult<()> {
        (out.frames, out.layout) = (0, Some(Arc::clone(layout_judged())));
        out.bytes.clear();
        let read = self.game(i).and_then(|packed| {
            packed.judged(Position::default, &mut out.bytes)?;
            out.frames = packed.frames();
            Ok(())
        });
        read.map_err(|e| self.named(i, e))
    }

    /// Packed game `i`, which there is.
    fn game(&self, i: usize) -> FormatResult<PackedGame<'_>> {
        let (bytes, known) = self.stored(i)?;
        let game = PackedGame::new(bytes)?;
        if !known {
            self.pass(i);
        }
        Ok(game)
    }
}

impl ChunkPack {
    /// Opens the pack in `folder`.
    ///
    /// Errors, with the file: `Path`; `Format`: `Missing` where there is none, `Truncated` between two packs, `Unsupported` for
    /// chunks of a kind that is not known here, or of two kinds, and as [`ChunkFile::open`].
    pub fn open(folder: &Path, residence: Residence) -> Result<Self> {
        let refuse = |kind, detail: &str| Error::new(kind, detail).in_source(folder.display().to_string());
        if is_interrupted(folder, STAGING) {
            let detail = format!(
                "a job was interrupted while it put its files in place; `gristmill recover {}` finishes it",
                folder.display()
            );
            return Err(refuse(Kind::Truncated, &detail).into());
        }
        let mut names = files(folder)?;
        names.retain(|name| is_chunks(name));
        if names.is_empty() {
            return Err(refuse(Kind::Missing, "there are no games-*.chunks here").into());
        }
        let (mut opened, mut first, mut hash) = (Vec::new(), vec![(0, 0)], Xxh3::new());
        for name in names {
            let file = File::open(folder.join(name), residence)?;
            let (frames, games) = first[first.len() - 1];
            first.push((frames + file.index().total_frames(), games + file.index().len() as u64));
            hash.update(&file.index().identity().to_le_bytes());
            opened.push(file);
        }
        let (codec, layout) = kind(&opened)?;
        Ok(ChunkPack {
            folder: folder.to_owned(),
            codec,
            layout,
            files: opened,
            scratches: Mutex::default(),
            positions: Mutex::default(),
            first,
            identity: hash.digest(),
            sums: Mutex::default(),
        })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What its chunks hold.
    pub fn codec(&self) -> &'static Codec {
        self.codec
    }

    /// Whether they are games of chess.
    pub(super) fn is_chess(&self) -> bool {
        self.codec.tag == CHESS.tag
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
    pub(super) fn place(&self, game: u64) -> Option<(&File, usize, u64)> {
        let file = self.first.partition_point(|(_, first)| *first <= game).checked_sub(1)?;
        let within = (game - self.first[file].1) as usize;
        Some((self.files.get(file)?, within, self.first[file].0))
    }

    /// Number of the first frame of game `i`, and how many it has; none where there is no such game.
    pub fn frames(&self, game: u64) -> Option<(u64, u64)> {
        let (file, within, first) = self.place(game)?;
        Some((first + file.index().first_frame(within), file.index().frames(within).into()))
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
        self.place(game).map_or("", |(file, within, _)| file.index().name(within))
    }

    /// The game of frame `row`, counted over all files, and its place in it; none where there is no such frame.
    pub fn place_of(&self, row: u64) -> Option<(u64, u64)> {
        let (file, game, frame) = self.find(row)?;
        Some((self.first[file].1 + game as u64, u64::from(frame)))
    }

    /// Replaces `out` by the records of a game, of the size that it returns.
    pub(super) fn records_of(&self, game: u64, position: &mut Position, out: &mut Vec<u8>) -> FormatResult<usize> {
        let missing = || Error::new(Kind::Missing, format!("game {game} of {}", self.games()));
        let (file, within, _) = self.place(game).ok_or_else(missing)?;
        out.clear();
        let read = file.game(within).and_then(|packed| {
            packed.records(MOST_GAME, position, out)?;
            Ok(packed.version().bytes())
        });
        read.map_err(|e| {
            let named = e.in_chunk(within).in_member(file.index().name(within));
            named.in_source(file.path.display().to_string())
        })
    }

    /// Number of the file of frame `row`, counted over all files, of its game there, and its number in that.
    pub(super) fn find(&self, row: u64) -> Option<(usize, usize, u32)> {
        let file = self.first.partition_point(|(first, _)| *first <= row).checked_sub(1)?;
        let (game, frame) = self.files.get(file)?.index().locate(row - self.first[file].0)?;
        Some((file, game, frame))
    }

    /// The game of frame `row`, counted over all files, and where the frame is: file, game there, frame.
    fn game_with(&self, row: u64) -> FormatResult<(PackedGame<'_>, Provenance)> {
        let missing = || Error::new(Kind::Missing, format!("frame {row} of {}", self.len()));
        let (number, game, frame) = self.find(row).ok_or_else(missing)?;
        let file = &self.files[number];
        let packed = file.game(game).map_err(|e| file.named(game, e.in_frame(frame as usize)))?;
        Ok((packed, Provenance { source: number as u64, chunk: game as u32, frame }))
    }

    /// Reads a frame of a game of this pack.
    fn position(&self, (packed, from): &(PackedGame<'_>, Provenance), out: &mut Position) -> FormatResult<()> {
        let read = packed.position(from.frame as usize, out);
        read.map_err(|e| self.files[from.source as usize].named(from.chunk as usize, e.in_frame(from.frame as usize)))
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
        if !self.is_chess() {
            return self.step_records(rows, out);
        }
        let mut position = Position::default();
        for (row, record) in rows.iter().zip(out.chunks_exact_mut(V7_BYTES)) {
            self.position(&self.game_with(*row)?, &mut position)?;
            position.write(record);
        }
        Ok(())
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

    fn locate(&self, row: u64) -> (String, u64) {
        let file = self.first.partition_point(|(first, _)| *first <= row).saturating_sub(1);
        let path = self.files.get(file).map(|file| file.path.display().to_string()).unwrap_or_default();
        (path, row - self.first[file].0)
    }

    fn straight(&self) -> Option<&dyn Straight> {
        Some(self)
    }

    fn weighed(&self) -> Option<&dyn Weighed> {
        self.is_chess().then_some(self as &dyn Weighed)
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
        if !self.is_chess() {
            return self.step_tensors(encoder, picks, out);
        }
        let sizes: Vec<usize> = encoder.outputs().iter().map(|spec| spec.row_bytes()).collect();
        let spare = self.positions.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut positions = spare.unwrap_or_else(|| (0..TOGETHER).map(|_| Position::default()).collect());
        let mut games = Vec::with_capacity(TOGETHER);
        for (i, some) in picks.chunks(TOGETHER).enumerate() {
            games.clear();
            for pick in some {
                games.push(self.game_with(pick.row)?);
            }
            games.iter().for_each(|(packed, from)| packed.look(from.frame as usize));
            for (game, position) in games.iter().zip(&mut positions) {
                self.position(game, position)?;
            }
            let read = some.iter().zip(&games).zip(&positions);
            let rows: Vec<Row<'_>> =
                read.map(|((pick, (_, from)), position)| row(pick.bits, position, *from)).collect();
            let first = i * TOGETHER;
            let part = |(column, size): (_, &usize)| -> &mut [u8] {
                let column: &mut &mut [u8] = column;
                &mut column[first * size..(first + some.len()) * size]
            };
            let mut columns: Vec<&mut [u8]> = out.iter_mut().zip(&sizes).map(part).collect();
            encoder.encode(&rows, &mut columns)?;
        }
        self.positions.lock().unwrap_or_else(PoisonError::into_inner).push(positions);
        Ok(())
    }
}

fn row(bits: u64, position: &Position, provenance: Provenance) -> Row<'_> {
    Row { record: position.record(), provenance, bits, sparse: position.policy() }
}

/// What the chunks of some files hold, and the layout of their records: V7 for games of chess, whatever was packed.
fn kind(files: &[File]) -> FormatResult<(&'static Codec, Arc<Layout>)> {
    let codec = super::CODECS.into_iter().find(|codec| files.iter().all(|file| file.index.codec() == codec.tag));
    let Some(codec) = codec else {
        let of = |file: &File| file.index.codec().escape_ascii().to_string();
        let codecs: Vec<String> = files.iter().map(of).collect();
        let detail = format!("chunks of `{}`: two kinds, or one of a newer gristmill", codecs.join("`, `"));
        let path = files.first().map(|file| file.path.display().to_string()).unwrap_or_default();
        return Err(Error::new(Kind::Unsupported, detail).in_source(path));
    };
    let first = files.iter().find(|file| !file.index.is_empty());
    match first.filter(|_| codec.tag == DEMO.tag) {
        Some(file) => {
            let about = file.stored(0).and_then(|(bytes, _)| PackedTrajectory::new(bytes)?.about());
            Ok((codec, about.map_err(|e| file.named(0, e))?.layout))
        }
        None => Ok((codec, Arc::clone(layout_v7()))),
    }
}

/// The pack as a table.
pub(super) fn table(pack: &Arc<ChunkPack>) -> Arc<dyn FrameTable> {
    Arc::clone(pack) as Arc<dyn FrameTable>
}
