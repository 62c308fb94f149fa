//! The status of a loader, without its stages -> parts of its page: certificate of the shuffle, ledger, bad chunks, errors of
//! reading, events, and fields of a newer loader that this version does not know.

use std::collections::BTreeMap;
use std::fmt::Write;

use gristmill_engine::pipeline::Status;
use gristmill_engine::runtime::events::{Event, Level};
use serde_json::Value;

use super::seen::Seen;
use crate::html::{cut, escape, grouped, number};
use crate::url::{Asked, query};
use crate::watch::numbers;

/// Events that are shown, and entries of other lists.
const EVENTS: usize = 200;
const LISTED: usize = 30;

/// The certificates of the shuffle, of one output or of all; empty if the loader made none.
pub(super) fn certificates(status: &Status, output: Option<&str>) -> String {
    let mut out = String::new();
    let chosen = status.certificates.iter().filter(|one| output.is_none_or(|alias| alias == one.output));
    for one in chosen.take(LISTED) {
        let name = if one.output.is_empty() { String::new() } else { format!(" of {}", cut(&one.output)) };
        let class = if matches!(one.level.as_str(), "weak" | "none") { " class=\"wrong\"" } else { "" };
        let _ = write!(
            out,
            "<section class=\"card\"><h2>Certificate of the shuffle{name}</h2><p{class}>{}</p></section>",
            escape(&one.says)
        );
    }
    out
}

/// The ledger that the loader writes; empty if it writes none.
pub(super) fn ledger(status: &Status) -> String {
    let Some(ledger) = &status.ledger else { return String::new() };
    let fault = ledger
        .fault
        .as_ref()
        .map_or_else(String::new, |fault| format!("<p class=\"wrong\">It cannot be written: {}</p>", cut(fault)));
    format!(
        "<section class=\"card\"><h2>Ledger</h2><p>{} batches noted in <code>{}</code></p>{fault}</section>",
        grouped(ledger.batches),
        escape(&ledger.path)
    )
}

/// Bad chunks, and files that cannot be read; empty where there are none.
pub(super) fn faults(status: &Status) -> String {
    let mut out = String::new();
    let bad = &status.bad_chunks;
    if bad.chunks > 0 || bad.report_fault.is_some() {
        let _ = write!(
            out,
            "<section class=\"card\"><h2>Bad chunks</h2><p>{} left out, {} in the quarantine report.</p>{}",
            grouped(bad.chunks),
            grouped(bad.quarantined),
            kinds(&bad.by_kind)
        );
        if let Some(fault) = &bad.report_fault {
            let _ = write!(out, "<p class=\"wrong\">The report cannot be written: {}</p>", cut(fault));
        }
        out.push_str("</section>");
    }
    let io = &status.io_errors;
    if io.waiting > 0 || !io.by_kind.is_empty() {
        let class = if io.waiting > 0 { " class=\"wrong\"" } else { "" };
        let _ = write!(
            out,
            "<section class=\"card\"><h2>Errors of reading</h2><p{class}>{} files cannot be read now.</p>{}<ul class=\"plain\">",
            grouped(io.waiting),
            kinds(&io.by_kind)
        );
        for why in io.latest.iter().take(LISTED) {
            let _ = write!(out, "<li>{}</li>", cut(why));
        }
        out.push_str("</ul></section>");
    }
    out
}

fn kinds(by_kind: &BTreeMap<String, u64>) -> String {
    let mut out = String::from("<ul class=\"plain\">");
    for (kind, count) in by_kind.iter().take(LISTED) {
        let _ = write!(out, "<li><code>{}</code> {}</li>", cut(kind), grouped(*count));
    }
    out + "</ul>"
}

/// What a newer loader says, as names and values.
pub(super) fn beyond(seen: &Seen) -> String {
    let mut out = String::new();
    for (name, value) in seen.beyond().take(LISTED) {
        let title = name.replace('_', " ");
        let _ = write!(out, "<section class=\"card\"><h2 class=\"named\">{}</h2><dl class=\"facts\">", cut(&title));
        match value {
            Value::Object(fields) => {
                for (name, value) in fields.iter().take(LISTED) {
                    let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", cut(&name.replace('_', " ")), said(value));
                }
            }
            value => {
                let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", cut(&title), said(value));
            }
        }
        out.push_str("</dl></section>");
    }
    out
}

fn said(value: &Value) -> String {
    match value {
        Value::String(text) => cut(text),
        Value::Number(own) => own.as_u64().map_or_else(|| number(own.as_f64().unwrap_or(f64::NAN)), grouped),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => "–".to_owned(),
        other => format!("<code>{}</code>", cut(&other.to_string())),
    }
}

/// Levels that may be asked for: what they are called, and the least that is shown.
const LEVELS: [(&str, &str, Level); 3] =
    [("", "All", Level::Info), ("warning", "Warnings and errors", Level::Warning), ("error", "Errors", Level::Error)];

/// What happened, the newest first.
pub(super) fn events(seen: &Seen, root: &str, asked: &Asked) -> String {
    let here = LEVELS.iter().find(|(name, ..)| *name == asked.get("level")).unwrap_or(&LEVELS[0]);
    let mut out = String::from("<h2 id=\"events\">Events</h2><nav class=\"levels\" aria-label=\"Events\">");
    for level in &LEVELS {
        let count = seen.events.iter().filter(|event| event.level >= level.2).count();
        let to = query(&[("output", asked.get("output")), ("level", level.0)]);
        let current = if level.0 == here.0 { " aria-current=\"true\"" } else { "" };
        let _ = write!(out, "<a href=\"{root}{}\"{current}>{} <small>{count}</small></a>", escape(&to), level.1);
    }
    out.push_str("</nav>");
    let mut shown = seen.events.iter().rev().filter(|event| event.level >= here.2).take(EVENTS).peekable();
    if shown.peek().is_none() {
        return out + "<p class=\"none\">None.</p>";
    }
    out.push_str("<ol class=\"events\">");
    shown.for_each(|event| out.push_str(&line(event)));
    out + "</ol>"
}

fn line(event: &Event) -> String {
    let (class, level) = match event.level {
        Level::Info => ("info", ""),
        Level::Warning => ("warning", "<span class=\"heard\">warning: </span>"),
        Level::Error => ("error", "<span class=\"heard\">error: </span>"),
    };
    let stage = event.stage.as_ref().map(|stage| format!("<strong>{}</strong> ", cut(stage))).unwrap_or_default();
    format!(
        "<li class=\"{class}\"><span class=\"at\">{}</span> <code>{}</code> {level}{stage}{}</li>",
        numbers::time(event.seconds),
        cut(&event.kind),
        escape(&event.message)
    )
}
