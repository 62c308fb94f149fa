//! What is to be seen in, pages served by a thread of this process out: `gristmill view` from Python.
//! The thread holds nothing of Python; it ends when the pages are closed, and with the process.

use std::path::PathBuf;
use std::sync::mpsc;

use gristmill_engine::Error as EngineError;
use gristmill_engine::runtime::scheduler::Scheduler;
use gristmill_jobs::inspect::Shelf;
use gristmill_view::watch::client::Client;
use gristmill_view::{Unseen, View};
use pyo3::exceptions::{PyConnectionError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::error::Fault;
use crate::selection::Selection;

/// Pages that are served.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Pages {
    scheduler: Scheduler,
    #[pyo3(get)]
    url: String,
    /// Whether other machines reach them.
    #[pyo3(get)]
    open: bool,
}

/// Why there are none.
enum Refused {
    Engine(EngineError),
    Loader(String),
}

impl From<EngineError> for Refused {
    fn from(e: EngineError) -> Self {
        Refused::Engine(e)
    }
}

/// What is shown: what lies at a path, or a loader at an address and the token for it.
fn open(path: Option<PathBuf>, loader: Option<(String, Option<String>)>, address: &str) -> Result<View, Refused> {
    if let Some((loader, token)) = loader {
        return View::watch(Client::new(loader, token), address).map_err(|e| match e {
            Unseen::Address(e) => Refused::Engine(e),
            Unseen::Loader(why) => Refused::Loader(why),
        });
    }
    Ok(View::open(&path.unwrap_or_default(), address)?)
}

/// Serves pages at `address` until they are closed.
#[pyfunction]
pub(crate) fn serve_pages(
    py: Python<'_>,
    path: Option<PathBuf>,
    loader: Option<(String, Option<String>)>,
    address: String,
) -> Result<Pages, Fault> {
    let scheduler = Scheduler::new();
    let (stop, (tell, told)) = (scheduler.stop_flag(), mpsc::channel());
    // What is shown is opened by the thread that serves it, and never leaves it.
    let serve = move || match open(path, loader, &address) {
        Ok(view) => {
            let (url, open) = (view.url(), view.is_open());
            if tell.send(Ok((url, open))).is_ok() {
                view.serve(&stop);
            }
        }
        Err(refused) => drop(tell.send(Err(refused))),
    };
    let started = scheduler.spawn("view", serve);
    started.map_err(|e| PyRuntimeError::new_err(format!("no thread could be started: {e}")))?;
    match py.detach(move || told.recv()) {
        Ok(Ok((url, open))) => Ok(Pages { scheduler, url, open }),
        Ok(Err(Refused::Engine(e))) => Err(e.into()),
        Ok(Err(Refused::Loader(why))) => Err(PyConnectionError::new_err(why).into()),
        Err(_) => Err(PyRuntimeError::new_err("the pages ended before they were served").into()),
    }
}

#[pymethods]
impl Pages {
    /// Ends them; waits a second at most.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.scheduler.stop()));
    }
}

/// A game of a selection, by its place, as HTML for notebooks.
#[pyfunction]
pub(crate) fn card_of_selection(py: Python<'_>, selection: &Selection, place: usize) -> Result<String, Fault> {
    let shelf = Shelf::of(selection.0.clone());
    Ok(py.detach(|| gristmill_view::card(&shelf, place)).map_err(PyValueError::new_err)?)
}

/// A game of a file, by its place, as HTML for notebooks.
#[pyfunction]
pub(crate) fn card_of_file(py: Python<'_>, path: PathBuf, place: usize) -> Result<String, Fault> {
    let drawn = py.detach(|| Ok::<_, EngineError>(gristmill_view::card(&Shelf::open(&path)?, place)))?;
    Ok(drawn.map_err(PyValueError::new_err)?)
}

/// A position of chess, with arrows for moves by their share, as HTML for notebooks.
#[pyfunction]
pub(crate) fn card_of_position(fen: &str, moves: Vec<(String, f32)>, title: &str) -> String {
    let moves: Vec<(&str, f32)> = moves.iter().map(|(uci, share)| (uci.as_str(), *share)).collect();
    gristmill_view::position_card(fen, &moves, title)
}
