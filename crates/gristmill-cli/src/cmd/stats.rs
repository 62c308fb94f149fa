//! `stats`: distributions over files and directories, and a page of plots.

use std::path::{Path, PathBuf};

use gristmill_engine::holdings::Holdings;
use gristmill_jobs::stats::{self, StatsOptions};

use super::page;
use crate::args::stats::Stats;
use crate::failure::{Failure, Result};
use crate::report::{self, distributions};
use crate::stopping;

pub(crate) fn run(args: &Stats) -> Result<()> {
    page::check(&args.page)?;
    let mut options = StatsOptions { q_weight: args.q_weight, pol_scale: args.pol_scale, ..StatsOptions::default() };
    options.workers = args.threads.map_or(options.workers, usize::from);
    options.stop = stopping::flag()?;
    let mut progress = report::Progress::open_ended("files", !args.json);
    let found = stats::stats(&args.paths, &options, &mut |so_far| {
        progress.at(so_far.files, &format!("{} frames", so_far.frames));
    })?;
    progress.end();
    if found.chunks > 0 {
        page::write(&args.page, || distributions::html(&title(&args.paths), &found))?;
    }
    if args.json {
        report::json(&found)?;
    } else {
        report::text_out(&distributions::text(&found))?;
    }
    if let Some(why) = &found.first_unreadable {
        let text =
            format!("{} files or games could not be read, and are not counted; the first: {why}", found.unreadable);
        return Err(Failure::Failed(text));
    }
    match found.chunks {
        0 => Err(Failure::Failed(nothing(&args.paths))),
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
