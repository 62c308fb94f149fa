//! The shares of a job that writes games again -> the folder that one process would have written: its files, byte for byte, its ledger and
//! its report. Publishes file by file, and notes each in the ledger, as the job does: a killed commit resumes there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::store::publish::{adopt, withdraw};
use gristmill_format::{Error as FormatError, Kind};
use serde_json::Value;

use super::ledger::{self, Head, Ledger, Noted};
use super::part::{FILES, SIDES, Said};
use super::{MESSAGES, Rewritten, outs};
use crate::shares::{Joining, Whole};

/// Writes the folder of all shares. It calls `progress` after each share, and now and then within one.
///
/// Errors: `Config` in `output` where shares are missing, which it names, and for a folder with other files; in `overwrite` where that is
/// asked for; `Path` of kind `ResourceBusy` where another process commits them now; `Format` for damaged shares; `Stopped`. The shares
/// are all there then, and the next commit resumes.
pub(crate) fn commit(whole: &Whole, progress: &mut dyn FnMut(Joining)) -> Result<Rewritten> {
    if whole.options.overwrite {
        return Err(Error::config("overwrite", "is for packs; games go to a new folder"));
    }
    let parts = whole.parts::<Said>()?;
    let report = report(parts.iter().map(|(_, said)| said));
    let sides = sides(whole);
    let folders = outs(whole.output(), &sides);
    if whole.options.dry_run {
        ledger::free(&folders)?;
        return Ok(Rewritten { dry_run: true, folders, ..report });
    }
    join(whole, &sides, &parts, progress)?;
    Ok(Rewritten { folders, ..report })
}

/// The names of the sides of a split; none of other jobs.
fn sides(whole: &Whole) -> Vec<String> {
    let sides = whole.plan.options.get(SIDES).and_then(Value::as_array);
    sides.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Publishes the files of all shares, and writes their ledger.
fn join(whole: &Whole, sides: &[String], parts: &[(PathBuf, Said)], progress: &mut dyn FnMut(Joining)) -> Result<()> {
    let (to, all, mut done) = (outs(whole.output(), sides), whole.plan.inputs, 0);
    let mut begun: Option<(Head, Ledger)> = None;
    for (folder, said) in parts {
        let files = outs(&folder.join(FILES), sides);
        let (head, units) = ledger::read(&files[0])?;
        let (first, ledger) = match &mut begun {
            Some(begun) => begun,
            none => {
                let ledger = Ledger::begin(head.clone(), &to)?;
                none.insert((head.clone(), ledger))
            }
        };
        if (&head.settings, &head.container) != (&first.settings, &first.container) {
            return Err(damaged(&files[0], "is of another job than the shares before it"));
        }
        for unit in units {
            if whole.options.stop.load(Ordering::Relaxed) {
                ledger.commit()?;
                return Err(Error::Stopped);
            }
            if !ledger.has(&unit) {
                let published = publish(&files, &to, &unit)?;
                ledger.note(unit, &published)?;
            }
            progress(Joining { done, all });
        }
        done += said.files_done;
        progress(Joining { done, all });
    }
    begun.map_or(Ok(()), |(_, mut ledger)| ledger.commit())?;
    ledger::tell_others(&to)
}

/// Publishes what a unit made, on each side a file, a folder of files, or nothing. Returns the paths of the files.
fn publish(files: &[PathBuf], outs: &[PathBuf], unit: &Noted) -> Result<Vec<PathBuf>> {
    let (mut published, mut bytes) = (Vec::new(), 0);
    for (files, out) in files.iter().zip(outs) {
        bytes += adopt_all(&files.join(&unit.target), &out.join(&unit.target), &mut published)?;
    }
    let (count, done) = (published.len() as u64, &unit.done);
    if (count, bytes) != (done.files_out, done.bytes_out) {
        let text = format!(
            "has {count} files of {bytes} bytes, its share wrote {} of {}; remove the folder of the share and make it again",
            done.files_out, done.bytes_out
        );
        return Err(damaged(&files[0].join(&unit.target), &text));
    }
    Ok(published)
}

/// Publishes the file `from`, or the files in this folder, under the name `to`, and adds their paths. Returns their bytes.
fn adopt_all(from: &Path, to: &Path, published: &mut Vec<PathBuf>) -> Result<u64> {
    let mut bytes = 0;
    let found = fs::symlink_metadata(from).ok();
    if !found.as_ref().is_some_and(fs::Metadata::is_file) {
        // What an earlier run of the same job left.
        withdraw(to)?;
    }
    match found {
        Some(meta) if meta.is_dir() => {
            let refused = |e: std::io::Error| Error::path(from, &e);
            let entries = fs::read_dir(from).map_err(refused)?;
            let mut names = entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<Vec<_>, _>>();
            names.iter_mut().for_each(|names| names.sort_unstable());
            for name in names.map_err(refused)? {
                bytes += adopt(&from.join(&name), &to.join(&name))?;
                published.push(to.join(name));
            }
        }
        Some(_) => {
            bytes = adopt(from, to)?;
            published.push(to.to_owned());
        }
        None => {}
    }
    Ok(bytes)
}

/// The error for files of a share that are not as they were written.
fn damaged(path: &Path, text: &str) -> Error {
    FormatError::new(Kind::Corrupt, text).in_source(path.display().to_string()).into()
}

/// The report of one process, from those of all shares.
fn report<'a>(parts: impl Iterator<Item = &'a Said>) -> Rewritten {
    let mut report = Rewritten::default();
    for (i, said) in parts.enumerate() {
        if i == 0 {
            // What the shares say of all inputs is the same.
            (report.files, report.skipped) = (said.files, said.skipped);
            report.faults.clone_from(&said.unlisted_faults);
            report.done.damaged.clone_from(&said.unlisted);
        }
        report.files_done += said.files_done;
        report.done.add(&said.done);
        let room = MESSAGES.saturating_sub(report.faults.len());
        report.faults.extend(said.faults.iter().take(room).cloned());
    }
    report
}
