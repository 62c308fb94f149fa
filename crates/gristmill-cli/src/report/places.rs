//! What a run delivered, which rows a batch has and when rows come, as text. Prints nothing.

use std::fmt::Write;

use gristmill_engine::pipeline::Origin;
use gristmill_format::error::plain;
use gristmill_plans::selected::RowPlace;
use gristmill_plans::verify_run::{OutputVerification, Place, RunVerification, Stretch};
use gristmill_plans::when::{Fed, Time, Times};
use gristmill_plans::xray::{SeenFrame, SeenRow};

/// The text of a verification.
pub(crate) fn verification(found: &RunVerification) -> String {
    let mut out = String::new();
    for output in &found.outputs {
        one(&mut out, output);
    }
    for (what, texts) in [("proven", &found.proven), ("not proven", &found.unproven)] {
        for text in texts {
            let _ = writeln!(out, "{what}: {text}");
        }
    }
    let verdict = if found.ok { "ok" } else { "faults" };
    let _ = write!(out, "{verdict}: {} starts, {} processes, {} ledgers", found.starts, found.processes, found.ledgers);
    out
}

fn one(out: &mut String, output: &OutputVerification) {
    let name = if output.output.is_empty() { String::new() } else { format!("output {}: ", output.output) };
    let of = output.of.map(|of| format!(" of {of}")).unwrap_or_default();
    let _ = writeln!(out, "{name}batches 0..{}{of}", output.until);
    for (first, end) in &output.skipped {
        let _ = writeln!(out, "  left out: {first}..{end}");
    }
    if output.discarded_batches > 0 {
        let shares = output.discarded_batches;
        let _ = writeln!(out, "  taken back by a later start: {shares} batches of single ranks");
    }
    for (what, all) in [("missing", &output.missing), ("more than once", &output.twice)] {
        for stretch in all {
            let _ = writeln!(out, "  {what}: {}", batches(stretch));
        }
    }
    for unfounded in &output.unfounded {
        let last = unfounded.last_state.map_or("none before it".to_owned(), |at| format!("the last before it at {at}"));
        let (start, from) = (unfounded.start, unfounded.from);
        let _ = writeln!(out, "  start {start} resumes from batch {from}, where no process saved a state ({last})");
    }
    for wrong in &output.wrong_records {
        let _ = writeln!(out, "  not those of the plan: {}..{} in {}", wrong.first, wrong.end, wrong.ledger);
    }
    for row in &output.rows {
        let place = match &row.place {
            Place::Row(row) => place(row),
            Place::Frame(frame) => origin(frame),
        };
        let _ = writeln!(out, "  {}: batch {}, row {}: {place}", row.fault, row.batch, row.row);
    }
    for epoch in &output.epochs {
        let state = if epoch.whole {
            "each row once"
        } else if epoch.differs {
            "other rows than the selected ones"
        } else {
            "not whole"
        };
        let left_out = if epoch.skipped > 0 { format!(", {} left out", epoch.skipped) } else { String::new() };
        let _ = writeln!(out, "  epoch {}: {} of {} rows{left_out}: {state}", epoch.epoch, epoch.delivered, epoch.rows);
    }
}

fn batches(stretch: &Stretch) -> String {
    let whole = stretch.rows.len() as u64 == stretch.every;
    let rows: Vec<String> = stretch.rows.iter().take(8).map(u64::to_string).collect();
    let more = if stretch.rows.len() > rows.len() { ", ..." } else { "" };
    let part =
        if whole { String::new() } else { format!(", rows {}{more} of each {}", rows.join(", "), stretch.every) };
    format!("batches {}..{}{part}", stretch.first, stretch.end)
}

fn place(place: &RowPlace) -> String {
    let member = place.member.as_ref().map(|member| format!(" ({})", plain(member))).unwrap_or_default();
    format!("game {}{member}, ply {}; {}, row {}", place.game, place.ply, plain(&place.file), place.file_row)
}

fn origin(origin: &Origin) -> String {
    let member = origin.member.as_ref().map(|member| format!(" ({})", plain(member))).unwrap_or_default();
    format!("game {}{member}, ply {}; {}", origin.game, origin.ply, plain(&origin.file))
}

/// The rows of a batch of a stream, one line each.
pub(crate) fn frames(rows: &[SeenFrame]) -> String {
    rows.iter().map(|row| format!("batch {}, row {}: {}\n", row.batch, row.row, origin(&row.origin))).collect()
}

/// The rows of a batch, one line each.
pub(crate) fn rows(rows: &[SeenRow]) -> String {
    let line =
        |row: &SeenRow| format!("batch {}, row {}, epoch {}: {}\n", row.batch, row.row, row.epoch, place(&row.place));
    rows.iter().map(line).collect()
}

/// When the rows of a game come, one line each, after one on the game.
pub(crate) fn times(found: &Times) -> String {
    let member = found.member.as_ref().map(|member| format!(" ({})", plain(member))).unwrap_or_default();
    let next = found.next_batch.map(|batch| format!("; the next batch is {batch}")).unwrap_or_default();
    let (first, end) = found.epochs;
    let pack = found.source.map(|source| format!(" of pack {source}")).unwrap_or_default();
    let mut out = format!("game {}{pack}{member}: {} plies, epochs {first}..{end}{next}\n", found.game, found.plies);
    if found.selected == 0 {
        out.push_str("never: the plan does not select what was asked for\n");
    }
    found.times.iter().for_each(|time| one_time(&mut out, time));
    out
}

fn one_time(out: &mut String, time: &Time) {
    let Time { epoch, ply, .. } = time;
    let fed = match time.fed {
        Some(Fed::Was) => ", was fed",
        Some(Fed::WillBe) => ", will be fed",
        Some(Fed::LeftOut) => ", left out",
        Some(Fed::Dropped) => ", dropped with the rows left over",
        None => "",
    };
    let rank = time.rank.map(|rank| format!(", rank {rank}")).unwrap_or_default();
    let _ = match time.batch.zip(time.row) {
        Some((batch, row)) => writeln!(out, "epoch {epoch}, batch {batch}{rank}, row {row}: ply {ply}{fed}"),
        None => writeln!(out, "epoch {epoch}: ply {ply}{fed}"),
    };
}
