//! Configurations as JSON text, which the dataclasses of `gristmill.config` read and write, and as TOML.
//! What is valid is the engine's business: nothing is judged here.

use gristmill_engine::config::{DataLoaderConfig, Lc0Preset, lc0};
use pyo3::prelude::*;

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

/// Options of the chess preset, as JSON, to a loader configuration, as JSON.
#[pyfunction]
pub(crate) fn preset_lc0(options: &str) -> Result<String, Fault> {
    Ok(lc0(&Lc0Preset::from_json(options)?)?.to_json())
}
