//! A game of a shelf -> a card of it for notebooks: the frame in the middle, what is known of it, and curves, with its own style and
//! nothing that runs. Reads one game.

use gristmill_jobs::inspect::{FrameView, Shelf};

use super::{Fault, Result, Room, charts, frame as frames, picture};
use crate::assets::{PIECES, card_style};
use crate::beside::Beside;
use crate::draw::board::{self, Position};
use crate::draw::curves::chart;
use crate::html::{cut, escape, grouped};
use crate::search::Search;
use crate::url::{base64, encoded};

/// Charts of a card, and the largest picture in it.
const CHARTS: usize = 4;
const LARGEST: usize = 512 << 10;

/// The card of the game at a place of the shelf.
pub(crate) fn card(shelf: &Shelf, place: usize) -> Result<String> {
    let (search, beside) = (Search::default(), Beside::default());
    let (root, base, way) = ("", String::new(), Vec::new());
    let room = Room { root, base, way, shelf, database: None, search: &search, beside: &beside };
    let game = shelf.game(place)?;
    if game.frames == 0 {
        return Err(Fault::new(404, "a game without frames"));
    }
    let at = game.frames / 2;
    let (layout, record) = (shelf.layout(&game)?, shelf.record(&game, at)?);
    let view = shelf.drawn(&game, at, &record, layout.as_ref(), false)?;
    let address = |name: &str| {
        let fields = layout.as_ref().map_or(&[][..], |layout| layout.fields());
        let field = fields.iter().find(|field| encoded(&field.name) == name);
        let png = field.and_then(|field| picture::of(field, &record).ok()).filter(|png| png.len() <= LARGEST);
        format!("data:image/png;base64,{}", base64(&png.unwrap_or_default()))
    };
    let shown = frames::shown(&view, (layout.as_ref(), &record), &address);
    let curves = charts::curves(&room, &game)?;
    let charts: String =
        curves.charts.iter().take(CHARTS).map(|one| chart(one, &curves.at, game.frames, at, &[])).collect();
    let source = game.source.as_ref().map_or_else(String::new, |source| format!(" of {}", cut(source)));
    let title = format!("{} {}, frame {at} of {}{source}", room.game(), game.id, grouped(game.frames));
    let pieces = if matches!(view, FrameView::Chess(_)) { PIECES } else { "" };
    let body = format!(
        "<div class=\"frame\"><div class=\"picture\">{}</div><div class=\"panel\">{}</div></div><div class=\"charts\">{charts}</div>",
        shown.picture, shown.panel
    );
    Ok(wrapped(&title, pieces, &body))
}

/// The card of a position of chess, with arrows for the moves that share most, given in that order.
pub(crate) fn position(fen: &str, moves: &[(&str, f32)], title: &str) -> String {
    let drawn = board::svg(&Position::of(fen), None, moves, title);
    let body = format!("<div class=\"frame\"><div class=\"picture\">{drawn}</div></div>");
    wrapped(&escape(title), PIECES, &body)
}

fn wrapped(title: &str, pieces: &str, body: &str) -> String {
    format!(
        "<div class=\"gristmill-card\"><style>{}</style>{pieces}<p class=\"title\">{title}</p>{body}</div>",
        card_style()
    )
}
