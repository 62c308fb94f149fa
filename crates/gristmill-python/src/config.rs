//! Configurations as JSON text, which the dataclasses of `gristmill.config` read and write, as TOML and as protobuf.
//! What is valid is the engine's business: nothing is judged here.

use gristmill_engine::config::{DataLoaderConfig, TextForm, proto};
use gristmill_engine::preset::{Lc0Preset, lc0};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::Fault;

/// Reads a loader configuration from JSON and writes it back with every default in place.
#[pyfunction]
pub(crate) fn check_config(json: &str) -> Result<String, Fault> {
    Ok(DataLoaderConfig::from_json(json)?.to_json())
}

/// TOML text to JSON text.
#[pyfunction]
pub(crate) fn config_from_toml(toml: &str) -> Result<String, Fault> {
    Ok(DataLoaderConfig::from_toml(toml)?.to_json())
}

/// JSON text to TOML text.
#[pyfunction]
pub(crate) fn config_to_toml(json: &str) -> Result<String, Fault> {
    Ok(DataLoaderConfig::from_json(json)?.to_toml()?)
}

/// Text-protobuf to JSON text.
#[pyfunction]
pub(crate) fn config_from_textproto(text: &str) -> Result<String, Fault> {
    Ok(DataLoaderConfig::from_textproto(text)?.to_json())
}

/// JSON text to text-protobuf.
#[pyfunction]
pub(crate) fn config_to_textproto(json: &str) -> Result<String, Fault> {
    Ok(DataLoaderConfig::from_json(json)?.to_textproto()?)
}

/// Line and column of a stage's field in TOML or in text-protobuf.
#[pyfunction]
pub(crate) fn place_in_text(text: &str, toml: bool, stage: Option<&str>, field: Option<&str>) -> (usize, usize) {
    let form = if toml { TextForm::Toml } else { TextForm::Textproto };
    form.position(text, stage, field)
}

/// JSON text of a config with what TOML or text-protobuf sets laid over it, as JSON text.
#[pyfunction]
pub(crate) fn overlay_config(json: &str, text: &str, toml: bool) -> Result<String, Fault> {
    let form = if toml { TextForm::Toml } else { TextForm::Textproto };
    Ok(DataLoaderConfig::from_json(json)?.overlaid(text, form)?.to_json())
}

/// A serialized `lczero.training.DataLoaderConfig` to JSON text.
#[pyfunction]
pub(crate) fn config_from_proto_bytes(message: &[u8]) -> Result<String, Fault> {
    Ok(DataLoaderConfig::from_proto_bytes(message)?.to_json())
}

/// JSON text to a serialized `lczero.training.DataLoaderConfig`.
#[pyfunction]
pub(crate) fn config_to_proto_bytes(py: Python<'_>, json: &str) -> Result<Py<PyBytes>, Fault> {
    Ok(PyBytes::new(py, &DataLoaderConfig::from_json(json)?.to_proto_bytes()?).unbind())
}

/// Every message of the lc0 interface, as a serialized `FileDescriptorSet`.
#[pyfunction]
pub(crate) fn proto_descriptors(py: Python<'_>) -> Py<PyBytes> {
    PyBytes::new(py, proto::DESCRIPTORS).unbind()
}

/// Options of the chess preset, as JSON, to a loader configuration, as JSON.
#[pyfunction]
pub(crate) fn preset_lc0(options: &str) -> Result<String, Fault> {
    Ok(lc0(&Lc0Preset::from_json(options)?)?.to_json())
}
