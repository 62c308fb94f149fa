//! What a packed game says once, and where its parts lie; every size is checked against the bytes that there are.

use gristmill_bytes::error::{Error, Kind, Result};

use super::cursor::Cursor;
use super::line::{MEN_BYTES, Men, START, Step};
use crate::chess::record::{Version, known_format};
use crate::chess::transform::PolicyMapping;

/// Versions of the packed form: in the second, moves are predicted under the transform of their frame.
const FORMS: [u8; 2] = [1, 2];

/// Bit of the flags of form 2: under a transposed board indices are turned by half a circle, else as the planes are.
const HALF_TURN: u8 = 4;

/// Bytes before the first board.
const HEAD: usize = 46;

/// Bytes of a state: castling rights, byte 8276, `invariance_info`, `dummy`.
pub(super) const STATE_BYTES: usize = 7;

/// Boards before that of frame 0, at most.
pub(super) const MOST_HISTORY: usize = 7;

/// What is said once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// V6 or V7.
    pub(super) version: Version,
    /// Boards before that of frame 0.
    pub(super) history: usize,
    pub(super) frames: usize,
    /// Stored value of the input format, a known one.
    pub(super) input_format: u32,
    /// Bits of the probability of moves that are not listed.
    pub(super) fill: u32,
    /// Bits of `result_q` and `result_d` in frames 0, 2, 4, … and in frames 1, 3, 5, …
    pub(super) results: [[u32; 2]; 2],
    /// Bits of `plies_left` of the last frame.
    pub(super) plies_left: u32,
    /// `played_idx` of the last frame.
    pub(super) last_played: u16,
    /// How moves are predicted under a transform; none in form 1, whose prediction ignores the transform.
    pub(super) mapping: Option<PolicyMapping>,
}

/// The parts of a packed game.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    start: &'a [u8],
    steps: &'a [u8],
    whole: &'a [u8],
    repeated: &'a [u8],
    states: &'a [u8],
    offsets: &'a [u8],
    wide: bool,
    bodies: &'a [u8],
    /// Byte at which the bodies start.
    pub(super) bodies_at: usize,
}

/// The parts of a game that is being packed.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// None for the usual first board.
    pub(super) start: Option<Men>,
    pub(super) steps: Vec<Step>,
    pub(super) whole: Vec<Men>,
    /// One for each board of the line.
    pub(super) repeated: Vec<bool>,
    pub(super) states: Vec<[u8; STATE_BYTES]>,
    /// Where each body ends.
    pub(super) ends: Vec<u32>,
    pub(super) bodies: Vec<u8>,
}

