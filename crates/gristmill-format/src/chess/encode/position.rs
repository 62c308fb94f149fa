//! A record -> its position by men: a nibble for each square, then what stood on squares that changed since the boards before.
//! `docs/format/compact.md` has each byte. Refuses what it cannot carry; never writes another position.

use gristmill_bytes::error::{Error, Kind, Result};

use crate::chess::frame::Frame;
use crate::chess::record::at;
use crate::chess::transform::flip;

/// Room for changed squares if the user names no number. Castling changes four squares and may happen twice. Taking in passing changes
/// three, and a double step comes before each but the first. All other moves change two. So seven plies change at most
/// 2 * 4 + 3 * 3 + 2 * 2 squares.
pub const CHANGES: u16 = 21;

/// The largest number that a user may ask for: every square of every earlier board.
pub const MOST_CHANGES: u16 = 7 * 64;

/// Boards of a record, planes of a board, and planes of men among these.
const BOARDS: usize = 8;
const PER_BOARD: usize = 13;
const MEN: usize = 12;

/// Bytes before the changed squares: 64 nibbles, three masks of boards, seven scalars, the input format.
const FIXED: usize = 32 + 3 + 7 + 1;

/// Fills the places without a changed square.
const UNUSED: u8 = 255;
/// Marks the first square of a board.
const FIRST: u8 = 64;

/// Bytes of a row of `planes:position` with room for `changes` squares.
pub(super) const fn bytes(changes: u16) -> usize {
    FIXED + changes as usize + changes.div_ceil(2) as usize
}

/// The men of a board: a mask of squares for each plane.
type Men = [u64; MEN];

/// Writes a row of `planes:position`.
///
/// Errors: `OutOfRange` for an unknown input format, two men on a square, a repetition plane that is neither empty nor full,
/// and more changed squares than there is room for.
pub(super) fn write(frame: &Frame<'_>, row: &mut [u8]) -> Result<()> {
    let format = frame.input_format()?.value();
    let (fixed, changes) = row.split_at_mut(FIXED);
    let room = changes.len() * 2 / 3;
    let (squares, nibbles) = changes.split_at_mut(room);
    squares.fill(UNUSED);
    nibbles.fill(0);
    let (mut repeated, mut shown, mut changed, mut count) = (0, 1, 0, 0);
    let mut last = men(frame, 0)?;
    fixed[..32].fill(0);
    each(last.iter().fold(0, |all, mask| all | mask), |square| put(fixed, square, man(&last, square)));
    for board in 0..BOARDS {
        repeated |= u8::from(repetition(frame, board)?) << board;
        let men = if board == 0 { last } else { men(frame, board)? };
        if men.iter().all(|mask| *mask == 0) {
            continue;
        }
        shown |= 1 << board;
        let differs = last.iter().zip(&men).fold(0, |differs, (old, new)| differs | (old ^ new));
        changed |= u8::from(differs != 0) << board;
        let mut first = FIRST;
        each(differs, |square| {
            if count < room {
                squares[count] = square as u8 | first;
                put(nibbles, count, man(&men, square));
            }
            (count, first) = (count + 1, 0);
        });
        last = men;
    }
    if count > room {
        let detail = format!(
            "boards that differ on {count} squares in all, where planes:position:{room} has room for {room}; take \
             planes:position:{count} or planes:packed"
        );
        return Err(Error::new(Kind::OutOfRange, detail).at_byte(at::PLANES as u64));
    }
    fixed[32..35].copy_from_slice(&[repeated, shown, changed]);
    fixed[35..42].copy_from_slice(&frame.bytes()[at::CASTLING_US_OOO..at::DUMMY]);
    fixed[42] = format as u8;
    Ok(())
}

/// The men of board `board`. Errors: `OutOfRange` where two stand on a square.
fn men(frame: &Frame<'_>, board: usize) -> Result<Men> {
    let men: Men = std::array::from_fn(|k| flip(frame.plane(PER_BOARD * board + k)));
    let mut all = 0;
    for (k, mask) in men.iter().enumerate() {
        if all & mask != 0 {
            let square = (all & mask).trailing_zeros();
            let detail = format!(
                "two men on square {square} of board {board}: planes:position has one for each; take planes:packed"
            );
            return Err(refusal(board, k, detail));
        }
        all |= mask;
    }
    Ok(men)
}

/// Whether board `board` is marked as repeated. Errors: `OutOfRange` where its plane is half full.
fn repetition(frame: &Frame<'_>, board: usize) -> Result<bool> {
    match frame.plane(PER_BOARD * board + MEN) {
        0 => Ok(false),
        u64::MAX => Ok(true),
        word => {
            let detail = format!(
                "the repetition plane {word:#x} of board {board}: planes:position has one bit for it; take planes:packed"
            );
            Err(refusal(board, MEN, detail))
        }
    }
}

fn refusal(board: usize, plane: usize, detail: String) -> Error {
    Error::new(Kind::OutOfRange, detail).at_byte((at::PLANES + 8 * (PER_BOARD * board + plane)) as u64)
}

/// What stands on a square: 1 to 12 as the planes are in order, 0 for nothing.
fn man(men: &Men, square: usize) -> u8 {
    (1..).zip(men).find(|(_, mask)| *mask >> square & 1 != 0).map_or(0, |(man, _)| man)
}

/// Nibble `i`: the upper half of byte `i / 2` where `i` is even, else the lower.
fn put(nibbles: &mut [u8], i: usize, nibble: u8) {
    nibbles[i / 2] |= nibble << if i.is_multiple_of(2) { 4 } else { 0 };
}

/// Each square of a mask, ascending.
fn each(mut mask: u64, mut take: impl FnMut(usize)) {
    while mask != 0 {
        take(mask.trailing_zeros() as usize);
        mask &= mask - 1;
    }
}
