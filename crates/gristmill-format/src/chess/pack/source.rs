//! A chunk file of packed games -> chunks: each game is a chunk, and comes back as the records that it was.

use std::sync::Arc;

use super::decode::{PackedGame, Position, check_room};
use crate::chess::record::{Version, layout_v6, layout_v7};
use crate::chess::weight::{JUDGED_BYTES, layout_judged};
use crate::container::chunks::{ChunkFile, Codec};
use crate::error::{Error, Kind, Result};
use crate::layout::Layout;
use crate::source::{Access, Chunk, ChunkSource, Description, Limits, ReadAt, Span};

/// What a chunk file of packed chess games says that it holds.
pub const CODEC: Codec = *b"chess\0\0\x01";

/// A chunk file of packed games. Kept in memory: its index.
#[derive(Debug)]
pub struct PackedGames {
    description: Description,
    index: ChunkFile,
}

impl PackedGames {
    /// Reads the index of the file called `key`.
    ///
    /// Errors: as [`ChunkFile::open`]; `Unsupported` for chunks that are no chess games.
    pub fn open(key: impl Into<String>, from: &(impl ReadAt + ?Sized)) -> Result<Self> {
        PackedGames::new(key, ChunkFile::open(from)?)
    }

    /// The games of the file called `key`, whose index was read.
    ///
    /// Errors: `Unsupported` for chunks that are no chess games.
    pub fn new(key: impl Into<String>, index: ChunkFile) -> Result<Self> {
        if index.codec() != CODEC {
            let codec = index.codec().escape_ascii().to_string();
            let detail = format!("chunks of `{codec}`, expected packed chess games; a newer gristmill wrote it");
            return Err(Error::new(Kind::Unsupported, detail).at_byte(0));
        }
        let description = Description { key: key.into(), format: "chess.chunks", access: Access::Random };
        Ok(PackedGames { description, index })
    }

    /// The index.
    pub fn index(&self) -> &ChunkFile {
        &self.index
    }

    fn game<'a>(&self, i: usize, bytes: &'a [u8]) -> Result<PackedGame<'a>> {
        self.index.check(i, bytes)?;
        let game = PackedGame::new(bytes)?;
        if game.frames() == self.index.frames(i) as usize {
            return Ok(game);
        }
        let detail = format!("{} frames, the index says {}", game.frames(), self.index.frames(i));
        Err(Error::new(Kind::Corrupt, detail).at_byte(4))
    }

    fn judged(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        (out.frames, out.trailing) = (0, 0);
        out.bytes.clear();
        let game = self.game(i, bytes)?;
        check_room(game.frames(), JUDGED_BYTES, limits.max_chunk_bytes)?;
        game.judged(Position::default, &mut out.bytes)?;
        out.layout = Some(Arc::clone(layout_judged()));
        out.frames = game.frames();
        Ok(())
    }

    fn rows(&self, i: usize, rows: &[u32], bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        (out.frames, out.trailing) = (0, 0);
        out.bytes.clear();
        let game = self.game(i, bytes)?;
        game.rows(rows, limits.max_chunk_bytes, out.kept.tool::<Position>(), &mut out.bytes)?;
        out.layout = Some(layout(game.version()));
        out.frames = rows.len();
        Ok(())
    }

    fn records(&self, i: usize, frames: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        out.frames = 0;
        out.trailing = 0;
        out.bytes.clear();
        let game = self.game(i, bytes)?;
        let frames = frames.min(game.frames());
        game.head(frames, limits.max_chunk_bytes, out.kept.tool::<Position>(), &mut out.bytes)?;
        out.layout = Some(layout(game.version()));
        out.frames = frames;
        Ok(())
    }
}

fn layout(version: Version) -> Arc<Layout> {
    Arc::clone(if version == Version::V7 { layout_v7() } else { layout_v6() })
}

impl ChunkSource for PackedGames {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn len(&self) -> usize {
        self.index.len()
    }

    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)> {
        self.index.span(i).map(|span| (span, Some(self.index.name(i))))
    }

    fn decode(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        let decoded = self.records(i, usize::MAX, bytes, limits, out);
        decoded.map_err(|e| e.in_chunk(i).in_member(self.index.name(i)))
    }

    fn decode_head(&self, i: usize, frames: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        let decoded = self.records(i, frames, bytes, limits, out);
        decoded.map_err(|e| e.in_chunk(i).in_member(self.index.name(i)))
    }

    fn frames(&self, i: usize) -> Option<usize> {
        self.index.span(i).map(|_| self.index.frames(i) as usize)
    }

    fn identity(&self) -> Option<u64> {
        Some(self.index.identity())
    }

    fn decode_rows(&self, i: usize, rows: &[u32], bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<bool> {
        let decoded = self.rows(i, rows, bytes, limits, out);
        decoded.map(|()| true).map_err(|e| e.in_chunk(i).in_member(self.index.name(i)))
    }

    fn decode_judged(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        let decoded = self.judged(i, bytes, limits, out);
        decoded.map_err(|e| e.in_chunk(i).in_member(self.index.name(i)))
    }
}
