//! A pack -> some of its rows: by SQL over its runs, by values of the rows, by marks, by side of a split. Nothing is changed.
//! Selections are ranges of rows; the two sides of a split never share a run.

use std::collections::HashMap;
use std::sync::Arc;

use gristmill_format::g2048::value;
use gristmill_format::layout::Layout;
use gristmill_format::{Error as FormatError, Kind};
pub use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, params_from_iter};
use xxhash_rust::xxh3::Xxh3;

use super::metadata::Run;
use super::open::Pack;
use super::runs::{Number, SCANNED};
use crate::marks;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::sql::{advice, columns, complaint, given_up, is_condition};
use gristmill_runtime::table::{FrameTable, IndexInput, JoinedTable, Param, Recipe, Step, rows_at};
use gristmill_stages::config::EncoderConfig;
use gristmill_stages::stage::split::Side;

/// Shares of a split are whole numbers of this many.
pub(crate) const SHARES: u64 = 1 << 53;

/// Which rows of the selected runs are meant; bounds are inclusive, what is not set lets every row through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Lowest and highest `step_index`.
    pub step_index: (Option<u64>, Option<u64>),
    /// Lowest and highest `max_rank`.
    pub max_rank: (Option<u64>, Option<u64>),
    /// Names of valuations.
    pub valuation: Option<Vec<String>>,
}

/// Some rows of a pack.
#[derive(Debug, Clone)]
pub struct Selection {
    pack: Arc<Pack>,
    /// Positions of the selected runs in the index, ascending.
    runs: Arc<[u32]>,
    rows: Arc<Intervals>,
    recipe: Arc<Recipe>,
}

impl Selection {
    /// All rows.
    pub fn all(pack: Arc<Pack>) -> Self {
        let runs = (0..pack.index().runs().len() as u32).collect();
        let rows = Arc::new(Intervals::all(pack.table().len()));
        let recipe = Recipe::all(pack.identity());
        Selection { pack, runs, rows, recipe }
    }

    /// The pack.
    pub fn pack(&self) -> &Arc<Pack> {
        &self.pack
    }

    /// The rows.
    pub fn rows(&self) -> &Arc<Intervals> {
        &self.rows
    }

    /// What was done to select them.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Ids of the selected runs, ascending. A run may have no row that passes the filters.
    pub fn run_ids(&self) -> impl ExactSizeIterator<Item = u64> {
        self.runs.iter().map(|run| self.pack.index().runs()[*run as usize].id)
    }

    /// Positions of the selected runs in the index, ascending.
    pub(super) fn runs(&self) -> &[u32] {
        &self.runs
    }

    pub(super) fn of_runs(&self, runs: Vec<u32>) -> Result<Self> {
        if runs.len() == self.runs.len() {
            return Ok(self.clone());
        }
        let theirs = self.pack.index().rows_of(&runs, &**self.pack.table())?;
        Ok(Selection { runs: runs.into(), rows: Arc::new(self.rows.intersect(&theirs)), ..self.clone() })
    }

    pub(super) fn after(self, step: Step) -> Self {
        Selection { recipe: self.recipe.then(step), ..self }
    }

    /// Those of the selected runs that `sql` names: a condition on table `runs`, such as `max_score > ?`, or a whole
    /// query whose first column is run ids. `params` are bound to its question marks.
    ///
    /// Errors: `Config` in `where` with what SQLite says; `Format` as [`RunIndex::rows_of`](super::runs::RunIndex::rows_of).
    pub fn query(&self, sql: &str, params: &[SqlValue]) -> Result<Self> {
        Ok(self.named(sql, params)?.after(Step::Where { sql: sql.to_owned(), params: Param::of(params) }))
    }

    fn named(&self, sql: &str, params: &[SqlValue]) -> Result<Self> {
        self.of_ids(named(self.pack.metadata()?.connection(), "runs", sql, params)?)
    }

    fn of_ids(&self, mut named: Vec<u64>) -> Result<Self> {
        named.sort_unstable();
        let runs = self.pack.index().runs();
        let of = |run: &&u32| named.binary_search(&runs[**run as usize].id).is_ok();
        self.of_runs(self.runs.iter().filter(of).copied().collect())
    }

