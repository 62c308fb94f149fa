//! A game -> curves of its numbers over its frames. Reads long games in part, evenly spaced, and a bounded number of bytes at a time.

use gristmill_format::layout::{DType, Field, Layout};
use gristmill_jobs::inspect::{ChessView, FrameView, Game, StepView};

use serde::Serialize;

use super::picture::is_number;
use super::{Result, Room};
use crate::draw::curves::{Chart, sampled};

/// Most frames that are read for curves, most bytes of them, and most bytes at once.
const FRAMES: u64 = 800;
const BYTES: u64 = 256 << 20;
const AT_ONCE: usize = 8 << 20;

/// Fewest frames of a game of large records.
const FEWEST: u64 = 32;

/// Charts of fields, and elements of a field that are drawn.
const CHARTS: usize = 12;
const ELEMENTS: usize = 6;

/// Curves, and the frames that they were read at.
pub(super) struct Curves {
    pub(super) at: Vec<u64>,
    pub(super) charts: Vec<Chart>,
    /// Moves that gave much away, and in words how much is much, where moves have values.
    pub(super) blunders: Vec<Blunder>,
    pub(super) rule: Option<&'static str>,
}

/// A move that gave much away.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Blunder {
    pub(super) frame: u64,
    /// The move that was made and the best one, and what they were worth for the side to move.
    pub(super) made: String,
    pub(super) best: String,
    pub(super) value: f64,
    pub(super) best_value: f64,
}

/// What a move of chess may give away, of a value from -1 to 1, and one of 2048, as a share of the best expected value.
const CHESS_LOSS: f64 = 0.2;
const G2048_LOSS: f64 = 0.01;
const CHESS_RULE: &str = "Moves worth at least 0.2 less than the best one, by the search, on the scale from −1 to 1.";
const G2048_RULE: &str = "Moves whose expected value is at least 1 % below that of the best one.";

/// The curves of a game.
///
/// Errors: those of frames that cannot be read.
pub(super) fn curves(room: &Room<'_>, game: &Game) -> Result<Curves> {
    let layout = room.shelf.layout(game)?;
    let size = layout.as_ref().map_or(1, Layout::size).max(1);
    let at = sampled(game.frames, (BYTES / size as u64).clamp(FEWEST, FRAMES));
    let (mut charts, mut blunders): (Option<Charts>, Vec<Blunder>) = (None, Vec::new());
    let mut rule = None;
    for frames in at.chunks((AT_ONCE / size).clamp(1, at.len().max(1))) {
        let records = room.shelf.records(game, frames)?;
        for (frame, record) in frames.iter().zip(records.chunks_exact(size)) {
            match charts.as_mut().filter(|charts| charts.is_of_fields()) {
                Some(charts) => charts.elements(record),
                None => {
                    let view = room.shelf.drawn(game, *frame, record, layout.as_ref(), false)?;
                    rule = rule.or(match &view {
                        FrameView::Chess(_) => Some(CHESS_RULE),
                        FrameView::G2048(_) => Some(G2048_RULE),
                        _ => None,
                    });
                    blunders.extend(blunder(&view, *frame));
                    charts.get_or_insert_with(|| Charts::of(&view, layout.as_ref())).push(&view, record);
                }
            }
        }
    }
    let charts = charts.map(|charts| charts.charts).unwrap_or_default();
    let charts = charts.into_iter().map(Chart::tidied).filter(|chart| !chart.is_empty()).collect();
    Ok(Curves { at, charts, blunders, rule })
}

/// The move of a frame, where it gave much away.
fn blunder(view: &FrameView, frame: u64) -> Option<Blunder> {
    let (made, best, value, best_value, most) = match view {
        FrameView::Chess(view) => {
            let of = |name: &str| view.values.iter().find(|row| row.name == name).map(|row| f64::from(row.q));
            (view.played.clone()?, view.best.clone()?, of("played")?, of("best")?, CHESS_LOSS)
        }
        FrameView::G2048(view) => {
            let legal = view.step.branches.iter().filter_map(|branch| Some((branch.mv, f64::from(branch.ev?))));
            let best = legal.clone().max_by(|a, b| a.1.total_cmp(&b.1))?;
            let made = legal.clone().find(|(mv, _)| Some(*mv) == view.step.mv)?;
            (made.0.to_owned(), best.0.to_owned(), made.1, best.1, G2048_LOSS * best.1.abs())
        }
        _ => return None,
    };
    // What is no number is no loss.
    (made != best && best_value - value >= most).then_some(Blunder { frame, made, best, value, best_value })
}

