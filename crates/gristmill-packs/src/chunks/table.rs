//! A chunk pack as every pack is seen: its games, with keys, sources and identities; the fields that rules may use; the
//! hash that shows whether it only grew.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::names::METADATA;
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::table::FrameTable;

use super::metadata::Games;
use super::open::ChunkPack;
use crate::pack_table::{Content, PackTable, Place};

impl PackTable for ChunkPack {
    fn folder(&self) -> &Path {
        ChunkPack::folder(self)
    }

    fn form(&self) -> &'static str {
        self.codec().name()
    }

    fn identity(&self) -> u64 {
        ChunkPack::identity(self)
    }

    fn table(self: Arc<Self>) -> Arc<dyn FrameTable> {
        self
    }

    fn game_ids(&self) -> Vec<u64> {
        (0..self.games()).collect()
    }

    fn game_count(&self) -> usize {
        self.games() as usize
    }

    fn stretches(&self, game: u64) -> Vec<(u64, u64)> {
        self.frames(game).map(|(first, count)| (first, first + count)).into_iter().collect()
    }

    fn split_keys(&self, games: &[u64]) -> gristmill_runtime::Result<Vec<(u64, u64)>> {
        let mut keyed = Vec::with_capacity(games.len());
        self.database()?.each(&mut |game| {
            if games.binary_search(&game.id).is_ok() {
                keyed.push((game.id, game.content as u64));
            }
            Ok(())
        })?;
        Ok(keyed)
    }

    fn source(&self, game: u64) -> Option<String> {
        Some(ChunkPack::source(self, game).to_owned())
    }

    fn slices_games(&self) -> bool {
        true
    }

    fn games_table(&self) -> &'static str {
        "games"
    }

    fn class_column(&self) -> Option<&'static str> {
        self.codec().class_column()
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
        self.codec().derive(i, self.layout(), record)
    }

    fn total(&self) -> u64 {
        self.len()
    }

    fn identity_of(&self, frames: u64) -> Option<u64> {
        self.identity_up_to(frames)
    }

    fn contents(&self, from: usize, to: usize) -> Result<Vec<Content>> {
        self.codec().contents(self, from as u64..to as u64)
    }

    fn known(&self, from: usize, to: usize) -> gristmill_runtime::Result<Option<Vec<Content>>> {
        self.codec().known(&self.database()?, from as u64..to as u64)
    }

    fn sources(&self) -> gristmill_runtime::Result<HashMap<u64, String>> {
        Ok((0..self.games()).map(|game| (game, ChunkPack::source(self, game).to_owned())).collect())
    }

    fn frames_of(&self, games: &[u64]) -> gristmill_runtime::Result<Intervals> {
        let mut rows = Intervals::default();
        for (first, count) in games.iter().filter_map(|game| self.frames(*game)) {
            rows.push(first, first + count);
        }
        Ok(rows)
    }
}

impl ChunkPack {
    fn database(&self) -> gristmill_runtime::Result<Games> {
        Games::open(&ChunkPack::folder(self).join(METADATA))
    }
}
