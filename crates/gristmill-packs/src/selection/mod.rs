//! A pack -> some of its frames: by SQL over its games, by values of records, by marks, by place. Nothing is changed.
//! Selections are ranges of frames, and the games that these are of; what was done is recorded, and can be done again.

pub mod facts;
mod filter;
mod named;
pub mod sides;

use std::path::Path;
use std::sync::Arc;

use gristmill_format::layout::Layout;
use gristmill_format::{Error as FormatError, Kind};
use xxhash_rust::xxh3::Xxh3;

pub use filter::Filter;

use crate::chunks::open::ChunkPack;
use crate::marks;
use crate::pack::open::RowPack;
use crate::pack_table::PackTable;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::names::is_pack;
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::sql::SqlValue;
use gristmill_runtime::store::Residence;
use gristmill_runtime::table::{FrameTable, IndexInput, JoinedTable, Param, Recipe, Step, ThreeWay, rows_at};
use gristmill_stages::config::EncoderConfig;

/// Opens the pack in a folder, in whatever layout.
///
/// Errors: as the layout's.
pub fn open(folder: &Path, residence: Residence) -> Result<Arc<dyn PackTable>> {
    if is_pack(folder)? {
        return Ok(Arc::new(ChunkPack::open(folder, residence)?));
    }
    Ok(Arc::new(RowPack::open(folder, residence)?))
}

/// Some frames of a pack.
#[derive(Debug, Clone)]
pub struct Selection {
    pack: Arc<dyn PackTable>,
    table: Arc<dyn FrameTable>,
    /// Ids of the selected games, ascending.
    games: Arc<[u64]>,
    rows: Arc<Intervals>,
    recipe: Arc<Recipe>,
}

impl Selection {
    /// All frames.
    pub fn all(pack: Arc<dyn PackTable>) -> Self {
        let (table, games) = (Arc::clone(&pack).table(), pack.game_ids().into());
        let rows = Arc::new(Intervals::all(table.len()));
        let recipe = Recipe::all(pack.identity());
        Selection { pack, table, games, rows, recipe }
    }

    /// The pack.
    pub fn pack(&self) -> &Arc<dyn PackTable> {
        &self.pack
    }

    /// Ids of the selected games, ascending. A game may have no frame that was not left out.
    pub fn games(&self) -> &[u64] {
        &self.games
    }

    /// The frames, by number in the pack.
    pub fn rows(&self) -> &Arc<Intervals> {
        &self.rows
    }

    /// What was done to select them.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The layout of the records; of chess games V7, whatever was packed.
    pub fn layout(&self) -> &Layout {
        self.table.layout()
    }

    /// The file that a frame of the pack is in, and its number there.
    pub fn locate(&self, row: u64) -> (String, u64) {
        self.table.locate(row)
    }

    fn of_rows(&self, rows: Intervals, step: Step) -> Self {
        Selection { rows: Arc::new(rows), recipe: self.recipe.then(step), ..self.clone() }
    }

    fn of_games(&self, games: Vec<u64>) -> Result<Self> {
        if games.len() == self.games.len() {
            return Ok(self.clone());
        }
        let theirs = self.pack.frames_of(&games)?;
        Ok(Selection { games: games.into(), rows: Arc::new(self.rows.intersect(&theirs)), ..self.clone() })
    }

    fn after(self, step: Step) -> Self {
        Selection { recipe: self.recipe.then(step), ..self }
    }

    /// Those of the selected games that `sql` names: a condition on the database's table of games, such as `max_score > ?`,
    /// or a whole query whose first column is ids. `params` are bound to its question marks.
    ///
    /// Errors: `Config` in `where` with what SQLite says; `Format` as [`PackTable::frames_of`], and for the database.
    pub fn query(&self, sql: &str, params: &[SqlValue]) -> Result<Self> {
        Ok(self.named(sql, params)?.after(Step::Where { sql: sql.to_owned(), params: Param::of(params) }))
    }

    fn named(&self, sql: &str, params: &[SqlValue]) -> Result<Self> {
        self.of_ids(named::ids(&*self.pack, sql, params)?)
    }

    fn of_ids(&self, mut ids: Vec<u64>) -> Result<Self> {
        ids.sort_unstable();
        self.of_games(self.games.iter().copied().filter(|game| ids.binary_search(game).is_ok()).collect())
    }

    /// Those frames that pass `filter`; reads the fields of every frame once.
    ///
    /// Errors: `Config` in `valuation` for a name that the pack does not have, and for a field that its records lack.
    pub fn filter(&self, filter: &Filter) -> Result<Self> {
        let rows = filter.passing(&*self.pack, &*self.table, &self.rows)?;
        let Filter { step_index, max_rank, valuation } = filter.clone();
        Ok(self.of_rows(rows, Step::Filter { step_index, max_rank, valuation }))
    }

