//! `tokenizer fit`: rows of a pack -> `tokenizer.json`, and what it was made of.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_engine::Error;
use gristmill_engine::pack::open::RowPack;
use gristmill_engine::selection::Selection;
use gristmill_engine::store::Residence;
use gristmill_engine::store::publish::write_whole;
use gristmill_format::g2048::encode::FitOptions;
use gristmill_jobs::tokenizer::{self, Summary};

use crate::args::tokenizer::FitTokenizer;
use crate::failure::{Failure, Result};
use crate::report;
use crate::stopping;

pub(crate) fn fit(args: &FitTokenizer) -> Result<()> {
    let files = [Some(args.out()), args.summary_out.as_deref()];
    for file in files.into_iter().flatten() {
        tokenizer::check_output(file, args.overwrite)?;
    }
    let mut rows = Selection::all(Arc::new(RowPack::open(&args.pack, Residence::Mapped)?));
    if let Some(condition) = &args.condition {
        rows = rows.query(condition, &[])?;
    }
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
    let fitted = tokenizer::fit(&rows, &options, &mut |pass, done, total| {
        progress.at(done, &format!("of {total}, pass {}", pass + 1));
        if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    })?;
    progress.end();
    if !args.dry_run {
        tokenizer::write(&fitted.tokenizer, args.out(), usize::from(args.indent))?;
    }
    if let Some(path) = args.summary_out.as_ref().filter(|_| !args.dry_run) {
        let text = serde_json::to_string_pretty(&fitted.summary).map_err(std::io::Error::from)?;
        write_whole(path, &[text.as_bytes(), b"\n"])?;
    }
    if args.json {
        return Ok(report::json(&fitted.summary)?);
    }
    let verb = if args.dry_run { "would have" } else { "has" };
    Ok(report::text_out(&text(&fitted.summary, &format!("{} {verb}", args.out().display())))?)
}

fn text(summary: &Summary, output: &str) -> String {
    let mut lines = vec![format!("{output} {} bins from {} rows", summary.num_bins, summary.rows)];
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
