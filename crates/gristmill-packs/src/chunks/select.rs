//! A chunk pack -> some of its games: by SQL, by ids, by marks. Nothing is changed, and no position is decoded.

use std::sync::Arc;

use gristmill_format::layout::Layout;
use gristmill_format::{Error as FormatError, Kind};
use gristmill_runtime::error::Result;
use gristmill_runtime::names::METADATA;
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::table::{FrameTable, IndexInput, Param, Recipe, Step, rows_at};
use xxhash_rust::xxh3::Xxh3;

use super::metadata::Games;
use super::open::{ChunkPack, table};
use crate::marks;
use crate::pack::select::{SqlValue, named};

/// Some games of a pack, whole or the frames of them that marks let through.
#[derive(Debug, Clone)]
pub struct GameSelection {
    pack: Arc<ChunkPack>,
    /// Their numbers, ascending.
    games: Arc<[u64]>,
    rows: Arc<Intervals>,
    recipe: Arc<Recipe>,
}

impl GameSelection {
    /// All games.
    pub fn all(pack: Arc<ChunkPack>) -> Self {
        let games = (0..pack.games()).collect();
        let rows = Arc::new(Intervals::all(pack.len()));
        let recipe = Recipe::all(pack.identity());
        GameSelection { pack, games, rows, recipe }
    }

    /// The pack.
    pub fn pack(&self) -> &Arc<ChunkPack> {
        &self.pack
    }

    /// The numbers of the games, ascending.
    pub fn games(&self) -> &[u64] {
        &self.games
    }

    /// The frames of all of them.
    pub fn rows(&self) -> &Arc<Intervals> {
        &self.rows
    }

    /// The layout of the records; of chess games V7, whatever was packed.
    pub fn layout(&self) -> &Layout {
        self.pack.layout()
    }

    pub(super) fn of(&self, games: Vec<u64>) -> Self {
        let mut rows = Intervals::default();
        for (first, count) in games.iter().filter_map(|game| self.pack.frames(*game)) {
            rows.push(first, first + count);
        }
        GameSelection { games: games.into(), rows: Arc::new(self.rows.intersect(&rows)), ..self.clone() }
    }

    pub(super) fn after(self, step: Step) -> Self {
        GameSelection { recipe: self.recipe.then(step), ..self }
    }

    /// Those frames that mark `name` of the pack marks; all games remain, even without a frame.
    ///
    /// Errors: as [`marks::rows`].
    pub fn marked(&self, name: &str) -> Result<Self> {
        let rows = self.rows.intersect(&marks::rows(&self.pack, name)?);
        let selection = GameSelection { rows: Arc::new(rows), ..self.clone() };
        Ok(selection.after(Step::Marked { name: name.to_owned() }))
    }

    /// Those frames that mark `name` of the pack does not mark.
    ///
    /// Errors: as [`marks::rows`].
    pub fn without(&self, name: &str) -> Result<Self> {
        let rows = self.rows.without(&marks::rows(&self.pack, name)?);
        let selection = GameSelection { rows: Arc::new(rows), ..self.clone() };
        Ok(selection.after(Step::Without { name: name.to_owned() }))
    }

    /// How many frames of a game are selected, by its place among the games.
    pub fn frames_of(&self, place: usize) -> u64 {
        let frames = self.games.get(place).and_then(|game| self.pack.frames(*game));
        frames.map_or(0, |(first, count)| self.rows.rank(first + count) - self.rows.rank(first))
    }

    /// Whether no frame of a selected game was left out.
    pub fn is_whole(&self) -> bool {
        let frames = self.games.iter().filter_map(|game| self.pack.frames(*game)).map(|(_, frames)| frames);
        frames.sum::<u64>() == self.rows.len()
    }

    pub(super) fn database(&self) -> Result<Games> {
        Games::open(&self.pack.folder().join(METADATA))
    }

    /// Those games that `sql` names: a condition on table `games`, such as `result > 0`, or a whole query whose first column
    /// is ids. `params` are bound to its question marks.
    ///
    /// Errors: `Config` in `where` with what SQLite says; `Format` for the database.
    pub fn query(&self, sql: &str, params: &[SqlValue]) -> Result<Self> {
        Ok(self.named(sql, params)?.after(Step::Where { sql: sql.to_owned(), params: Param::of(params) }))
    }

    fn named(&self, sql: &str, params: &[SqlValue]) -> Result<Self> {
        Ok(self.of_ids(named(self.database()?.connection(), "games", sql, params)?))
    }

    fn of_ids(&self, mut named: Vec<u64>) -> Self {
        named.sort_unstable();
        self.of(self.games.iter().copied().filter(|game| named.binary_search(game).is_ok()).collect())
    }

    /// The games from place `from` to place `to`.
    #[must_use]
    pub fn slice(&self, from: usize, to: usize) -> Self {
        let games = self.of(self.games.iter().take(to).skip(from).copied().collect());
        games.after(Step::Slice { from: from as u64, to: to as u64 })
    }

    /// Two sides, by game: on the second those that `sql` names, as in [`GameSelection::query`].
    ///
    /// Errors: as [`GameSelection::query`].
    pub fn split_by(&self, sql: &str, params: &[SqlValue]) -> Result<(Self, Self)> {
        let (first, second) = self.apart(self.named(sql, params)?);
        let step = |second| Step::SplitWhere { sql: sql.to_owned(), params: Param::of(params), second };
        Ok((first.after(step(false)), second.after(step(true))))
    }

    /// Two sides, by game: on the second those of these ids.
    pub fn split_ids(&self, ids: Vec<u64>) -> (Self, Self) {
        let (first, second) = self.apart(self.of_ids(ids.clone()));
        let step = |second| Step::SplitRuns { ids: ids.clone(), second };
        (first.after(step(false)), second.after(step(true)))
    }

    fn apart(&self, second: Self) -> (Self, Self) {
        let left = self.games.iter().copied().filter(|game| second.games.binary_search(game).is_err());
        (self.of(left.collect()), second)
    }

    /// The records of frames of this selection, by place in it, back to back.
    ///
    /// Errors: `Format`: `Missing` for a place beyond the last, and as the pack's.
    pub fn take(&self, places: &[u64]) -> Result<Vec<u8>> {
        let rows = rows_at(&self.rows, places)?;
        let mut records = vec![0; rows.len() * self.layout().size()];
        self.pack.gather(&rows, &mut records)?;
        Ok(records)
    }

    /// The records of the game at a place of this selection, those of its frames that are selected, back to back.
    ///
    /// Errors: `Format`: `Missing` for a place beyond the last, and as the pack's.
    pub fn game(&self, place: usize) -> Result<Vec<u8>> {
        let missing = || FormatError::new(Kind::Missing, format!("game {place} of {}", self.games.len()));
        let bounds = self.games.get(place).and_then(|game| self.pack.frames(*game));
        let (first, frames) = bounds.ok_or_else(missing)?;
        let places: Vec<u64> = (self.rows.rank(first)..self.rows.rank(first + frames)).collect();
        self.take(&places)
    }

    /// What an index loader needs of it.
    pub fn input(&self) -> IndexInput {
        let mut hash = Xxh3::new();
        hash.update(&self.pack.identity().to_le_bytes());
        self.rows.hash_into(&mut hash);
        let (table, rows) = (table(&self.pack), Arc::clone(&self.rows));
        IndexInput { table, rows, identity: hash.digest(), valuations: Vec::new(), recipe: Arc::clone(&self.recipe) }
    }
}
