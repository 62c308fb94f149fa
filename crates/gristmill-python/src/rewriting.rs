//! Games in, the same games rescored, filtered, converted or split out, file by file; or a share of them. Options and results are JSON text,
//! which `gristmill.jobs.rewriting` and `converting` read and write. Ctrl-C ends a job between two games, and the same call resumes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::Error;
use gristmill_engine::config::ChunkRescorerConfig;
use gristmill_engine::stage::split::Fold;
use gristmill_format::chess::Version;
use gristmill_format::chess::check::Rules;
use gristmill_jobs::delivery::{Delivery, Earlier};
use gristmill_jobs::rewrite::{By, Container, Filter, Recast, Rewrite, RewriteOptions, Split, rescored, rewrite};
use gristmill_jobs::shares::Share;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::converting::parsed;
use crate::error::Fault;
use crate::packing::watched;

/// From where to where, how, and what to do: checked in Python.
#[derive(Deserialize)]
struct Given {
    input: PathBuf,
    output: PathBuf,
    threads: Option<usize>,
    share: Option<String>,
    dry_run: bool,
    job: Job,
}

/// What becomes of the games, by the name of the command.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Job {
    /// Better targets, by the settings of the stage.
    Rescore { config: Box<RawValue>, keep_v6: bool },
    /// Games that break none of these rules.
    Filter { rules: Vec<String> },
    /// A folder for each side, by weight; of folds, their number and which.
    Split { into: Vec<(String, u64)>, by: String, folds: Option<(u64, u64)> },
    /// Another version, another container.
    Convert {
        version: Option<u32>,
        st_q_theta: Option<f32>,
        lossy: bool,
        container: Option<String>,
        games_per_tar: usize,
    },
}

impl Job {
    /// What is done, into which containers and which sides.
    fn prepare(self) -> gristmill_engine::Result<(Arc<dyn Rewrite>, Container, Vec<String>)> {
        let whole: (Arc<dyn Rewrite>, Container) = match self {
            Job::Rescore { config, keep_v6 } => {
                let config = ChunkRescorerConfig::from_json(config.get())?;
                (Arc::new(rescored(&config, keep_v6)?.0), Container::Same)
            }
            Job::Filter { rules } => {
                let rules = Rules::parse(&rules).map_err(|e| Error::config("rules", e.detail().to_owned()))?;
                (Arc::new(Filter::new(rules)), Container::Same)
            }
            Job::Split { into, by, folds } => {
                let (sides, weights) = into.into_iter().unzip();
                let by = match by.as_str() {
                    "file" => By::File,
                    "content" => By::Content,
                    "name" => By::Name,
                    other => {
                        let text = format!("`{other}` is none; there are name, file and content");
                        return Err(Error::config("by", text));
                    }
                };
                let split = Split::new(weights, by, folds.map(|(of, number)| Fold { of, number }))?;
                return Ok((Arc::new(split), Container::Same, sides));
            }
            Job::Convert { version, st_q_theta, lossy, container, games_per_tar } => {
                let mut recast = Recast::new(version.and_then(Version::from_number));
                recast.lossy = lossy;
                recast.theta = st_q_theta.unwrap_or(recast.theta);
                let container = match container.as_deref() {
                    Some("tar") => Container::Tars(games_per_tar),
                    Some(_) => Container::Loose,
                    None => Container::Same,
                };
                (Arc::new(recast), container)
            }
        };
        Ok((whole.0, whole.1, Vec::new()))
    }
}

/// Writes games again, or a share of them.
#[pyfunction]
pub(crate) fn rewrite_games(py: Python<'_>, options: &str) -> Result<String, Fault> {
    let Given { input, output, threads, share, dry_run, job } = parsed(options)?;
    let share = share.map(|share| share.parse::<Share>()).transpose()?;
    let stop = AtomicBool::new(false);
    watched(py, &stop, |look| {
        let (what, container, sides) = job.prepare()?;
        let delivery = match share {
            // The job puts a share beside its output itself, also in a bucket.
            Some(_) => Delivery::Here(output),
            None => Delivery::to(&output, Earlier::Resumed, dry_run)?,
        };
        let out = delivery.folder();
        let options = RewriteOptions { path: input, out, sides, container, threads, dry_run, share };
        let rewritten = rewrite(what, &options, &stop, &mut |_| look())?;
        if !rewritten.interrupted {
            delivery.deliver(&stop, &mut |_, _| look())?;
        }
        Ok(rewritten)
    })
}
