//! Numbers of rows of a pack whose chunks hold records of one size as they are -> the records, their places, tensors of them.
//! A kind says where in a chunk the records lie; each chunk is checked once, when the first of its records is wanted.

use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::{Error, Kind as Cause, Result};
use gristmill_runtime::table::{FrameTable, Pick};

use crate::chunks::open::ChunkPack;

/// The records in a chunk of a pack, back to back. Checks the whole chunk where it gets the number of frames that the index says.
pub(super) type Records = for<'a> fn(&ChunkPack, &'a [u8], Option<usize>) -> Result<&'a [u8]>;

/// A record of a pack, and where it is: file, chunk there, frame.
///
/// Errors: `Missing` for a frame that does not exist; those of `records`, with file and chunk.
fn record(pack: &ChunkPack, row: u64, records: Records) -> Result<(&[u8], Provenance)> {
    let missing = || Error::new(Cause::Missing, format!("frame {row} of {}", pack.len()));
    let (number, chunk, frame) = pack.find(row).ok_or_else(missing)?;
    let (file, size) = (&pack.files[number], pack.layout().size());
    let read = || {
        let (bytes, known) = file.stored(chunk)?;
        let found = records(pack, bytes, (!known).then(|| file.index().frames(chunk) as usize))?;
        if !known {
            file.pass(chunk);
        }
        found.chunks_exact(size).nth(frame as usize).ok_or_else(missing)
    };
    let record = read().map_err(|e| file.named(chunk, e))?;
    Ok((record, Provenance { source: number as u64, chunk: chunk as u32, frame }))
}

/// Copies records into `out`, back to back.
///
/// Errors: as [`record`].
pub(super) fn gather(pack: &ChunkPack, rows: &[u64], out: &mut [u8], records: Records) -> Result<()> {
    for (row, out) in rows.iter().zip(out.chunks_exact_mut(pack.layout().size())) {
        out.copy_from_slice(record(pack, *row, records)?.0);
    }
    Ok(())
}

/// Makes tensors of records, without a copy of them.
///
/// Errors: as [`record`]; those of `encoder`.
pub(super) fn encode(
    pack: &ChunkPack,
    encoder: &dyn Encoder,
    picks: &[Pick],
    out: &mut [&mut [u8]],
    records: Records,
) -> Result<()> {
    let row = |pick: &Pick| {
        let (record, provenance) = record(pack, pick.row, records)?;
        Ok(Row { record, provenance, bits: pick.bits, sparse: None })
    };
    let rows: Vec<Row<'_>> = picks.iter().map(row).collect::<Result<_>>()?;
    encoder.encode(&rows, out)
}