/// Charts, and the fields that each is of, where it is of one.
struct Charts {
    charts: Vec<Chart>,
    fields: Vec<Field>,
}

impl Charts {
    fn of(view: &FrameView, layout: Option<&Layout>) -> Self {
        let (mut charts, mut fields) = (Vec::new(), Vec::new());
        match view {
            FrameView::Chess(_) => {
                charts.push(Chart::new("Value for White", Some([-1.0, 1.0]), &["search", "best", "result"]));
                charts.push(Chart::new("Draw probability", Some([0.0, 1.0]), &["search", "best", "result"]));
                charts.push(Chart::new("Plies left", Some([0.0, 0.0]), &["search", "best", "result"]));
            }
            FrameView::G2048(_) => {
                charts.push(Chart::new("Expected value", None, &["best move", "move made"]));
                charts.push(Chart::new("Value of the board", None, &["value"]));
                charts.push(Chart::new("Legal moves", Some([0.0, 4.0]), &["legal moves"]));
            }
            FrameView::Demo(_) => {
                let all = layout.map_or(&[][..], Layout::fields);
                // What a step leads to is the value of the next one.
                let is_next = |name: &str| {
                    name.strip_prefix("next_").is_some_and(|name| all.iter().any(|field| field.name == name))
                };
                let plain = |field: &&Field| {
                    (1..=ELEMENTS).contains(&field.count()) && !is_next(&field.name) && is_number(field)
                };
                for field in all.iter().filter(plain).take(CHARTS) {
                    let names: Vec<String> = (0..field.count()).map(|i| i.to_string()).collect();
                    charts.push(Chart::new(&field.name, None, &names.iter().map(String::as_str).collect::<Vec<_>>()));
                    fields.push(field.clone());
                }
            }
            FrameView::Drawn(_) => {}
        }
        Charts { charts, fields }
    }

    fn push(&mut self, view: &FrameView, record: &[u8]) {
        match view {
            FrameView::Chess(view) => self.rows(&chess(view)),
            FrameView::G2048(view) => self.rows(&step(view)),
            FrameView::Demo(_) => self.elements(record),
            FrameView::Drawn(_) => {}
        }
    }

    /// Whether records need not be drawn for their numbers: each chart is of a field.
    fn is_of_fields(&self) -> bool {
        !self.fields.is_empty()
    }

    fn elements(&mut self, record: &[u8]) {
        let rows: Vec<Vec<f64>> = self.fields.iter().map(|field| elements(field, record)).collect();
        self.rows(&rows);
    }

    fn rows(&mut self, rows: &[impl AsRef<[f64]>]) {
        self.charts.iter_mut().zip(rows).for_each(|(chart, row)| chart.push(row.as_ref()));
    }
}

/// Values as White sees them, draws and plies left: of the search, of the best move, of the game's result.
fn chess(view: &ChessView) -> [[f64; 3]; 3] {
    let sign = if view.side == "white" { 1.0 } else { -1.0 };
    let row = |name: &str| view.values.iter().find(|row| row.name == name);
    let rows = ["root", "best", "result"].map(row);
    [
        rows.map(|row| row.map_or(f64::NAN, |row| sign * f64::from(row.q))),
        rows.map(|row| row.map_or(f64::NAN, |row| f64::from(row.d))),
        rows.map(|row| row.map_or(f64::NAN, |row| f64::from(row.m))),
    ]
}

fn step(view: &StepView) -> [Vec<f64>; 3] {
    let step = &view.step;
    let ev = |branch: &gristmill_jobs::inspect::BranchView| branch.ev.map(f64::from);
    let best = step.branches.iter().filter_map(ev).fold(f64::NAN, f64::max);
    let made = step.branches.iter().find(|branch| Some(branch.mv) == step.mv).and_then(ev).unwrap_or(f64::NAN);
    let legal = step.branches.iter().filter(|branch| branch.ev.is_some()).count();
    [vec![best, made], vec![f64::from(step.board_eval)], vec![legal as f64]]
}

/// The elements of a field as numbers.
fn elements(field: &Field, record: &[u8]) -> Vec<f64> {
    let DType::Scalar(scalar, _) = field.dtype else { return Vec::new() };
    let bytes = record.get(field.offset..field.offset + field.bytes()).unwrap_or_default();
    bytes.chunks_exact(scalar.size().max(1)).map(|one| scalar.number(one).unwrap_or(f64::NAN)).collect()
}
