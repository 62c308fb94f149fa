//! Packed bytes -> one position, or all records of the game: the only way in which packed bytes are read.
//! Makes the 1858 probabilities of a position only on request, or when a correction touches the record. Reads no policy for a caller that
//! wants none.

use std::hint::black_box;

use gristmill_bytes::container::packed::check_room;
use gristmill_bytes::encode::Sparse;
use gristmill_bytes::error::{Error, Kind, Result};

use super::cursor::Cursor;
use super::header::{Header, MOST_HISTORY, Parts};
use super::legal::legal;
use super::line::{Men, Step, turned};
use super::patch;
use super::scalars::{VALUE_BITS, played, read_values};
use super::visits::{self, Listed};
use crate::chess::frame::Frame;
use crate::chess::game;
use crate::chess::record::{InputFormat, PLANES, V7_BYTES, Version, at};
use crate::chess::transform::{Transform, flip};

/// Bits of the head of a body, above those of the values.
pub(super) mod bit {
    pub(in super::super) const LISTED: u32 = 18;
    pub(in super::super) const RAW: u32 = 1 << 20;
    pub(in super::super) const VISITS: u32 = 1 << 21;
    pub(in super::super) const BEST: u32 = 1 << 22;
    pub(in super::super) const PLAYED: u32 = 1 << 23;
    pub(in super::super) const REPLY: u32 = 1 << 24;
    pub(in super::super) const NEXT: u32 = 1 << 25;
    pub(in super::super) const DEPTH: u32 = 1 << 26;
    pub(in super::super) const PATCH: u32 = 1 << 27;
}

/// Bytes of a stored board with its repetition plane.
const BOARD_BYTES: usize = 8 * 13;

/// A packed game.
#[derive(Debug, Clone, Copy)]
pub struct PackedGame<'a> {
    pub(super) header: Header,
    pub(super) parts: Parts<'a>,
}

/// One position of a packed game, ready to be encoded. Its buffers are used again by the next.
#[derive(Debug)]
pub struct Position {
    /// A record of the size of V7; its probabilities hold nothing unless `dense`.
    pub(super) record: Box<[u8; V7_BYTES]>,
    pub(super) dense: bool,
    pub(super) moves: Vec<u16>,
    pub(super) values: Vec<f32>,
    pub(super) counts: Vec<u32>,
    pub(super) fill: u32,
    version: Version,
    walk: Walk,
}

impl Default for Position {
    fn default() -> Self {
        Position {
            record: Box::new([0; V7_BYTES]),
            dense: false,
            moves: Vec::new(),
            values: Vec::new(),
            counts: Vec::new(),
            fill: 0,
            version: Version::V6,
            walk: Walk::default(),
        }
    }
}

/// How much of a position a caller wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// All of it.
    Whole,
    /// All but the policy, and what follows from that: `visits` and `best_idx` are 0 where the packed game does not store them.
    /// The policy lists no move. The reader does not check these bytes.
    WithoutPolicy,
}

/// Where one stands on the line of boards.
#[derive(Debug, Default)]
struct Walk {
    men: Men,
    /// Number of the board, and of boards stored whole before the next; none before the first.
    at: Option<(usize, usize)>,
    /// The last eight boards, by number modulo 8.
    ring: [Men; 8],
}

impl Walk {
    /// Moves to board `to` of the line, which must exist; starts again from the first where it is already past.
    ///
    /// Errors: `Corrupt` for a step that does not exist.
    fn go(&mut self, history: usize, parts: &Parts<'_>, to: usize) -> Result<()> {
        let (mut at, mut whole) = match self.at {
            Some(here) if here.0 <= to => here,
            _ => {
                self.men = parts.start();
                self.ring[0] = self.men;
                (0, 0)
            }
        };
        let mut men = self.men;
        while at < to {
            let step = parts.step(at);
            if step == Step::WHOLE {
                men = parts.whole(whole).ok_or_else(|| bad_step(step, at))?;
                whole += 1;
            } else if step.is_known() {
                step.make(&mut men, (at + history) % 2);
            } else {
                return Err(bad_step(step, at));
            }
            at += 1;
            if at + MOST_HISTORY >= to {
                self.ring[at % 8] = men;
            }
        }
        self.men = men;
        self.at = Some((at, whole));
        Ok(())
    }
}