    /// Those frames that mark `name` of the pack marks; all games remain, even without a frame.
    ///
    /// Errors: as [`marks::rows`].
    pub fn marked(&self, name: &str) -> Result<Self> {
        let rows = self.rows.intersect(&marks::rows(&*self.pack, name)?);
        Ok(self.of_rows(rows, Step::Marked { name: name.to_owned() }))
    }

    /// Those frames that mark `name` of the pack does not mark.
    ///
    /// Errors: as [`marks::rows`].
    pub fn without(&self, name: &str) -> Result<Self> {
        let rows = self.rows.without(&marks::rows(&*self.pack, name)?);
        Ok(self.of_rows(rows, Step::Without { name: name.to_owned() }))
    }

    /// The frames from place `from` to place `to`, of the same games.
    #[must_use]
    pub fn slice(&self, from: u64, to: u64) -> Self {
        let step = if self.pack.slices_games() { Step::Frames { from, to } } else { Step::Slice { from, to } };
        self.of_rows(self.rows.slice(from, to), step)
    }

    /// The games from place `from` to place `to`.
    ///
    /// Errors: `Format` as [`PackTable::frames_of`].
    pub fn slice_games(&self, from: u64, to: u64) -> Result<Self> {
        let step = if self.pack.slices_games() { Step::Slice { from, to } } else { Step::Games { from, to } };
        let [first, end] = [from, to].map(|place| usize::try_from(place).unwrap_or(usize::MAX));
        Ok(self.of_games(self.games.iter().take(end).skip(first).copied().collect())?.after(step))
    }

    /// What a recorded step made of this selection.
    ///
    /// Errors: as the method that recorded it; `State` for a fold that does not exist.
    pub fn again(&self, step: &Step) -> Result<Self> {
        let side = |(first, second), wanted: bool| if wanted { second } else { first };
        Ok(match step {
            Step::Where { sql, params } => self.query(sql, &Param::values(params))?,
            Step::Filter { step_index, max_rank, valuation } => {
                let (step_index, max_rank) = (*step_index, *max_rank);
                self.filter(&Filter { step_index, max_rank, valuation: valuation.clone() })?
            }
            Step::Split { val, seed, second } => side(self.split(*val, *seed)?, *second),
            Step::SplitWhere { sql, params, second } => side(self.split_by(sql, &Param::values(params))?, *second),
            Step::SplitRuns { ids, second } => side(self.split_ids(ids.clone())?, *second),
            Step::SplitThree { val, test, seed, side } => {
                let [train, second, third] = self.split_three(*val, *test, *seed, None)?;
                match side {
                    ThreeWay::Train => train,
                    ThreeWay::Val => second,
                    ThreeWay::Test => third,
                }
            }
            Step::Fold { of, seed, fold, second } => {
                let nth = self.folds(*of, *seed, None)?.into_iter().nth(*fold as usize);
                side(nth.ok_or_else(|| Error::State(format!("fold {fold} of {of}")))?, *second)
            }
            Step::Marked { name } => self.marked(name)?,
            Step::Without { name } => self.without(name)?,
            Step::Slice { from, to } if self.pack.slices_games() => self.slice_games(*from, *to)?,
            Step::Slice { from, to } | Step::Frames { from, to } => self.slice(*from, *to),
            Step::Games { from, to } => self.slice_games(*from, *to)?,
            Step::Mixed { .. } => {
                return Err(Error::State("rows of several packs are not those of one".to_owned()));
            }
            Step::Values => self.clone(),
        })
    }

    /// Whether no frame of a selected game was left out.
    ///
    /// Errors: `Format` as [`PackTable::frames_of`].
    pub fn is_whole(&self) -> Result<bool> {
        Ok(self.pack.frames_of(&self.games)?.len() == self.rows.len())
    }

    /// How many frames of a game are selected, by its place among the games.
    pub fn frames_of(&self, place: usize) -> u64 {
        self.places_of(place).map(|(first, end)| end - first).sum()
    }

    /// The places of the frames of a game, by its place among the games.
    fn places_of(&self, place: usize) -> impl Iterator<Item = (u64, u64)> {
        let stretches = self.games.get(place).map(|game| self.pack.stretches(*game)).unwrap_or_default();
        stretches.into_iter().map(|(first, end)| (self.rows.rank(first), self.rows.rank(end)))
    }

