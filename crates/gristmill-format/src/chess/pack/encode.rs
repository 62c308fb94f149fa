//! The records of one game -> packed bytes. What a rule predicts is left out, and what comes of it is compared with the
//! record byte by byte: any difference is stored.

use gristmill_bytes::error::{Error, Kind, Result};

use super::decode::{PackedGame, Position, Wanted, bit, transform, unseen};
use super::header::{Header, MOST_HISTORY, STATE_BYTES, Written};
use super::legal::legal;
use super::line::{Men, START, Step};
use super::patch;
use super::scalars::{index, played, write_values};
use super::visits::{self, Listed};
use crate::chess::board::Board;
use crate::chess::frame::Frame;
use crate::chess::game;
use crate::chess::record::{POLICY, Version};
use crate::chess::transform::{PolicyMapping, Transform};

/// Packs games. Its buffers are used again by the next.
#[derive(Debug, Default)]
pub struct Packer {
    written: Written,
    draft: Vec<u8>,
    position: Position,
    moves: Vec<u16>,
    values: Vec<f32>,
    counts: Vec<u32>,
    body: Vec<u8>,
}

impl Packer {
    /// Appends the packed game of `records`, which are of one version, V6 or V7, and as [`game::parse`] lets them be.
    ///
    /// Errors: `Empty`, `WrongSize`, and with the frame `UnknownVersion` or `OutOfRange` for other records; `TooLarge` for a
    /// game of 4 GiB.
    pub fn pack(&mut self, version: Version, records: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let best = |packer: &Packer, header: &Header, frames: &[Frame<'_>]| packer.mapping(header, frames);
        self.pack_by(version, records, best, out)
    }

    /// Packs a game whose moves are predicted as `mapping` says, which has its line.
    pub(super) fn pack_by(
        &mut self,
        version: Version,
        records: &[u8],
        mapping: impl Fn(&Packer, &Header, &[Frame<'_>]) -> Option<PolicyMapping>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let size = version.bytes();
        let frames: Vec<Frame<'_>> = records.chunks_exact(size).map(Frame::new).collect::<Result<_>>()?;
        let (Some(first), Some(last)) = (frames.first(), frames.last()) else {
            return Err(Error::new(Kind::Empty, "a game without frames"));
        };
        if !records.len().is_multiple_of(size) {
            return Err(Error::new(Kind::WrongSize, format!("{} bytes in records of {size}", records.len())));
        }
        for (k, frame) in frames.iter().enumerate() {
            game::check_record(version, frame.bytes())
                .map_err(|(byte, e)| e.in_frame(k).at_byte((k * size + byte) as u64))?;
        }
        let results = |frame: &Frame<'_>| [frame.result_q().to_bits(), frame.result_d().to_bits()];
        let history = (1..=MOST_HISTORY).rev().find(|h| is_board(first, *h)).unwrap_or(0);
        let mut header = Header {
            version,
            history,
            frames: frames.len(),
            input_format: first.input_format_value(),
            fill: majority(first),
            results: [results(first), results(frames.get(1).unwrap_or(first))],
            plies_left: last.plies_left().to_bits(),
            last_played: last.played_idx(),
            mapping: None,
        };
        self.line(&header, &frames);
        header.mapping = mapping(self, &header, &frames);
        self.states(&frames);
        // The bodies are written against what the decoder makes of the line: a game without bodies.
        self.written.ends.clear();
        self.written.ends.resize(frames.len(), 0);
        let mut draft = std::mem::take(&mut self.draft);
        draft.clear();
        header.write(&self.written, &mut draft)?;
        let game = PackedGame::new(&draft)?;
        self.written.ends.clear();
        self.position.restart();
        let mut state = 0;
        for k in 0..frames.len() {
            self.body(&game, k, &frames, &mut state)?;
            self.written.bodies.extend_from_slice(&self.body);
            self.written.ends.push(self.written.bodies.len() as u32);
        }
        self.draft = draft;
        header.write(&self.written, out)
    }

    /// The line of boards: those before frame 0 that it shows, then one of each frame.
    fn line(&mut self, header: &Header, frames: &[Frame<'_>]) {
        let Written { start, steps, whole, repeated, bodies, .. } = &mut self.written;
        steps.clear();
        whole.clear();
        repeated.clear();
        bodies.clear();
        let earlier = (1..=header.history).rev().map(|h| (0, h));
        let mut last: Option<Men> = None;
        for (i, (k, h)) in earlier.chain((0..frames.len()).map(|k| (k, 0))).enumerate() {
            let frame = &frames[k];
            let men = std::array::from_fn(|plane| frame.plane(13 * h + plane));
            let men = unseen(&men, k, transform(header.input_format, frame.invariance_info()));
            repeated.push(frame.plane(13 * h + 12) == u64::MAX);
            match last {
                None => *start = (men != START).then_some(men),
                Some(before) => {
                    steps.push(Step::between(&before, &men, (i - 1 + header.history) % 2).unwrap_or_else(|| {
                        whole.push(men);
                        Step::WHOLE
                    }))
                }
            }
            last = Some(men);
        }
    }

    fn states(&mut self, frames: &[Frame<'_>]) {
        self.written.states.clear();
        for frame in frames {
            let state = state(frame);
            if !self.written.states.contains(&state) {
                self.written.states.push(state);
            }
        }
    }

    /// How moves are to be predicted: the way that is right most often, the first form where that is one.
    fn mapping(&self, header: &Header, frames: &[Frame<'_>]) -> Option<PolicyMapping> {
        let steps = &self.written.steps[header.history..];
        let right = |mapping: Option<PolicyMapping>| {
            let hits = steps.iter().zip(frames).enumerate().filter(|(k, (step, frame))| {
                let under = match mapping {
                    Some(mapping) => (transform(header.input_format, frame.invariance_info()), mapping),
                    None => (Transform::NONE, PolicyMapping::AsPlanes),
                };
                index(**step, *k, under) == frame.played_idx()
            });
            hits.count()
        };
        let ways = [None, Some(PolicyMapping::HalfTurn), Some(PolicyMapping::AsPlanes)];
        let canonical =
            frames.iter().any(|frame| transform(header.input_format, frame.invariance_info()) != Transform::NONE);
        // Of several that are right as often the last would be taken.
        ways.into_iter().rev().filter(|way| way.is_none() || canonical).max_by_key(|way| right(*way)).flatten()
    }

    /// Replaces `self.body` by that of frame `k`.
    fn body(&mut self, game: &PackedGame<'_>, k: usize, frames: &[Frame<'_>], last_state: &mut usize) -> Result<()> {
        let frame = &frames[k];
        let transform_of = |k: usize| Ok(transform(game.header.input_format, frames[k].invariance_info()));
        let Packer { written, position, moves, values, counts, body, .. } = self;
        let header = &game.header;
        let own = state(frame);
        if written.states[*last_state] != own {
            *last_state = written.states.iter().position(|known| *known == own).unwrap_or(0);
        }
        let depth = (0..=MOST_HISTORY).rev().find(|h| is_board(frame, *h)).map_or(0, |h| h as u8 + 1);
        let depth = (usize::from(depth) != (header.history + k + 1).min(8)).then_some(depth);
        game.place(k, *last_state, frame.rule50_count(), depth, position)?;
        let mut head = if depth.is_some() { bit::DEPTH } else { 0 };
        body.clear();
        body.extend_from_slice(&[0; 4]);
        super::cursor::put_varint(*last_state as u32, body);
        body.push(frame.rule50_count());
        body.extend(depth);
        head |= write_values(header, k, frame.bytes(), body);
        moves.clear();
        values.clear();
        for (i, value) in (0u16..).zip(frame.probabilities()) {
            if value.to_bits() != header.fill {
                moves.push(i);
                values.push(value);
            }
        }
        let is_shared = visits::shares(values, frame.visits(), counts);
        let all = if is_shared { counts.iter().sum() } else { 0 };
        if !is_shared {
            head |= bit::RAW;
        }
        if frame.visits() != (if all == 0 { 0 } else { all + 1 }) {
            head |= bit::VISITS;
            body.extend_from_slice(&frame.visits().to_le_bytes());
        }
        let rule = |at: usize| played(header, &game.parts, k + at, transform_of);
        let indices = [
            (bit::BEST, frame.best_idx(), visits::best(moves, values)),
            (bit::PLAYED, frame.played_idx(), rule(0)?),
            (bit::REPLY, frame.opp_played_idx(), rule(1)?),
            (bit::NEXT, frame.next_played_idx(), rule(2)?),
        ];
        let has = if header.version == Version::V7 { 4 } else { 2 };
        for (bit, index, predicted) in &indices[..has] {
            if index != predicted {
                head |= bit;
                body.extend_from_slice(&index.to_le_bytes());
            }
        }
        let listed = listed(position, moves);
        head |= (listed as u32) << bit::LISTED;
        if Listed::ALL[listed] == Listed::Stored {
            visits::write_list(moves, body);
        }
        match is_shared {
            true => visits::write_counts(counts, body),
            false => values.iter().for_each(|value| body.extend_from_slice(&value.to_le_bytes())),
        }
        body[..4].copy_from_slice(&head.to_le_bytes());
        game.read(k, (body, 0), Wanted::Whole, transform_of, position)?;
        position.fill_in();
        if patch::write(&position.record[..frame.bytes().len()], frame.bytes(), body) {
            head |= bit::PATCH;
            body[..4].copy_from_slice(&head.to_le_bytes());
        }
        Ok(())
    }
}

/// Number in [`Listed::ALL`] of how `moves` are listed on the board of `position`.
fn listed(position: &mut Position, moves: &[u16]) -> usize {
    let mut found = std::mem::take(&mut position.moves);
    let told = Listed::ALL.iter().position(|listed| match listed {
        Listed::Legal(mapping) => {
            let frame = position.frame();
            let known = Board::under(&frame, *mapping).ok().and_then(|board| board.legal_indices());
            known.is_some_and(|known| known == moves) && legal(&frame, *mapping, &mut found) && found == moves
        }
        Listed::Stored => true,
    });
    position.moves = found;
    told.unwrap_or(Listed::ALL.len() - 1)
}

/// Whether a frame shows anything of the board `h` plies ago.
fn is_board(frame: &Frame<'_>, h: usize) -> bool {
    (13 * h..13 * h + 13).any(|plane| frame.plane(plane) != 0)
}

fn state(frame: &Frame<'_>) -> [u8; STATE_BYTES] {
    [
        frame.castling_us_ooo(),
        frame.castling_us_oo(),
        frame.castling_them_ooo(),
        frame.castling_them_oo(),
        frame.side_to_move_or_enpassant(),
        frame.invariance_info(),
        frame.dummy(),
    ]
}

/// Bits of the probability that most moves have, if most have one.
fn majority(frame: &Frame<'_>) -> u32 {
    let (mut candidate, mut lead) = ((-1.0f32).to_bits(), 0usize);
    for value in frame.probabilities() {
        match value.to_bits() {
            bits if bits == candidate => lead += 1,
            bits if lead == 0 => (candidate, lead) = (bits, 1),
            _ => lead -= 1,
        }
    }
    debug_assert!(lead <= POLICY);
    candidate
}
