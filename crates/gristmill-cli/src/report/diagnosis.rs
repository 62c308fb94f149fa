//! A diagnosis as text and as a page: what the data are, each finding with its places, what repeats, sizes, time. Prints nothing.

use std::fmt::Write;

use gristmill_format::error::plain;
use gristmill_jobs::doctor::{CHECKS, Diagnosis, Finding};

use super::page::{self, Page, Table};
use super::{distributions, verification};

/// The text of `found`.
pub(crate) fn text(found: &Diagnosis) -> String {
    let mut out = format!("{}: {}\n", plain(&found.path), holds(found));
    for (name, value) in facts(found) {
        let _ = writeln!(out, "{name}: {value}");
    }
    for finding in &found.findings {
        let _ = writeln!(out, "\n{}: {} ({}{})", finding.check, finding.says, finding.count, parts(finding));
        finding.first.iter().for_each(|fault| _ = write!(out, "  {}", verification::line(fault)));
        let _ = writeln!(out, "  cause: {}\n  remedy: {}", finding.cause, finding.remedy);
    }
    let _ = write!(out, "\n{}", verdict(found));
    out
}

/// A page about `found`.
pub(crate) fn html(found: &Diagnosis) -> String {
    let fact = |(name, value): (&str, String)| (name.to_owned(), value);
    let told = [("verdict", verdict(found)), ("holds", holds(found))];
    let tables = found.findings.iter().map(table).collect();
    page::html(&Page {
        title: &found.path,
        facts: told.into_iter().chain(facts(found)).map(fact).collect(),
        tables,
        distributions: distributions::distributions(&found.stats),
        ..Page::default()
    })
}

fn table(finding: &Finding) -> Table {
    Table {
        title: format!("{}: {} ({}{})", finding.check, finding.says, finding.count, parts(finding)),
        lines: vec![format!("cause: {}", finding.cause), format!("remedy: {}", finding.remedy)],
        rows: finding.first.iter().map(|fault| verification::line(fault).trim_end().to_owned()).collect(),
    }
}

/// How often by rule or kind of damage, where that is another name than that of the check.
fn parts(finding: &Finding) -> String {
    let of = finding.of.iter().filter(|(name, _)| **name != finding.check || finding.of.len() > 1);
    let of: Vec<String> = of.map(|(name, count)| format!("{name} {count}")).collect();
    if of.is_empty() { String::new() } else { format!(": {}", of.join(", ")) }
}

fn holds(found: &Diagnosis) -> String {
    let formats: Vec<String> = found.formats.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let formats = if formats.is_empty() { "no data".to_owned() } else { formats.join(", ") };
    let other = if found.other_files > 0 { format!(", {} other files", found.other_files) } else { String::new() };
    format!("{formats}{other}; {} games or episodes, {} frames", found.chunks, found.frames)
}

fn facts(found: &Diagnosis) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    let (games, sizes) = (&found.games, &found.sizes);
    if games.games > 0 {
        let rest = if games.complete { "" } else { "; the first two million were held against all" };
        all.push(("games", format!("{}, {} different{rest}", games.games, games.different)));
    }
    let mut size = format!("{} of files", super::bytes(sizes.files));
    for (bytes, what) in [(sizes.stored, "compressed"), (sizes.inflated, "inflated")] {
        if bytes > 0 {
            let _ = write!(size, ", {} {what}", super::bytes(bytes));
        }
    }
    if let Some(packed) = sizes.packed {
        let share = packed as f64 * 100.0 / sizes.stored.max(1) as f64;
        let _ = write!(size, "; a pack would take about {} ({share:.0} %)", super::bytes(packed));
    }
    all.push(("size", size));
    if let Some(epoch) = &found.epoch {
        let text = format!(
            "about {} on {} threads, {:.0} frames a second each, without a trainer (by {} frames)",
            seconds(epoch.seconds),
            epoch.workers,
            epoch.frames_per_second,
            epoch.sample
        );
        all.push(("one pass here", text));
    }
    all
}

/// A time for people.
fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1000.0),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

fn verdict(found: &Diagnosis) -> String {
    match found.findings.len() {
        0 => format!("healthy: {} checks found nothing", CHECKS.len()),
        n => format!("{n} of {} checks found something", CHECKS.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_unit_that_people_use() {
        assert_eq!([0.02, 3.0, 600.0, 9000.0].map(seconds), ["20 ms", "3 s", "10 min", "2.5 h"]);
    }
}
