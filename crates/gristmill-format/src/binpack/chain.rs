//! The bytes of a chain -> its positions, one by one: a stem, then moves and scores in bits.
//! Refuses what cannot be played, with frame and byte; looks at no byte behind the chain and keeps no position.

use gristmill_bytes::error::{Error, Kind, Result};

use super::bits::{Bits, width};
use super::board::Board;
use super::men::{Men, Move};
use super::record::{BYTES, LAST_PLY, Told, check, push, same};

/// Bytes of a stem.
pub const STEM: usize = 32;
/// Bytes of a chain before its moves: the stem, and the number of plies that follow.
pub const HEAD: usize = STEM + 2;

/// First byte of each part of a stem, after the men.
pub mod at {
    /// The move.
    pub const MOVE: usize = 24;
    /// The score.
    pub const SCORE: usize = 26;
    /// Ply and result.
    pub const PLY: usize = 28;
    /// Plies since a man was taken or a pawn moved.
    pub const RULE50: usize = 30;
}

/// Bits of a ply in the number that has ply and result.
const PLY_BITS: u32 = 14;

/// Bits of a block of a score, less the one that says whether another follows.
const BLOCK: u32 = 4;

/// The unsigned number that stands for a signed one: near zero stays near zero.
pub fn unsigned(value: i16) -> u16 {
    let bits = value as u16;
    (if value < 0 { bits ^ 0x7fff } else { bits }).rotate_left(1)
}

/// The signed number that an unsigned one stands for.
pub fn signed(value: u16) -> i16 {
    let bits = value.rotate_right(1);
    (if bits & 0x8000 != 0 { bits ^ 0x7fff } else { bits }) as i16
}

/// The position of a stem.
///
/// Errors: `OutOfRange` with the byte of the stem.
pub fn stem(bytes: &[u8; STEM]) -> Result<(Board, Told)> {
    let two = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let men = Men {
        occ: u64::from_be_bytes(*bytes.first_chunk().unwrap_or(&[0; 8])),
        pcs: bytes[8..].first_chunk().map_or(0, |pcs| u128::from_le_bytes(*pcs)),
    };
    let board = Board::new(men)?;
    let refuse = |at: usize, detail: String| Error::new(Kind::OutOfRange, detail).at_byte(at as u64);
    let (ply_and_result, rule50) = (two(at::PLY), two(at::RULE50));
    let result = signed(ply_and_result >> PLY_BITS);
    let told = Told {
        played: Move(two(at::MOVE)),
        score: signed(two(at::SCORE)),
        ply: ply_and_result & LAST_PLY,
        result: i8::try_from(result)
            .ok()
            .filter(|result| (-1..=1).contains(result))
            .ok_or_else(|| refuse(at::PLY, format!("a result of {result}, expected -1, 0 or 1")))?,
        rule50: u8::try_from(rule50)
            .map_err(|_| refuse(at::RULE50, format!("{rule50} plies without a capture, expected at most 255")))?,
    };
    check(&board, &told)?;
    Ok((board, told))
}

