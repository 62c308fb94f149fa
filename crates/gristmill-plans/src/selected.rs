//! A pack and how rows were selected of it -> those rows, held against their hash; and where each of them comes from.
//! Opens and selects as people do; a pack that has changed is refused rather than asked.

use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::selection::{self, Selection};
use gristmill_engine::store::Residence;
use gristmill_engine::table::{IndexInput, Recipe, Step};
use gristmill_format::g2048::value::ValueField;
use serde::Serialize;

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

/// Opens the pack in a folder and selects the same rows again; `data` is their hash.
///
/// Errors: `State` where that is another; as the pack's opening and selecting.
pub fn again(folder: &Path, recipe: &Recipe, data: &str) -> Result<Selection> {
    if recipe.steps.iter().any(|step| matches!(step, Step::Mixed { .. })) {
        let text = "its rows are of several packs, and one was given; `xray` of the loader itself names them";
        return Err(Error::State(text.to_owned()));
    }
    let selected = reselected(folder, recipe)?;
    let found = format!("{:016x}", input(&selected, recipe)?.identity);
    if found != data {
        let at = folder.display();
        let text = format!("{at} gives other rows for this selection: their hash is {found}, expected {data}");
        return Err(Error::State(text));
    }
    Ok(selected)
}

/// The same of one pack, or of several that were mixed, in their order; with what a loader needs of each.
///
/// Errors: as [`again`], with the number of the pack; `State` for another number of packs.
pub fn all_again(folders: &[PathBuf], recipe: &Recipe, data: &str) -> Result<(Vec<Selection>, Vec<IndexInput>)> {
    let mixed = recipe.steps.iter().find_map(|step| if let Step::Mixed { of } = step { Some(of) } else { None });
    let recipes = mixed.map_or(std::slice::from_ref(recipe), Vec::as_slice);
    if folders.len() != recipes.len() {
        let text = format!("its rows are of {} packs, and {} were given", recipes.len(), folders.len());
        return Err(Error::State(text));
    }
    let (mut selected, mut inputs) = (Vec::new(), Vec::new());
    for (folder, recipe) in folders.iter().zip(recipes) {
        let one = reselected(folder, recipe)?;
        inputs.push(input(&one, recipe)?);
        selected.push(one);
    }
    let identity = match (mixed, &inputs[..]) {
        (None, [one]) => one.identity,
        _ => IndexInput::chained(inputs.clone())?.0.identity,
    };
    let found = format!("{identity:016x}");
    if found != data {
        let text = format!("these packs give other rows for this selection: their hash is {found}, expected {data}");
        return Err(Error::State(text));
    }
    Ok((selected, inputs))
}

/// The rows that a recipe selects of the pack in a folder.
fn reselected(folder: &Path, recipe: &Recipe) -> Result<Selection> {
    let all = Selection::all(selection::open(folder, Residence::Mapped)?);
    let (at, found) = (folder.display(), &all.recipe().pack);
    if *found != recipe.pack {
        let expected = &recipe.pack;
        return Err(Error::State(format!("{at} is another pack: its identity is {found}, expected {expected}")));
    }
    recipe.steps.iter().try_fold(all, |selected, step| selected.again(step))
}

/// What a loader needs of rows that a recipe selected.
///
/// Errors: as the pack's values, where the recipe has them.
pub fn input(selected: &Selection, recipe: &Recipe) -> Result<IndexInput> {
    match recipe.steps.contains(&Step::Values) {
        true => selected.input_with_values(ValueField::default().name()),
        false => Ok(selected.input()),
    }
}

/// The pack that a row of a table of several is of, which lie one after another, and the number of the row in it.
pub fn pack_of(packs: &[Selection], mut row: u64) -> (usize, u64) {
    let mut pack = 0;
    while pack + 1 < packs.len() && row >= packs[pack].pack().total() {
        row -= packs[pack].pack().total();
        pack += 1;
    }
    (pack, row)
}

/// Where a row of the pack comes from.
pub fn place(selected: &Selection, row: u64) -> RowPlace {
    let (file, file_row) = selected.locate(row);
    let (game, ply) = selected.game_of(row).unwrap_or_default();
    RowPlace { pack_row: row, file, file_row, game, member: selected.pack().source(game), ply }
}
