//! A chunk pack in, selections of its games out: by SQL, by side of a split; and positions by number.
//! Everything that reads is called with the GIL released.

use std::path::PathBuf;
use std::sync::Arc;

use gristmill_engine::RowEncoder;
use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::chunks::select::GameSelection;
use gristmill_engine::config::EncoderConfig;
use gristmill_engine::store::Residence;
use pyo3::prelude::*;

use crate::array::{Contiguous, Memory};
use crate::chess::Tensor;
use crate::error::Fault;
use crate::layout::Layout;
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

    /// The folder of the pack.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.0.pack().folder().to_owned()
    }

    /// Frames of all games.
    #[getter]
    fn num_frames(&self) -> u64 {
        self.0.rows().len()
    }

    /// Layout of the records.
    fn layout(&self) -> Layout {
        Layout(self.0.layout().clone())
    }

    /// Ids of the games, ascending.
    fn game_ids(&self) -> Vec<u64> {
        self.0.games().to_vec()
    }

    /// Frames of the game at a place of the selection, which there must be.
    fn frames(&self, place: usize) -> u64 {
        self.0.games().get(place).and_then(|game| self.0.pack().frames(*game)).map_or(0, |(_, frames)| frames)
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

    /// Two sides by game, at random.
    fn split(&self, py: Python<'_>, val: f64, seed: u64) -> Result<(Self, Self), Fault> {
        let (train, val) = py.detach(|| self.0.split(val, seed))?;
        Ok((Games(train), Games(val)))
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
            let encoder = RowEncoder::new(&self.0.input(), &EncoderConfig::Chess, &tensors)?;
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
