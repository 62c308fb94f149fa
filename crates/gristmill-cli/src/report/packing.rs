//! What came of `pack`, `merge` and `values`, as text: the pack in a line, and what is not in it. Prints nothing.

use std::fmt::Write;

use gristmill_format::error::plain;
use gristmill_jobs::checksum::Checksummed;
use gristmill_jobs::merge::Merged;
use gristmill_jobs::pack::Packed;
use gristmill_jobs::values::Valued;

use super::shares;

/// Lines about single games, at most; the manifest has them all.
const LINES: usize = 20;

/// The text of a packing.
pub(crate) fn packed(packed: &Packed) -> String {
    let mut out = String::new();
    left_out_lines(&mut out, packed);
    let verb = if packed.dry_run { "would hold" } else { "holds" };
    let files = if packed.files == 1 { "one file".to_owned() } else { format!("{} files", packed.files) };
    let Packed { pack, rows, runs, layout, .. } = packed;
    if packed.dry_run && packed.files == 0 && *rows > 0 {
        // Shares know no files yet.
        let _ = write!(out, "{pack} would hold {rows} rows of {runs} games");
    } else if packed.dry_run && *rows == 0 {
        // Games other than those of 2048 are not decoded for this.
        let _ = write!(out, "{pack} would hold {runs} games, less those that are in it or cannot be taken; {layout}");
    } else {
        let _ = write!(out, "{pack} {verb} {rows} rows of {runs} games in {files}, {layout}");
    }
    if let Some(codec) = packed.codec {
        let _ = write!(out, ", codec {}", codec.name());
    }
    let mut part = |n: u64, what: &str| {
        if n > 0 {
            let _ = write!(out, "; {n} {what}");
        }
    };
    part(packed.known, "were in it already");
    part(packed.resumed, "come from the interrupted job");
    part(packed.skipped.len() as u64, "left out");
    for name in &packed.stale {
        let _ = write!(out, "\n{name} is of the rows before; `gristmill values {pack} --overwrite` makes values again");
    }
    out
}

/// Lines about what was left out, and about what is odd.
fn left_out_lines(out: &mut String, packed: &Packed) {
    let left_out = packed.skipped.iter().map(|skipped| {
        let line = skipped.line.map(|line| format!(", line {line}")).unwrap_or_default();
        let column = skipped.column.map(|column| format!(" column {column}")).unwrap_or_default();
        let byte = skipped.offset.filter(|_| skipped.line.is_none()).map(|n| format!(", byte {n}")).unwrap_or_default();
        let file = plain(&skipped.file);
        format!("left out: {file}{line}{column}{byte}: {}: {}", skipped.kind, skipped.detail)
    });
    some(out, left_out, "left out");
    some(out, packed.remarks.iter().map(|odd| format!("odd: {}: {}", plain(&odd.file), odd.detail)), "odd");
}

/// The text of a share.
pub(crate) fn shared(packed: &Packed) -> String {
    let Some(share) = &packed.share else { return self::packed(packed) };
    let mut out = String::new();
    left_out_lines(&mut out, packed);
    let Packed { pack, rows, runs, .. } = packed;
    out += &shares::made(share, packed.dry_run, &format!("{rows} rows of {runs} games"), pack);
    let count = packed.skipped.len();
    if count > 0 {
        let _ = write!(out, "; {count} left out, as the commit says again");
    }
    out
}

/// The message of a job that left something out; `None` where it left nothing out. A second sidecar of a game is no
/// loss.
pub(crate) fn left_out(packed: &Packed) -> Option<String> {
    let lost = packed.skipped.iter().filter(|skipped| skipped.kind != "duplicate").count();
    (lost > 0).then(|| {
        let what = if lost == 1 { "1 game or file was".to_owned() } else { format!("{lost} games or files were") };
        format!("{what} left out, as named above and in manifest.json: exit code 3; --skip-bad makes it 0")
    })
}

/// The text of a merge.
pub(crate) fn merged(merged: &Merged) -> String {
    let mut out = String::new();
    let verb = if merged.dry_run { "would hold" } else { "holds" };
    let Merged { pack, rows, runs, layout, packs, .. } = merged;
    let _ = writeln!(out, "{pack} {verb} {rows} rows of {runs} games from {packs} packs, {layout}");
    if !merged.carried.is_empty() {
        let _ = writeln!(out, "beside the rows: {}", merged.carried.join(", "));
    }
    if !merged.marks.is_empty() {
        let _ = writeln!(out, "marks: {}", merged.marks.join(", "));
    }
    if merged.known > 0 {
        let _ = writeln!(out, "passed over, since they were there already: {} games", merged.known);
    }
    merged.lost.iter().for_each(|why| _ = writeln!(out, "{why}"));
    merged.deleted.iter().for_each(|folder| _ = writeln!(out, "deleted: {folder}"));
    merged.left.iter().for_each(|path| _ = writeln!(out, "left, since it is no part of a pack: {path}"));
    out
}

/// The text of checksums.
pub(crate) fn checksummed(done: &Checksummed) -> String {
    let mut out = String::new();
    let made = if done.dry_run { "would be made" } else { "made" };
    for (names, what) in [(&done.made, made), (&done.there, "there already")] {
        if !names.is_empty() {
            let _ = writeln!(out, "{what}: {}", names.join(", "));
        }
    }
    if !done.known && !done.made.is_empty() {
        out += "there is no manifest that the rows could be held against: they are taken for good as they are now\n";
    }
    let verb = if done.dry_run { "would have" } else { "has" };
    out + &format!("{} {verb} checksums for all of its {} rows", done.pack, done.rows)
}

/// The text of values.
pub(crate) fn valued(valued: &Valued) -> String {
    let verb = if valued.dry_run { "would hold" } else { "holds" };
    let files = if valued.files == 1 { "one file".to_owned() } else { format!("{} files", valued.files) };
    let Valued { output, rows, runs, gamma, reward_scale, epsilon, reward, highest, .. } = valued;
    format!(
        "{output} {verb} the values of {rows} rows of {runs} games in {files}: gamma {gamma}, reward scale {reward_scale}, \
         epsilon {epsilon}; {reward} points in all, highest target {highest}"
    )
}

fn some(out: &mut String, lines: impl ExactSizeIterator<Item = String>, what: &str) {
    let more = lines.len().saturating_sub(LINES);
    lines.take(LINES).for_each(|line| _ = writeln!(out, "{line}"));
    if more > 0 {
        let _ = writeln!(out, "... and {more} more {what}; see manifest.json");
    }
}
