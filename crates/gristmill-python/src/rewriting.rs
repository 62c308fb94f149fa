//! Games in, the same games rescored, filtered or converted out, file by file; or a share of them. Options and results are JSON text,
//! which `gristmill.jobs.rewriting` and `converting` read and write. Ctrl-C ends a job between two games, and the same call resumes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::config::ChunkRescorerConfig;
use gristmill_format::chess::Version;
use gristmill_format::chess::check::Rules;
use gristmill_jobs::delivery::{Delivery, Earlier};
use gristmill_jobs::rewrite::{Container, Filter, Recast, Rewrite, RewriteOptions, rescored, rewrite};
use gristmill_jobs::shares::Share;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::converting::parsed;
use crate::error::Fault;
use crate::packing::watched;

/// From where to where, and how.
#[derive(Deserialize)]
struct Places {
    input: PathBuf,
    output: PathBuf,
    threads: Option<usize>,
    share: Option<Share>,
    dry_run: bool,
}

/// Options of a conversion, checked in Python.
#[derive(Deserialize)]
struct Converting {
    version: Option<u32>,
    st_q_theta: Option<f32>,
    lossy: bool,
    container: Option<String>,
    games_per_tar: usize,
}

/// Rescores games by the settings of the stage.
#[pyfunction]
pub(crate) fn rescore_games(py: Python<'_>, places: &str, config: &str, keep_v6: bool) -> Result<String, Fault> {
    let passes = py.detach(|| rescored(&ChunkRescorerConfig::from_json(config)?, keep_v6))?.0;
    write(py, Arc::new(passes), places, Container::Same)
}

/// Keeps the games that break none of these rules.
#[pyfunction]
pub(crate) fn filter_games(py: Python<'_>, places: &str, rules: Vec<String>) -> Result<String, Fault> {
    let rules = Rules::parse(&rules).map_err(|e| gristmill_engine::Error::config("rules", e.detail().to_owned()))?;
    write(py, Arc::new(Filter::new(rules)), places, Container::Same)
}

/// Converts games of chess.
#[pyfunction]
pub(crate) fn convert_games(py: Python<'_>, options: &str) -> Result<String, Fault> {
    let given: Converting = parsed(options)?;
    let mut recast = Recast::new(given.version.and_then(Version::from_number));
    recast.lossy = given.lossy;
    recast.theta = given.st_q_theta.unwrap_or(recast.theta);
    let container = match given.container.as_deref() {
        Some("tar") => Container::Tars(given.games_per_tar),
        Some(_) => Container::Loose,
        None => Container::Same,
    };
    write(py, Arc::new(recast), options, container)
}

/// Writes games again, or a share of them.
fn write(py: Python<'_>, what: Arc<dyn Rewrite>, places: &str, container: Container) -> Result<String, Fault> {
    let Places { input, output, threads, share, dry_run } = parsed(places)?;
    let stop = AtomicBool::new(false);
    watched(py, &stop, |look| {
        let delivery = match share {
            // A folder that all machines reach; what is elsewhere is refused by the job.
            Some(_) => Delivery::Here(output),
            None => Delivery::to(&output, Earlier::Resumed, dry_run)?,
        };
        let outs = vec![delivery.folder()];
        let options = RewriteOptions { path: input, outs, container, threads, dry_run, share };
        let rewritten = rewrite(what, &options, &stop, &mut |_| look())?;
        if !rewritten.interrupted {
            delivery.deliver(&stop, &mut |_, _| look())?;
        }
        Ok(rewritten)
    })
}
