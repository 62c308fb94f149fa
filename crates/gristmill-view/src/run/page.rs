//! What is known of a run -> its page: how it is, who waits for whom, the stages, what went wrong, what happened. The page and the
//! part of it that a script renews are the same text.

use std::fmt::Write;

use gristmill_engine::pipeline::{OutputStatus, RunState, Status};

use super::seen::Seen;
use super::{stages, told};
use crate::draw::spark::{bar, spark};
use crate::html::{bytes, cut, escape, facts};
use crate::url::{Asked, query};
use crate::watch::headline::{Waits, headline};
use crate::watch::numbers;

/// Seconds that curves show.
pub(super) const SECONDS: usize = 60;

/// Outputs that are listed.
const OUTPUTS: usize = 50;

/// How the run is, in a word or two.
pub(super) fn state(seen: &Seen) -> &'static str {
    match (seen.fault().is_some(), seen.latest.state) {
        (_, RunState::Stopped) => "stopped",
        (_, RunState::Ended) => "ended",
        (true, _) => "no answer",
        (false, RunState::Running) => "running",
        (false, RunState::Other) => "in a state of its own",
    }
}

/// The page without what surrounds it.
pub(super) fn whole(seen: &Seen, address: &str, root: &str, asked: &Asked) -> String {
    format!(
        "<div class=\"run\" data-run=\"{root}run\"><p class=\"wrong\" id=\"gone\" role=\"alert\" hidden></p>{}\
         <p class=\"heard\" id=\"says\" role=\"status\" aria-live=\"polite\"></p>\
         <p class=\"keys\" hidden data-keys><button type=\"button\" data-pause aria-pressed=\"false\">Hold still</button> \
         <kbd>p</kbd> holds it still · as data: <a href=\"{root}run.json\">run.json</a></p>\
         <noscript><p class=\"note\">This page loads itself again. As data: <a href=\"{root}run.json\">run.json</a></p></noscript></div>",
        part(seen, address, root, asked)
    )
}

/// What is renewed.
pub(super) fn part(seen: &Seen, address: &str, root: &str, asked: &Asked) -> String {
    let status = &seen.latest;
    let output = status.outputs.iter().map(|output| output.alias.as_str()).find(|own| *own == asked.get("output"));
    let output = output.filter(|_| status.outputs.len() > 1);
    let mut out = format!(
        "<section id=\"run\" aria-label=\"The run\" data-state=\"{0}\"{1}><h1>Run at {2} <span class=\"state {3}\">{0}</span></h1>",
        state(seen),
        if seen.is_live() { "" } else { " class=\"still\"" },
        escape(address),
        if seen.is_live() { "live" } else { "over" }
    );
    out.push_str(&notice(seen));
    out.push_str(&head(seen, output));
    out.push_str(&choice(status, output, root, asked));
    out.push_str("<div class=\"spreads\">");
    for one in status.outputs.iter().filter(|one| output.is_none_or(|alias| alias == one.alias)).take(OUTPUTS) {
        out.push_str(&waits(one, status.outputs.len() > 1));
    }
    out.push_str(&told::certificates(status, output));
    out.push_str(&told::ledger(status));
    out.push_str(&told::faults(status));
    out.push_str(&told::beyond(seen));
    out.push_str("</div>");
    out.push_str(&stages::table(seen, output));
    out.push_str(&told::events(seen, root, asked));
    out + "</section>"
}

/// What is said where the numbers are not those of now.
fn notice(seen: &Seen) -> String {
    let ago = |seconds: f64| numbers::time(seconds);
    match (seen.fault().zip(seen.silent_for()), seen.latest.state) {
        (Some((why, silent)), RunState::Running | RunState::Other) => format!(
            "<p class=\"wrong\" role=\"alert\">The loader does not answer since {}: {}. These are its last numbers.</p>",
            ago(silent),
            escape(why)
        ),
        (Some(_), RunState::Stopped) => {
            "<p class=\"over\">The loader was stopped, and has gone. These are its last numbers.</p>".to_owned()
        }
        (Some(_), RunState::Ended) => {
            "<p class=\"over\">Every output has ended, and the loader has gone. These are its last numbers.</p>"
                .to_owned()
        }
        (None, RunState::Stopped) => {
            "<p class=\"over\">The loader was stopped. These are its last numbers.</p>".to_owned()
        }
        (None, RunState::Ended) => "<p class=\"over\">Every output has ended: no batch is left.</p>".to_owned(),
        (None, _) if seen.is_another => "<p class=\"note\">Another loader answers here now than before.</p>".to_owned(),
        (None, _) => String::new(),
    }
}

