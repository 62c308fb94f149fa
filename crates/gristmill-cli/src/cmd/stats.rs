//! `stats`: distributions over files and directories, and a page of plots.

use std::path::{Path, PathBuf};

use gristmill_engine::holdings::Holdings;
use gristmill_jobs::stats::{self, Stats as Distributions, StatsOptions};

use super::page;
use crate::args::page::Page;
use crate::args::stats::Stats;
use crate::failure::{Failure, Result};
use crate::report::{self, distributions, reports};
use crate::stopping;

pub(crate) fn run(args: &Stats) -> Result<()> {
    let sharing = args.reporting.sharing(false);
    if sharing.is_some() && args.page.html.is_some() {
        return Err(Failure::Usage("--html: the commit of all shares writes the page".to_owned()));
    }
    page::check(&args.page)?;
    let mut options = StatsOptions { q_weight: args.q_weight, pol_scale: args.pol_scale, ..StatsOptions::default() };
    options.workers = args.threads.map_or(options.workers, usize::from);
    options.stop = stopping::flag()?;
    let mut progress = report::Progress::open_ended("files", !args.json);
    let show = &mut |so_far: &Distributions| progress.at(so_far.files, &format!("{} frames", so_far.frames));
    if let Some(sharing) = sharing {
        let made = stats::share(&args.paths, &options, &sharing, show)?;
        progress.end();
        return Ok(report::either(args.json, &made, reports::shared)?);
    }
    let found = stats::stats(&args.paths, &options, show)?;
    progress.end();
    told(&args.paths, &found, &args.page, args.json)
}

/// Says what was counted, and writes the page.
pub(super) fn told(paths: &[PathBuf], found: &Distributions, asked: &Page, json: bool) -> Result<()> {
    if found.chunks > 0 {
        page::write(asked, || distributions::html(&title(paths), found))?;
    }
    report::either(json, found, distributions::text)?;
    if let Some(why) = &found.first_unreadable {
        let text =
            format!("{} files or games could not be read, and are not counted; the first: {why}", found.unreadable);
        return Err(Failure::Failed(text));
    }
    match found.chunks {
        0 => Err(Failure::Failed(nothing(paths))),
        _ => Ok(()),
    }
}

/// The error where no game was found: it names what lies there instead.
fn nothing(paths: &[PathBuf]) -> String {
    let there = |path: &PathBuf| match path.metadata() {
        Ok(found) if found.is_dir() => format!("{} {}", path.display(), Holdings::of(path).told(path)),
        Ok(_) => format!("{} holds none that can be read", path.display()),
        Err(e) => format!("{}: {e}", path.display()),
    };
    format!("no games here: {}", paths.iter().map(there).collect::<Vec<_>>().join("; "))
}

fn title(paths: &[impl AsRef<Path>]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.as_ref().display().to_string()).collect();
    names.join(", ")
}
