//! Whole lines of a game, all of them or a part -> aligned step rows, and what joining the parts needs to know.
//! A part is parsed without its predecessors: several workers can share one long game.

use gristmill_bytes::error::{Error, Kind, Result};
use memchr::memchr;

use super::fixed::parse_fixed;
use super::json::parse_json;
use super::line::Step;
use super::names::Valuations;
use crate::g2048::row::ALIGNED_BYTES;

/// Bytes that are taken for the first rows.
const FIRST_ROOM: usize = 256 * ALIGNED_BYTES;

/// What rows take from the sidecar where a line does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowDefaults {
    /// Low 32 bits of the game's seed.
    pub seed: u32,
    /// The sidecar's highest rank, else 0.
    pub max_rank: u8,
}

/// What a part of a game's lines came to; its rows are beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Piece {
    /// How many rows.
    pub rows: u64,
    /// How many lines, blank ones included.
    pub lines: u64,
    /// How many bytes of text.
    pub bytes: u64,
    /// Rows before the first that says its index: they count from 0 until the piece is joined.
    pub unanchored: u64,
    /// Index of the last row, if any.
    pub last_index: Option<u32>,
    /// Names of valuations by the ids in the rows.
    pub valuations: Valuations,
    /// Bit for each branch that had an EV in any row.
    pub legal: u8,
    /// Rows whose `branch_evs` has keys that name no move.
    pub unknown_branches: u64,
}

/// Parses the lines of `text`, which starts and ends at ends of lines, and appends their rows (48 bytes each,
/// `run_id` 0) to `rows`, at most `max_bytes` in all. On an error, `rows` holds the rows before it.
///
/// Errors, with line and column counted from 1 and the byte, all within `text`: what [`parse_json`] refuses;
/// `OutOfRange` for a rank above 31, a heuristic value beyond 32 bits, an empty valuation type or too many of them;
/// `TooLarge` where there are more rows than fit in `max_bytes`.
pub fn parse_piece(text: &[u8], defaults: &RowDefaults, max_bytes: usize, rows: &mut Vec<u8>) -> Result<Piece> {
    let mut piece = Piece { bytes: text.len() as u64, ..Piece::default() };
    let mut at = 0;
    while at < text.len() {
        let (step, used) = match parse_fixed(&text[at..]) {
            Some((step, used)) => (Some(step), used),
            None => {
                let used = memchr(b'\n', &text[at..]).map_or(text.len() - at, |end| end + 1);
                let line = text[at..at + used].strip_suffix(b"\n").unwrap_or(&text[at..]);
                let step = parse_json(line).map_err(|e| e.after_lines(piece.lines, at as u64))?;
                (step, used)
            }
        };
        if let Some(step) = step {
            let room = max_bytes.saturating_sub(rows.len()) >= ALIGNED_BYTES;
            let row = if room { piece.row(&step, defaults) } else { Err(too_large(max_bytes)) };
            let row = row.map_err(|e| {
                let column = column_of_board(&text[at..at + used]);
                e.at_line(piece.lines + 1, column).at_byte(at as u64 + column - 1)
            })?;
            make_room(rows, max_bytes);
            rows.extend_from_slice(&row);
        }
        piece.lines += 1;
        at += used;
    }
    Ok(piece)
}

impl Piece {
    /// Takes in one step: its row.
    fn row(&mut self, step: &Step<'_>, defaults: &RowDefaults) -> Result<[u8; ALIGNED_BYTES]> {
        let valuation = match &step.valuation {
            None => 0,
            Some(name) => self.valuations.id(name)?,
        };
        let index = match (step.step_index, self.last_index) {
            (Some(index), _) => index,
            (None, Some(last)) => last.saturating_add(1),
            (None, None) => 0,
        };
        let seed = step.seed.map_or(defaults.seed, |seed| seed as u32);
        let row = step.row(index, seed, step.max_rank.unwrap_or(defaults.max_rank), valuation)?;
        if step.step_index.is_none() && self.unanchored == self.rows {
            self.unanchored += 1;
        }
        self.rows += 1;
        self.last_index = Some(index);
        self.legal |= step.legal;
        self.unknown_branches += u64::from(step.unknown_branch);
        Ok(row.to_aligned())
    }
}

/// Doubles what is taken when it is full, but never takes more than `max_bytes`.
fn make_room(rows: &mut Vec<u8>, max_bytes: usize) {
    if rows.capacity() - rows.len() < ALIGNED_BYTES {
        let wanted = rows.capacity().saturating_mul(2).max(FIRST_ROOM).min(max_bytes);
        rows.reserve_exact(wanted - rows.len());
    }
}

fn too_large(bound: usize) -> Error {
    let detail = format!("more rows than {bound} bytes, the bound, can hold; raise max_chunk_bytes if it is real");
    Error::new(Kind::TooLarge, detail)
}

/// Where the board of a good line begins: what can be wrong with such a line is its board.
fn column_of_board(line: &[u8]) -> u64 {
    line.windows(7).position(|w| w == b"\"board\"").map_or(1, |at| at as u64 + 1)
}

/// Cuts text into pieces of whole lines, each of at least `wanted` bytes but the last.
pub fn pieces(text: &[u8], wanted: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let from = wanted.clamp(1, rest.len()) - 1;
        let end = memchr(b'\n', &rest[from..]).map_or(rest.len(), |end| from + end + 1);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}
