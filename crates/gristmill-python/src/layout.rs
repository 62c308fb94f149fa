//! A record layout as NumPy describes it, and records of one layout into another.

use gristmill_format::layout::{Conform, Layout as Fields};
use pyo3::prelude::*;

use crate::array::{Contiguous, Memory};
use crate::error::Fault;

/// The fields of a fixed-size record: names, element types, shapes and offsets.
#[pyclass(module = "gristmill._gristmill", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct Layout(pub(crate) Fields);

#[pymethods]
impl Layout {
    /// Reads the text of NumPy's `dtype.descr`.
    #[new]
    fn new(descr: &str) -> Result<Self, Fault> {
        Ok(Layout(Fields::parse_descr(descr)?))
    }

    /// The text of NumPy's `dtype.descr`; padding is written as unnamed void fields.
    #[getter]
    fn descr(&self) -> String {
        self.0.to_descr()
    }

    /// Bytes of one record.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    /// Copies `records`, of layout `source`, into this layout: matched by name, little-endian, zero where absent.
    fn conform(&self, py: Python<'_>, source: &Layout, records: Contiguous) -> Result<Memory, Fault> {
        let made = py.detach(|| {
            let count = records.bytes().len() / source.0.size();
            let mut out = Memory::zeroed(count * self.0.size())?;
            Conform::new(&source.0, &self.0)?.records(records.bytes(), out.bytes_mut()?)?;
            Ok::<_, Fault>(out)
        })?;
        Ok(made)
    }
}
