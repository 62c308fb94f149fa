//! A pack and how rows were selected of it -> those rows, held against their hash; and where each of them comes from.
//! Opens and selects as people do; a pack that has changed is refused rather than asked.

use std::path::Path;
use std::sync::Arc;

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::chunks::{self, select::GameSelection};
use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack::open::Pack;
use gristmill_engine::pack::select::{Filter, Selection};
use gristmill_engine::store::Residence;
use gristmill_engine::table::{FrameTable, IndexInput, Param, Recipe, Step, ThreeWay};
use gristmill_format::g2048::value::ValueField;
use serde::Serialize;

/// Rows of a pack, of whatever kind.
#[derive(Debug, Clone)]
pub enum Selected {
    /// Rows of a pack of steps.
    Rows(Selection),
    /// Games of a chunk pack.
    Games(GameSelection),
}

/// Where a row comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RowPlace {
    /// Its number in the pack.
    pub pack_row: u64,
    /// The file of the pack that holds it.
    pub file: String,
    /// Its number in that file.
    pub file_row: u64,
    /// Id of its game (run) in the pack.
    pub game: u64,
    /// What was packed: the file and its member, where the pack says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Its place in the game, from 0.
    pub ply: u64,
}

impl Selected {
    /// Opens the pack in a folder and selects the same rows again; `data` is their hash.
    ///
    /// Errors: `State` where that is another; as the pack's opening and selecting.
    pub fn open(folder: &Path, recipe: &Recipe, data: &str) -> Result<Self> {
        let all = match chunks::is_pack(folder) {
            true => Selected::Games(GameSelection::all(Arc::new(ChunkPack::open(folder, Residence::Mapped)?))),
            false => Selected::Rows(Selection::all(Arc::new(Pack::open(folder, Residence::Mapped)?))),
        };
        let found = all.recipe().pack.clone();
        if found != recipe.pack {
            let folder = folder.display();
            return Err(Error::State(format!(
                "{folder} is another pack: its identity is {found}, expected {}",
                recipe.pack
            )));
        }
        let selected = recipe.steps.iter().try_fold(all, |selected, step| selected.after(step))?;
        let found = format!("{:016x}", selected.input(recipe)?.identity);
        if found != data {
            let text = format!(
                "{} gives other rows for this selection: their hash is {found}, expected {data}",
                folder.display()
            );
            return Err(Error::State(text));
        }
        Ok(selected)
    }

    fn recipe(&self) -> Arc<Recipe> {
        match self {
            Selected::Rows(rows) => rows.input().recipe,
            Selected::Games(games) => games.input().recipe,
        }
    }

    /// What a loader needs of the rows.
    ///
    /// Errors: as the pack's values, where the recipe has them.
    pub fn input(&self, recipe: &Recipe) -> Result<IndexInput> {
        match self {
            Selected::Rows(rows) if recipe.steps.contains(&Step::Values) => {
                rows.input_with_values(ValueField::default())
            }
            Selected::Rows(rows) => Ok(rows.input()),
            Selected::Games(games) => Ok(games.input()),
        }
    }

