//! The repeated games of a pack -> a page with a group for each, and the same as JSON. Starts the search only when a request asks
//! for it, and shows its progress.

use std::fmt::Write;

use gristmill_engine::selection::Selection;
use gristmill_engine::sink::desk::Answer;
use gristmill_jobs::dedup::{Duplicates, Group, Relation};
use serde::Serialize;
use serde_json::json;

use super::pack::head;
use super::{Room, html_answer, lower, page_of, pager};
use crate::html::{Frame, cut, escape, facts, grouped, page};
use crate::search::Progress;
use crate::url::{Asked, query};

/// Groups on one page, games of a group that the page lists, and the most groups of a JSON document.
const EACH: u64 = 50;
const LISTED: usize = 50;
const MOST: u64 = 1000;

/// Seconds after which the page loads itself again while the search runs.
const AGAIN: u32 = 1;

fn progress(room: &Room<'_>, pack: &Selection, asked: &Asked) -> Progress {
    match asked.get("look") {
        "" => room.search.progress(),
        _ => room.search.ask(pack.pack()),
    }
}

/// The page.
pub(super) fn answer(room: &Room<'_>, pack: &Selection, asked: &Asked) -> Answer {
    let title = format!("Duplicates · {}", room.name());
    let mut out = head(room, pack, "Duplicates");
    let progress = progress(room, pack, asked);
    match &progress {
        Progress::Unasked => out.push_str(&unasked(room)),
        Progress::Reads(done, all) => {
            let _ = write!(
                out,
                "<p role=\"status\" data-again=\"{AGAIN}\">{} of {} games are read. This page loads itself again.</p>\
                 <progress max=\"{all}\" value=\"{done}\" aria-label=\"Games read\"></progress>",
                grouped(*done),
                grouped(*all)
            );
        }
        Progress::Found(found) => out.push_str(&groups(room, found, asked)),
        Progress::Failed(why) => {
            let _ = write!(out, "<p class=\"wrong\" role=\"alert\">{}</p>{}", escape(why), unasked(room));
        }
    }
    let again = matches!(progress, Progress::Reads(..)).then_some(AGAIN);
    html_answer(200, page(&Frame { root: room.root, title: &title, way: &room.way, again }, &out))
}

/// An explanation of the search, and the button that starts it.
fn unasked(room: &Room<'_>) -> String {
    format!(
        "<p>Which games are there more than once: to the byte, recorded otherwise, or as images of each other. Games \
         of which the pack does not know it are read; nothing is written.</p><form class=\"ask\" method=\"get\" action=\"{}duplicates\">\
         <button name=\"look\" value=\"yes\">Look for duplicates</button></form>",
        room.base
    )
}

/// The groups that the search found.
fn groups(room: &Room<'_>, found: &Duplicates, asked: &Asked) -> String {
    let mut out = facts(&[
        ("Different", grouped(found.different)),
        ("Again to the byte", grouped(found.exact)),
        ("Recorded otherwise", grouped(found.same)),
        ("Images", grouped(found.mirrored)),
        ("Frames of repeated games", grouped(found.frames)),
    ]);
    if found.groups.is_empty() {
        return out + "<p class=\"none\">Every game of this pack is there once.</p>";
    }
    let (number, total) = (page_of(asked), found.groups.len() as u64);
    let link =
        |number: u64| format!("{}duplicates{}", room.base, query(&[("look", "yes"), ("page", &number.to_string())]));
    let pages = if total > EACH { pager(number, EACH, total, &link) } else { String::new() };
    let _ = write!(
        out,
        "<p class=\"note\"><code>gristmill dedup PACK --mark NAME</code> marks all but the first of each group, and \
         <code>without(NAME)</code> leaves these out.</p>{pages}<div class=\"wide\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Duplicates\"><table><thead><tr><th scope=\"col\">game</th><th scope=\"col\">is</th>\
         <th scope=\"col\">source</th></tr></thead>"
    );
    for group in found.groups.iter().skip(usize::try_from(number * EACH).unwrap_or(usize::MAX)).take(EACH as usize) {
        out.push_str(&rows(room, group));
    }
    out + "</table></div>" + &lower(&pages)
}

/// The rows of a group.
fn rows(room: &Room<'_>, group: &Group) -> String {
    let mut out = String::from("<tbody class=\"group\">");
    let first = group.games.first().map_or(0, |game| game.id);
    for game in group.games.iter().take(LISTED) {
        let is = match game.relation {
            Relation::First => "the first".to_owned(),
            Relation::Exact => format!("game {first} to the byte"),
            Relation::Same => format!("game {first}, recorded otherwise"),
            Relation::Mirrored => format!("an image of game {first}"),
        };
        let (id, source) = (game.id, cut(game.source.as_deref().unwrap_or_default()));
        let _ = write!(
            out,
            "<tr><th scope=\"row\"><a href=\"{}game/{id}\">{id}</a></th><td>{is}</td><td>{source}</td></tr>",
            room.base
        );
    }
    if let Some(more) = group.games.len().checked_sub(LISTED).filter(|more| *more > 0) {
        let _ = write!(out, "<tr><td colspan=\"3\">and {} more</td></tr>", grouped(more as u64));
    }
    out + "</tbody>"
}

/// The page as JSON: the progress of the search, and its groups.
pub(super) fn data(room: &Room<'_>, pack: &Selection, asked: &Asked) -> impl Serialize + use<> {
    let most = match asked.number("most") {
        0 => EACH,
        most => most.min(MOST),
    };
    let first = usize::try_from(asked.number("first")).unwrap_or(usize::MAX);
    match progress(room, pack, asked) {
        Progress::Unasked => json!({ "search": "unasked" }),
        Progress::Reads(done, all) => json!({ "search": "reads", "done": done, "of": all }),
        Progress::Failed(why) => json!({ "search": "failed", "why": why }),
        Progress::Found(found) => {
            let groups: Vec<&Group> = found.groups.iter().skip(first).take(most as usize).collect();
            json!({
                "search": "found", "games": found.games, "different": found.different, "exact": found.exact,
                "same": found.same, "mirrored": found.mirrored, "frames": found.frames,
                "total": found.groups.len(), "groups": groups,
            })
        }
    }
}
