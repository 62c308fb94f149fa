//! The stages of a run -> a table in the order in which data flows, from files to the trainer. Knows no stage by name.

use std::fmt::Write;

use gristmill_engine::pipeline::StageStatus;

use super::page::SECONDS;
use super::seen::Seen;
use crate::draw::spark::{bar, spark};
use crate::html::{cut, escape, grouped};
use crate::watch::numbers;
use crate::watch::rows::{Chip, Chips, Line, Row, rows};

/// Stages that are shown, and pieces of each.
const STAGES: usize = 200;
const CHIPS: usize = 40;

/// The table.
pub(super) fn table(seen: &Seen, output: Option<&str>) -> String {
    let mut found: Vec<Vec<Row>> = Vec::new();
    for row in rows(&seen.latest, &seen.history, output, Chips::Telling) {
        match (row, found.last_mut()) {
            (row @ Row::Stage(_), _) => found.push(vec![row]),
            (row, Some(group)) => group.push(row),
            (_, None) => {}
        }
    }
    let mut out = String::from("<h2>Stages, from files to the trainer</h2>");
    if found.is_empty() {
        return out + "<p class=\"none\">The loader publishes no stages.</p>";
    }
    out.push_str(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Stages\"><table class=\"stages\"><thead><tr>\
         <th scope=\"col\">stage</th><th scope=\"col\">reads</th><th scope=\"col\">threads busy</th><th scope=\"col\">per second</th>\
         <th scope=\"col\">last minute</th><th scope=\"col\">in all</th><th scope=\"col\">filled</th></tr></thead>",
    );
    for group in found.into_iter().rev().take(STAGES) {
        out.push_str("<tbody>");
        for row in &group {
            match row {
                Row::Stage(line) => {
                    let stage = seen.latest.stages.iter().find(|stage| stage.name == line.name);
                    out.push_str(&of_stage(line, stage));
                }
                Row::Queue(line) => out.push_str(&of_queue(line)),
                Row::Chips(chips) => out.push_str(&of_chips(chips)),
            }
        }
        out.push_str("</tbody>");
    }
    out + "</table></div>"
}

fn of_stage(line: &Line, stage: Option<&StageStatus>) -> String {
    let (kind, gives) = stage.map_or(("", ""), |stage| (stage.kind.as_str(), stage.gives.as_str()));
    let inputs = stage.map_or(&[][..], |stage| &stage.inputs[..]);
    let reads: Vec<String> = inputs
        .iter()
        .take(CHIPS)
        .map(|input| match input.output.as_str() {
            "" => cut(&input.stage),
            output => format!("{}.{}", cut(&input.stage), cut(output)),
        })
        .collect();
    let load = line.load.map_or("–".to_owned(), |(busy, all)| {
        let share = if all > 0.0 { busy / all } else { 0.0 };
        format!("{busy:.2} of {all:.0} {}", bar(share, 0))
    });
    // What would be shown as zero is zero to people; it is a fault only where somebody waits.
    let starved = if line.awaited && line.rate.is_some_and(|rate| rate < 0.05) { " wrong" } else { "" };
    format!(
        "<tr class=\"stage\"><th scope=\"row\">{} <small>{}</small></th><td>{}</td><td class=\"gauge\">{load}</td>\
         <td class=\"n{starved}\">{} <small>{}</small></td><td>{}</td><td class=\"n\">{}</td><td class=\"gauge\">{}</td></tr>",
        cut(&line.name),
        cut(kind),
        if reads.is_empty() { "–".to_owned() } else { reads.join(", ") },
        numbers::rate(line.rate),
        cut(gives),
        spark(&line.trail, SECONDS),
        line.total.map_or("–".to_owned(), grouped),
        line.fill.map_or_else(String::new, filled)
    )
}

fn filled((value, capacity): (u64, u64)) -> String {
    format!(
        "{} of {} {}",
        numbers::brief(value),
        numbers::brief(capacity),
        bar(value as f64 / capacity.max(1) as f64, 0)
    )
}

fn of_queue(line: &Line) -> String {
    let dropped = match line.dropped {
        (0, _) => String::new(),
        (all, per_second) => {
            format!(" <span class=\"wrong\">dropped {} ({}/s)</span>", grouped(all), numbers::short(per_second))
        }
    };
    format!(
        "<tr class=\"queue\"><th scope=\"row\">{}{dropped}</th><td></td><td></td><td class=\"n\">{}</td><td></td><td class=\"n\">{}</td>\
         <td class=\"gauge\">{}</td></tr>",
        cut(&line.name),
        numbers::rate(line.rate),
        line.total.map_or("–".to_owned(), grouped),
        line.fill.map_or_else(String::new, filled)
    )
}

fn of_chips(chips: &[Chip]) -> String {
    let mut out = String::from("<tr class=\"chips\"><td colspan=\"7\"><ul>");
    for chip in chips.iter().take(CHIPS) {
        let _ = write!(out, "<li><span>{}</span> {}</li>", escape(&chip.name), cut(&chip.value));
    }
    out + "</ul></td></tr>"
}
