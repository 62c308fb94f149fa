//! The records of a game -> its positions and moves on a board, each move legal and each record what the move left.
//! Where nothing leads from one record to the next, the game is refused with frame and byte.

use cozy_chess::{Board, BoardBuilderError, Color, File, Move, Piece, Rank, Square, get_pawn_attacks};
use gristmill_bytes::error::Result;

use super::game::{FLAGGED, Fault, Ply, placed};
use super::settings::{Compat, Quirk};
use super::{fields, mapping};
use crate::chess::board;
use crate::chess::check::Rule;
use crate::chess::check::view::{Placement, View};
use crate::chess::frame::Frame;
use crate::chess::policy::{self, Move as Entry, Promotion};
use crate::chess::record::{InputFormat, at};
use crate::chess::transform::PolicyMapping;

/// The positions of a game; reused from game to game.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) plies: Vec<Ply>,
    keys: Vec<u64>,
    /// Plies whose policy indices can be read both ways.
    open: Vec<usize>,
}

impl Replay {
    /// Replays the records of `size` bytes each.
    ///
    /// Errors: `Refused` by the rule that the first bad frame breaks, in the terms of the validator.
    pub(super) fn read(&mut self, records: &[u8], size: usize, compat: Compat) -> Result<()> {
        self.begin();
        let mut first = None;
        for (i, record) in records.chunks_exact(size).enumerate() {
            let frame = Frame::new(record)?;
            let format = placed(fields::judge(frame, compat), i, size)?;
            let (version, began) = (frame.version(), *first.get_or_insert((frame.version(), format)));
            placed(same_kind(began, (version, format)), i, size)?;
        }
        let mut before: Option<Frame<'_>> = None;
        for (i, record) in records.chunks_exact(size).enumerate() {
            let frame = Frame::new(record)?;
            let Some(was) = before.replace(frame) else {
                let ply = placed(begin(frame, compat), i, size)?;
                self.push(ply);
                continue;
            };
            let view = View::new(frame).expect("a known format");
            let from = self.plies.last_mut().expect("a first ply");
            let (played, mappings, board) = placed(step(from, was, &view, compat), i - 1, size)?;
            from.played = Some(played);
            self.read_by(&mappings);
            let (en_passant, mapping) = (en_passant(&board), PolicyMapping::HalfTurn);
            let ply = Ply { board, en_passant, repetitions: 0, transform: view.transform, mapping, played: None };
            self.push(ply);
        }
        if let (Some(last), Some(ply)) = (before, self.plies.last()) {
            self.read_by(&mapping::fitting(ply, last));
        }
        mapping::settle(&mut self.plies, &self.open, compat.mapping());
        Ok(())
    }

    /// Forgets the game before.
    pub(super) fn begin(&mut self) {
        self.plies.clear();
        self.keys.clear();
        self.open.clear();
    }

    /// Notes how the policy indices of the last ply may be read.
    fn read_by(&mut self, mappings: &[PolicyMapping]) {
        let last = self.plies.len() - 1;
        match mappings {
            [one] => self.plies[last].mapping = *one,
            _ => self.open.push(last),
        }
    }

    /// Adds a position, and counts how often it occurred before.
    pub(super) fn push(&mut self, mut ply: Ply) {
        let key = key(&ply);
        ply.repetitions = self.repetitions(key, ply.board.halfmove_clock());
        self.keys.push(key);
        self.plies.push(ply);
    }

    /// How often a position occurred before, by the rule of the original: every other ply from the fourth back on.
    fn repetitions(&self, key: u64, rule50: u8) -> u8 {
        if rule50 < 4 {
            return 0;
        }
        for back in (4..=self.plies.len()).step_by(2) {
            let i = self.plies.len() - back;
            if self.keys[i] == key {
                return self.plies[i].repetitions.saturating_add(1);
            }
            if self.plies[i].board.halfmove_clock() < 2 {
                break;
            }
        }
        0
    }
}

