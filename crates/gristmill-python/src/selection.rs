//! A pack in, selections of its frames out: by SQL, by value, by marks, by side of a split; and frames and games by number.
//! Everything that reads is called with the GIL released.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use gristmill_engine::RowEncoder;
use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::EncoderConfig;
use gristmill_engine::kinds;
use gristmill_engine::pack::checksums::Verify;
use gristmill_engine::pack::open::RowPack;
use gristmill_engine::selection::sides::Keys;
use gristmill_engine::selection::{Filter, Selection as Chosen};
use gristmill_engine::sql::SqlValue;
use gristmill_engine::store::Residence;
use gristmill_engine::table::FrameTable;
use gristmill_format::demo::pack::PackedTrajectory;
use gristmill_format::demo::trajectory::End;
use gristmill_format::records::{self, pack::PackedGame};
use gristmill_format::{Error as FormatError, Kind};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::{Contiguous, Memory};
use crate::demos::{Extras, given};
use crate::encoding::{RowEncoding, numbers};
use crate::error::Fault;
use crate::layout::Layout;
use crate::marking::{self, Finding, Marking};
use crate::spare;

/// Some frames of a pack.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Selection(pub(crate) Chosen);

/// Opens the pack in a folder; `memory` reads it into memory instead of mapping it. Of rows, `values` is the folder of their
/// values where they do not lie beside them, `verify` says when they are held against their checksums.
#[pyfunction]
pub(crate) fn open_pack(
    py: Python<'_>,
    path: PathBuf,
    memory: bool,
    values: Option<PathBuf>,
    verify: Option<String>,
) -> Result<Selection, Fault> {
    let residence = if memory { Residence::Memory } else { Residence::Mapped };
    if py.detach(|| gristmill_engine::chunks::is_pack(&path))? {
        return py.detach(|| Ok(Selection(Chosen::all(Arc::new(ChunkPack::open(&path, residence)?)))));
    }
    let named = |name: String| {
        let text = format!("`{name}`; expected open, first_touch or off");
        Verify::named(&name).ok_or_else(|| gristmill_engine::Error::config("verify", text))
    };
    let verify = verify.map(named).transpose()?;
    py.detach(|| {
        let pack = RowPack::open_with(&path, residence, verify)?;
        Ok(Selection(Chosen::all(Arc::new(values.into_iter().fold(pack, RowPack::with_values_in)))))
    })
}

/// Whether a folder is a chunk pack.
#[pyfunction]
pub(crate) fn holds_games(py: Python<'_>, path: PathBuf) -> Result<bool, Fault> {
    Ok(py.detach(|| gristmill_engine::chunks::is_pack(&path))?)
}

/// A value bound to a question mark.
#[derive(FromPyObject, IntoPyObject)]
pub(crate) enum Parameter {
    /// A whole number.
    Int(i64),
    /// Any other number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

fn bound(parameters: Vec<Option<Parameter>>) -> Vec<SqlValue> {
    let value = |parameter| match parameter {
        None => SqlValue::Null,
        Some(Parameter::Int(n)) => SqlValue::Integer(n),
        Some(Parameter::Real(x)) => SqlValue::Real(x),
        Some(Parameter::Text(text)) => SqlValue::Text(text),
        Some(Parameter::Blob(bytes)) => SqlValue::Blob(bytes),
    };
    parameters.into_iter().map(value).collect()
}

fn given_back(value: SqlValue) -> Option<Parameter> {
    match value {
        SqlValue::Null => None,
        SqlValue::Integer(n) => Some(Parameter::Int(n)),
        SqlValue::Real(x) => Some(Parameter::Real(x)),
        SqlValue::Text(text) => Some(Parameter::Text(text)),
        SqlValue::Blob(bytes) => Some(Parameter::Blob(bytes)),
    }
}

/// A column of the table of games: its name, its declared type, a value for each game.
type Column = (String, String, Vec<Option<Parameter>>);

type Range = (Option<u64>, Option<u64>);
type Sides = (Selection, Selection);

fn sides((first, second): (Chosen, Chosen)) -> Sides {
    (Selection(first), Selection(second))
}

impl Selection {
    /// What a split by content takes for each game.
    fn keys(&self, py: Python<'_>, by_content: bool) -> Result<Option<Keys>, Fault> {
        by_content.then(|| marking::keys(py, self.0.pack())).transpose()
    }

