//! Boards in a chunk file -> chunks. They are packed as they are: any of them lies at its number times 32.

use std::sync::Arc;

use gristmill_bytes::container::chunks::Codec;
use gristmill_bytes::container::packed::{PackedFile, Packing, Wanted, agree, copy};
use gristmill_bytes::error::Result;
use gristmill_bytes::source::Chunk;

use super::KIND;
use super::board::{BYTES, check_all, layout};

/// What a chunk file of boards says that it holds.
pub const CODEC: Codec = *b"bullet\0\x01";

/// How sources call chunk files of boards.
pub const PACKED: &str = "bullet.chunks";

/// A chunk file of boards.
pub type PackedBoards = PackedFile<Bullet>;

/// Boards, as chunks.
#[derive(Debug)]
pub struct Bullet;

impl Packing for Bullet {
    const CODEC: Codec = CODEC;
    const KIND: &'static str = KIND;
    const FORMAT: &'static str = PACKED;
    const CHUNKS: &'static str = "boards of bulletformat";

    fn unpack(bytes: &[u8], frames: usize, wanted: Wanted<'_>, max: usize, out: &mut Chunk) -> Result<()> {
        agree(check_all(bytes, 0)?, frames)?;
        copy(bytes, BYTES, wanted, max, out)?;
        out.layout = Some(Arc::clone(layout()));
        Ok(())
    }
}