fn bad_step(step: Step, at: usize) -> Error {
    Error::new(Kind::Corrupt, format!("step {at} of a packed game is {:#06x}, which is none", step.0))
}

impl<'a> PackedGame<'a> {
    /// The packed game in `bytes`, which hold nothing else.
    ///
    /// Errors, with the byte: `UnknownVersion`, `Corrupt`, `Truncated`, `OutOfRange`. The contents of
    /// frames are checked when they are read.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        let (header, parts) = Header::read(bytes)?;
        Ok(PackedGame { header, parts })
    }

    /// How many frames there are, at least one.
    pub fn frames(&self) -> usize {
        self.header.frames
    }

    /// V6 or V7.
    pub fn version(&self) -> Version {
        self.header.version
    }

    /// Looks at a byte of what frame `k` is read from: who reads several frames of different games looks at all of them first, so
    /// that one is fetched from memory while another is.
    pub fn look(&self, k: usize) {
        let body = if k < self.header.frames { self.parts.body(k).ok() } else { None };
        black_box(body.and_then(|(body, _)| body.first().copied()));
    }

    /// Replaces `out` by frame `k`.
    ///
    /// Errors, with frame and byte: `Missing` for a frame that does not exist; `Corrupt`, `Truncated`; `OutOfRange` for
    /// values that no game may have (as [`game::parse`]).
    pub fn position(&self, k: usize, wanted: Wanted, out: &mut Position) -> Result<()> {
        out.walk.at = None;
        self.next(k, wanted, out)
    }

    /// Replaces `out` by frame `k`, starting from the frame of this game that it held.
    fn next(&self, k: usize, wanted: Wanted, out: &mut Position) -> Result<()> {
        if k >= self.header.frames {
            let detail = format!("frame {k} of a game of {}", self.header.frames);
            return Err(Error::new(Kind::Missing, detail).in_frame(k));
        }
        let (body, at) = self.parts.body(k).map_err(|e| e.in_frame(k))?;
        self.read(k, (body, at), wanted, |k| self.transform_of(k), out)
            .map_err(|e| e.at_byte(at as u64).in_frame(k))?;
        game::check_record(self.header.version, &out.record[..]).map_err(|(_, e)| e.at_byte(at as u64).in_frame(k))
    }

    /// Appends the records of all frames, to the bit as they were.
    ///
    /// Errors: as [`PackedGame::position`]; `TooLarge` for more than `max` bytes.
    pub fn records(&self, max: usize, position: &mut Position, out: &mut Vec<u8>) -> Result<()> {
        let (frames, size) = (self.header.frames, self.header.version.bytes());
        let bytes = check_room(frames, size, max)?;
        let first = out.len();
        out.resize(first + bytes, 0);
        position.walk.at = None;
        for (k, record) in out[first..].chunks_exact_mut(size).enumerate() {
            self.next(k, Wanted::Whole, position)?;
            position.write(record);
        }
        Ok(())
    }

    /// Appends the records of these frames, in this order; quicker where it ascends.
    ///
    /// Errors: as [`PackedGame::records`].
    pub fn rows(&self, rows: &[u32], max: usize, position: &mut Position, out: &mut Vec<u8>) -> Result<()> {
        let size = self.header.version.bytes();
        let (first, bytes) = (out.len(), check_room(rows.len(), size, max)?);
        out.resize(first + bytes, 0);
        position.walk.at = None;
        for (row, record) in rows.iter().zip(out[first..].chunks_exact_mut(size)) {
            self.next(*row as usize, Wanted::Whole, position)?;
            position.write(record);
        }
        Ok(())
    }

    /// Puts board, history and the bytes after them into the record of `out`.
    pub(super) fn place(
        &self,
        k: usize,
        state: usize,
        rule50: u8,
        depth: Option<u8>,
        out: &mut Position,
    ) -> Result<()> {
        let header = &self.header;
        let boards = header.history + k;
        out.walk.go(header.history, &self.parts, boards)?;
        let state = self.parts.state(state).ok_or_else(|| no_state(state))?;
        let depth = depth.map_or(8, usize::from);
        let record = &mut out.record[..];
        let [us_ooo, us_oo, them_ooo, them_oo, side, info, dummy] = *state;
        record[at::CASTLING_US_OOO..at::ROOT_Q]
            .copy_from_slice(&[us_ooo, us_oo, them_ooo, them_oo, side, rule50, info, dummy]);
        record[at::VERSION..at::INPUT_FORMAT].copy_from_slice(&header.version.number().to_le_bytes());
        record[at::INPUT_FORMAT..at::PROBABILITIES].copy_from_slice(&header.input_format.to_le_bytes());
        let transform = transform(header.input_format, info);
        let stored = &mut record[at::PLANES..at::CASTLING_US_OOO];
        debug_assert_eq!(stored.len(), 8 * PLANES);
        for (h, board) in stored.chunks_exact_mut(BOARD_BYTES).enumerate() {
            if h > boards || h >= depth {
                board.fill(0);
                continue;
            }
            let i = boards - h;
            let men = seen(&out.walk.ring[i % 8], k, transform);
            let repeated = if self.parts.repeated(i) { u64::MAX } else { 0 };
            for (word, bytes) in men.iter().chain([&repeated]).zip(board.as_chunks_mut::<8>().0) {
                *bytes = word.to_le_bytes();
            }
        }
        Ok(())
    }

    /// Reads a body, which lies at byte `at` of the game, into `out`.
    ///
    /// `transform_of` tells the transform of a frame that has a next one, where its move is to be predicted.
    pub(super) fn read(
        &self,
        k: usize,
        (body, at): (&[u8], usize),
        wanted: Wanted,
        transform_of: impl Fn(usize) -> Result<Transform>,
        out: &mut Position,
    ) -> Result<()> {
        let header = &self.header;
        let mut from = Cursor::within(body, at);
        let head = from.u32()?;
        let has = |bit: u32| head & bit != 0;
        let listed = Listed::ALL
            .get((head >> bit::LISTED & 3) as usize)
            .filter(|_| head >> 28 == 0)
            .ok_or_else(|| Error::new(Kind::Corrupt, format!("a frame begins with {head:#010x}")))?;
        let state = from.varint()? as usize;
        let rule50 = from.u8()?;
        let depth = if has(bit::DEPTH) { Some(from.u8()?) } else { None };
        self.place(k, state, rule50, depth, out)?;
        let Position { record, moves, values, counts, fill, dense, version, .. } = out;
        let record = &mut record[..];
        read_values(header, k, head & VALUE_BITS, &mut from, record)?;
        let visits = if has(bit::VISITS) { Some(from.u32()?) } else { None };
        let mut index = |bit: u32| if has(bit) { from.u16().map(Some) } else { Ok(None) };
        let (best, own, reply, next) = (index(bit::BEST)?, index(bit::PLAYED)?, index(bit::REPLY)?, index(bit::NEXT)?);
        let or_rule = |stored: Option<u16>, after: usize| {
            stored.map_or_else(|| played(header, &self.parts, k + after, &transform_of), Ok)
        };
        let mut set = |at: usize, value: u16| record[at..at + 2].copy_from_slice(&value.to_le_bytes());
        set(at::PLAYED_IDX, or_rule(own, 0)?);
        if header.version == Version::V7 {
            set(at::OPP_PLAYED_IDX, or_rule(reply, 1)?);
            set(at::NEXT_PLAYED_IDX, or_rule(next, 2)?);
            record[at::RESERVED..].fill(0);
        } else {
            record[at::D_ST..].fill(0);
        }
        (*fill, *dense, *version) = (header.fill, false, header.version);
        // A correction may touch anything: it needs the whole record.
        if wanted == Wanted::WithoutPolicy && !has(bit::PATCH) {
            moves.clear();
            values.clear();
            record[at::VISITS..at::PLAYED_IDX].copy_from_slice(&visits.unwrap_or(0).to_le_bytes());
            record[at::BEST_IDX..at::POLICY_KLD].copy_from_slice(&best.unwrap_or(0).to_le_bytes());
            return Ok(());
        }
        match listed {
            Listed::Stored => visits::read_list(&mut from, moves)?,
            Listed::Legal(mapping) => {
                if !legal(&Frame::new(record)?, *mapping, moves) {
                    return Err(Error::new(Kind::Corrupt, "legal moves of what is no position of a game"));
                }
            }
        }
        let all = if has(bit::RAW) {
            values.clear();
            for bytes in from.take(4 * moves.len())?.as_chunks().0 {
                values.push(f32::from_le_bytes(*bytes));
            }
            0
        } else {
            visits::read_shares(&mut from, counts, moves.len(), values)?
        };
        let visits = visits.unwrap_or(if all == 0 { 0 } else { all + 1 });
        record[at::VISITS..at::PLAYED_IDX].copy_from_slice(&visits.to_le_bytes());
        let best = best.unwrap_or_else(|| visits::best(moves, values));
        record[at::BEST_IDX..at::POLICY_KLD].copy_from_slice(&best.to_le_bytes());
        if has(bit::PATCH) {
            out.fill_in();
            patch::apply(&mut from, &mut out.record[..header.version.bytes()])?;
        }
        if from.is_over() {
            return Ok(());
        }
        Err(Error::new(Kind::Corrupt, "bytes after the end of a frame").at_byte(from.at() as u64))
    }
}

