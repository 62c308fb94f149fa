//! `tokenizer fit`: rows of packs -> `tokenizer.json`, and what it was made of; or a share of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_engine::Error;
use gristmill_engine::pack::open::RowPack;
use gristmill_engine::selection::Selection;
use gristmill_engine::store::Residence;
use gristmill_engine::store::publish::write_whole;
use gristmill_format::g2048::encode::FitOptions;
use gristmill_jobs::tokenizer::{self, PartFitted, Summary};

use super::shares::AGAIN_OF_SHARE;
use crate::args::tokenizer::FitTokenizer;
use crate::failure::{Failure, Result};
use crate::report;
use crate::stopping;

pub(crate) fn fit(args: &FitTokenizer) -> Result<()> {
    let Some((packs, out)) = args.places() else {
        let says = "expected one or more packs and the file to write: gristmill tokenizer fit PACK tokenizer.json";
        return Err(Failure::Usage(says.to_owned()));
    };
    // Where a share was committed, or is done, its job says so.
    let files = [Some(out).filter(|_| args.share.is_none()), args.summary_out.as_deref()];
    for file in files.into_iter().flatten() {
        tokenizer::check_output(file, args.overwrite)?;
    }
    let open = |folder: &PathBuf| {
        let rows = Selection::all(Arc::new(RowPack::open(folder, Residence::Mapped)?));
        args.condition.as_ref().map_or(Ok(rows.clone()), |condition| rows.query(condition, &[]))
    };
    let rows = packs.iter().map(open).collect::<gristmill_engine::Result<Vec<_>>>()?;
    let all = FitOptions::default().kinds;
    let kinds = args.valuations.as_ref().map_or(Ok(all), |names| FitOptions::kinds_named(names));
    let options = FitOptions {
        kinds: kinds.map_err(|e| Failure::Usage(format!("--valuations: {}", e.detail())))?,
        num_bins: args.num_bins,
        failure_cutoff: args.search_failure_cutoff,
        zero_tolerance: args.zero_tolerance,
    };
    let stop = stopping::flag()?;
    let mut progress = report::Progress::open_ended("rows", !args.json && !args.no_progress);
    let mut look = |pass: u64, done, total| {
        progress.at(done, &format!("of {total}, pass {}", pass + 1));
        if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    };
    let indent = usize::from(args.indent);
    if let Some(share) = args.share {
        let which = (share, args.dry_run);
        let made = tokenizer::share(&rows, &options, (out, indent), which, &mut |done, total| look(0, done, total));
        progress.end();
        let made = made.map_err(|e| match e {
            Error::Stopped => Failure::stopped(AGAIN_OF_SHARE),
            e => e.into(),
        })?;
        return Ok(report::either(args.json, &made, shared)?);
    }
    let fitted = tokenizer::fit(&rows, &options, &mut look)?;
    progress.end();
    if !args.dry_run {
        tokenizer::write(&fitted.tokenizer, out, indent)?;
    }
    if let Some(path) = args.summary_out.as_ref().filter(|_| !args.dry_run) {
        let text = serde_json::to_string_pretty(&fitted.summary).map_err(std::io::Error::from)?;
        write_whole(path, &[text.as_bytes(), b"\n"])?;
    }
    told(&fitted.summary, out, args.dry_run, args.json)
}

/// Says what came of a fit.
pub(super) fn told(summary: &Summary, out: &Path, dry_run: bool, json: bool) -> Result<()> {
    Ok(report::either(json, summary, |summary| text(summary, out, dry_run))?)
}

/// The text of a share.
fn shared(made: &PartFitted) -> String {
    let holds = format!("{} differences of {} rows", made.differences, made.rows);
    report::shares::made(&made.share, made.dry_run, &holds, &made.folder)
}

fn text(summary: &Summary, out: &Path, dry_run: bool) -> String {
    let verb = if dry_run { "would have" } else { "has" };
    let mut lines = vec![format!("{} {verb} {} bins from {} rows", out.display(), summary.num_bins, summary.rows)];
    for kind in &summary.valuations {
        let ends = kind.bin_edges.first().map_or(0.0, |edge| *edge);
        lines.push(format!(
            "  {:8} {} rows, {} branches: {} failures, {} ties, {} better, {} binned from {ends} to 0",
            kind.name, kind.rows, kind.branches, kind.failures, kind.ties, kind.better, kind.used
        ));
    }
    for (rows, why) in [
        (summary.rows_of_other_valuations, "are of other valuations than those that were fitted"),
        (summary.unusable_rows, "have a move that is not legal or values that are not finite"),
    ] {
        if rows > 0 {
            lines.push(format!("  left out: {rows} rows {why}"));
        }
    }
    lines.join("\n")
}
