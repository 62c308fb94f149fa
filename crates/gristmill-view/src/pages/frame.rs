//! A frame as data -> a picture of it, what else is known, and one line for those who hear it. Reads nothing itself.

use std::fmt::Write;

use gristmill_format::layout::{DType, Layout};
use gristmill_jobs::inspect::{ChessView, DemoView, DrawnView, FrameView, StepView};

use super::picture::may_be;
use crate::draw::board::{self, Position};
use crate::draw::tiles::{self, Way};
use crate::html::{cut, escape, facts, number};
use crate::url::encoded;

/// Moves that the table of a position has, and elements of a field that are written out.
const MOVES: usize = 8;
const ELEMENTS: usize = 16;

/// A frame as a page shows it.
pub(super) struct Shown {
    /// HTML: the picture, and what stands beside it.
    pub(super) picture: String,
    pub(super) panel: String,
    /// One line.
    pub(super) says: String,
}

/// A frame; `address` gives the address of the picture of a field, `record` are its bytes.
pub(super) fn shown(
    view: &FrameView,
    (layout, record): (Option<&Layout>, &[u8]),
    address: &dyn Fn(&str) -> String,
) -> Shown {
    match view {
        FrameView::Chess(view) => chess(view),
        FrameView::G2048(view) => step(view),
        FrameView::Demo(view) => demo(view, layout, record, address),
        FrameView::Drawn(view) => drawn(view),
    }
}

fn chess(view: &ChessView) -> Shown {
    let position = Position::of(&view.fen);
    let moves: Vec<(&str, f32)> = view.moves.iter().map(|mv| (mv.uci.as_str(), mv.share)).collect();
    let mut says = format!("{} to move.", if view.side == "white" { "White" } else { "Black" });
    if let Some(played) = &view.played {
        let _ = write!(says, " Played {played}.");
    }
    if let Some(best) = view.best.as_ref().filter(|best| view.played.as_ref() != Some(best)) {
        let _ = write!(says, " Best {best}.");
    }
    let picture = board::svg(&position, view.played.as_deref(), &moves, &says)
        + &format!("<p class=\"heard\">{}</p>", escape(&position.words()));
    let word =
        |text: &Option<String>| text.as_ref().map_or("–".to_owned(), |text| format!("<code>{}</code>", escape(text)));
    let side = if view.side == "white" { "○ White" } else { "● Black" };
    let mut panel = facts(&[
        ("To move", side.to_owned()),
        ("Played", word(&view.played)),
        ("Best", word(&view.best)),
        ("Visits", number(f64::from(view.visits))),
        ("Legal moves", view.legal_moves.to_string()),
        ("Rule 50", view.rule50.to_string()),
    ]);
    if view.moves.iter().any(|mv| mv.share > 0.0) {
        panel.push_str("<table class=\"moves\"><caption>Policy</caption><tbody>");
        let most = view.moves.first().map_or(1.0, |mv| mv.share.max(1e-6));
        for mv in view.moves.iter().filter(|mv| mv.share > 0.0).take(MOVES) {
            let _ = write!(
                panel,
                "<tr><th scope=\"row\"><code>{}</code></th><td class=\"wide-bar\">{}</td><td class=\"n\">{:.1} %</td></tr>",
                escape(&mv.uci),
                bar(f64::from(mv.share / most)),
                mv.share * 100.0
            );
        }
        panel.push_str("</tbody></table>");
    }
    let known: Vec<_> = view.values.iter().filter(|row| [row.q, row.d, row.m].iter().any(|n| n.is_finite())).collect();
    if !known.is_empty() {
        panel.push_str(
            "<table class=\"numbers\"><caption>Values for the side to move</caption><thead><tr><td></td><th scope=\"col\">value</th>\
             <th scope=\"col\">draw</th><th scope=\"col\">plies left</th></tr></thead><tbody>",
        );
        for row in known {
            let _ = write!(panel, "<tr><th scope=\"row\">{}</th>", escape(row.name));
            for value in [row.q, row.d, row.m] {
                let _ = write!(panel, "<td class=\"n\">{}</td>", number(f64::from(value)));
            }
            panel.push_str("</tr>");
        }
        panel.push_str("</tbody></table>");
    }
    for flag in &view.flags {
        let _ = write!(panel, "<span class=\"flag\">{}</span>", escape(flag));
    }
    let _ = write!(panel, "<p class=\"fen\"><span>FEN</span> <code>{}</code></p>", escape(&view.fen));
    Shown { picture, panel, says }
}

fn bar(share: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"bar\" width=\"{:.2}\" height=\"8\" rx=\"1\"/></svg>",
        share.clamp(0.0, 1.0) * 100.0
    )
}

