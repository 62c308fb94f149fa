//! Positions in a chunk file -> chunks. They are packed as records: any of them lies at its number times 33.

use std::sync::Arc;

use gristmill_bytes::container::chunks::Codec;
use gristmill_bytes::container::packed::{PackedFile, Packing, Wanted, agree, copy};
use gristmill_bytes::error::Result;
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
        // A reader of single rows checks those rows alone: a chain has many more.
        agree(if let Wanted::Rows(_) = wanted { bytes.len() / BYTES } else { check_all(bytes)? }, frames)?;
        copy(bytes, BYTES, wanted, max, out)?;
        if let Wanted::Rows(rows) = wanted {
            for (row, record) in rows.iter().zip(out.bytes.as_chunks::<BYTES>().0) {
                Position::new(record).map_err(|e| e.in_frame(*row as usize))?;
            }
        }
        out.layout = Some(Arc::clone(layout()));
        Ok(())
    }
}