    /// The trajectory at a place, of a pack of demonstrations.
    fn trajectory(&self, place: usize) -> Result<PackedTrajectory<'_>, Fault> {
        let missing = || FormatError::new(Kind::Missing, format!("trajectory {place} of {}", self.0.games().len()));
        let games = self.0.games().get(place).zip(self.0.pack().as_a::<ChunkPack>());
        let (game, pack) = games.ok_or_else(missing)?;
        Ok(pack.demonstration(*game)?)
    }
}

#[pymethods]
impl Selection {
    /// The folder of the pack.
    #[getter]
    fn folder(&self) -> OsString {
        self.0.pack().folder().as_os_str().to_owned()
    }

    /// Frames of the whole pack.
    #[getter]
    fn total_frames(&self) -> u64 {
        self.0.pack().total()
    }

    /// What the frames are: the form of rows, `chess` or `demo` of chunks.
    #[getter]
    fn form(&self) -> &'static str {
        self.0.pack().form()
    }

    /// How many frames there are.
    #[getter]
    fn num_frames(&self) -> u64 {
        self.0.rows().len()
    }

    /// How many games there are.
    #[getter]
    fn num_games(&self) -> usize {
        self.0.games().len()
    }

    /// Ids of the games, ascending.
    fn game_ids(&self) -> Vec<u64> {
        self.0.games().to_vec()
    }

    /// Ranges of frames that the selection is made of.
    #[getter]
    fn ranges(&self) -> usize {
        self.0.rows().ranges()
    }

    /// Names of the valuations, by id.
    #[getter]
    fn valuations(&self) -> Vec<String> {
        self.0.pack().names_of_valuations().to_vec()
    }

    /// Numbers in the vector of a frame, where frames have one beside them.
    #[getter]
    fn embedding_size(&self) -> Option<usize> {
        self.0.pack().embeddings().map(|vectors| vectors.layout().size() / 4)
    }

    /// Layout of the records.
    fn layout(&self) -> Layout {
        Layout(self.0.layout().clone())
    }

    /// Whether no frame of a selected game was left out.
    fn is_whole(&self) -> Result<bool, Fault> {
        Ok(self.0.is_whole()?)
    }

    /// Selected frames of the game at a place of the selection, which must exist.
    fn frames(&self, place: usize) -> u64 {
        self.0.frames_of(place)
    }

    /// Where that game came from.
    fn source(&self, place: usize) -> Option<String> {
        self.0.games().get(place).and_then(|game| self.0.pack().source(*game))
    }

    /// What the records of a pack of such are, as JSON; none of any other pack.
    fn schema(&self, py: Python<'_>) -> Result<Option<String>, Fault> {
        py.detach(|| {
            let Some(pack) = self.0.pack().as_a::<ChunkPack>().filter(|pack| pack.codec().name() == records::KIND)
            else {
                return Ok(None);
            };
            Ok(Some(PackedGame::new(pack.stored(0)?)?.schema().to_owned()))
        })
    }

    /// What the database says of the games of these ids, a list for each column.
    fn facts(&self, py: Python<'_>, games: Vec<u64>) -> Result<Vec<Column>, Fault> {
        let facts = py.detach(|| self.0.facts(&games))?;
        let values = |values: Vec<SqlValue>| values.into_iter().map(given_back).collect();
        Ok(facts.into_iter().map(|fact| (fact.name, fact.declared, values(fact.values))).collect())
    }

    /// The frames from one place to another: of each stretch the id of its game, its first frame in the pack, its frames.
    fn stretches(&self, py: Python<'_>, start: u64, stop: u64) -> Result<Vec<(u64, u64, u64)>, Fault> {
        let found = py.detach(|| self.0.stretches(start, stop))?;
        Ok(found.into_iter().map(|one| (one.game, one.first, one.frames)).collect())
    }

    /// Those of the games that a condition or query names.
    fn query(&self, py: Python<'_>, sql: &str, parameters: Vec<Option<Parameter>>) -> Result<Self, Fault> {
        let parameters = bound(parameters);
        py.detach(|| Ok(Selection(self.0.query(sql, &parameters)?)))
    }

    /// Those frames whose values lie within bounds, both inclusive.
    fn filter(
        &self,
        py: Python<'_>,
        step_index: Range,
        max_rank: Range,
        valuation: Option<Vec<String>>,
    ) -> Result<Self, Fault> {
        py.detach(|| Ok(Selection(self.0.filter(&Filter { step_index, max_rank, valuation })?)))
    }

    /// Those frames that a mark of the pack marks.
    fn marked(&self, py: Python<'_>, name: &str) -> Result<Self, Fault> {
        py.detach(|| Ok(Selection(self.0.marked(name)?)))
    }

    /// Those frames that a mark of the pack does not mark.
    fn without(&self, py: Python<'_>, name: &str) -> Result<Self, Fault> {
        py.detach(|| Ok(Selection(self.0.without(name)?)))
    }

    /// Two sides by game, at random; by content, each game is on one with its copies and images.
    fn split(&self, py: Python<'_>, val: f64, seed: u64, by_content: bool) -> Result<Sides, Fault> {
        let made = match self.keys(py, by_content)? {
            Some(keys) => py.detach(|| self.0.split_by_keys(val, seed, &keys)),
            None => py.detach(|| self.0.split(val, seed)),
        };
        made.map(sides).map_err(Fault::from)
    }

    /// Three sides by game, at random: train, val, test.
    fn split_three(
        &self,
        py: Python<'_>,
        val: f64,
        test: f64,
        seed: u64,
        by_content: bool,
    ) -> Result<(Self, Self, Self), Fault> {
        let keys = self.keys(py, by_content)?;
        let [train, val, test] = py.detach(|| self.0.split_three(val, test, seed, keys.as_ref()))?;
        Ok((Selection(train), Selection(val), Selection(test)))
    }

    /// As many pairs of sides by game, at random; on the second the games of a fold.
    fn folds(&self, py: Python<'_>, of: u32, seed: u64, by_content: bool) -> Result<Vec<Sides>, Fault> {
        let keys = self.keys(py, by_content)?;
        let folds = py.detach(|| self.0.folds(of, seed, keys.as_ref()))?;
        Ok(folds.into_iter().map(sides).collect())
    }

    /// Two sides by game; on the second those that a condition or query names.
    fn split_by(&self, py: Python<'_>, sql: &str, parameters: Vec<Option<Parameter>>) -> Result<Sides, Fault> {
        let parameters = bound(parameters);
        py.detach(|| self.0.split_by(sql, &parameters)).map(sides).map_err(Fault::from)
    }

    /// Two sides by game; on the second those of these ids.
    fn split_ids(&self, py: Python<'_>, ids: Vec<u64>) -> Result<Sides, Fault> {
        py.detach(|| self.0.split_ids(ids)).map(sides).map_err(Fault::from)
    }

    /// The frames from one place to another.
    fn slice(&self, start: u64, stop: u64) -> Self {
        Selection(self.0.slice(start, stop))
    }

    /// The games from one place to another.
    fn slice_games(&self, py: Python<'_>, start: u64, stop: u64) -> Result<Self, Fault> {
        py.detach(|| Ok(Selection(self.0.slice_games(start, stop)?)))
    }

    /// Records of the game at a place.
    fn game(&self, py: Python<'_>, place: usize) -> Result<Memory, Fault> {
        py.detach(|| Ok(memory(self.0.game(place)?)))
    }

    /// Records of the frames at these places (i64), of which negative ones count from the end.
    fn take(&self, py: Python<'_>, places: Contiguous<i64>) -> Result<Memory, Fault> {
        let (count, whole) = (self.0.rows().len(), self.0.rows().whole());
        let from_end = |place: i64| if place < 0 { place.cast_unsigned().wrapping_add(count) } else { place as u64 };
        py.detach(|| {
            let given = places.bytes().as_chunks().0;
            let mut rows: Vec<u64> = given.iter().map(|bytes| from_end(i64::from_le_bytes(*bytes))).collect();
            // Without an early end, so that it is done several at a time.
            if !rows.iter().fold(true, |within, row| within & (*row < count)) {
                let beyond = rows.iter().zip(given).find(|(row, _)| **row >= count);
                let place = beyond.map_or(0, |(_, bytes)| i64::from_le_bytes(*bytes));
                return Err(PyIndexError::new_err(format!("row {place} of {count}")).into());
            }
            match whole {
                Some(whole) => rows.iter_mut().for_each(|row| *row += whole.start),
                None => rows.iter_mut().for_each(|row| *row = self.0.rows().row(*row)),
            }
            match rows.len().saturating_mul(self.0.layout().size()) {
                len if len >= spare::FROM => Ok(Memory::filled(len, |out| self.0.gather_into(&rows, out))?),
                _ => Ok(memory(self.0.gather(&rows)?)),
            }
        })
    }

    /// Vectors (f4) of the frames at these places (u64).
    fn take_embeddings(&self, py: Python<'_>, places: Contiguous) -> Result<Memory, Fault> {
        py.detach(|| Ok(memory(self.0.take_embeddings(&numbers(&places))?)))
    }

    /// Whether values lie beside the frames.
    fn has_values(&self, py: Python<'_>) -> Result<bool, Fault> {
        py.detach(|| Ok(self.0.pack().values()?.is_some()))
    }

    /// Values, as records, of the frames at these places (u64).
    fn take_values(&self, py: Python<'_>, places: Contiguous) -> Result<Memory, Fault> {
        py.detach(|| Ok(memory(self.0.take_values(&numbers(&places))?)))
    }

    /// What makes tensors of these frames, those of these names where there are names; it reads what it needs once. Without an
    /// encoder it is that of their kind.
    fn encoding(&self, py: Python<'_>, encoder: Option<&str>, tensors: Vec<String>) -> Result<RowEncoding, Fault> {
        py.detach(|| {
            let own = || Ok(kinds::of(self.form())?.encoder());
            let config = encoder.map_or_else(own, EncoderConfig::from_json)?;
            Ok(RowEncoding(RowEncoder::new(&self.0.input_for(&config)?, &config, &tensors)?))
        })
    }

    /// Whether the trajectory at a place was cut, instead of ended by the environment.
    fn truncated(&self, place: usize) -> Result<bool, Fault> {
        Ok(self.trajectory(place)?.end() == End::Truncated)
    }

    /// What travels beside the records of the trajectory at a place.
    fn extras(&self, py: Python<'_>, place: usize) -> Result<Vec<(String, Extras)>, Fault> {
        let found = py.detach(|| {
            let packed = self.trajectory(place)?;
            packed.extras(0..packed.frames()).map_err(Fault::from)
        })?;
        Ok(found.into_iter().map(|(name, all)| (name, given(py, all))).collect())
    }

    /// The pickled metadata of the shard that the trajectory at a place was in.
    fn meta<'py>(&self, py: Python<'py>, place: usize) -> Result<Option<Bound<'py, PyBytes>>, Fault> {
        let about = self.trajectory(place)?.about()?;
        Ok(about.metadata.map(|pickle| PyBytes::new(py, &pickle)))
    }

    /// Names and values of what the file of the trajectory at a place said about itself, for people.
    fn about(&self, place: usize) -> Result<Vec<(String, String)>, Fault> {
        Ok(self.trajectory(place)?.about()?.facts)
    }

    /// Marks frames of the pack; of a mask those that are selected. What came of it, in JSON.
    fn mark(&self, py: Python<'_>, marking: Marking) -> Result<String, Fault> {
        marking.done(py, &self.0)
    }

    /// What is known of the marks, in JSON.
    fn marks(&self, py: Python<'_>) -> Result<String, Fault> {
        marking::listed(py, self.0.pack())
    }

    /// Removes a mark.
    fn remove_mark(&self, name: &str) -> Result<(), Fault> {
        Ok(gristmill_engine::marks::remove(&**self.0.pack(), name)?)
    }

    /// Games that are the same, in JSON; marked where a name is given. Or a share of the search.
    fn duplicates(&self, py: Python<'_>, finding: Finding) -> Result<String, Fault> {
        finding.done(py, self.0.pack())
    }

    /// How the pack came to be, in JSON: a list of jobs, empty where nothing tells.
    fn lineage(&self) -> Result<String, Fault> {
        marking::json(&gristmill_engine::lineage::of_folder(self.0.pack().folder()).unwrap_or_default())
    }
}

fn memory(bytes: Vec<u8>) -> Memory {
    let len = bytes.len();
    Memory::of_vec(bytes, len)
}
