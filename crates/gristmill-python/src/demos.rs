//! A path in, demonstrations out: trajectories as records, what travels beside them, what they say about themselves.

use std::path::PathBuf;

use gristmill_engine::demos::{holds, open_demos as open};
use gristmill_format::demo::form::ReadOptions;
use gristmill_format::demo::frames::Frames;
use gristmill_format::demo::native::{Magical, Semantics};
use gristmill_format::demo::source::DemoFile;
use gristmill_format::demo::trajectory::End;
use gristmill_format::demo::value::Extra;
use gristmill_format::layout::Scalar;
use gristmill_format::source::ChunkSource;
use gristmill_format::{Error, Kind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::{Contiguous, Memory};
use crate::error::Fault;
use crate::layout::Layout;

/// Demonstrations, whole in memory.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Demos(DemoFile);

/// Frames of a video: shape and bytes.
type Video = (Vec<usize>, Contiguous);

/// Whether a file or folder holds demonstrations.
#[pyfunction]
pub(crate) fn holds_demos(py: Python<'_>, path: PathBuf) -> Result<bool, Fault> {
    py.detach(|| Ok(holds(&path)?))
}

/// Opens a file of any form, or a folder of shards.
#[pyfunction]
pub(crate) fn open_demos(
    py: Python<'_>,
    path: PathBuf,
    compat: bool,
    magical_preproc: &str,
    remove_null_actions: bool,
    frame_stack: usize,
    video: Option<Video>,
) -> Result<Demos, Fault> {
    let pov = video.map(|(shape, bytes)| Frames::new(Scalar::U8, &shape, bytes.bytes().to_vec())).transpose()?;
    let options = ReadOptions {
        semantics: if compat { Semantics::Compat } else { Semantics::Strict },
        magical: Magical::parse(magical_preproc)?,
        remove_null_actions,
        frame_stack,
        pov,
        ..ReadOptions::default()
    };
    py.detach(|| Ok(Demos(open(&path, &options)?)))
}

/// A field's extras: frame within the trajectory, what it is, its bytes.
type Extras = Vec<(usize, &'static str, Py<PyBytes>)>;

#[pymethods]
impl Demos {
    /// File name without directory.
    #[getter]
    fn key(&self) -> String {
        self.0.describe().key.clone()
    }

    /// Short name of the form, such as `demo.shard`.
    #[getter]
    fn format(&self) -> &'static str {
        self.0.describe().format
    }

    /// Number of trajectories.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Layout of the records.
    fn layout(&self) -> Result<Layout, Fault> {
        let layout = self.0.trajectories().layout();
        let none = || Error::new(Kind::Empty, "no frames, hence no layout").in_source(self.key());
        Ok(Layout(layout.ok_or_else(none)?.as_ref().clone()))
    }

    /// Steps of trajectory `i`.
    fn frames(&self, i: usize) -> Result<usize, Fault> {
        Ok(self.span(i)?.len())
    }

    /// Steps of all trajectories.
    fn num_frames(&self) -> u64 {
        self.0.trajectories().frames() as u64
    }

    /// Nothing: no member of a container holds a trajectory.
    #[allow(clippy::unused_self, reason = "as other sources have it")]
    fn member(&self, _i: usize) -> Option<String> {
        None
    }

    /// Whether trajectory `i` was cut, instead of ended by the environment.
    fn truncated(&self, i: usize) -> Result<bool, Fault> {
        self.span(i)?;
        Ok(self.0.trajectories().ends()[i].1 == End::Truncated)
    }

    /// Layout, number of steps and records of trajectory `i`.
    fn chunk(&self, py: Python<'_>, i: usize) -> Result<(Layout, usize, Memory), Fault> {
        let (layout, span) = (self.layout()?, self.span(i)?);
        let size = layout.0.size();
        py.detach(|| {
            let mut memory = Memory::zeroed(span.len() * size)?;
            memory.bytes_mut()?.copy_from_slice(&self.0.trajectories().records()[span.start * size..span.end * size]);
            Ok((layout, span.len(), memory))
        })
    }

    /// One field of all steps, back to back.
    fn column(&self, py: Python<'_>, name: &str) -> Result<Memory, Fault> {
        py.detach(|| {
            let all = self.0.trajectories();
            let field = all.layout().and_then(|layout| layout.field(name)).ok_or_else(|| {
                Error::new(Kind::Missing, format!("there is no field `{name}`")).in_source(self.key())
            })?;
            let size = field.bytes();
            let mut memory = Memory::zeroed(all.frames() * size)?;
            let out = memory.bytes_mut()?;
            for (frame, to) in (0..all.frames()).zip(out.chunks_exact_mut(size.max(1))) {
                to.copy_from_slice(all.field(frame, name).unwrap_or_default());
            }
            Ok(memory)
        })
    }

    /// What travels beside the records of trajectory `i`.
    fn extras(&self, py: Python<'_>, i: usize) -> Result<Vec<(String, Extras)>, Fault> {
        let span = self.span(i)?;
        let own = |(name, all): (&String, &Vec<(usize, Extra)>)| {
            let from = all.partition_point(|(frame, _)| *frame < span.start);
            let to = all.partition_point(|(frame, _)| *frame < span.end);
            let extra = |(frame, extra): &(usize, Extra)| {
                let (kind, bytes) = match extra {
                    Extra::Text(text) => ("text", text.as_bytes()),
                    Extra::Bytes(bytes) => ("bytes", bytes.as_slice()),
                    Extra::Json(text) => ("json", text.as_bytes()),
                    Extra::Pickle(bytes) => ("pickle", bytes.as_slice()),
                };
                (frame - span.start, kind, PyBytes::new(py, bytes).unbind())
            };
            (name.clone(), all[from..to].iter().map(extra).collect())
        };
        Ok(self.0.trajectories().extras().iter().map(own).collect())
    }

    /// Raises where data of both cannot be mixed: colours, spaces.
    fn mixes_with(&self, other: &Demos) -> Result<(), Fault> {
        match (self.0.meta(), other.0.meta()) {
            (Some(own), Some(theirs)) => Ok(own.mixes_with(theirs)?),
            _ => Ok(()),
        }
    }

    /// Names and values of what the file says about itself, for people.
    fn about(&self) -> Vec<(&'static str, String)> {
        self.0.about().to_vec()
    }

    /// The pickled metadata of a shard.
    fn meta<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.meta().map(|meta| PyBytes::new(py, &meta.pickle))
    }
}

impl Demos {
    fn span(&self, i: usize) -> Result<std::ops::Range<usize>, Fault> {
        let missing = || Error::new(Kind::Missing, format!("there are {} trajectories", self.0.len())).in_chunk(i);
        Ok(self.0.trajectories().span(i).ok_or_else(missing)?)
    }
}
