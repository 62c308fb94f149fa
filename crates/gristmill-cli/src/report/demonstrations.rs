//! What came of converting and splitting demonstrations, as text. Prints nothing.

use std::fmt::Write;

use gristmill_jobs::demos::{Converted, SplitUp};

use super::shares;

/// The text of a conversion.
pub(crate) fn converted(done: &Converted) -> String {
    if let Some(share) = &done.share {
        let holds = format!("{} trajectories of {} frames", done.trajectories, done.frames);
        return shares::made(share, done.dry_run, &holds, "beside OUT");
    }
    let mut out = String::new();
    done.remarks.iter().for_each(|remark| _ = writeln!(out, "note: {remark}"));
    let files: Vec<String> = done.output.iter().map(|path| path.display().to_string()).collect();
    let files = match files.as_slice() {
        [first, .., last] => format!("{first} to {last} ({} files)", files.len()),
        _ => files.join(""),
    };
    let Converted { trajectories, frames, read, from, .. } = done;
    let verb = match (done.dry_run, done.output.len() > 1) {
        (true, _) => "would hold",
        (false, true) => "hold",
        (false, false) => "holds",
    };
    let _ = write!(out, "{files} {verb} {trajectories} trajectories of {frames} frames, from {from}");
    if read > trajectories {
        let _ = write!(out, "; {} left out", read - trajectories);
    }
    for (n, what) in [(done.truncated, "were cut"), (done.unended, "have no end that `dones` marks")] {
        if n > 0 {
            let _ = write!(out, "; {n} {what}");
        }
    }
    if let Some(seed) = done.seed {
        let _ = write!(out, "; seed {seed}");
    }
    out
}

/// The text of a split.
pub(crate) fn split(done: &SplitUp) -> String {
    let holds = format!("{} trajectories of {} frames", done.trajectories, done.frames);
    if let Some(share) = &done.share {
        return shares::made(share, done.dry_run, &holds, "beside OUT");
    }
    let mut out = holds + "\n";
    for (side, folder) in done.sides.iter().zip(&done.out) {
        let folder = folder.display();
        let _ = writeln!(out, "  {folder}: {} trajectories of {} frames", side.trajectories, side.frames);
    }
    if done.by_content > 0 {
        let _ = writeln!(
            out,
            "note: {} trajectories went by their content: an older gristmill packed them and did not note their shards; pack \
             the shards again, and they go where the shards put them",
            done.by_content
        );
    }
    if done.dry_run {
        out.push_str("nothing was written");
    }
    out
}
