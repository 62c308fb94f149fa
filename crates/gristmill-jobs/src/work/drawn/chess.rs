//! A chess record -> its position, moves and values as data. Judges nothing.

use gristmill_format::chess::{Board, Frame, policy};
use serde::Serialize;

use super::FramePlace;

/// How many moves of a frame are shown in short.
const MOVES_SHOWN: usize = 8;

/// One chess position as data.
#[derive(Debug, Clone, Serialize)]
pub struct ChessView {
    /// Where it is.
    #[serde(flatten)]
    pub place: FramePlace,
    /// Record version, after any upgrade.
    pub version: u32,
    /// Stored value of the input format.
    pub input_format: u32,
    /// The position.
    pub fen: String,
    /// The position drawn with chess symbols, and with letters.
    #[serde(skip)]
    pub drawings: [String; 2],
    /// Side to move: `white` or `black`.
    pub side: &'static str,
    /// Plies since the last capture or pawn move.
    pub rule50: u8,
    /// How many moves are legal.
    pub legal_moves: usize,
    /// The legal moves, most visited first; in short the first eight.
    pub moves: Vec<MoveView>,
    /// The move played and the best move; absent where the data has none.
    pub played: Option<String>,
    /// See `played`.
    pub best: Option<String>,
    /// Rows of expected result, draw probability and plies left; `null` where unknown.
    pub values: Vec<ValueRow>,
    /// Search visits.
    pub visits: u32,
    /// Divergence of visits from policy, in nats.
    pub policy_kld: f32,
    /// Whether the best move is proven, the game was cut, adjudicated, the frame is marked as deleted.
    pub flags: Vec<&'static str>,
}

/// One legal move.
#[derive(Debug, Clone, Serialize)]
pub struct MoveView {
    /// In UCI letters as White sees the board; castling is king takes rook.
    pub uci: String,
    /// Policy index.
    pub index: u16,
    /// Share of the visits.
    pub share: f32,
}

/// One row of values, as the side to move sees it.
#[derive(Debug, Clone, Serialize)]
pub struct ValueRow {
    /// `result`, `best`, `played`, `orig`, `root` or `st`.
    pub name: &'static str,
    /// Expected result.
    pub q: f32,
    /// Draw probability.
    pub d: f32,
    /// Plies left.
    pub m: f32,
}

/// The view of one record.
///
/// Errors: what cannot be drawn: two pieces on a square, an unknown input format.
pub(crate) fn view(place: FramePlace, record: &[u8]) -> gristmill_format::Result<ChessView> {
    let frame = Frame::new(record)?;
    let board = Board::from_frame(&frame)?;
    let uci = |index: u16| board.uci(index).unwrap_or_else(|| "?".to_owned());
    let mut moves: Vec<(u16, f32)> = (0..).zip(frame.probabilities()).filter(|(_, p)| *p >= 0.0).collect();
    let legal_moves = moves.len();
    moves.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    if place.record.is_none() {
        moves.truncate(MOVES_SHOWN);
    }
    let searched = frame.visits() > 0;
    Ok(ChessView {
        place,
        version: frame.version(),
        input_format: frame.input_format_value(),
        fen: board.fen(),
        drawings: [board.draw(), board.draw_ascii()],
        side: if board.black_to_move { "black" } else { "white" },
        rule50: frame.rule50_count(),
        legal_moves,
        moves: moves.iter().map(|&(index, share)| MoveView { uci: uci(index), index, share }).collect(),
        played: (searched && policy::entry(frame.played_idx()).is_some()).then(|| uci(frame.played_idx())),
        best: (searched && policy::entry(frame.best_idx()).is_some()).then(|| uci(frame.best_idx())),
        values: values(frame),
        visits: frame.visits(),
        policy_kld: frame.policy_kld(),
        flags: flags(frame.invariance_info()),
    })
}

fn values(frame: Frame<'_>) -> Vec<ValueRow> {
    let row = |name, q, d, m| ValueRow { name, q, d, m };
    let mut rows = vec![
        row("result", frame.result_q(), frame.result_d(), frame.plies_left()),
        row("best", frame.best_q(), frame.best_d(), frame.best_m()),
        row("played", frame.played_q(), frame.played_d(), frame.played_m()),
        row("orig", frame.orig_q(), frame.orig_d(), frame.orig_m()),
        row("root", frame.root_q(), frame.root_d(), frame.root_m()),
    ];
    if frame.version() >= 7 {
        rows.push(row("st", frame.q_st(), frame.d_st(), f32::NAN));
    }
    rows
}

fn flags(bits: u8) -> Vec<&'static str> {
    let names = [(3, "best move proven"), (4, "maximum length"), (5, "adjudicated"), (6, "deleted")];
    names.iter().filter(|(bit, _)| bits & 1 << bit != 0).map(|(_, name)| *name).collect()
}