fn step(view: &StepView) -> Shown {
    let step = &view.step;
    let made = step.mv.unwrap_or_default();
    let ways: Vec<Way<'_>> =
        step.branches.iter().map(|branch| Way { name: branch.mv, ev: branch.ev, made: branch.mv == made }).collect();
    let words = tiles::words(&step.ranks);
    let says =
        format!("{}Step {}.", if made.is_empty() { String::new() } else { format!("Moved {made}. ") }, step.step_index);
    let picture = tiles::svg(&step.ranks, &ways, &says) + &format!("<p class=\"heard\">{words}.</p>");
    let sum: u64 = step.ranks.iter().filter(|rank| **rank > 0).map(|rank| 1u64 << rank.min(&40)).sum();
    let mut panel = facts(&[
        ("Step", step.step_index.to_string()),
        ("Move", if made.is_empty() { "–".to_owned() } else { made.to_owned() }),
        ("Value of the board", number(f64::from(step.board_eval))),
        ("Sum of tiles", number(sum as f64)),
        ("Values by", escape(step.valuation.unwrap_or("unknown"))),
    ]);
    let evs: Vec<f32> = step.branches.iter().filter_map(|branch| branch.ev).filter(|ev| ev.is_finite()).collect();
    let (least, most) = evs.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(a, b), ev| (a.min(*ev), b.max(*ev)));
    panel.push_str("<table class=\"moves\"><caption>Expected value of each move</caption><tbody>");
    for branch in &step.branches {
        let mark = if branch.mv == made { " class=\"made\"" } else { "" };
        let _ = match branch.ev {
            Some(ev) => write!(
                panel,
                "<tr{mark}><th scope=\"row\">{}</th><td class=\"wide-bar\">{}</td><td class=\"n\">{}</td></tr>",
                branch.mv,
                bar(if most > least { 0.08 + 0.92 * f64::from((ev - least) / (most - least)) } else { 1.0 }),
                number(f64::from(ev))
            ),
            None => write!(
                panel,
                "<tr class=\"illegal\"><th scope=\"row\">{}</th><td class=\"wide-bar\"></td><td class=\"n\">not legal</td></tr>",
                branch.mv
            ),
        };
    }
    panel.push_str("</tbody></table>");
    Shown { picture, panel, says }
}

fn demo(view: &DemoView, layout: Option<&Layout>, record: &[u8], address: &dyn Fn(&str) -> String) -> Shown {
    let mut picture = String::new();
    let mut panel = String::from("<table class=\"numbers\"><caption>Fields</caption><tbody>");
    let mut says = String::new();
    for value in &view.values {
        let field = layout.and_then(|layout| layout.field(&value.name));
        let name = escape(&value.name);
        // What a step leads to is the picture of the next one.
        let is_next =
            value.name.strip_prefix("next_").is_some_and(|name| layout.is_some_and(|all| all.field(name).is_some()));
        if field.is_some_and(may_be) && !is_next {
            let from = escape(&address(&encoded(&value.name)));
            let _ = write!(
                picture,
                "<figure class=\"seen\"><img src=\"{from}\" alt=\"{name} of this frame\"><figcaption>{name}</figcaption></figure>"
            );
        }
        let shape: Vec<String> = value.shape.iter().map(usize::to_string).collect();
        let kind = format!(
            "{}{}",
            value.dtype,
            if shape.is_empty() { String::new() } else { format!(" ({})", shape.join(", ")) }
        );
        let elements = field.filter(|field| field.count() <= ELEMENTS).and_then(|field| {
            let DType::Scalar(scalar, _) = field.dtype else { return None };
            let bytes = record.get(field.offset..field.offset + field.bytes())?;
            bytes
                .chunks_exact(scalar.size().max(1))
                .map(|one| scalar.number(one).map(number))
                .collect::<Option<Vec<_>>>()
        });
        let text = match (elements, value.min, value.max, value.mean) {
            (Some(elements), ..) => elements.join(" &nbsp;"),
            (None, Some(least), Some(most), Some(mean)) => {
                format!("{} … {} <small>mean {}</small>", number(least), number(most), number(mean))
            }
            _ => "–".to_owned(),
        };
        if value.shape.is_empty() && value.min.is_some() && says.len() < 160 {
            let _ = write!(says, "{} {}. ", value.name, number(value.min.unwrap_or_default()));
        }
        let _ = write!(
            panel,
            "<tr><th scope=\"row\">{name}<small>{}</small></th><td class=\"n\">{text}</td></tr>",
            cut(&kind)
        );
    }
    panel.push_str("</tbody></table>");
    Shown { picture, panel, says: says.trim_end().to_owned() }
}

fn drawn(view: &DrawnView) -> Shown {
    let picture = format!("<pre class=\"drawn\">{}</pre>", escape(&view.picture.join("\n")));
    let known: Vec<(&str, String)> = view.facts.iter().map(|(name, value)| (*name, escape(value))).collect();
    Shown { picture, panel: facts(&known), says: String::new() }
}
