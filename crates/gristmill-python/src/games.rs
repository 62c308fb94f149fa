//! A chunk pack in, selections of its games out: by SQL, by side of a split; and positions by number.
//! Everything that reads is called with the GIL released.

use std::path::PathBuf;
use std::sync::Arc;

use gristmill_engine::RowEncoder;
use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::chunks::select::GameSelection;
use gristmill_engine::kinds;
use gristmill_engine::store::Residence;
use gristmill_format::demo::trajectory::End;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::{Contiguous, Memory};
use crate::chess::Tensor;
use crate::demos::{Extras, given};
use crate::error::Fault;
use crate::layout::Layout;
use crate::packed::{self, Packed};
use crate::rows::{Parameter, bound, encoded, numbers};

/// Some games of a chunk pack.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Games(pub(crate) GameSelection);

/// Opens the chunk pack in a folder; `memory` reads it into memory instead of mapping it.
#[pyfunction]
pub(crate) fn open_games(py: Python<'_>, path: PathBuf, memory: bool) -> Result<Games, Fault> {
    let residence = if memory { Residence::Memory } else { Residence::Mapped };
    py.detach(|| Ok(Games(GameSelection::all(Arc::new(ChunkPack::open(&path, residence)?)))))
}

/// Whether a folder is a chunk pack.
#[pyfunction]
pub(crate) fn holds_games(path: PathBuf) -> bool {
    gristmill_engine::chunks::is_pack(&path)
}

#[pymethods]
impl Games {
    /// How many games there are.
    fn __len__(&self) -> usize {
        self.0.games().len()
    }

    /// The pack, with what all kinds of packs have.
    fn packed(&self) -> Packed {
        Packed::new(self.0.pack(), self.0.rows())
    }

