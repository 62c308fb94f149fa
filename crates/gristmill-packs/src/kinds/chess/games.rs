//! Positions of packed games by number -> records, or tensors without records between.
//! Some positions are unpacked together, so that the reads of memory of one wait beside those of the others.

use gristmill_format::chess::pack::{PackedGame, Position, Wanted};
use gristmill_format::chess::record::V7_BYTES;
use gristmill_format::encode::{Encoder, Provenance, RandomBits, Row};
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::table::{FrameTable, Pick};

use crate::chunks::open::{ChunkPack, File};

/// Positions that are encoded together: enough that rows are written past the cache.
const TOGETHER: usize = 16;

/// The records of one game have at most this many bytes.
const MOST_GAME: usize = 1 << 30;

/// Positions that are used again: [`TOGETHER`] of them.
struct Positions(Vec<Position>);

impl Default for Positions {
    fn default() -> Self {
        Positions((0..TOGETHER).map(|_| Position::default()).collect())
    }
}

/// A game, and where one of its frames is: file, game there, frame.
type Found<'a> = (PackedGame<'a>, Provenance);

/// Packed game `i` of a file. It must be below the number of games there.
fn packed(file: &File, i: usize) -> Result<PackedGame<'_>> {
    let (bytes, known) = file.stored(i)?;
    let game = PackedGame::new(bytes)?;
    if !known {
        file.pass(i);
    }
    Ok(game)
}

/// Replaces `out` by the records of a game, of the size that it returns.
pub(super) fn records(pack: &ChunkPack, game: u64, position: &mut Position, out: &mut Vec<u8>) -> Result<usize> {
    let missing = || Error::new(Kind::Missing, format!("game {game} of {}", pack.games()));
    let (file, within, _) = pack.place(game).ok_or_else(missing)?;
    out.clear();
    let read = packed(file, within).and_then(|packed| {
        packed.records(MOST_GAME, position, out)?;
        Ok(packed.version().bytes())
    });
    read.map_err(|e| file.named(within, e))
}

/// The game of frame `row`, counted over all files.
fn found(pack: &ChunkPack, row: u64) -> Result<Found<'_>> {
    let missing = || Error::new(Kind::Missing, format!("frame {row} of {}", pack.len()));
    let (number, game, frame) = pack.find(row).ok_or_else(missing)?;
    let file = &pack.files[number];
    let packed = packed(file, game).map_err(|e| file.named(game, e.in_frame(frame as usize)))?;
    Ok((packed, Provenance { source: number as u64, chunk: game as u32, frame }))
}

/// Reads a frame of a game.
fn read(pack: &ChunkPack, (packed, from): &Found<'_>, wanted: Wanted, out: &mut Position) -> Result<()> {
    let read = packed.position(from.frame as usize, wanted, out);
    read.map_err(|e| pack.files[from.source as usize].named(from.chunk as usize, e.in_frame(from.frame as usize)))
}

/// Records of positions, back to back.
pub(super) fn gather(pack: &ChunkPack, rows: &[u64], out: &mut [u8]) -> Result<()> {
    let mut position = Position::default();
    for (row, record) in rows.iter().zip(out.chunks_exact_mut(V7_BYTES)) {
        read(pack, &found(pack, *row)?, Wanted::Whole, &mut position)?;
        position.write(record);
    }
    Ok(())
}

/// Tensors of positions.
pub(crate) fn encode(pack: &ChunkPack, encoder: &dyn Encoder, picks: &[Pick], out: &mut [&mut [u8]]) -> Result<()> {
    let sizes: Vec<usize> = encoder.outputs().iter().map(|spec| spec.row_bytes()).collect();
    let wanted = if encoder.reads_sparse() { Wanted::Whole } else { Wanted::WithoutPolicy };
    pack.with_tools(|tools| {
        let positions = &mut tools.tool::<Positions>().0;
        let mut games = Vec::with_capacity(TOGETHER);
        for (i, some) in picks.chunks(TOGETHER).enumerate() {
            games.clear();
            for pick in some {
                games.push(found(pack, pick.row)?);
            }
            games.iter().for_each(|(packed, from)| packed.look(from.frame as usize));
            for (game, position) in games.iter().zip(&mut *positions) {
                read(pack, game, wanted, position)?;
            }
            let read = some.iter().zip(&games).zip(&*positions);
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
        Ok(())
    })
}

fn row(bits: RandomBits, position: &Position, provenance: Provenance) -> Row<'_> {
    Row { record: position.record(), provenance, bits, sparse: position.policy() }
}