    /// The records of the game at a place of this selection, those of its frames that are selected, back to back.
    ///
    /// Errors: `Format`: `Missing` for a place beyond the last, and as the pack's.
    pub fn game(&self, place: usize) -> Result<Vec<u8>> {
        if place >= self.games.len() {
            return Err(FormatError::new(Kind::Missing, format!("game {place} of {}", self.games.len())).into());
        }
        self.take(&self.places_of(place).flat_map(|(first, end)| first..end).collect::<Vec<_>>())
    }

    /// The game of a frame of the pack, and how many of its frames lie before it; none where there is no such frame.
    pub fn game_of(&self, row: u64) -> Option<(u64, u64)> {
        let place = self.pack.place(row).ok()?;
        let earlier = self.pack.stretches(place.game).into_iter().take_while(|(_, end)| *end <= place.first);
        Some((place.game, earlier.map(|(first, end)| end - first).sum::<u64>() + row - place.first))
    }

    /// The records of frames of this selection, by place in it, back to back in the layout of the pack.
    ///
    /// Errors: `Format`: `Missing` for a place beyond the last, and as the pack's.
    pub fn take(&self, places: &[u64]) -> Result<Vec<u8>> {
        self.gather(&rows_at(&self.rows, places)?)
    }

    /// The records of frames by their number in the pack, back to back in its layout.
    ///
    /// Errors: `Format`: `Missing` for a number out of range.
    pub fn gather(&self, rows: &[u64]) -> Result<Vec<u8>> {
        Ok(self.table.gathered(rows)?)
    }

    /// The same, into `out`, which is as long as the records.
    ///
    /// Errors: as [`Selection::gather`].
    pub fn gather_into(&self, rows: &[u64], out: &mut [u8]) -> Result<()> {
        Ok(self.table.gather(rows, out)?)
    }

    /// The vectors of frames of this selection, by place in it, back to back: little-endian `f4`, as many for each as the
    /// layout of [`PackTable::embeddings`] says.
    ///
    /// Errors: `Format`: `Missing` for a place beyond the last, and for a pack that has no vectors.
    pub fn take_embeddings(&self, places: &[u64]) -> Result<Vec<u8>> {
        let lacking = "there are no embeddings-*.npy beside the rows";
        let vectors = self.pack.embeddings().ok_or_else(|| self.lacks(lacking))?;
        Ok(vectors.gathered(&rows_at(&self.rows, places)?)?)
    }

    /// Rewards and returns of frames of this selection, by place in it, as records back to back.
    ///
    /// Errors: `Format`: `Missing` for a place beyond the last, and for a pack that has no values; as [`PackTable::values`].
    pub fn take_values(&self, places: &[u64]) -> Result<Vec<u8>> {
        let lacking = "there is no values.npy beside the rows; `gristmill values PACK` makes it of step rows";
        let values = self.pack.values()?.ok_or_else(|| self.lacks(lacking))?;
        Ok(values.table.gathered(&rows_at(&self.rows, places)?)?)
    }

    fn lacks(&self, detail: &str) -> Error {
        FormatError::new(Kind::Missing, detail).in_source(self.pack.folder().display().to_string()).into()
    }

    /// What an index loader with this encoder needs of it: the values of the frames beside them, where it aims at values
    /// and there are some.
    ///
    /// Errors: as [`PackTable::values`].
    pub fn input_for(&self, encoder: &EncoderConfig) -> Result<IndexInput> {
        encoder.aims_at().map_or_else(|| Ok(self.input()), |field| self.input_with_values(field.name()))
    }

    /// What an index loader needs of the frames with the field of this name of the values beside them, if there are some.
    ///
    /// Errors: as [`PackTable::values`].
    pub fn input_with_values(&self, field: &str) -> Result<IndexInput> {
        let input = self.input();
        let Some(values) = self.pack.values()? else { return Ok(input) };
        let mut hash = Xxh3::new();
        hash.update(&input.identity.to_le_bytes());
        hash.update(&values.identity.to_le_bytes());
        let table = JoinedTable::new(input.table, values.table.clone(), field)?;
        Ok(IndexInput {
            table: Arc::new(table),
            identity: hash.digest(),
            recipe: input.recipe.then(Step::Values),
            ..input
        })
    }

    /// What an index loader needs of the frames alone.
    pub fn input(&self) -> IndexInput {
        let mut hash = Xxh3::new();
        hash.update(&self.pack.identity().to_le_bytes());
        self.rows.hash_into(&mut hash);
        IndexInput {
            table: Arc::clone(&self.table),
            rows: Arc::clone(&self.rows),
            identity: hash.digest(),
            valuations: self.pack.names_of_valuations().to_vec(),
            recipe: Arc::clone(&self.recipe),
        }
    }
}
