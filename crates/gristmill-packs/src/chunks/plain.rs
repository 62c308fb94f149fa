//! Packs whose chunks hold records of one size back to back -> these records by number, tensors of them, who their games are.
//! The codec says where in a chunk the records lie. Each chunk is checked once, when the first of its records is wanted.

use std::ops::Range;

use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::table::{FrameTable, Parts, Pick, copy_part};
use xxhash_rust::xxh3::xxh3_128;

use super::open::{ChunkPack, File};
use crate::pack_table::Content;

/// How many records [`copy`] finds before it copies the first one. The processor then fetches several records from memory at once.
const TOGETHER: usize = 256;

/// The stored bytes of a chunk, and its records.
///
/// Errors: those of `Codec::records`, with file and chunk.
fn stored<'a>(pack: &ChunkPack, file: &'a File, chunk: usize) -> Result<(&'a [u8], &'a [u8])> {
    let read = || {
        let (bytes, known) = file.stored(chunk)?;
        let frames = file.index().frames(chunk) as usize;
        let records = pack.codec().records(pack, bytes, (!known).then_some(frames))?;
        if !known {
            file.pass(chunk);
        }
        let end = bytes.len().checked_sub(frames * pack.layout().size()).map(|start| &bytes[start..]);
        if end.is_some_and(|end| std::ptr::eq(end, records)) {
            file.note_ending(chunk);
        }
        Ok((bytes, records))
    };
    read().map_err(|e| file.named(chunk, e))
}

/// A file of the pack, its bytes, and its frames: those from `first` to before `behind`.
#[derive(Clone, Copy)]
struct Near<'a> {
    first: u64,
    behind: u64,
    file: &'a File,
    bytes: &'a [u8],
}

impl<'a> Near<'a> {
    /// Returns the file of frame `row`. `None` if a cache may free bytes of the file, and if the pack has no such frame.
    fn of(pack: &'a ChunkPack, row: u64) -> Option<Self> {
        let number = pack.first.partition_point(|(first, _)| *first <= row).checked_sub(1)?;
        let ((first, _), (behind, _), file) = (pack.first[number], *pack.first.get(number + 1)?, &pack.files[number]);
        Some(Near { first, behind, file, bytes: file.lasting()? })
    }

    fn has(&self, row: u64) -> bool {
        (self.first..self.behind).contains(&row)
    }
}

/// Finds the records of these rows. Row `i` goes to `found[i]`.
///
/// Errors: as [`record`].
fn find<'a>(pack: &'a ChunkPack, rows: &[u64], found: &mut [&'a [u8]]) -> Result<()> {
    let size = pack.layout().size();
    let mut near: Option<Near<'_>> = None;
    for (row, found) in rows.iter().zip(found) {
        if near.is_none_or(|near| !near.has(*row)) {
            near = Near::of(pack, *row);
        }
        let noted = near.and_then(|Near { first, file, bytes, .. }| {
            file.ending(bytes, file.index().locate_end(row - first)?, size)
        });
        *found = noted.map_or_else(|| record(pack, *row).map(|(record, _)| record), Ok)?;
    }
    Ok(())
}

/// A record of a pack, and where it is: file, chunk there, frame.
///
/// Errors: `Missing` for a frame that does not exist; those of [`stored`].
fn record(pack: &ChunkPack, row: u64) -> Result<(&[u8], Provenance)> {
    let missing = || Error::new(Kind::Missing, format!("frame {row} of {}", pack.len()));
    let (number, chunk, frame) = pack.find(row).ok_or_else(missing)?;
    let (file, size) = (&pack.files[number], pack.layout().size());
    let provenance = Provenance { source: number as u64, chunk: chunk as u32, frame };
    let noted = || {
        let (index, bytes) = (file.index(), file.lasting()?);
        let (behind, span) = (index.frames(chunk) - frame, index.span(chunk)?);
        file.ending(bytes, (chunk, behind.into(), span.offset + span.len), size)
    };
    if let Some(record) = noted() {
        return Ok((record, provenance));
    }
    let (_, records) = stored(pack, file, chunk)?;
    let record = records.chunks_exact(size).nth(frame as usize).ok_or_else(missing)?;
    Ok((record, provenance))
}

/// Copies records into `out`, back to back.
///
/// Errors: as [`record`].
pub(super) fn gather(pack: &ChunkPack, rows: &[u64], out: &mut [u8]) -> Result<()> {
    copy(pack, rows, &[(0, pack.layout().size())], &mut [out])
}

/// Copies parts of records into `out`, which has one slice for each part.
///
/// Errors: as [`record`].
fn copy(pack: &ChunkPack, rows: &[u64], parts: &[(usize, usize)], out: &mut [&mut [u8]]) -> Result<()> {
    let mut found: [&[u8]; TOGETHER] = [&[]; TOGETHER];
    for (i, rows) in rows.chunks(TOGETHER).enumerate() {
        let found = &mut found[..rows.len()];
        find(pack, rows, found)?;
        for (part, out) in parts.iter().zip(&mut *out) {
            copy_part(found, *part, &mut out[i * TOGETHER * part.1..][..rows.len() * part.1]);
        }
    }
    Ok(())
}

impl Parts for ChunkPack {
    fn copy(&self, rows: &[u64], parts: &[(usize, usize)], out: &mut [&mut [u8]]) -> Result<()> {
        let _held = self.hold(rows.iter().copied())?;
        copy(self, rows, parts, out)
    }
}

/// Makes tensors of records, without a copy of them.
///
/// Errors: as [`record`]; those of `encoder`.
pub(super) fn encode(pack: &ChunkPack, encoder: &dyn Encoder, picks: &[Pick], out: &mut [&mut [u8]]) -> Result<()> {
    let row = |pick: &Pick| {
        let (record, provenance) = record(pack, pick.row)?;
        Ok(Row { record, provenance, bits: pick.bits, sparse: None })
    };
    let rows: Vec<Row<'_>> = picks.iter().map(row).collect::<Result<_>>()?;
    encoder.encode(&rows, out)
}

/// Who some games are. `who` gives the key of a game and the image that the key was found in, from its stored bytes and its records.
///
/// Errors: `Missing` for a game that does not exist; those of [`stored`] and `who`, with file and chunk.
pub(crate) fn contents(
    pack: &ChunkPack,
    games: Range<u64>,
    who: impl Fn(&[u8], &[u8]) -> Result<(u128, u8)>,
) -> Result<Vec<Content>> {
    let content = |game: u64| {
        let missing = || Error::new(Kind::Missing, format!("game {game} of {}", pack.games()));
        let (file, chunk, _) = pack.place(game).ok_or_else(missing)?;
        let (bytes, records) = stored(pack, file, chunk)?;
        let (key, image) = who(bytes, records).map_err(|e| file.named(chunk, e))?;
        Ok(Content { game, key, image, records: xxh3_128(records) })
    };
    games.map(content).collect()
}