    fn after(self, step: &Step) -> Result<Self> {
        let side = |(first, second), wanted: bool| if wanted { second } else { first };
        Ok(match (self, step) {
            (Selected::Rows(rows), Step::Where { sql, params }) => {
                Selected::Rows(rows.query(sql, &Param::values(params))?)
            }
            (Selected::Rows(rows), Step::Filter { step_index, max_rank, valuation }) => {
                let valuation = valuation.clone();
                Selected::Rows(rows.filter(&Filter { step_index: *step_index, max_rank: *max_rank, valuation })?)
            }
            (Selected::Rows(rows), Step::Split { val, seed, second }) => {
                Selected::Rows(side(rows.split(*val, *seed)?, *second))
            }
            (Selected::Rows(rows), Step::SplitWhere { sql, params, second }) => {
                Selected::Rows(side(rows.split_by(sql, &Param::values(params))?, *second))
            }
            (Selected::Rows(rows), Step::SplitRuns { ids, second }) => {
                Selected::Rows(side(rows.split_ids(ids.clone())?, *second))
            }
            (Selected::Rows(rows), Step::SplitThree { val, test, seed, side }) => {
                let [train, second, third] = rows.split_three(*val, *test, *seed, None)?;
                Selected::Rows(match side {
                    ThreeWay::Train => train,
                    ThreeWay::Val => second,
                    ThreeWay::Test => third,
                })
            }
            (Selected::Rows(rows), Step::Fold { of, seed, fold, second }) => {
                let nth = rows.folds(*of, *seed, None)?.into_iter().nth(*fold as usize);
                let nth = nth.ok_or_else(|| Error::State(format!("fold {fold} of {of}")))?;
                Selected::Rows(side(nth, *second))
            }
            (Selected::Rows(rows), Step::Values) => Selected::Rows(rows),
            (Selected::Games(games), Step::Where { sql, params }) => {
                Selected::Games(games.query(sql, &Param::values(params))?)
            }
            (Selected::Games(games), Step::Split { val, seed, second }) => {
                let (first, val) = games.split(*val, *seed)?;
                Selected::Games(if *second { val } else { first })
            }
            (Selected::Rows(rows), Step::Marked { name }) => Selected::Rows(rows.marked(name)?),
            (Selected::Rows(rows), Step::Without { name }) => Selected::Rows(rows.without(name)?),
            (Selected::Rows(rows), Step::Slice { from, to }) => Selected::Rows(rows.slice(*from, *to)),
            (Selected::Games(games), Step::Marked { name }) => Selected::Games(games.marked(name)?),
            (Selected::Games(games), Step::Without { name }) => Selected::Games(games.without(name)?),
            (Selected::Games(games), Step::Slice { from, to }) => {
                let [from, to] = [*from, *to].map(|place| usize::try_from(place).unwrap_or(usize::MAX));
                Selected::Games(games.slice(from, to))
            }
            (Selected::Games(games), Step::SplitWhere { sql, params, second }) => {
                let (first, other) = games.split_by(sql, &Param::values(params))?;
                Selected::Games(if *second { other } else { first })
            }
            (Selected::Games(games), Step::SplitRuns { ids, second }) => {
                let (first, other) = games.split_ids(ids.clone());
                Selected::Games(if *second { other } else { first })
            }
            (Selected::Games(games), Step::SplitThree { val, test, seed, side }) => {
                let [train, second, third] = games.split_three(*val, *test, *seed, None)?;
                Selected::Games(match side {
                    ThreeWay::Train => train,
                    ThreeWay::Val => second,
                    ThreeWay::Test => third,
                })
            }
            (Selected::Games(games), Step::Fold { of, seed, fold, second }) => {
                let nth = games.folds(*of, *seed, None)?.into_iter().nth(*fold as usize);
                let (first, own) = nth.ok_or_else(|| Error::State(format!("fold {fold} of {of}")))?;
                Selected::Games(if *second { own } else { first })
            }
            (Selected::Games(_), other) => {
                return Err(Error::State(format!("games cannot be selected so: {other:?}")));
            }
        })
    }

    /// Where a row of the pack comes from.
    pub fn place(&self, row: u64) -> RowPlace {
        match self {
            Selected::Rows(rows) => {
                let (file, file_row) = rows.pack().table().locate(row);
                let (game, ply) = rows.pack().index().locate(row).unwrap_or_default();
                RowPlace { pack_row: row, file, file_row, game, member: rows.pack().source(game), ply }
            }
            Selected::Games(games) => {
                let pack = games.pack();
                let (file, file_row) = pack.locate(row);
                let (game, ply) = pack.place_of(row).unwrap_or_default();
                RowPlace { pack_row: row, file, file_row, game, member: Some(pack.source(game).to_owned()), ply }
            }
        }
    }
}
