//! A chunk pack -> the fields that rules may use, the hash that shows whether it only grew, and the identity of its
//! games.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::names::METADATA;
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::table::FrameTable;

use super::metadata::Games;
use super::open::{ChunkPack, table};
use crate::content::{Content, Contents};
use crate::marks::{Markable, Place};

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
        self.codec().derived()
    }

    fn derive(&self, i: usize, record: &[u8]) -> Result<i64> {
        self.codec().derive(i, record)
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
        self.codec().contents(self, from as u64..to as u64)
    }

    fn known(&self) -> gristmill_runtime::Result<Option<Vec<Content>>> {
        self.codec().known(&Games::open(&ChunkPack::folder(self).join(METADATA))?)
    }

    fn sources(&self) -> gristmill_runtime::Result<HashMap<u64, String>> {
        Ok((0..self.games()).map(|game| (game, self.source(game).to_owned())).collect())
    }

    fn frames_of(&self, games: &[u64]) -> gristmill_runtime::Result<Intervals> {
        let mut rows = Intervals::default();
        for (first, count) in games.iter().filter_map(|game| self.frames(*game)) {
            rows.push(first, first + count);
        }
        Ok(rows)
    }
}