fn same_kind(first: (u32, InputFormat), here: (u32, InputFormat)) -> Result<(), Fault> {
    if first.0 != here.0 {
        return Err((Rule::Version, at::VERSION, format!("version {} in a game of version {}", here.0, first.0)));
    }
    if first.1 != here.1 {
        let (first, here) = (first.1.value(), here.1.value());
        let text = format!("input_format {here} in a game that began with {first}");
        return Err((Rule::InputFormat, at::INPUT_FORMAT, text));
    }
    Ok(())
}

/// The first position.
fn begin(frame: Frame<'_>, compat: Compat) -> Result<Ply, Fault> {
    let bad = |e: gristmill_bytes::error::Error| (Rule::Men, at::PLANES, e.detail().to_owned());
    let mut start = board::Board::under(&frame, PolicyMapping::HalfTurn).map_err(bad)?;
    let format = frame.input_format().map_err(bad)?;
    if format.is_canonical() && start.black_to_move && compat.has(Quirk::CanonicalWhite) {
        start = start.color_swapped();
    }
    if format.is_hectoplies() && compat.has(Quirk::Hectoplies) {
        start.rule50 = (100.0 * (f32::from(start.rule50) / 100.0)) as u8;
    }
    let guessed = !format.is_canonical() && compat.has(Quirk::FirstEnPassant);
    let stepped = if guessed { board::double_step(&frame) } else { 0 };
    if stepped != 0 {
        start.en_passant = Some((stepped.trailing_zeros() % 8) as u8);
    }
    let mut builder = start.builder();
    let board = match board::build(&builder) {
        // Formats 1 and 2 store no en passant: it is a guess from the board before.
        Err(BoardBuilderError::InvalidEnPassant) if !format.is_canonical() => {
            builder.en_passant = None;
            board::build(&builder)
        }
        built => built,
    };
    let board = board.map_err(|e| {
        let (rule, offset) = match e {
            BoardBuilderError::InvalidCastlingRights => (Rule::Castling, at::CASTLING_US_OOO),
            BoardBuilderError::InvalidEnPassant => (Rule::EnPassant, at::SIDE_TO_MOVE_OR_ENPASSANT),
            _ => (Rule::Position, at::PLANES),
        };
        (rule, offset, format!("no game can reach the first position: {e}"))
    })?;
    let en_passant = if stepped != 0 { board.en_passant() } else { en_passant(&board) };
    Ok(Ply { board, en_passant, repetitions: 0, transform: start.transform, mapping: start.mapping, played: None })
}

/// The move from one record to the next, the ways in which indices may be read, and the position that it leaves.
fn step(from: &Ply, was: Frame<'_>, to: &View<'_>, compat: Compat) -> Result<(Move, Vec<PolicyMapping>, Board), Fault> {
    let us = from.board.side_to_move();
    // In canonical games either side may have begun; their boards are the mover's own anyway.
    let to_black =
        if to.format.is_canonical() && compat.has(Quirk::CanonicalWhite) { us == Color::White } else { to.black };
    if to_black != (us == Color::White) {
        let side = if to_black { "black" } else { "white" };
        return Err((
            Rule::SideToMove,
            at::SIDE_TO_MOVE_OR_ENPASSANT,
            format!("{side} is to move in the next frame too"),
        ));
    }
    let goal = View { black: to_black, ..*to }.placement();
    let leads = |played: Move| {
        if !from.board.is_legal(played) {
            return None;
        }
        let mut next = from.board.clone();
        next.play_unchecked(played);
        (Placement::of(&next) == goal).then_some(next)
    };
    let (told, fitting) = (was.played_idx(), mapping::fitting(from, was));
    let mut found = None;
    let mut as_told = fitting.clone();
    as_told.retain(|mapping| {
        let led = named(from, told, *mapping).and_then(|played| leads(played).map(|next| (played, next)));
        found = found.take().or(led.clone());
        led.is_some()
    });
    if found.is_none() {
        from.board.generate_moves(|moves| {
            found = moves.into_iter().find_map(|played| leads(played).map(|next| (played, next)));
            found.is_some()
        });
    }
    let Some((played, next)) = found else {
        return Err((Rule::Moves, at::PLANES, "no legal move leads from here to the next frame".to_owned()));
    };
    if as_told.is_empty() && was.visits() > 0 {
        let text = format!("played_idx is {told}, but the next frame comes from {played} (as White sees it)");
        return Err((Rule::PlayedIdx, at::PLAYED_IDX, text));
    }
    // Frames without visits may have no index; then 0 says nothing.
    let telling = was.visits() > 0 || told != 0 && !as_told.is_empty();
    let mut mappings = if telling { as_told } else { fitting };
    let first = mappings[0];
    mappings.retain(|mapping| check_marked(from, was, played, *mapping).is_ok());
    if mappings.is_empty() {
        check_marked(from, was, played, first)?;
    }
    Ok((played, mappings, next))
}

