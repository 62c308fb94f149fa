//! Positions in a chunk file -> chunks. They are packed as records: any of them lies at its number times 33.

use std::sync::Arc;

use gristmill_bytes::container::chunks::Codec;
use gristmill_bytes::container::packed::{PackedFile, Packing, Wanted, agree, check_room};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::Chunk;

use super::KIND;
use super::record::{BYTES, Position, check_all, layout};

/// What a chunk file of positions says that it holds.
pub const CODEC: Codec = *b"binpack\x01";

/// How sources call chunk files of positions.
pub const PACKED: &str = "binpack.chunks";

/// A chunk file of positions.
pub type PackedChains = PackedFile<Chains>;

/// Chains, as chunks.
#[derive(Debug)]
pub struct Chains;

impl Packing for Chains {
    const CODEC: Codec = CODEC;
    const KIND: &'static str = KIND;
    const FORMAT: &'static str = PACKED;
    const CHUNKS: &'static str = "chains of positions";

    fn unpack(bytes: &[u8], frames: usize, wanted: Wanted<'_>, max: usize, out: &mut Chunk) -> Result<()> {
        // Each record is checked where it is used: few of a chain are, where rows alone are wanted.
        agree(if let Wanted::Rows(_) = wanted { bytes.len() / BYTES } else { check_all(bytes)? }, frames)?;
        let positions = bytes.as_chunks::<BYTES>().0;
        out.frames = if let Wanted::Rows(rows) = wanted { rows.len() } else { frames };
        let room = check_room(out.frames, BYTES, max).inspect_err(|_| out.frames = 0)?;
        out.bytes.reserve_exact(room);
        match wanted {
            Wanted::All | Wanted::Judged => out.bytes.extend_from_slice(bytes),
            Wanted::Rows(rows) => {
                for row in rows {
                    let missing = || Error::new(Kind::Missing, format!("frame {row} of {frames}"));
                    let record = positions.get(*row as usize).ok_or_else(missing)?;
                    Position::new(record).map_err(|e| e.in_frame(*row as usize))?;
                    out.bytes.extend_from_slice(record);
                }
            }
        }
        out.layout = Some(Arc::clone(layout()));
        Ok(())
    }
}