impl PackedGame<'_> {
    /// The transform under which frame `k` is stored. `k` must be below the number of frames.
    ///
    /// Errors: `Corrupt`, `Truncated`.
    fn transform_of(&self, k: usize) -> Result<Transform> {
        let (body, at) = self.parts.body(k)?;
        let mut from = Cursor::within(body, at);
        from.u32()?;
        let state = from.varint()? as usize;
        let [.., info, _] = self.parts.state(state).ok_or_else(|| no_state(state))?;
        Ok(transform(self.header.input_format, *info))
    }
}

fn no_state(state: usize) -> Error {
    Error::new(Kind::Corrupt, format!("state {state} does not exist"))
}

/// The transform that a record is stored under.
pub(super) fn transform(input_format: u32, invariance_info: u8) -> Transform {
    let canonical = InputFormat::from_value(input_format).is_some_and(InputFormat::is_canonical);
    if canonical { Transform::from_bits(invariance_info) } else { Transform::NONE }
}

/// A board of the line as frame `k` stores it.
fn seen(men: &Men, k: usize, transform: Transform) -> Men {
    let men = if k.is_multiple_of(2) { *men } else { turned(men) };
    if transform == Transform::NONE { men } else { men.map(|word| flip(transform.apply(flip(word)))) }
}

