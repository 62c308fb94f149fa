//! A folder of rows in some form -> what there is to convert: rows, vectors, runs, names; and files to join with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::lineage::{self, of_file};
use gristmill_engine::pack::metadata::{Metadata, Run};
use gristmill_engine::pack::open::{recognise, valuations};
use gristmill_engine::pack::shards::{self, Shard};
use gristmill_engine::pack::valuation::ValuationTypes;
use gristmill_engine::pack::{self, embeddings};
use gristmill_engine::row_files;
use gristmill_engine::store::files::is_folder;
use gristmill_format::g2048::Board;
use gristmill_format::g2048::board::Packed;
use gristmill_format::g2048::form::{Columns, Form, Step};
use gristmill_format::layout::{Conform, DType, Field, Layout};
use gristmill_format::{Error as FormatError, Kind};

use super::stored::{Block, Key, Keys, Stored, Walk};
use crate::pack::known_of;

/// The name of the valuation of values that are shares of a step, not values: those of legacy packs.
pub(super) const NORMALISED: &str = "normalised";

/// The field that holds the vector of a row in the form of exponents.
pub(super) const EMBEDDING: &str = "embedding";

/// The rows to convert.
pub(super) struct Source {
    pub(super) folder: PathBuf,
    pub(super) columns: Columns,
    pub(super) stored: Arc<Stored>,
    pub(super) keys: Arc<Keys>,
    conform: Conform,
    pub(super) vectors: Option<Vectors>,
    pub(super) runs: Vec<Run>,
    pub(super) types: ValuationTypes,
    /// How the rows came to be, and what is joined with them.
    pub(super) lineage: Vec<Vec<lineage::Step>>,
}

/// Where the vectors of rows are.
pub(super) enum Vectors {
    /// In files of their own, by number of the row.
    Files(Stored),
    /// In a field of the row.
    Field(Field),
}

impl Vectors {
    /// Numbers of a vector.
    pub(super) fn size(&self) -> usize {
        match self {
            Vectors::Files(stored) => stored.layout.size() / 4,
            Vectors::Field(field) => field.count(),
        }
    }
}

