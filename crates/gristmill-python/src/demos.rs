//! A path in, demonstrations out: trajectories as records, what travels beside them, what they say about themselves.

use std::path::PathBuf;

use gristmill_engine::demos::{Demonstrations, DemosOptions, Spill as Columns, Spilled, holds, open};
use gristmill_engine::facts::Facts;
use gristmill_format::demo::form::ReadOptions;
use gristmill_format::demo::frames::Frames;
use gristmill_format::demo::native::{Magical, Semantics};
use gristmill_format::demo::trajectory::End;
use gristmill_format::demo::value::Extra;
use gristmill_format::layout::Scalar;
use gristmill_format::{Error, Kind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::{Contiguous, Memory};
use crate::error::Fault;
use crate::layout::Layout;

/// Demonstrations: in memory, reached by their place, or in columns.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Demos(Demonstrations);

/// Frames of a video: shape and bytes.
type Video = (Vec<usize>, Contiguous);

/// Whether a file or folder holds demonstrations.
#[pyfunction]
pub(crate) fn holds_demos(py: Python<'_>, path: PathBuf) -> Result<bool, Fault> {
    py.detach(|| Ok(holds(&path)?))
}

/// Opens a file of any form, or a folder of shards. `index` is the folder of the side index: `None` for the usual one, `"off"`
/// for none.
#[pyfunction]
#[pyo3(signature = (path, compat, magical_preproc, remove_null_actions, frame_stack, video, *, max_bytes=None, index=None, spill=None, strict=true))]
#[allow(clippy::too_many_arguments, reason = "the options of one function in Python")]
pub(crate) fn open_demos(
    py: Python<'_>,
    path: PathBuf,
    compat: bool,
    magical_preproc: &str,
    remove_null_actions: bool,
    frame_stack: usize,
    video: Option<Video>,
    max_bytes: Option<usize>,
    index: Option<PathBuf>,
    spill: Option<PathBuf>,
    strict: bool,
) -> Result<Demos, Fault> {
    let pov = video.map(|(shape, bytes)| Frames::new(Scalar::U8, &shape, bytes.bytes().to_vec())).transpose()?;
    let usual = ReadOptions::default();
    let read = ReadOptions {
        semantics: if compat { Semantics::Compat } else { Semantics::Strict },
        magical: Magical::parse(magical_preproc)?,
        remove_null_actions,
        frame_stack,
        pov,
        max_bytes: max_bytes.unwrap_or(usual.max_bytes),
        strict,
    };
    let index = match index {
        None => Facts::default_folder(),
        Some(folder) if folder.as_os_str() == "off" => None,
        folder => folder,
    };
    let options = DemosOptions { read, index, spill };
    let mut raised = None;
    let opened = py.detach(|| {
        open(&path, &options, &mut || match Python::attach(|py| py.check_signals()) {
            Ok(()) => true,
            Err(e) => {
                raised = Some(e);
                false
            }
        })
    });
    match raised {
        Some(e) => Err(e.into()),
        None => Ok(Demos(opened?)),
    }
}

/// Columns of several files that Python reads one by one.
#[pyclass(module = "gristmill._gristmill")]
pub(crate) struct Spill {
    /// What is there already, of the same files.
    there: Option<Demonstrations>,
    fresh: Option<Columns>,
}

#[pymethods]
impl Spill {
    /// The columns of `sources` in a folder of their own below `folder`, called after `name` and `how` they are read.
    #[new]
    fn new(py: Python<'_>, folder: PathBuf, name: PathBuf, sources: Vec<PathBuf>, how: &str) -> Result<Self, Fault> {
        let max = ReadOptions::default().max_bytes;
        py.detach(|| {
            Ok(match Columns::open(&folder, &name, &sources, how, max)? {
                Spilled::There(there) => Spill { there: Some(*there), fresh: None },
                Spilled::Fresh(fresh) => Spill { there: None, fresh: Some(*fresh) },
            })
        })
    }

    /// What is there already; `None` where it is to be written.
    fn there(&mut self) -> Option<Demos> {
        self.there.take().map(Demos)
    }

    /// Adds trajectories, and says how many there are.
    fn add(&mut self, py: Python<'_>, demos: &Demos) -> Result<usize, Fault> {
        let fresh = self.fresh.as_mut().ok_or_else(over)?;
        py.detach(|| fresh.add_all(&demos.0))?;
        Ok(fresh.trajectories())
    }

    /// Publishes what was added, and opens it.
    fn finish(&mut self, py: Python<'_>) -> Result<Demos, Fault> {
        let fresh = self.fresh.take().ok_or_else(over)?;
        py.detach(|| Ok(Demos(fresh.finish()?)))
    }

    /// Gives up.
    fn abandon(&mut self, py: Python<'_>) -> Result<(), Fault> {
        match self.fresh.take() {
            Some(fresh) => py.detach(|| Ok(fresh.abandon()?)),
            None => Ok(()),
        }
    }
}

fn over() -> Error {
    Error::new(Kind::Missing, "nothing is being written any more")
}

/// A field's extras: frame within the trajectory, what it is, its bytes.
pub(crate) type Extras = Vec<(usize, &'static str, Py<PyBytes>)>;

/// Extras as Python takes them.
pub(crate) fn given(py: Python<'_>, all: Vec<(usize, Extra)>) -> Extras {
    let extra = |(frame, extra): (usize, Extra)| {
        let (kind, bytes) = match &extra {
            Extra::Text(text) => ("text", text.as_bytes()),
            Extra::Bytes(bytes) => ("bytes", bytes.as_slice()),
            Extra::Json(text) => ("json", text.as_bytes()),
            Extra::Pickle(bytes) => ("pickle", bytes.as_slice()),
        };
        (frame, kind, PyBytes::new(py, bytes).unbind())
    };
    all.into_iter().map(extra).collect()
}

#[pymethods]
impl Demos {
    /// File name without directory.
    #[getter]
    fn key(&self) -> String {
        self.0.key().to_owned()
    }

    /// Short name of the form, such as `demo.shard`.
    #[getter]
    fn format(&self) -> &str {
        self.0.format()
    }

    /// Number of trajectories.
    fn __len__(&self) -> usize {
        self.0.ends().len()
    }

    /// Layout of the records.
    fn layout(&self) -> Result<Layout, Fault> {
        let layout = self.0.layout();
        let none = || Error::new(Kind::Empty, "no frames, hence no layout").in_source(self.key());
        Ok(Layout(layout.ok_or_else(none)?.as_ref().clone()))
    }

    /// Steps of trajectory `i`.
    fn frames(&self, i: usize) -> Result<usize, Fault> {
        Ok(self.0.span(i)?.len())
    }

    /// Steps of all trajectories.
    fn num_frames(&self) -> u64 {
        self.0.frames() as u64
    }

    /// Nothing: no member of a container holds a trajectory.
    #[allow(clippy::unused_self, reason = "as other sources have it")]
    fn member(&self, _i: usize) -> Option<String> {
        None
    }

    /// Whether trajectory `i` was cut, instead of ended by the environment.
    fn truncated(&self, i: usize) -> Result<bool, Fault> {
        self.0.span(i)?;
        Ok(self.0.ends()[i].1 == End::Truncated)
    }

    /// Layout, number of steps and records of trajectory `i`.
    fn chunk(&self, py: Python<'_>, i: usize) -> Result<(Layout, usize, Memory), Fault> {
        let (layout, span) = (self.layout()?, self.0.span(i)?);
        let size = layout.0.size();
        py.detach(|| {
            let mut memory = Memory::zeroed(span.len() * size)?;
            self.0.records(span.clone(), memory.bytes_mut()?)?;
            Ok((layout, span.len(), memory))
        })
    }

    /// Some fields of all steps, each back to back.
    fn columns(&self, py: Python<'_>, names: Vec<String>) -> Result<Vec<Memory>, Fault> {
        py.detach(|| {
            let zeroed = |name: &String| Memory::zeroed(self.0.column_bytes(name)?);
            let mut found = names.iter().map(zeroed).collect::<Result<Vec<_>, Fault>>()?;
            let mut wanted = Vec::with_capacity(found.len());
            for (name, memory) in names.iter().zip(&mut found) {
                wanted.push((name.as_str(), memory.bytes_mut()?));
            }
            self.0.columns_into(&mut wanted)?;
            Ok(found)
        })
    }

    /// The `.npy` file of one field; `None` where it is in none.
    fn column_file(&self, name: &str) -> Result<Option<PathBuf>, Fault> {
        self.0.field(name)?;
        Ok(self.0.column_file(name))
    }

    /// What travels beside the records of trajectory `i`.
    fn extras(&self, py: Python<'_>, i: usize) -> Result<Vec<(String, Extras)>, Fault> {
        let span = self.0.span(i)?;
        let found = py.detach(|| self.0.extras(span))?;
        Ok(found.into_iter().map(|(name, all)| (name, given(py, all))).collect())
    }

    /// Raises where data of both cannot be mixed: colours, spaces.
    fn mixes_with(&self, other: &Demos) -> Result<(), Fault> {
        match (self.0.meta(), other.0.meta()) {
            (Some(own), Some(theirs)) => Ok(own.mixes_with(theirs)?),
            _ => Ok(()),
        }
    }

    /// Names and values of what the file says about itself, for people.
    fn about(&self) -> Vec<(String, String)> {
        self.0.about()
    }

    /// The pickled metadata of a shard.
    fn meta<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.meta().map(|meta| PyBytes::new(py, &meta.pickle))
    }
}