    /// Those rows that pass `filter`; reads the fields of every row once.
    ///
    /// Errors: `Config` in `valuation` for a name that the pack does not have, and for a field that rows of its form lack.
    pub fn filter(&self, filter: &Filter) -> Result<Self> {
        let test = Test::new(filter, &self.pack)?;
        let table = self.pack.table();
        let mut rows = Intervals::default();
        let mut numbers = Vec::with_capacity(SCANNED as usize);
        let mut records = Vec::new();
        for (start, end) in self.rows.iter() {
            for first in (start..end).step_by(SCANNED as usize) {
                numbers.clear();
                numbers.extend(first..end.min(first + SCANNED));
                records.resize(numbers.len() * table.layout().size(), 0);
                table.gather(&numbers, &mut records)?;
                for (row, record) in (first..).zip(records.chunks_exact(table.layout().size())) {
                    if test.passes(record) {
                        rows.push(row, row + 1);
                    }
                }
            }
        }
        let Filter { step_index, max_rank, valuation } = filter.clone();
        let selection = Selection { rows: Arc::new(rows), ..self.clone() };
        Ok(selection.after(Step::Filter { step_index, max_rank, valuation }))
    }

    /// Those rows that mark `name` of the pack marks.
    ///
    /// Errors: as [`marks::rows`].
    pub fn marked(&self, name: &str) -> Result<Self> {
        let rows = self.rows.intersect(&marks::rows(&self.pack, name)?);
        let selection = Selection { rows: Arc::new(rows), ..self.clone() };
        Ok(selection.after(Step::Marked { name: name.to_owned() }))
    }

    /// Those rows that mark `name` of the pack does not mark.
    ///
    /// Errors: as [`marks::rows`].
    pub fn without(&self, name: &str) -> Result<Self> {
        let rows = self.rows.without(&marks::rows(&self.pack, name)?);
        let selection = Selection { rows: Arc::new(rows), ..self.clone() };
        Ok(selection.after(Step::Without { name: name.to_owned() }))
    }

    /// Two sides, by run: about the share `val` of the runs on the second. The side of a run depends on `seed` and the
    /// seed of its game alone (its id, where games have none): the same in every pack that the game is in, and games
    /// that occur twice are on one side.
    ///
    /// Errors: `Config` in `val` for a share outside 0..1, and when no run falls on that side.
    pub fn split(&self, val: f64, seed: u64) -> Result<(Self, Self)> {
        let (first, second) = self.sides(val, seed, &|run| run.seed.unwrap_or(run.id))?;
        let step = |second| Step::Split { val, seed, second };
        Ok((first.after(step(false)), second.after(step(true))))
    }

    /// The same with another key for each run, by its id: runs of one key are on one side.
    ///
    /// Errors: `Config`, as [`Selection::split`].
    pub fn split_by_keys(&self, val: f64, seed: u64, keys: &HashMap<u64, u64>) -> Result<(Self, Self)> {
        let (first, second) = self.sides(val, seed, &|run| keys.get(&run.id).copied().unwrap_or(run.id))?;
        // Where the keys came from is not known here; which runs they put where is.
        let ids: Vec<u64> = second.run_ids().collect();
        let step = |second| Step::SplitRuns { ids: ids.clone(), second };
        Ok((first.after(step(false)), second.after(step(true))))
    }

    fn sides(&self, val: f64, seed: u64, key_of: &dyn Fn(&Run) -> u64) -> Result<(Self, Self)> {
        if !(0.0..1.0).contains(&val) {
            return Err(Error::config("val", format!("{val}, expected a share of the runs: 0 or more, below 1")));
        }
        let share = (val * SHARES as f64) as u64;
        let side = Side::new(&[SHARES - share, share], 1);
        let side = side.ok_or_else(|| Error::config("val", format!("{val} is no share")))?;
        let runs = self.pack.index().runs();
        let key = format!("split {seed}");
        let falls = |run: &u32| side.holds(&key, key_of(&runs[*run as usize]));
        let (second, first): (Vec<u32>, Vec<u32>) = self.runs.iter().copied().partition(falls);
        if second.is_empty() && share > 0 {
            let text = format!(
                "none of the {} runs falls on the val side at {val}: raise it, take another seed, or name the runs",
                self.runs.len()
            );
            return Err(Error::config("val", text));
        }
        Ok((self.of_runs(first)?, self.of_runs(second)?))
    }