impl Source {
    /// Opens a folder of rows of any form.
    ///
    /// Errors: `Path`; `Format` with the file, as [`pack::open::RowPack::open`] gives but for what only feeding needs.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let found = shards::list(folder)?;
        let columns = recognise(&found)?;
        let vectors = embeddings::list(folder, &found)?;
        let layout = found[0].layout.clone();
        let metadata = Metadata::open(folder.join(pack::METADATA))?;
        let mut runs = Vec::new();
        metadata.runs(&mut |run| {
            runs.push(run);
            Ok(())
        })?;
        let rows = found.iter().map(|shard| shard.rows).sum();
        let placed = match columns.form() {
            Form::Legacy => placed(metadata.first_rows()?, &runs, rows),
            _ => None,
        };
        let keys = Keys::new(&layout, columns.form() == Form::Legacy, placed)
            .map_err(|e| e.in_source(found[0].path.display().to_string()))?;
        let conform = Conform::new(&layout, columns.form().layout())?;
        let vectors = match vectors {
            Some(vectors) => Some(Vectors::Files(vector_files(vectors)?)),
            None => vector_field(&layout).map(Vectors::Field),
        };
        Ok(Source {
            folder: folder.to_owned(),
            columns,
            stored: Arc::new(Stored::open(layout, found)?),
            keys: Arc::new(keys),
            conform,
            vectors,
            runs,
            types: valuations(folder)?,
            lineage: vec![known_of(folder)],
        })
    }

    /// Whether rows have a field that says what this one of step rows says.
    pub(super) fn has(&self, field: &str) -> bool {
        let own = match field {
            "move_dir" if self.columns.form() == Form::Legacy => "move",
            "branch_evs" if self.columns.form() == Form::Legacy => "ev_values",
            own => own,
        };
        // A field of another form's name, such as the moves that some self-play has, is carried and not understood.
        self.columns.form().layout().field(own).is_some() && self.stored.layout.field(own).is_some()
    }

    /// Fields that the form has no meaning for.
    pub(super) fn others(&self) -> Vec<Field> {
        let known = |field: &&Field| self.columns.form().layout().field(&field.name).is_none();
        let vector = |field: &&Field| matches!(&self.vectors, Some(Vectors::Field(own)) if own.name == field.name);
        self.stored.layout.fields().iter().filter(known).filter(|field| !vector(field)).cloned().collect()
    }

    /// The step of a record, under its key; what the row does not say is derived where it can be.
    ///
    /// Errors: `Format` with file and row.
    pub(super) fn step(
        &self,
        (run_id, step_index): Key,
        row: u64,
        record: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<Step> {
        scratch.resize(self.columns.form().layout().size(), 0);
        self.conform.record(record, scratch);
        let place = |e: FormatError| Error::from(self.stored.place(e, row));
        let mut step = self.columns.step(scratch).map_err(place)?;
        (step.run_id, step.row.run_id, step.row.step_index) = (run_id, run_id as u32, step_index);
        let board = Board::unpack(Packed { board: step.row.board, mask: step.row.tile_65536_mask });
        if !self.has("board_eval") {
            step.row.board_eval = gristmill_format::g2048::heuristic::board_eval(&board).map_err(place)?;
        }
        if !self.has("max_rank") {
            step.row.max_rank = board.max_rank();
        }
        Ok(step)
    }

    /// The facts of all rows, found in one pass; `done` gets the number of rows read so far.
    ///
    /// Errors: `Format` with file and row; what `done` returns.
    pub(super) fn examine(&self, done: &mut dyn FnMut(u64) -> Result<()>) -> Result<Facts> {
        let (mut walk, mut block, mut scratch) = (Walk::new(&self.stored, &self.keys), Block::default(), Vec::new());
        let mut facts = Facts::new();
        let mut last: Option<Key> = None;
        while walk.next(&mut block)? {
            let records = block.records.chunks_exact(self.stored.layout.size());
            for ((&key, &row), record) in block.keys.iter().zip(&block.rows).zip(records) {
                let step = self.step(key, row, record, &mut scratch)?;
                facts.by_key &= last.is_none_or(|last| last < key);
                facts.by_run &= last.is_none_or(|last| last.0 <= key.0);
                last = Some(key);
                facts.count(key.0, &step);
            }
            done(block.keys.len() as u64)?;
        }
        Ok(facts)
    }
}

/// What the rows are like.
pub(super) struct Facts {
    /// Whether they lie in order of game and step.
    pub(super) by_key: bool,
    /// Whether those of a game follow each other, and games lie in order of id.
    pub(super) by_run: bool,
    pub(super) runs: BTreeMap<u64, RunFacts>,
    pub(super) highest_step: u32,
    /// Ids of valuations that rows have.
    pub(super) valuations: [bool; 256],
}

impl Facts {
    pub(super) fn new() -> Self {
        Facts { by_key: true, by_run: true, runs: BTreeMap::new(), highest_step: 0, valuations: [false; 256] }
    }

    /// Takes in a step of the run `id`.
    pub(super) fn count(&mut self, id: u64, step: &Step) {
        let run = self.runs.entry(id).or_default();
        (run.rows, run.rank) = (run.rows + 1, run.rank.max(step.row.decoded_board().max_rank()));
        self.highest_step = self.highest_step.max(step.row.step_index);
        self.valuations[usize::from(step.row.valuation_type)] = true;
    }

    /// The highest rank on any board.
    pub(super) fn rank(&self) -> u8 {
        self.runs.values().map(|run| run.rank).max().unwrap_or(0)
    }
}

/// What the rows of a run are like.
#[derive(Default, Clone, Copy)]
pub(super) struct RunFacts {
    pub(super) rows: u64,
    /// Highest rank on a board.
    pub(super) rank: u8,
}

/// First rows and ids of runs, where these divide all the rows: then they are right even where `append` of the time gave
/// the rows wrong ids.
fn placed(first_rows: Option<Vec<(u64, u64)>>, runs: &[Run], rows: u64) -> Option<Vec<(u64, u64)>> {
    let steps = |id: u64| runs.binary_search_by_key(&id, |run| run.id).map_or(0, |at| runs[at].steps);
    let mut placed: Vec<(u64, u64)> = first_rows?.into_iter().map(|(id, first)| (first, id)).collect();
    placed.retain(|(_, id)| steps(*id) > 0);
    placed.sort_unstable();
    let mut at = 0u64;
    for (first, id) in &placed {
        if *first != at {
            return None;
        }
        at = at.checked_add(steps(*id))?;
    }
    (at == rows && !placed.is_empty()).then_some(placed)
}