/// A board as frame `k` stores it -> as the line has it.
pub(super) fn unseen(men: &Men, k: usize, transform: Transform) -> Men {
    let men = if transform == Transform::NONE { *men } else { men.map(|word| flip(transform.undo(flip(word)))) };
    if k.is_multiple_of(2) { men } else { turned(&men) }
}

impl Position {
    /// The record but for its probabilities, which hold nothing of use; in the size of V7, what V6 lacks zero.
    pub fn frame(&self) -> Frame<'_> {
        Frame::sized(&self.record)
    }

    /// The record's bytes as [`Position::frame`] sees them.
    pub fn record(&self) -> &[u8] {
        &self.record[..]
    }

    /// The policy: which moves have which values, and what all others have; none where the record holds it.
    pub fn policy(&self) -> Option<Sparse<'_>> {
        let fill = f32::from_bits(self.fill);
        (!self.dense).then_some(Sparse { indices: &self.moves, values: &self.values, fill })
    }

    /// Writes the record, in the size of V6 or V7 as `out` is long; what V6 lacks is zero.
    pub fn write(&self, out: &mut [u8]) {
        let Some(policy) = self.policy() else {
            out.copy_from_slice(&self.record[..out.len()]);
            return;
        };
        out[..at::PROBABILITIES].copy_from_slice(&self.record[..at::PROBABILITIES]);
        policy.write(&mut out[at::PROBABILITIES..at::PLANES]);
        let len = out.len();
        out[at::PLANES..].copy_from_slice(&self.record[at::PLANES..len]);
    }

    /// Makes the record whole.
    pub(super) fn fill_in(&mut self) {
        let Position { record, moves, values, fill, dense, .. } = self;
        let policy = Sparse { indices: moves, values, fill: f32::from_bits(*fill) };
        if !*dense {
            policy.write(&mut record[at::PROBABILITIES..at::PLANES]);
        }
        *dense = true;
    }

    /// Forgets where it stood.
    pub(super) fn restart(&mut self) {
        self.walk.at = None;
    }
}
