//! A game, and what is known beside it -> what tables say of a position, in which batches of a run it is, and which moves gave much away.

use std::fmt::Write;

use gristmill_engine::tablebase::Syzygy;
use gristmill_jobs::inspect::Game;
use gristmill_plans::when::{By, Fed, Times, Wanted, WhenOptions, when};

use super::charts::{Blunder, Curves};
use super::pack::chosen;
use super::{Fault, Result, Room};
use crate::html::{cut, escape, grouped, number};
use crate::url::{Asked, query};

/// Lines of each list.
const LISTED: usize = 200;

/// What the tables say of a position, in a line; none where it has too many men for them.
pub(super) fn verdict(tables: &Syzygy, fen: &str) -> Option<String> {
    let men = fen.split(' ').next().unwrap_or_default().chars().filter(char::is_ascii_alphabetic).count();
    if men > tables.coverage().most_men {
        return None;
    }
    let (value, plies) = match tables.probe(fen, true) {
        Ok(found) => found,
        Err(e) => return Some(format!("not in the tables ({e})")),
    };
    let word = match value {
        2.. => "the side to move wins",
        1 => "a win that the 50-move rule makes a draw",
        0 => "a draw",
        -1 => "a loss that the 50-move rule makes a draw",
        _ => "the side to move loses",
    };
    let plies = plies.filter(|plies| value != 0 && *plies != 0);
    Some(plies.map_or_else(
        || word.to_owned(),
        |plies| format!("{word}; {} plies to the next capture or pawn move", plies.unsigned_abs()),
    ))
}

/// Moves that gave much away, as links; empty where there are none, and of data without values of moves.
pub(super) fn blunders(curves: &Curves, game: &Game, asked: &Asked) -> String {
    let Some(rule) = curves.rule.filter(|_| !curves.blunders.is_empty()) else { return String::new() };
    let part = match (curves.at.len() as u64) < game.frames {
        true => format!(" Looked for in {} of {} frames.", grouped(curves.at.len() as u64), grouped(game.frames)),
        false => String::new(),
    };
    let mut out = format!(
        "<section class=\"said\"><h2>Blunders</h2><p class=\"note\">{rule}{part}</p><ol class=\"plain blunders\">"
    );
    for Blunder { frame, made, best, value, best_value } in curves.blunders.iter().take(LISTED) {
        let [condition, sort, way] = chosen(asked);
        let to = escape(&query(&[("frame", &frame.to_string()), condition, sort, way]));
        let _ = write!(
            out,
            "<li><a href=\"{to}\">Frame {frame}</a> {} instead of {}: {} instead of {}</li>",
            escape(made),
            escape(best),
            number(*value),
            number(*best_value)
        );
    }
    out + "</ol></section>"
}

/// When the game is fed in the run of the state that the view was given.
///
/// Errors: 404 where there is no state or no pack; those of a state that is of another pack, or of a stream.
pub(super) fn times(room: &Room<'_>, game: &Game) -> Result<Times> {
    let state = room.beside.state.as_ref().filter(|_| room.shelf.pack().is_some());
    let state =
        state.ok_or_else(|| Fault::new(404, "no state of a run was given: gristmill view PACK --state FILE"))?;
    let wanted = Wanted { game: game.id.to_string(), ..Wanted::default() };
    let (pack, by) = (room.shelf.path().to_owned(), By::State(state.clone()));
    Ok(when(&WhenOptions { packs: vec![pack], by, wanted })?)
}

/// The same as a part of a page; empty without a state.
pub(super) fn fed(room: &Room<'_>, game: &Game) -> String {
    if room.beside.state.is_none() || room.shelf.pack().is_none() {
        return String::new();
    }
    let mut out = String::from("<section class=\"said\"><h2>In the run</h2>");
    let times = match times(room, game) {
        Ok(times) => times,
        Err(fault) => return out + &format!("<p class=\"wrong\">{}</p></section>", escape(&fault.text)),
    };
    if times.times.is_empty() {
        return out + "<p class=\"none\">Its frames are not among those of the run.</p></section>";
    }
    if let Some(next) = times.next_batch {
        let _ = write!(out, "<p class=\"note\">The next batch is {}.</p>", grouped(next));
    }
    out.push_str(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"In the run\"><table><thead><tr><th scope=\"col\">epoch</th>\
         <th scope=\"col\">batch</th><th scope=\"col\">frames</th><th scope=\"col\">state</th></tr></thead><tbody>",
    );
    let together = times.times.chunk_by(|a, b| (a.epoch, a.batch) == (b.epoch, b.batch));
    for group in together.take(LISTED) {
        let plies: Vec<String> = group.iter().take(20).map(|time| time.ply.to_string()).collect();
        let word = match group[0].fed {
            Some(Fed::Was) => "was fed",
            Some(Fed::WillBe) => "will be fed",
            Some(Fed::LeftOut) => "is left out",
            Some(Fed::Dropped) => "is dropped at the end of the epoch",
            None => "",
        };
        let _ = write!(
            out,
            "<tr><td>{}</td><th scope=\"row\">{}</th><td>{}{}</td><td>{word}</td></tr>",
            grouped(group[0].epoch),
            group[0].batch.map_or("–".to_owned(), grouped),
            cut(&plies.join(", ")),
            if group.len() > plies.len() { ", …" } else { "" }
        );
    }
    out + "</tbody></table></div></section>"
}