    /// What the games are: `chess` or `demo`.
    fn codec(&self) -> &'static str {
        self.0.pack().codec().name()
    }

    /// Whether the trajectory at a place was cut, instead of ended by the environment.
    fn truncated(&self, place: usize) -> Result<bool, Fault> {
        Ok(self.0.demonstration(place)?.end() == End::Truncated)
    }

    /// What travels beside the records of the trajectory at a place.
    fn extras(&self, py: Python<'_>, place: usize) -> Result<Vec<(String, Extras)>, Fault> {
        let found = py.detach(|| {
            let packed = self.0.demonstration(place)?;
            packed.extras(0..packed.frames())
        })?;
        Ok(found.into_iter().map(|(name, all)| (name, given(py, all))).collect())
    }

    /// The pickled metadata of the shard that the trajectory at a place was in.
    fn meta<'py>(&self, py: Python<'py>, place: usize) -> Result<Option<Bound<'py, PyBytes>>, Fault> {
        let about = self.0.demonstration(place)?.about()?;
        Ok(about.metadata.map(|pickle| PyBytes::new(py, &pickle)))
    }

    /// Names and values of what the file of the trajectory at a place said about itself, for people.
    fn about(&self, place: usize) -> Result<Vec<(String, String)>, Fault> {
        Ok(self.0.demonstration(place)?.about()?.facts)
    }

    /// Frames of all games.
    #[getter]
    fn num_frames(&self) -> u64 {
        self.0.rows().len()
    }

    /// Whether no frame of a selected game was left out.
    fn is_whole(&self) -> bool {
        self.0.is_whole()
    }

    /// Layout of the records.
    fn layout(&self) -> Layout {
        Layout(self.0.layout().clone())
    }

    /// Ids of the games, ascending.
    fn game_ids(&self) -> Vec<u64> {
        self.0.games().to_vec()
    }

    /// Selected frames of the game at a place of the selection, which must exist.
    fn frames(&self, place: usize) -> u64 {
        self.0.frames_of(place)
    }

    /// Where that game came from.
    fn source(&self, place: usize) -> String {
        self.0.games().get(place).map_or("", |game| self.0.pack().source(*game)).to_owned()
    }

    /// Those of the games that a condition or query names.
    fn query(&self, py: Python<'_>, sql: &str, parameters: Vec<Option<Parameter>>) -> Result<Self, Fault> {
        let parameters = bound(parameters);
        py.detach(|| Ok(Games(self.0.query(sql, &parameters)?)))
    }

    /// Those frames that a mark of the pack marks.
    fn marked(&self, py: Python<'_>, name: &str) -> Result<Self, Fault> {
        py.detach(|| Ok(Games(self.0.marked(name)?)))
    }

    /// Those frames that a mark of the pack does not mark.
    fn without(&self, py: Python<'_>, name: &str) -> Result<Self, Fault> {
        py.detach(|| Ok(Games(self.0.without(name)?)))
    }

    /// Two sides, each game on one with its copies and images.
    fn split_by_content(&self, py: Python<'_>, val: f64, seed: u64) -> Result<(Self, Self), Fault> {
        let keys = packed::keys(py, self.0.pack())?;
        let (train, val) = py.detach(|| self.0.split_by_keys(val, seed, &keys))?;
        Ok((Games(train), Games(val)))
    }

    /// Two sides by game, at random.
    fn split(&self, py: Python<'_>, val: f64, seed: u64) -> Result<(Self, Self), Fault> {
        let (train, val) = py.detach(|| self.0.split(val, seed))?;
        Ok((Games(train), Games(val)))
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
        let keys = by_content.then(|| packed::keys(py, self.0.pack())).transpose()?;
        let [train, val, test] = py.detach(|| self.0.split_three(val, test, seed, keys.as_ref()))?;
        Ok((Games(train), Games(val), Games(test)))
    }

    /// As many pairs of sides by game, at random; on the second the games of a fold.
    fn folds(&self, py: Python<'_>, of: u32, seed: u64, by_content: bool) -> Result<Vec<(Self, Self)>, Fault> {
        let keys = by_content.then(|| packed::keys(py, self.0.pack())).transpose()?;
        let folds = py.detach(|| self.0.folds(of, seed, keys.as_ref()))?;
        Ok(folds.into_iter().map(|(train, val)| (Games(train), Games(val))).collect())
    }

    /// Two sides by game; on the second those that a condition or query names.
    fn split_by(&self, py: Python<'_>, sql: &str, parameters: Vec<Option<Parameter>>) -> Result<(Self, Self), Fault> {
        let parameters = bound(parameters);
        let (train, val) = py.detach(|| self.0.split_by(sql, &parameters))?;
        Ok((Games(train), Games(val)))
    }

    /// Two sides by game; on the second those of these ids.
    fn split_ids(&self, ids: Vec<u64>) -> (Self, Self) {
        let (train, val) = self.0.split_ids(ids);
        (Games(train), Games(val))
    }

    /// The games from one place to another.
    fn slice(&self, start: usize, stop: usize) -> Self {
        Games(self.0.slice(start, stop))
    }

    /// Records of the game at a place.
    fn game(&self, py: Python<'_>, place: usize) -> Result<Memory, Fault> {
        py.detach(|| {
            let records = self.0.game(place)?;
            let len = records.len();
            Ok(Memory::of_vec(records, len))
        })
    }

    /// Tensors of the frames at these places (u64).
    fn encode(&self, py: Python<'_>, tensors: Vec<String>, places: Contiguous) -> Result<Vec<Tensor>, Fault> {
        py.detach(|| {
            let config = kinds::of(self.codec())?.encoder();
            let encoder = RowEncoder::new(&self.0.input(), &config, &tensors)?;
            encoded(&encoder, &numbers(&places), 0, 0)
        })
    }

    /// Records of the frames at these places (u64).
    fn take(&self, py: Python<'_>, places: Contiguous) -> Result<Memory, Fault> {
        py.detach(|| {
            let records = self.0.take(&numbers(&places))?;
            let len = records.len();
            Ok(Memory::of_vec(records, len))
        })
    }
}