    /// Two sides, by run: on the second those that `sql` names, as in [`Selection::query`].
    ///
    /// Errors: as [`Selection::query`].
    pub fn split_by(&self, sql: &str, params: &[SqlValue]) -> Result<(Self, Self)> {
        let (first, second) = self.apart(self.named(sql, params)?)?;
        let step = |second| Step::SplitWhere { sql: sql.to_owned(), params: Param::of(params), second };
        Ok((first.after(step(false)), second.after(step(true))))
    }

    /// Two sides, by run: on the second those of these ids.
    ///
    /// Errors: `Format` as [`RunIndex::rows_of`](super::runs::RunIndex::rows_of).
    pub fn split_ids(&self, ids: Vec<u64>) -> Result<(Self, Self)> {
        let (first, second) = self.apart(self.of_ids(ids.clone())?)?;
        let step = |second| Step::SplitRuns { ids: ids.clone(), second };
        Ok((first.after(step(false)), second.after(step(true))))
    }

    /// The rows from place `from` to place `to`, of the same runs.
    #[must_use]
    pub fn slice(&self, from: u64, to: u64) -> Self {
        let selection = Selection { rows: Arc::new(self.rows.slice(from, to)), ..self.clone() };
        selection.after(Step::Slice { from, to })
    }

    fn apart(&self, second: Self) -> Result<(Self, Self)> {
        let first = self.runs.iter().filter(|run| second.runs.binary_search(run).is_err()).copied().collect();
        Ok((self.of_runs(first)?, second))
    }

    /// The records of rows of this selection, by place in it, back to back in the layout of the pack.
    ///
    /// Errors: `Format`: `Missing` for a place beyond the last row.
    pub fn take(&self, places: &[u64]) -> Result<Vec<u8>> {
        self.gather(&rows_at(&self.rows, places)?)
    }

    /// The records of rows by their number in the pack, back to back in its layout.
    ///
    /// Errors: `Format`: `Missing` for a number out of range.
    pub fn gather(&self, rows: &[u64]) -> Result<Vec<u8>> {
        let mut records = vec![0; rows.len() * self.layout().size()];
        self.pack.table().gather(rows, &mut records)?;
        Ok(records)
    }

    /// The vectors of rows of this selection, by place in it, back to back: little-endian `f4`, as many for each row as
    /// the layout of [`Pack::embeddings`] says.
    ///
    /// Errors: `Format`: `Missing` for a place beyond the last row, and for a pack that has no vectors.
    pub fn take_embeddings(&self, places: &[u64]) -> Result<Vec<u8>> {
        let Some(table) = self.pack.embeddings() else {
            let detail = "there are no embeddings-*.npy beside the rows";
            return Err(FormatError::new(Kind::Missing, detail)
                .in_source(self.pack.folder().display().to_string())
                .into());
        };
        let rows = rows_at(&self.rows, places)?;
        let mut vectors = vec![0; rows.len() * table.layout().size()];
        table.gather(&rows, &mut vectors)?;
        Ok(vectors)
    }

    /// Rewards and returns of rows of this selection, by place in it, back to back in
    /// [`value_layout`](value::value_layout).
    ///
    /// Errors: as [`Pack::values`]; `Missing` for a place beyond the last row, and for a pack that has none.
    pub fn take_values(&self, places: &[u64]) -> Result<Vec<u8>> {
        let Some(values) = self.pack.values()? else {
            let detail = "there is no values.npy beside the rows; `gristmill values PACK` makes it of step rows";
            return Err(FormatError::new(Kind::Missing, detail)
                .in_source(self.pack.folder().display().to_string())
                .into());
        };
        let rows = rows_at(&self.rows, places)?;
        let mut records = vec![0; rows.len() * value::VALUE_BYTES];
        values.table.gather(&rows, &mut records)?;
        Ok(records)
    }

    /// What an index loader with this encoder needs of it: the values of the rows beside them, where it aims at values
    /// and there are some.
    ///
    /// Errors: as [`Pack::values`].
    pub fn input_for(&self, encoder: &EncoderConfig) -> Result<IndexInput> {
        encoder.aims_at().map_or_else(|| Ok(self.input()), |field| self.input_with_values(field))
    }

    /// What an index loader needs of the rows with this number of the values beside them, if there are some.
    ///
    /// Errors: as [`Pack::values`].
    pub fn input_with_values(&self, field: value::ValueField) -> Result<IndexInput> {
        let input = self.input();
        let Some(values) = self.pack.values()? else { return Ok(input) };
        let mut hash = Xxh3::new();
        hash.update(&input.identity.to_le_bytes());
        hash.update(&values.identity.to_le_bytes());
        let table = JoinedTable::new(input.table, values.table.clone(), field.name())?;
        Ok(IndexInput {
            table: Arc::new(table),
            identity: hash.digest(),
            recipe: input.recipe.then(Step::Values),
            ..input
        })
    }

