//! A chunk pack -> the fields that rules may use, the hash that shows whether it only grew, and the identity of its
//! games.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::chess::identity::{Identity, identity};
use gristmill_format::chess::pack::Position;
use gristmill_format::chess::{Frame, InputFormat};
use gristmill_format::{Error, Kind, Result};
use xxhash_rust::xxh3::xxh3_128;

use super::metadata::Games;
use super::open::{ChunkPack, table};
use crate::content::{Content, Contents};
use crate::marks::{Markable, Place};
use crate::pack::METADATA;
use crate::runtime::intervals::Intervals;
use crate::table::FrameTable;

/// Planes of the pieces of both sides in the position itself, six each; the thirteenth of a board tells repetitions.
const PIECES: usize = 12;

/// Bit of `invariance_info` that says in canonical formats that Black is to move.
const BLACK: u8 = 1 << 7;

impl Markable for Arc<ChunkPack> {
    fn folder(&self) -> &Path {
        ChunkPack::folder(self)
    }

    fn records(&self) -> Result<Arc<dyn FrameTable>> {
        Ok(table(self))
    }

    fn games_table(&self) -> &'static str {
        "games"
    }

    fn place(&self, frame: u64) -> Result<Place> {
        let missing = || Error::new(Kind::Missing, format!("frame {frame} of {}", self.len()));
        let game = self.game_of(frame).ok_or_else(missing)?;
        let (first, frames) = self.frames(game).ok_or_else(missing)?;
        Ok(Place { game, first, end: first + frames })
    }

    fn derived(&self) -> &'static [&'static str] {
        if self.is_chess() { &["men", "black_to_move"] } else { &[] }
    }

    fn derive(&self, i: usize, record: &[u8]) -> Result<i64> {
        let frame = Frame::new(record)?;
        Ok(match i {
            0 => (0..PIECES).map(|plane| i64::from(frame.plane(plane).count_ones())).sum(),
            _ => match frame.input_format()? {
                InputFormat::Classical | InputFormat::Castling => i64::from(frame.side_to_move_or_enpassant() != 0),
                _ => i64::from(frame.invariance_info() & BLACK != 0),
            },
        })
    }

    fn total(&self) -> u64 {
        self.len()
    }

    fn identity_of(&self, frames: u64) -> Option<u64> {
        self.identity_up_to(frames)
    }
}

impl Contents for Arc<ChunkPack> {
    fn count(&self) -> usize {
        usize::try_from(self.games()).unwrap_or(usize::MAX)
    }

    fn contents(&self, from: usize, to: usize) -> Result<Vec<Content>> {
        let (mut position, mut records) = (Position::default(), Vec::new());
        let content = |game: u64| {
            let size = self.records_of(game, &mut position, &mut records)?;
            let Identity { key, black_first } = identity(&records, size)?;
            Ok(Content { game, key, image: black_first.into(), records: xxh3_128(&records) })
        };
        (from as u64..to as u64).map(content).collect()
    }

    fn known(&self) -> crate::Result<Option<Vec<Content>>> {
        let database = Games::open(&ChunkPack::folder(self).join(METADATA))?;
        if self.is_chess() {
            return database.identities();
        }
        // What has no symmetries is known by its records alone.
        let mut all = Vec::new();
        database.each(&mut |game| {
            all.push(Content { game: game.id, key: game.content, image: 0, records: game.content });
            Ok(())
        })?;
        Ok(Some(all))
    }

    fn sources(&self) -> crate::Result<HashMap<u64, String>> {
        Ok((0..self.games()).map(|game| (game, self.source(game).to_owned())).collect())
    }

    fn frames_of(&self, games: &[u64]) -> crate::Result<Intervals> {
        let mut rows = Intervals::default();
        for (first, count) in games.iter().filter_map(|game| self.frames(*game)) {
            rows.push(first, first + count);
        }
        Ok(rows)
    }
}