/// The stem of a position.
pub fn put_stem(men: &Men, told: &Told, out: &mut Vec<u8>) {
    out.extend_from_slice(&men.occ.to_be_bytes());
    out.extend_from_slice(&men.pcs.to_le_bytes());
    let ply_and_result = told.ply & LAST_PLY | unsigned(told.result.into()) << PLY_BITS;
    for number in [told.played.0, unsigned(told.score), ply_and_result, told.rule50.into()] {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

/// A number of blocks of bits.
///
/// Errors: `Truncated`; `Corrupt` for more blocks than 16 bits take.
fn blocks(bits: &mut Bits<'_>) -> Result<u16> {
    let mut value = 0;
    for shift in (0..u16::BITS).step_by(BLOCK as usize) {
        let block = bits.take(1 + BLOCK)?;
        value |= ((block & ((1 << BLOCK) - 1)) as u16) << shift;
        if block >> BLOCK == 0 {
            return Ok(value);
        }
    }
    Err(Error::new(Kind::Corrupt, "a score of more than four blocks"))
}

/// What is known of the position after a move; `last` says whether the move took a man or moved a pawn.
///
/// Errors: `OutOfRange` for a ply or a count that no file can have.
pub fn follow(told: &Told, last: bool) -> Result<Told> {
    let refuse = |detail: String| Error::new(Kind::OutOfRange, detail);
    let rule50 = if last { Some(0) } else { told.rule50.checked_add(1) };
    Ok(Told {
        played: Move::NONE,
        score: told.score.wrapping_neg(),
        ply: Some(told.ply + 1)
            .filter(|ply| *ply <= LAST_PLY)
            .ok_or_else(|| refuse(format!("a ply beyond {LAST_PLY}")))?,
        result: -told.result,
        rule50: rule50.ok_or_else(|| refuse("more than 255 plies without a capture".to_owned()))?,
    })
}

/// How far a chain was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Played {
    /// Its positions.
    pub frames: usize,
    /// Its bytes.
    pub bytes: usize,
}

/// Plays the chain at the beginning of `bytes`, and gives each position in turn.
///
/// Errors: `Truncated`, `Corrupt` and `OutOfRange`, with frame and byte of the chain.
pub fn play(bytes: &[u8], each: &mut impl FnMut(&Board, &Told)) -> Result<Played> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
        let detail = format!("{} bytes, expected a stem of {STEM} and the number of its plies", bytes.len());
        return Err(Error::new(Kind::Truncated, detail).in_frame(0).at_byte(bytes.len() as u64));
    };
    let (mut board, mut told) = stem(head.first_chunk().unwrap_or(&[0; STEM])).map_err(|e| e.in_frame(0))?;
    let plies = usize::from(u16::from_be_bytes([head[STEM], head[STEM + 1]]));
    if plies > 0 && told.played == Move::NONE {
        let detail = format!("{plies} plies follow, but no move leads to them");
        return Err(Error::new(Kind::Corrupt, detail).in_frame(0).at_byte(STEM as u64));
    }
    each(&board, &told);
    let mut bits = Bits::new(rest);
    for frame in 1..=plies {
        let before = bits.bytes();
        next(&mut board, &mut told, &mut bits)
            .map_err(|e| e.at_byte(before.min(rest.len()) as u64).after_lines(0, HEAD as u64).in_frame(frame))?;
        each(&board, &told);
    }
    // The last move is checked, too, though it is not played: each position has a move that can be.
    let place = (HEAD + bits.bytes()) as u64;
    board.check_move(told.played).map_err(|e| e.in_frame(plies).at_byte(place))?;
    Ok(Played { frames: 1 + plies, bytes: HEAD + bits.bytes() })
}

/// The position after the next.
fn next(board: &mut Board, told: &mut Told, bits: &mut Bits<'_>) -> Result<()> {
    let last = board.play(told.played)?;
    *told = follow(told, last)?;
    let men = board.movers();
    let man = bits.take(width(men))?;
    if man >= men {
        return Err(Error::new(Kind::Corrupt, format!("man {man} moves, of {men}")));
    }
    let mover = board.mover(man);
    let way = bits.take(width(mover.ways))?;
    if way >= mover.ways {
        return Err(Error::new(Kind::Corrupt, format!("move {way} of man {man}, which has {}", mover.ways)));
    }
    told.played = board.way(&mover, way);
    told.score = told.score.wrapping_add(signed(blocks(bits)?));
    Ok(())
}

/// Adds the records of the chain at the beginning of `bytes`; nothing is added where it is refused. At most `most` are.
///
/// Errors: as [`play`]; `TooLarge` beyond `most`.
pub fn records(bytes: &[u8], most: usize, out: &mut Vec<u8>) -> Result<Played> {
    let plies = bytes.get(STEM..HEAD).map_or(0, |two| usize::from(u16::from_be_bytes([two[0], two[1]])));
    if plies + 1 > most {
        let detail = format!("{} positions, the bound is {most}; raise max_chunk_bytes if it is real", plies + 1);
        return Err(Error::new(Kind::TooLarge, detail).at_byte(STEM as u64));
    }
    let (first, mut kept) = (out.len(), 0);
    out.reserve_exact((plies + 1) * BYTES);
    let played = play(bytes, &mut |board, told| {
        let known = kept.min(usize::from(told.rule50));
        let repeated = same(&out[first..], board.men(), known);
        push(out, board.men(), told, repeated);
        kept += 1;
    });
    played.inspect_err(|_| out.truncate(first))
}