/// A move played must not be marked as illegal, unless its frame is there for history only.
fn check_marked(from: &Ply, was: Frame<'_>, played: Move, mapping: PolicyMapping) -> Result<(), Fault> {
    let Some(index) = index_of(from, played, mapping).map(usize::from) else {
        let text =
            format!("transform {:#05b}, under which the promotion that was played has no index", from.transform.bits());
        return Err((Rule::Transform, at::INVARIANCE_INFO, text));
    };
    let p = was.probability(index);
    if was.invariance_info() & FLAGGED == 0 && (p < 0.0 || p.is_nan()) {
        let text = format!("probability {index} is {p}, but it is that of the move played");
        return Err((Rule::PolicyMoves, at::PROBABILITIES + 4 * index, text));
    }
    Ok(())
}

/// The squares of policy indices seen by White, or by Black.
fn turn(board: &Board) -> u8 {
    if board.side_to_move() == Color::Black { 56 } else { 0 }
}

/// The move that an index of a record stands for; `None` when it can stand for none.
pub(super) fn named(ply: &Ply, index: u16, mapping: PolicyMapping) -> Option<Move> {
    let entry = policy::entry(index)?;
    let square = |s: u8| Square::index(usize::from(ply.transform.undo_square(s, mapping) ^ turn(&ply.board)));
    let (from, to) = (square(entry.from), square(entry.to));
    let last = Rank::Eighth.relative_to(ply.board.side_to_move());
    let promotion = match entry.promotion {
        Some(Promotion::Queen) => Some(Piece::Queen),
        Some(Promotion::Rook) => Some(Piece::Rook),
        Some(Promotion::Bishop) => Some(Piece::Bishop),
        None if to.rank() == last && ply.board.pieces(Piece::Pawn).has(from) => Some(Piece::Knight),
        None => None,
    };
    Some(Move { from, to, promotion })
}

/// The index under which the record of `ply` has a move.
pub(super) fn index_of(ply: &Ply, played: Move, mapping: PolicyMapping) -> Option<u16> {
    ply.transform.index(entry_of(&ply.board, played), mapping)
}

/// A move as the side to move sees it.
pub(super) fn entry_of(board: &Board, played: Move) -> Entry {
    let promotion = match played.promotion {
        Some(Piece::Queen) => Some(Promotion::Queen),
        Some(Piece::Rook) => Some(Promotion::Rook),
        Some(Piece::Bishop) => Some(Promotion::Bishop),
        _ => None,
    };
    let turn = turn(board);
    Entry { from: played.from as u8 ^ turn, to: played.to as u8 ^ turn, promotion }
}

/// What makes two positions the same: men, side, rights, and a pawn that stands so that it could take in passing.
fn key(ply: &Ply) -> u64 {
    let passing = ply.en_passant.map_or(0, |file| 0x9e37_79b9_7f4a_7c15u64.rotate_left(file as u32));
    ply.board.hash_without_ep() ^ passing
}

/// The file of a pawn that just moved two squares, if an enemy pawn attacks the square it passed.
pub(super) fn en_passant(board: &Board) -> Option<File> {
    let file = board.en_passant()?;
    let us = board.side_to_move();
    let passed = Square::new(file, Rank::Sixth.relative_to(us));
    let takers = get_pawn_attacks(passed, !us) & board.colored_pieces(us, Piece::Pawn);
    (!takers.is_empty()).then_some(file)
}