fn vector_files(vectors: Vec<embeddings::Vectors>) -> Result<Stored> {
    let size = vectors.first().map_or(1, |vectors| vectors.size);
    let layout = embeddings::layout(size)?;
    let shard = |part: gristmill_engine::table::Part| {
        let gristmill_engine::table::Part { path, offset, rows } = part;
        Shard { path, layout: layout.clone(), rows, offset }
    };
    let shards = vectors.into_iter().map(|vectors| shard(vectors.part)).collect();
    Stored::open(layout.clone(), shards)
}

/// The field of the vector, where rows have one.
fn vector_field(layout: &Layout) -> Option<Field> {
    use gristmill_format::layout::{Order, Scalar};
    let field = layout.field(EMBEDDING).filter(|field| field.shape.len() == 1)?;
    (field.dtype == DType::Scalar(Scalar::F32, Order::Little)).then(|| field.clone())
}

/// Rows that are joined with those of a source, by game and step.
pub(super) struct Join {
    pub(super) path: PathBuf,
    /// How they came to be.
    pub(super) lineage: Vec<lineage::Step>,
    pub(super) stored: Arc<Stored>,
    pub(super) keys: Arc<Keys>,
    /// Its fields, but for the keys.
    pub(super) fields: Vec<Field>,
}

impl Join {
    /// Opens a folder with files of rows, or the files `NAME.npy` and `NAME-<digits>.npy` where `path` ends in `NAME`.
    ///
    /// Errors: `Path`; `Format` with the file: as [`shards::list`]; `Missing` for rows without `run_id` and step.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let found = if is_folder(path)? { shards::list(path)? } else { named(path)? };
        let place = |e: FormatError| e.in_source(found[0].path.display().to_string());
        let layout = found[0].layout.clone();
        if let Some(other) = found.iter().find(|shard| shard.layout != layout) {
            let detail = format!("its rows differ from those of {}", found[0].path.display());
            let e = FormatError::new(Kind::Unsupported, detail);
            return Err(e.in_source(other.path.display().to_string()).into());
        }
        let keys = Keys::new(&layout, false, None).map_err(place)?;
        let is_key = |name: &str| ["run_id", "step_index", "step_idx"].contains(&name);
        let fields = layout.fields().iter().filter(|field| !is_key(&field.name)).cloned().collect();
        let beside = found[0].path.with_file_name(row_files::VALUES_MADE);
        let values = found[0].path.file_name().is_some_and(|name| row_files::is_values(&name.to_string_lossy()));
        let lineage = values.then(|| of_file(&beside).unwrap_or_else(|| vec![lineage::Step::unrecorded()]));
        let lineage = lineage.unwrap_or_else(|| known_of(path));
        let stored = Arc::new(Stored::open(layout, found)?);
        Ok(Join { path: path.to_owned(), lineage, stored, keys: Arc::new(keys), fields })
    }
}

/// The files of one name, and not those with longer names.
fn named(path: &Path) -> Result<Vec<Shard>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut names = row_files::listed(folder, |found| {
        let rest = found.strip_prefix(&*name).and_then(|rest| rest.strip_suffix(".npy"));
        let digits = |rest: &str| rest.strip_prefix('-').is_some_and(|n| n.bytes().all(|c| c.is_ascii_digit()));
        rest.is_some_and(|rest| rest.is_empty() || digits(rest))
    })?;
    names.sort_unstable_by_key(|name| (name.len(), name.clone()));
    if names.is_empty() {
        let detail = format!("no folder, and there is no {name}.npy and no {name}-<digits>.npy");
        return Err(FormatError::new(Kind::Missing, detail).in_source(path.display().to_string()).into());
    }
    names.iter().map(|name| Ok(shards::open(folder.join(name))?)).collect()
}
