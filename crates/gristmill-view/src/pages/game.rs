//! A game and a frame -> its page, or the part of it that changes from frame to frame: as HTML and as JSON.

use std::fmt::Write;

use gristmill_engine::sink::desk::Answer;
use gristmill_engine::sql::SqlValue;
use gristmill_format::error::plain;
use gristmill_jobs::inspect::{FrameView, Game};
use serde_json::json as value;

use super::pack::{ask, chosen};
use super::{Fault, Result, Room, charts, frame as frames, html_answer, json, known, marked};
use crate::assets::PIECES;
use crate::database::shown;
use crate::draw::bands::bands;
use crate::draw::curves::chart;
use crate::html::{cut, escape, grouped};
use crate::url::{Asked, encoded, query};

/// The game that a part of a path names.
pub(super) fn named(room: &Room<'_>, id: &str) -> Result<Game> {
    let place = number(id).ok().and_then(|id| room.shelf.place_of(id));
    let place = place.ok_or_else(|| Fault::new(404, format!("there is no game {id}")))?;
    Ok(room.shelf.game(place)?)
}

/// A number of a path.
pub(super) fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| Fault::new(404, format!("`{text}` is no number")))
}

/// A frame by itself: `N` as the part of a page, `N.json` as data.
pub(super) fn frame(room: &Room<'_>, id: &str, at: &str) -> Result<Answer> {
    let game = named(room, id)?;
    match at.strip_suffix(".json") {
        Some(at) => json(&room.shelf.frame(&game, number(at)?, true)?),
        None => Ok(html_answer(200, part(room, &game, number(at)?)?)),
    }
}

/// The part of the page that is of one frame.
fn part(room: &Room<'_>, game: &Game, at: u64) -> Result<String> {
    let (layout, record) = (room.shelf.layout(game)?, room.shelf.record(game, at)?);
    let address = |field: &str| format!("{}game/{}/picture/{at}/{field}.png", room.base, game.id);
    let shown = match room.shelf.drawn(game, at, &record, layout.as_ref(), false) {
        Ok(view) => {
            let mut shown = frames::shown(&view, (layout.as_ref(), &record), &address);
            if let (FrameView::Chess(view), Some(tables)) = (&view, &room.beside.tables)
                && let Some(verdict) = known::verdict(tables, &view.fen)
            {
                let _ = write!(shown.panel, "<p class=\"verdict\"><span>Tablebase</span> {}</p>", escape(&verdict));
                let _ = write!(shown.says, " Tablebase: {verdict}.");
            }
            shown
        }
        // One frame that cannot be drawn keeps nobody from the others.
        Err(e) => frames::Shown {
            picture: format!("<p class=\"wrong\">{}</p>", escape(&e.to_string())),
            panel: String::new(),
            says: "This frame cannot be drawn.".to_owned(),
        },
    };
    let says = format!("Frame {at} of 0 to {}. {}", game.frames.saturating_sub(1), shown.says);
    Ok(format!(
        "<section id=\"frame\"{} aria-label=\"Frame\" data-frame=\"{at}\" data-says=\"{}\"><div class=\"picture\">{}</div>\
         <div class=\"panel\">{}</div></section>",
        if shown.picture.is_empty() { " class=\"bare\"" } else { "" },
        escape(&says),
        shown.picture,
        shown.panel
    ))
}

/// The page of a game, or with `.json` its curves as data.
pub(super) fn page(room: &Room<'_>, id: &str, asked: &Asked) -> Result<Answer> {
    if let Some(id) = id.strip_suffix(".json") {
        let game = named(room, id)?;
        let curves = charts::curves(room, &game)?;
        let (id, frames, source) = (game.id, game.frames, &game.source);
        return json(
            &value!({ "game": id, "frames": frames, "source": source, "at": curves.at, "curves": curves.charts, "blunders": curves.blunders }),
        );
    }
    let game = named(room, id)?;
    let mut body = head(room, &game, asked);
    if game.frames == 0 {
        body.push_str("<p class=\"none\">This game has no frame.</p>");
        return Ok(whole(room, &game, &body));
    }
    let at = asked.number("frame").min(game.frames - 1);
    if matches!(room.shelf.frame(&game, at, false), Ok(FrameView::Chess(_))) {
        body.push_str(PIECES);
    }
    let _ = write!(
        body,
        "<div class=\"game\" data-game=\"{0}game/{1}/\" data-frames=\"{2}\">",
        room.base, game.id, game.frames
    );
    body.push_str(&part(room, &game, at)?);
    body.push_str(&controls(&game, at, asked));
    match charts::curves(room, &game) {
        Ok(curves) => {
            body.push_str("<div class=\"charts\">");
            let faults: Vec<u64> = curves.blunders.iter().map(|blunder| blunder.frame).collect();
            for (i, one) in curves.charts.iter().enumerate() {
                body.push_str(&chart(one, &curves.at, game.frames, at, if i == 0 { &faults } else { &[] }));
            }
            body.push_str("</div>");
            body.push_str(&known::blunders(&curves, &game, asked));
        }
        Err(fault) => {
            let _ = write!(body, "<p class=\"wrong\">No curves: {}</p>", escape(&fault.text));
        }
    }
    if let Ok(marks) = marked::bands(room, &game)
        && !marks.is_empty()
    {
        body.push_str(&bands("Marks", &marks, game.frames, at));
    }
    body.push_str("<p class=\"heard\" id=\"says\" role=\"status\" aria-live=\"polite\"></p></div>");
    body.push_str(&known::fed(room, &game));
    body.push_str(&said(room, &game));
    Ok(whole(room, &game, &body))
}