/// How the run does.
fn head(seen: &Seen, output: Option<&str>) -> String {
    let status = &seen.latest;
    let found = headline(status, &seen.history, output);
    let waits = match &found.waits {
        Waits::Trainer(stall, cause) => {
            format!("the trainer, {:.0} % of the time; limit: <strong>{}</strong>", 100.0 * stall, escape(cause))
        }
        Waits::Loader => "the loader; limit: <strong>the trainer</strong>".to_owned(),
        Waits::Nobody => "nobody".to_owned(),
        Waits::Over => "nothing runs".to_owned(),
    };
    let rate = format!(
        "{} <small>of the last minute</small> {}",
        numbers::rate(found.positions),
        spark(&found.trail, SECONDS)
    );
    let limited = match status.limited_by_since_start.as_str() {
        "" => "–".to_owned(),
        cause => format!("{:.0} %, limit: {}", 100.0 * status.stall_since_start, escape(cause)),
    };
    facts(&[
        ("Positions a second", rate),
        ("Who waits now", waits),
        ("Stall since the start", limited),
        ("Memory", found.memory.map_or("–".to_owned(), bytes)),
        ("Up", numbers::time(status.uptime_seconds)),
        ("Seed", status.seed.to_string()),
        ("Process", status.process.to_string()),
        ("gristmill", cut(&status.gristmill)),
    ])
}

/// Links to all outputs and to each, where there are several.
fn choice(status: &Status, output: Option<&str>, root: &str, asked: &Asked) -> String {
    if status.outputs.len() < 2 {
        return String::new();
    }
    let link = |alias: Option<&str>, ended: bool| {
        let here = if alias == output { " aria-current=\"page\"" } else { "" };
        let to = query(&[("output", alias.unwrap_or_default()), ("level", asked.get("level"))]);
        let name =
            alias.map_or("All outputs".to_owned(), |alias| cut(if alias.is_empty() { "(unnamed)" } else { alias }));
        format!("<a href=\"{root}{}\"{here}>{name}{}</a>", escape(&to), if ended { " (ended)" } else { "" })
    };
    let mut out = format!("<nav class=\"tabs\" aria-label=\"Outputs\">{}", link(None, false));
    for one in status.outputs.iter().take(OUTPUTS) {
        out.push_str(&link(Some(&one.alias), one.ended));
    }
    out + "</nav>"
}

/// What helps where a cause limits.
fn advice(cause: &str) -> &'static str {
    match cause {
        "trainer" => "The loader is ahead: a faster trainer would use it.",
        "storage" => "Batches wait for stored bytes: more io_threads, a nearer disk, or a pack.",
        "gather" => "Batches wait for rows of a pack: threads, shuffling in blocks, or rows in memory.",
        "decode" => "Batches wait for chunks to be decoded: threads, or a pack.",
        "copy" => "Batches wait for rows on their way into the reservoir: threads, or a smaller reservoir.",
        "encode" => "Batches wait for tensors to be written: threads, or fewer tensors.",
        "core" => "Other threads had all cores: fewer programs beside it, or more cores.",
        "handoff" => "Batches were ready and on their way: larger batches.",
        "pool" => "Batches wait for the first scan, the first game or a full reservoir: time, or a smaller reservoir.",
        "arrivals" => {
            "The pool's rate_limit allows no more draws of the games that came: more games, or more draws of each."
        }
        _ => "",
    }
}

/// Where the time of an output went.
fn waits(output: &OutputStatus, is_one_of_many: bool) -> String {
    let waits = &output.waits;
    let name = match (is_one_of_many, output.alias.as_str()) {
        (false, _) => String::new(),
        (true, "") => " of (unnamed)".to_owned(),
        (true, alias) => format!(" of {}", cut(alias)),
    };
    let mut out = format!("<section class=\"card\"><h2>Where the time{name} went</h2>");
    let all: f64 = waits.waits.iter().map(|waited| waited.seconds).sum();
    if waits.waits.is_empty() || all <= 0.0 {
        return out + "<p class=\"none\">No batch was wanted yet.</p></section>";
    }
    out.push_str(
        "<table class=\"waits\"><thead><tr><th scope=\"col\">waited for</th><th scope=\"col\">last second</th>\
         <td></td><th scope=\"col\">since the start</th></tr></thead><tbody>",
    );
    for waited in waits.waits.iter().filter(|waited| waited.seconds > 0.0).take(20) {
        let limits = waited.cause == waits.limited_by;
        let color = usize::from(waited.cause != "trainer");
        let _ = write!(
            out,
            "<tr{}><th scope=\"row\">{}</th><td class=\"n\">{:.0} %</td><td class=\"wide-bar\">{}</td><td class=\"n\">{:.0} %</td></tr>",
            if limits { " class=\"limit\"" } else { "" },
            cut(&waited.cause),
            100.0 * waited.per_second.clamp(0.0, 1.0),
            bar(waited.per_second, color),
            100.0 * waited.seconds / all
        );
    }
    let _ = write!(out, "</tbody></table><p class=\"note\">{}</p></section>", advice(&waits.limited_by));
    out
}
