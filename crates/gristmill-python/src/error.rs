//! Errors of the engine and the formats in, Python exceptions out: the one table.
//! The exception classes themselves are in `gristmill/errors.py`.

use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};

use gristmill_engine::Error as EngineError;
use gristmill_format::{Error as FormatError, Kind};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Whatever a binding may fail with; becomes an exception at the edge.
pub(crate) enum Fault {
    /// The engine refused.
    Engine(EngineError),
    /// Some bytes were refused.
    Format(FormatError),
    /// Python itself raised.
    Python(PyErr),
}

/// What a signal raised while SQL was running, until the call that it ended comes back.
static INTERRUPT: Mutex<Option<PyErr>> = Mutex::new(None);

/// Whether a signal wants SQL that is running to end; Python looks for signals in its main thread alone.
pub(crate) fn interrupted() -> bool {
    let raised = || INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner);
    if raised().is_some() {
        return true;
    }
    let Err(signal) = Python::attach(|py| py.check_signals()) else { return false };
    *raised() = Some(signal);
    true
}

impl From<EngineError> for Fault {
    fn from(e: EngineError) -> Self {
        match e {
            EngineError::Format(e) => Fault::Format(e),
            other => Fault::Engine(other),
        }
    }
}

impl From<FormatError> for Fault {
    fn from(e: FormatError) -> Self {
        Fault::Format(e)
    }
}

impl From<PyErr> for Fault {
    fn from(e: PyErr) -> Self {
        Fault::Python(e)
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        Python::attach(|py| {
            let made = match fault {
                Fault::Engine(e) => engine(py, &e),
                Fault::Format(e) => format(py, &e),
                Fault::Python(e) => Ok(e),
            };
            made.unwrap_or_else(|e| e)
        })
    }
}

fn engine(py: Python<'_>, e: &EngineError) -> PyResult<PyErr> {
    let details = PyDict::new(py);
    let class = match e {
        EngineError::Config { at, stage, field, .. } => {
            details.set_item("stage", stage)?;
            details.set_item("field", field)?;
            details.set_item("line", at.map(|(line, _)| line))?;
            details.set_item("column", at.map(|(_, column)| column))?;
            "ConfigError"
        }
        EngineError::Stage { stage, .. } => {
            details.set_item("stage", stage)?;
            "StageError"
        }
        EngineError::Unfit(_) => "EncoderError",
        EngineError::UnknownAlias { .. } => "AliasError",
        EngineError::State(_) => "StateError",
        EngineError::Stopped => match INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(raised) => return Ok(raised),
            None => "StoppedError",
        },
        EngineError::Forked { .. } => "ForkedError",
        EngineError::Path { path, kind, message } => return os(py, *kind, message, Some(path.as_os_str())),
        EngineError::Format(e) => return format(py, e),
        EngineError::Unsupported(message) => return Ok(pyo3::exceptions::PyTypeError::new_err(message.clone())),
        _ => "GristmillError",
    };
    ours(py, class, &e.to_string(), &details)
}

fn format(py: Python<'_>, e: &FormatError) -> PyResult<PyErr> {
    let place = e.place();
    let refused = match e.kind() {
        Kind::Io(kind) => Some(kind),
        Kind::Away => Some(ErrorKind::NotFound),
        _ => None,
    };
    if let Some(kind) = refused {
        return os(py, kind, e.detail(), place.source.as_ref().map(AsRef::as_ref));
    }
    let details = PyDict::new(py);
    details.set_item("kind", e.kind().name())?;
    details.set_item("source", &place.source)?;
    details.set_item("member", &place.member)?;
    details.set_item("chunk", place.chunk)?;
    details.set_item("frame", place.frame)?;
    details.set_item("offset", place.offset)?;
    details.set_item("line", place.line.map(|(line, _)| line))?;
    details.set_item("column", place.line.map(|(_, column)| column))?;
    ours(py, "FormatError", &e.to_string(), &details)
}

/// What `next` raises when a finite stream has ended.
pub(crate) fn end_of_stream(py: Python<'_>, alias: &str) -> PyErr {
    let of = if alias.is_empty() { String::new() } else { format!(" `{alias}`") };
    let message = format!("the stream{of} has ended");
    ours(py, "EndOfStream", &message, &PyDict::new(py)).unwrap_or_else(|e| e)
}

fn ours(py: Python<'_>, class: &str, message: &str, details: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    let class = py.import("gristmill.errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call((message,), Some(details))?))
}

/// An `OSError`, whose constructor picks `FileNotFoundError`, `PermissionError` and so on by number.
fn os(py: Python<'_>, kind: ErrorKind, message: &str, path: Option<&std::ffi::OsStr>) -> PyResult<PyErr> {
    let name = match kind {
        ErrorKind::NotFound => "ENOENT",
        ErrorKind::PermissionDenied => "EACCES",
        ErrorKind::StorageFull => "ENOSPC",
        ErrorKind::QuotaExceeded => "EDQUOT",
        ErrorKind::StaleNetworkFileHandle => "ESTALE",
        ErrorKind::NotConnected => "ENOTCONN",
        ErrorKind::NotADirectory => "ENOTDIR",
        ErrorKind::IsADirectory => "EISDIR",
        ErrorKind::AlreadyExists => "EEXIST",
        ErrorKind::ReadOnlyFilesystem => "EROFS",
        ErrorKind::ResourceBusy => "EBUSY",
        ErrorKind::FileTooLarge => "EFBIG",
        _ => "EIO",
    };
    let number = py.import("errno")?.getattr(name)?;
    let path = path.into_py_any(py)?;
    let class = py.get_type::<pyo3::exceptions::PyOSError>();
    Ok(PyErr::from_value(class.call1((number, message, path))?))
}
