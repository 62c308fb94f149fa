//! What the commands that write games again share: the job, its progress, its summary and its exit code.

use std::path::PathBuf;
use std::sync::Arc;

use gristmill_engine::Error;
use gristmill_jobs::delivery::{Delivery, Earlier};
use gristmill_jobs::rewrite::{Container, Rewrite, RewriteOptions, Rewritten, rewrite};

use super::delivery::deliver;
use super::shares::AGAIN_OF_SHARE;
use crate::args::rewrite::Rewriting;
use crate::failure::{Failure, Result};
use crate::report::{self, rewriting};
use crate::stopping;

/// How a command that was stopped resumes.
const AGAIN: &str = "the same command resumes from here";

/// Runs `what` over the games; `sides` are the folders to write to below OUT, none for OUT itself.
///
/// Unreadable games give exit code 1 after the summary: the output lacks them.
pub(super) fn run(words: &Rewriting, sides: Vec<String>, container: Container, what: Arc<dyn Rewrite>) -> Result<()> {
    let delivery = match words.share {
        // The job puts a share beside its output itself, also in a bucket.
        Some(_) => Delivery::Here(words.out.clone()),
        None => Delivery::to(&words.out, Earlier::Resumed, words.dry_run)?,
    };
    let options = RewriteOptions {
        path: words.path.clone(),
        out: delivery.folder(),
        sides,
        container,
        threads: words.threads.map(usize::from),
        dry_run: words.dry_run,
        share: words.share,
    };
    let stop = stopping::flag()?;
    let mut progress = None;
    let done = rewrite(what, &options, &stop, &mut |now| {
        let bar = progress.get_or_insert_with(|| report::Progress::new(now.files, "files", !words.json));
        bar.at(now.files_done, &rewriting::line(now));
    });
    if let Some(progress) = progress {
        progress.end();
    }
    let done = done.map_err(|e| match e {
        Error::Stopped if words.share.is_some() => Failure::stopped(AGAIN_OF_SHARE),
        e => e.into(),
    })?;
    if done.share.is_some() {
        // What its games lack is a matter of the commit.
        let told = rewriting::Told { out: &done.folders, done: &done };
        return Ok(report::either(words.json, &told, |_| rewriting::shared(&done))?);
    }
    if !done.interrupted {
        deliver(delivery, &stop, words.json, AGAIN)?;
    }
    told(words.json, &RewriteOptions { out: words.out.clone(), ..options.clone() }.outs(), &done)?;
    if done.interrupted {
        return Err(Failure::stopped(AGAIN));
    }
    if done.done.chunks == 0 {
        return Err(Failure::Failed(format!("no chess games in {}", options.path.display())));
    }
    if done.done.damaged.is_empty() { Ok(()) } else { Err(Failure::Faults) }
}

/// Prints the summary.
fn told(json: bool, outs: &[PathBuf], done: &Rewritten) -> Result<()> {
    Ok(report::either(json, &rewriting::Told { out: outs, done }, |told| rewriting::text(told.out, told.done))?)
}

/// Says what came of a commit, with the exit code of the command whose shares they are.
pub(super) fn committed(json: bool, done: &Rewritten) -> Result<()> {
    told(json, &done.folders, done)?;
    if done.done.damaged.is_empty() || done.dry_run { Ok(()) } else { Err(Failure::Faults) }
}