    /// What an index loader needs of the rows alone.
    pub fn input(&self) -> IndexInput {
        let mut hash = Xxh3::new();
        hash.update(&self.pack.identity().to_le_bytes());
        self.rows.hash_into(&mut hash);
        IndexInput {
            table: Arc::clone(self.pack.table()),
            rows: Arc::clone(&self.rows),
            identity: hash.digest(),
            valuations: self.pack.valuations().names().to_vec(),
            recipe: Arc::clone(&self.recipe),
        }
    }

    /// The layout of the records.
    pub fn layout(&self) -> &Layout {
        self.pack.table().layout()
    }
}

/// Ids that a condition on a table, or a whole query, gives.
pub(crate) fn named(db: &Connection, table: &str, sql: &str, params: &[SqlValue]) -> Result<Vec<u64>> {
    ask(db, table, sql, params).map_err(|e| {
        if let Some(ended) = given_up(&e, None) {
            return ended;
        }
        let said = complaint(&e);
        let said = format!("{said}{}", advice(&said));
        let there = columns(db, table).ok().filter(|_| said.contains("no such column"));
        let there = there.map_or(String::new(), |names| format!("; `{table}` has {}", names.join(", ")));
        Error::config("where", format!("{said}{there}, in `{sql}`"))
    })
}

fn ask(db: &Connection, table: &str, sql: &str, params: &[SqlValue]) -> rusqlite::Result<Vec<u64>> {
    let start = sql.trim_start().get(..6).unwrap_or_default().to_ascii_lowercase();
    let whole = start.starts_with("select") || start.starts_with("with") && !start.starts_with("within");
    // The line feeds keep a comment at the end of the condition from hiding what follows it.
    let text = if whole { sql.to_owned() } else { format!("SELECT id FROM {table} WHERE (\n{sql}\n)") };
    let mut statement = db.prepare(&text)?;
    if !whole {
        is_condition(db, sql, table)?;
    }
    let mut rows = statement.query(params_from_iter(params))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.extend(u64::try_from(row.get::<_, i64>(0)?));
    }
    Ok(found)
}

/// A field of the rows of a pack that a filter asks for; self-play rows have their own name for the step.
fn number(pack: &Pack, name: &str) -> Result<Number> {
    let layout = pack.table().layout();
    let own = if name == "step_index" && layout.field(name).is_none() { "step_idx" } else { name };
    let lacking = |e: FormatError| {
        let option = if name == "valuation_type" { "valuation" } else { name };
        Error::config(option, format!("{} (form: {})", e.detail(), pack.form().name()))
    };
    Number::new(layout, own).map_err(lacking)
}

/// A filter made ready for the records of one pack.
struct Test {
    ranges: Vec<(Number, u64, u64)>,
    /// Which valuation ids pass.
    valuations: Option<(Number, [bool; 256])>,
}

impl Test {
    fn new(filter: &Filter, pack: &Pack) -> Result<Self> {
        let mut ranges = Vec::new();
        for (name, (low, high)) in [("step_index", filter.step_index), ("max_rank", filter.max_rank)] {
            if low.is_some() || high.is_some() {
                ranges.push((number(pack, name)?, low.unwrap_or(0), high.unwrap_or(u64::MAX)));
            }
        }
        let valuations = match &filter.valuation {
            None => None,
            Some(names) => {
                let valuation_type = number(pack, "valuation_type")?;
                let mut passing = [false; 256];
                for name in names {
                    let Some(id) = pack.valuations().id(name) else {
                        let known = pack.valuations().names().join(", ");
                        return Err(Error::config("valuation", format!("`{name}` is none of this pack's: {known}")));
                    };
                    passing[usize::from(id)] = true;
                }
                Some((valuation_type, passing))
            }
        };
        Ok(Test { ranges, valuations })
    }

    fn passes(&self, record: &[u8]) -> bool {
        let within = |(number, low, high): &(Number, u64, u64)| (*low..=*high).contains(&number.of(record));
        self.ranges.iter().all(within)
            && self.valuations.as_ref().is_none_or(|(number, passing)| passing[number.of(record) as usize & 255])
    }
}