fn whole(room: &Room<'_>, game: &Game, body: &str) -> Answer {
    room.page_below(&format!("{} {}", room.game(), game.id), format!("{}game/{}", room.base, game.id), body)
}

fn head(room: &Room<'_>, game: &Game, asked: &Asked) -> String {
    let chosen = escape(&query(&chosen(asked)));
    let neighbours = match room.database {
        Some(database) => database.neighbours(game.id, &ask(asked, 1, 0)),
        None => [game.place.checked_sub(1), Some(game.place + 1).filter(|next| *next < room.shelf.len())]
            .map(|place| place.map(|place| place as u64)),
    };
    let name = room.game();
    let mut out = format!("<div class=\"heading\"><h1>{name} {}</h1><nav aria-label=\"Others\">", game.id);
    for (near, rel) in [(neighbours[0], "prev"), (neighbours[1], "next")] {
        if let Some(near) = near {
            let text = if rel == "prev" { format!("← {name} {near}") } else { format!("{name} {near} →") };
            let _ =
                write!(out, "<a data-game-{rel} rel=\"{rel}\" href=\"{}game/{near}{chosen}\">{text}</a>", room.base);
        }
    }
    if !chosen.is_empty() {
        let condition = asked.get("where");
        let of = if condition.is_empty() {
            format!("All {}", room.games().to_lowercase())
        } else {
            format!("{} where <code>{}</code>", room.games(), cut(condition))
        };
        let _ = write!(out, "<a data-list href=\"{}{chosen}\">↑ {of}</a>", room.base);
    }
    out.push_str("</nav></div>");
    if let Some(source) = &game.source {
        let _ = write!(
            out,
            "<p class=\"source\">{} frames of <code>{}</code></p>",
            grouped(game.frames),
            cut(&plain(source))
        );
    }
    out
}

/// Links to other frames, and a slider where there is JavaScript.
fn controls(game: &Game, at: u64, asked: &Asked) -> String {
    let last = game.frames - 1;
    let link = |to: u64, name: &str, sign: &str, key: &str| {
        let here = if to == at { " aria-disabled=\"true\"" } else { "" };
        let [condition, sort, way] = chosen(asked);
        let address = escape(&query(&[("frame", &to.to_string()), condition, sort, way]));
        format!("<a href=\"{address}\" data-step=\"{key}\" aria-label=\"{name}\" title=\"{name}\"{here}>{sign}</a>")
    };
    let kept: String = chosen(asked)
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("<input type=\"hidden\" name=\"{name}\" value=\"{}\">", escape(value)))
        .collect();
    format!(
        "<nav class=\"steps\" aria-label=\"Frames\">{}{}<button type=\"button\" data-play hidden aria-label=\"Play\" \
         title=\"Play (space)\">▶</button>{}{}<input type=\"range\" min=\"0\" max=\"{last}\" value=\"{at}\" aria-label=\"Frame\" \
         data-slider hidden><form method=\"get\">{kept}<label>Frame <input name=\"frame\" type=\"number\" min=\"0\" max=\"{last}\" \
         value=\"{at}\" data-number></label><span>of 0 to {}</span><button data-go>Go</button></form></nav>\
         <p class=\"keys\" hidden data-keys><kbd>←</kbd> <kbd>→</kbd> step · <kbd>PgUp</kbd> <kbd>PgDn</kbd> ten · \
         <kbd>Home</kbd> <kbd>End</kbd> ends · <kbd>space</kbd> play · <kbd>[</kbd> <kbd>]</kbd> other games<span data-flips> · <kbd>f</kbd> flip</span></p>",
        link(0, "First frame", "⇤", "first"),
        link(at.saturating_sub(1), "Frame before", "←", "back"),
        link((at + 1).min(last), "Frame after", "→", "on"),
        link(last, "Last frame", "⇥", "last"),
        grouped(last)
    )
}

/// What the database says of the game.
fn said(room: &Room<'_>, game: &Game) -> String {
    let Some(database) = room.database else { return String::new() };
    let Ok(row) = database.game(game.id) else { return String::new() };
    let mut out = String::from("<section class=\"said\"><h2>In the database</h2><dl class=\"facts\">");
    for ((name, _), value) in database.columns.iter().zip(&row).filter(|(_, value)| **value != SqlValue::Null) {
        let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), cut(&shown(value)));
    }
    let _ = write!(
        out,
        "</dl><p class=\"note\">As data: <a href=\"{0}game/{1}.json\">curves</a>, <a href=\"{0}game/{1}/frame/0.json\">a frame</a>, \
         <a href=\"{0}games.json?where={2}\">this row</a></p></section>",
        room.base,
        game.id,
        encoded(&format!("id = {}", game.id))
    );
    out
}
