//! Packed games of a chunk file -> chunks: each game is a chunk, and comes back as the records that it was.

use std::sync::Arc;

use gristmill_bytes::container::chunks::Codec;
use gristmill_bytes::container::packed::{PackedFile, Packing, Wanted, agree, check_room};
use gristmill_bytes::error::Result;
use gristmill_bytes::source::Chunk;

use super::decode::{PackedGame, Position};
use crate::chess::KIND;
use crate::chess::record::{Version, layout_v6, layout_v7};
use crate::chess::weight::{JUDGED_BYTES, layout_judged};

/// What a chunk file of packed chess games says that it holds.
pub const CODEC: Codec = *b"chess\0\0\x01";

/// How sources call chunk files of packed chess games.
pub const PACKED: &str = "chess.chunks";

/// A chunk file of packed games.
pub type PackedGames = PackedFile<Chess>;

/// Games of chess, as chunks.
#[derive(Debug)]
pub struct Chess;

impl Packing for Chess {
    const CODEC: Codec = CODEC;
    const KIND: &'static str = KIND;
    const FORMAT: &'static str = PACKED;
    const CHUNKS: &'static str = "packed chess games";

    fn unpack(bytes: &[u8], frames: usize, wanted: Wanted<'_>, max: usize, out: &mut Chunk) -> Result<()> {
        let game = PackedGame::new(bytes)?;
        agree(game.frames(), frames)?;
        let layout = match (&wanted, game.version()) {
            (Wanted::Judged, _) => layout_judged(),
            (_, Version::V7) => layout_v7(),
            _ => layout_v6(),
        };
        let (position, to) = (out.kept.tool::<Position>(), &mut out.bytes);
        out.frames = match wanted {
            Wanted::All => {
                game.records(max, position, to)?;
                frames
            }
            Wanted::Rows(rows) => {
                game.rows(rows, max, position, to)?;
                rows.len()
            }
            Wanted::Judged => {
                check_room(frames, JUDGED_BYTES, max)?;
                game.judged(Position::default, to)?;
                frames
            }
        };
        out.layout = Some(Arc::clone(layout));
        Ok(())
    }
}