fn put_men(men: &Men, out: &mut Vec<u8>) {
    men.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

fn men(bytes: &[u8]) -> Option<Men> {
    let (words, _) = bytes.as_chunks::<8>();
    let words: &[[u8; 8]; 12] = words.first_chunk()?;
    Some(words.map(u64::from_le_bytes))
}

impl Header {
    /// Appends the whole game.
    ///
    /// Errors: `TooLarge` where 32 bits do not count its parts.
    pub(super) fn write(&self, parts: &Written, out: &mut Vec<u8>) -> Result<()> {
        let count = |n: usize| {
            u32::try_from(n).map_err(|_| {
                Error::new(Kind::TooLarge, format!("{n} frames or bytes in one game; a game has at most 2^32 - 1"))
            })
        };
        let wide = parts.bodies.len() > usize::from(u16::MAX);
        out.push(FORMS[usize::from(self.mapping.is_some())]);
        out.push(self.version.number() as u8);
        out.push(self.history as u8);
        let half_turn = if self.mapping == Some(PolicyMapping::HalfTurn) { HALF_TURN } else { 0 };
        out.push(u8::from(parts.start.is_none()) | u8::from(wide) << 1 | half_turn);
        for number in [count(self.frames)?, self.input_format, self.fill] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in self.results.as_flattened() {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.plies_left, count(parts.states.len())?, count(parts.whole.len())?] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.last_played.to_le_bytes());
        parts.start.iter().for_each(|men| put_men(men, out));
        parts.steps.iter().for_each(|step| out.extend_from_slice(&step.0.to_le_bytes()));
        parts.whole.iter().for_each(|men| put_men(men, out));
        for eight in parts.repeated.chunks(8) {
            out.push(eight.iter().enumerate().fold(0, |byte, (i, on)| byte | u8::from(*on) << i));
        }
        parts.states.iter().for_each(|state| out.extend_from_slice(state));
        count(parts.bodies.len())?;
        for end in std::iter::once(&0).chain(&parts.ends) {
            let bytes = end.to_le_bytes();
            out.extend_from_slice(if wide { &bytes[..] } else { &bytes[..2] });
        }
        out.extend_from_slice(&parts.bodies);
        Ok(())
    }

    /// The header and the parts of a packed game.
    ///
    /// Errors: `UnknownVersion` of the form; `Corrupt` for numbers that cannot be; `Truncated`; `OutOfRange` for an input
    /// format that is not known.
    pub(super) fn read(bytes: &[u8]) -> Result<(Header, Parts<'_>)> {
        let mut from = Cursor::new(bytes);
        let form = from.u8()?;
        if !FORMS.contains(&form) {
            let [first, second] = FORMS;
            let detail =
                format!("form {form} of a packed game, expected {first} or {second}; a newer gristmill wrote it");
            return Err(Error::new(Kind::UnknownVersion, detail).at_byte(0));
        }
        let is_second = form == FORMS[1];
        let corrupt = |detail: String, at: usize| Error::new(Kind::Corrupt, detail).at_byte(at as u64);
        let tag = from.u8()?;
        let version = match Version::from_number(u32::from(tag)) {
            Some(version @ (Version::V6 | Version::V7)) => version,
            _ => return Err(corrupt(format!("records of version {tag}, expected 6 or 7"), 1)),
        };
        let history = usize::from(from.u8()?);
        let flags = from.u8()?;
        let frames = from.u32()? as usize;
        let input_format = from.u32()?;
        known_format(input_format).map_err(|e| e.at_byte(8))?;
        let fill = from.u32()?;
        let mut results = [[0; 2]; 2];
        for number in results.as_flattened_mut() {
            *number = from.u32()?;
        }
        let plies_left = from.u32()?;
        let (states, whole) = (from.u32()? as usize, from.u32()? as usize);
        let last_played = from.u16()?;
        let mapping = match flags & HALF_TURN {
            _ if !is_second => None,
            0 => Some(PolicyMapping::AsPlanes),
            _ => Some(PolicyMapping::HalfTurn),
        };
        if history > MOST_HISTORY || flags > if is_second { 7 } else { 3 } || frames == 0 {
            let detail = format!("{frames} frames after {history} boards, flags {flags:#x}");
            return Err(corrupt(detail, 2));
        }
        debug_assert_eq!(from.at(), HEAD);
        let wide = flags & 2 != 0;
        let boards = history.saturating_add(frames);
        let mut part = |n: usize, each: usize| from.take(n.saturating_mul(each));
        let start = part(usize::from(flags & 1 == 0), MEN_BYTES)?;
        let steps = part(boards - 1, 2)?;
        let whole = part(whole, MEN_BYTES)?;
        let repeated = part(boards.div_ceil(8), 1)?;
        let states = part(states, STATE_BYTES)?;
        let offsets = part(frames.saturating_add(1), if wide { 4 } else { 2 })?;
        let bodies_at = from.at();
        let bodies = &bytes[bodies_at..];
        let parts = Parts { start, steps, whole, repeated, states, offsets, wide, bodies, bodies_at };
        if parts.offset(0) != 0 || parts.offset(frames) != bodies.len() {
            let detail = format!("bodies of {} bytes, expected {}", bodies.len(), parts.offset(frames));
            return Err(corrupt(detail, bodies_at));
        }
        let header = Header { version, history, frames, input_format, fill, results, plies_left, last_played, mapping };
        Ok((header, parts))
    }
}

impl<'a> Parts<'a> {
    /// The first board of the line.
    pub(super) fn start(&self) -> Men {
        men(self.start).unwrap_or(START)
    }

    /// Step `i` of the line, which must exist.
    pub(super) fn step(&self, i: usize) -> Step {
        Step(u16::from_le_bytes([self.steps[2 * i], self.steps[2 * i + 1]]))
    }

    /// The board stored whole as number `i`.
    pub(super) fn whole(&self, i: usize) -> Option<Men> {
        men(self.whole.get(i.checked_mul(MEN_BYTES)?..)?)
    }

    /// Whether board `i` of the line, which must exist, had occurred before.
    pub(super) fn repeated(&self, i: usize) -> bool {
        self.repeated[i / 8] >> (i % 8) & 1 != 0
    }

    pub(super) fn state(&self, i: usize) -> Option<&'a [u8; STATE_BYTES]> {
        self.states.as_chunks().0.get(i)
    }

    fn offset(&self, i: usize) -> usize {
        match self.wide {
            true => self.offsets.as_chunks().0.get(i).map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize),
            false => self.offsets.as_chunks().0.get(i).map_or(0, |bytes| usize::from(u16::from_le_bytes(*bytes))),
        }
    }

    /// The body of frame `k`, which must exist, and where it starts.
    ///
    /// Errors: `Corrupt`.
    pub(super) fn body(&self, k: usize) -> Result<(&'a [u8], usize)> {
        let (start, end) = (self.offset(k), self.offset(k + 1));
        let at = self.bodies_at + start;
        let body = self.bodies.get(start..end).ok_or_else(|| {
            let detail = format!("a frame from byte {start} to {end} of {}", self.bodies.len());
            Error::new(Kind::Corrupt, detail).at_byte(self.bodies_at as u64)
        })?;
        Ok((body, at))
    }
}
