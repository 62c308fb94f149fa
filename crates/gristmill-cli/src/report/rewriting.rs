//! What came of rewriting games, as text and as JSON: kept, changed and dropped, by reason. Prints nothing.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use gristmill_engine::tablebase::Syzygy;
use gristmill_jobs::rewrite::Rewritten;
use serde::Serialize;

use super::shares;

/// The summary as JSON: where it went, and the numbers.
#[derive(Debug, Serialize)]
pub(crate) struct Told<'a> {
    /// The folders written to.
    pub(crate) out: &'a [PathBuf],
    /// The numbers.
    #[serde(flatten)]
    pub(crate) done: &'a Rewritten,
}

/// How far it is, beside the bar.
pub(crate) fn line(now: &Rewritten) -> String {
    let lost: u64 = now.done.dropped.values().chain(now.done.damaged.values()).sum();
    let mut out = format!("{} games", now.done.chunks);
    if lost > 0 {
        let _ = write!(out, ", {lost} dropped");
    }
    out
}

/// The text of a run.
pub(crate) fn text(outs: &[PathBuf], all: &Rewritten) -> String {
    let mut out = String::new();
    all.faults.iter().for_each(|fault| _ = writeln!(out, "unreadable: {fault}"));
    let done = &all.done;
    let files = if all.files_done == all.files {
        format!("{} files", all.files)
    } else {
        format!("{} of {} files", all.files_done, all.files)
    };
    let _ = writeln!(out, "{} games in {files}", done.chunks);
    let mut row = |name: &str, n: u64, indent: usize| {
        if n > 0 {
            let _ = writeln!(out, "{:indent$}{name:<width$} {n:>9}", "", width = 30 - indent);
        }
    };
    row("kept as they were", done.kept, 2);
    row("changed", done.changed, 2);
    let mut reasons = |name: &str, counts: &BTreeMap<String, u64>| {
        row(name, counts.values().sum(), 2);
        counts.iter().for_each(|(reason, n)| row(reason, *n, 4));
    };
    reasons("dropped", &done.dropped);
    reasons("unreadable", &done.damaged);
    done.counts.iter().for_each(|(name, n)| row(name, *n, 2));
    row("files that hold no chess games", all.skipped, 2);
    row("files done by an earlier run", all.resumed, 2);
    let places = places(outs);
    let _ = match all.dry_run {
        true => write!(out, "nothing was written to {places}"),
        false => write!(out, "{} files, {}, in {places}", done.files_out, super::bytes(done.bytes_out)),
    };
    out
}

/// Folders with commas between them.
fn places(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The text of a share.
pub(crate) fn shared(all: &Rewritten) -> String {
    let (done, folder) = (&all.done, places(&all.folders));
    let holds = format!("{} files, {} of {} games", done.files_out, done.kept + done.changed, done.chunks);
    let mut out = String::new();
    all.faults.iter().for_each(|fault| _ = writeln!(out, "unreadable: {fault}"));
    out + &all.share.as_ref().map_or_else(String::new, |share| shares::made(share, all.dry_run, &holds, &folder))
}

/// What the tables are, and which of them are damaged.
pub(crate) fn tables(syzygy: &Syzygy) -> String {
    let mut out = format!("tables: {}", syzygy.coverage());
    syzygy.faults().iter().for_each(|fault| _ = write!(out, "\nleft out: {fault}"));
    out
}
