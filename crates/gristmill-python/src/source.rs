//! A path in, a file of chunks out: how many, their layout, and each as records.

use std::path::PathBuf;

use gristmill_engine::open::{OpenSource, open};
use gristmill_format::source::Chunk;
use gristmill_format::{Error as FormatError, Kind};
use pyo3::prelude::*;

use crate::array::Memory;
use crate::error::Fault;
use crate::layout::Layout;

/// One open file that holds chunks.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Source(OpenSource);

/// Opens any file that is known, by its name and first bytes.
#[pyfunction]
pub(crate) fn open_source(py: Python<'_>, path: PathBuf) -> Result<Source, Fault> {
    py.detach(|| {
        let with_forms = |e: FormatError| match e.kind() {
            Kind::UnknownFormat => {
                let detail = format!("{}; expected {}", e.detail(), gristmill_engine::kinds::files());
                FormatError::new(Kind::UnknownFormat, detail).in_source(path.display().to_string())
            }
            _ => e,
        };
        Ok(Source(open(&path).map_err(with_forms)?))
    })
}

#[pymethods]
impl Source {
    /// File name without directory.
    #[getter]
    fn key(&self) -> String {
        self.0.key().to_owned()
    }

    /// Short name of the container and format, such as `lc0.tar`.
    #[getter]
    fn format(&self) -> String {
        self.0.format().to_owned()
    }

    /// Number of chunks.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Layout of the records, from the first good chunk.
    fn layout(&self, py: Python<'_>) -> Result<Layout, Fault> {
        py.detach(|| Ok(Layout(self.0.layout()?.as_ref().clone())))
    }

    /// Frames in chunk `i`.
    fn frames(&self, py: Python<'_>, i: usize) -> Result<usize, Fault> {
        py.detach(|| Ok(self.0.frames(i)?))
    }

    /// Frames in all chunks.
    fn num_frames(&self, py: Python<'_>) -> Result<u64, Fault> {
        py.detach(|| Ok(self.0.num_frames()?))
    }

    /// Name of the member that holds chunk `i`, in a container.
    fn member(&self, i: usize) -> Option<String> {
        self.0.member(i).map(str::to_owned)
    }

    /// Layout, number of frames and records of chunk `i`.
    fn chunk(&self, py: Python<'_>, i: usize) -> Result<(Layout, usize, Memory), Fault> {
        py.detach(|| {
            let mut chunk = Chunk::default();
            self.0.chunk(i, &mut chunk)?;
            let layout = match &chunk.layout {
                Some(layout) => layout.as_ref().clone(),
                None => self.0.layout()?.as_ref().clone(),
            };
            let (frames, len) = (chunk.frames, chunk.records().len());
            Ok((Layout(layout), frames, Memory::of_vec(chunk.bytes, len)))
        })
    }
}
