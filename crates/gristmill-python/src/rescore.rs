//! Records of games in, rescored records out; positions in, what a tablebase says out.
//! Settings come as the JSON of a stage's configuration.

use std::path::PathBuf;

use gristmill_engine::config::ChunkRescorerConfig;
use gristmill_engine::rescorer::{Extras, Prepared, prepare};
use gristmill_engine::tablebase::Syzygy;
use gristmill_format::chess::rescore::COUNTS;
use gristmill_format::chess::{layout_v6, layout_v7};
use gristmill_format::source::Chunk;
use pyo3::prelude::*;

use crate::array::{Contiguous, Memory};
use crate::error::Fault;

/// What was changed, by name.
type Counts = Vec<(String, u64)>;

/// A rescorer with its tables open.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Rescorer(Prepared);

#[pymethods]
impl Rescorer {
    #[new]
    fn new(py: Python<'_>, config: &str, keep_v6: bool, drop_flagged: bool) -> Result<Self, Fault> {
        py.detach(|| {
            let config = ChunkRescorerConfig::from_json(config)?;
            Ok(Rescorer(prepare("", &config, Extras { keep_v6, drop_flagged })?))
        })
    }

    /// What its tables cover, in words; `None` without tables.
    fn coverage(&self) -> Option<String> {
        self.0.syzygy.as_ref().map(|syzygy| syzygy.coverage().to_string())
    }

    /// One game: its records as bytes, V7 (`wide`) or V6 -> bytes, whether they are V7, and the counts by name.
    fn rescore(&self, py: Python<'_>, records: Contiguous, wide: bool) -> Result<(Memory, bool, Counts), Fault> {
        py.detach(|| {
            let layout = if wide { layout_v7() } else { layout_v6() };
            let mut chunk = Chunk { bytes: records.bytes().to_vec(), ..Chunk::default() };
            chunk.frames = chunk.bytes.len() / layout.size();
            chunk.layout = Some(layout.clone());
            let tally = self.0.rescorer.run(&mut chunk)?;
            let wide = chunk.layout.as_deref() == Some(layout_v7().as_ref());
            let len = chunk.records().len();
            let counts = COUNTS.iter().map(|name| (*name).to_owned()).zip(tally.counts().iter().copied());
            let counts = counts.chain(tally.missing()).collect();
            Ok((Memory::of_vec(chunk.bytes, len), wide, counts))
        })
    }
}

/// An open Syzygy tablebase.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Tablebase(Syzygy);

#[pymethods]
impl Tablebase {
    #[new]
    fn new(py: Python<'_>, directories: Vec<PathBuf>, allow_missing: bool) -> Result<Self, Fault> {
        py.detach(|| Ok(Tablebase(Syzygy::open(&directories, allow_missing)?)))
    }

    /// What is there, in words.
    fn coverage(&self) -> String {
        self.0.coverage().to_string()
    }

    /// Men of the largest positions that can be probed.
    fn most_men(&self) -> usize {
        self.0.coverage().most_men
    }

    /// Damaged tables that were left out.
    fn faults(&self) -> Vec<String> {
        self.0.faults().iter().map(ToString::to_string).collect()
    }

    /// Value of a position, and plies to the next capture or pawn move where `plies` is set.
    fn probe(&self, py: Python<'_>, fen: &str, plies: bool) -> Result<(i32, Option<i32>), Fault> {
        py.detach(|| Ok(self.0.probe(fen, plies)?))
    }
}
