//! Training rows of KataGo: checked as they are decoded, drawn as a board with its best moves, counted by points and stones.

use std::collections::BTreeMap;

use gristmill_engine::error::Result;
use gristmill_format::Result as FormatResult;
use gristmill_format::katago::form::POLICY;
use gristmill_format::katago::row::{board, is_set};
use gristmill_format::katago::{Form, KIND};
use gristmill_format::layout::Layout;

use crate::work::drawn::DrawnView;
use crate::work::{Counting, FramePlace, FrameView, Opened, Work, layout_of};

/// How many of the best moves are shown.
const MOST_MOVES: usize = 5;

/// The letters of columns, as players use them: without I.
const COLUMNS: &[u8; 25] = b"ABCDEFGHJKLMNOPQRSTUVWXYZ";

pub(super) struct KataGo;

impl Work for KataGo {
    fn name(&self) -> &'static str {
        KIND
    }

    fn view(&self, place: FramePlace, layout: Option<&Layout>, record: &[u8]) -> FormatResult<FrameView> {
        let layout = layout_of(layout, record)?;
        let (form, found) = (Form::of(layout)?, board(layout, record));
        let edge = form.edge();
        let [on, own, other] = [0, 1, 2].map(|i| form.plane(i, record));
        let point = |at: usize| match () {
            () if is_set(own, at) => "X",
            () if is_set(other, at) => "O",
            () if is_set(on, at) => ".",
            () => " ",
        };
        let row = |y: usize| (0..edge).map(|x| point(y * edge + x)).collect::<Vec<_>>().join(" ");
        let picture = (0..edge).map(|y| row(y).trim_end().to_owned());
        let mut moves: Vec<(i16, usize)> = visits(&form, record).enumerate().map(|(at, many)| (many, at)).collect();
        let all: i64 = moves.iter().map(|(many, _)| i64::from(*many)).sum();
        moves.retain(|(many, _)| *many > 0);
        moves.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let named = moves.iter().take(MOST_MOVES);
        let named =
            named.map(|(many, at)| format!("{} {:.1} %", name(*at, edge), 100.0 * f64::from(*many) / all as f64));
        let facts = BTreeMap::from([
            ("seen by", "the side to move: X; rows and columns are those of the frame".to_owned()),
            ("board", format!("{} points in a frame of {edge} x {edge}", found.points)),
            ("stones", format!("{} own, {} of the other side", found.own, found.other)),
            ("moves", named.collect::<Vec<_>>().join(", ")),
        ]);
        Ok(FrameView::Drawn(Box::new(DrawnView { place, picture: picture.collect(), facts })))
    }

    fn count(&self, file: &Opened, counting: &mut dyn Counting) -> Result<()> {
        counting.chunks(file, &mut |chunk, counts| {
            let Some(layout) = chunk.layout.as_ref() else { return Ok(()) };
            let form = Form::of(layout)?;
            for frame in 0..chunk.frames {
                let record = chunk.record(frame);
                let found = board(layout, record);
                counts.add("points of the board", found.points.into());
                counts.add("stones on the board", (found.own + found.other).into());
                let moves = visits(&form, record).filter(|many| *many > 0).count();
                counts.add("moves with visits", moves as i64);
            }
            Ok(())
        })
    }
}

/// The visits of each move of the first policy.
fn visits(form: &Form, record: &[u8]) -> impl Iterator<Item = i16> {
    let all = form.bytes(POLICY, record).as_chunks::<2>().0;
    all.iter().take(form.points() + 1).map(|visits| i16::from_le_bytes(*visits))
}

/// A move by its column and row, counted from the lower left of the frame as players do.
fn name(at: usize, edge: usize) -> String {
    if at == edge * edge {
        return "pass".to_owned();
    }
    match COLUMNS.get(at % edge) {
        Some(column) => format!("{}{}", char::from(*column), edge - at / edge),
        None => format!("column {} row {}", at % edge, at / edge),
    }
}
