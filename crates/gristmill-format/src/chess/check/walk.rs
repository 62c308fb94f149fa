//! The frames of a game in their order -> the moves between them, played on a board, and what they contradict.
//! A frame that does not follow from the one before is set up again, so that one fault is reported once.

use cozy_chess::{Board, CastleRights, File, Move, Piece, Rank};

use super::history::{self, Canonical, Repetitions};
use super::policy::{self, Indices, Marks};
use super::view::{Placement, View};
use super::{Rule, Tell};
use crate::chess::board;
use crate::chess::frame::Frame;
use crate::chess::policy::{Move as Entry, Promotion};
use crate::chess::record::{InputFormat, at};
use crate::chess::transform::PolicyMapping;

/// Names and offsets of the castling bytes, in stored order.
const RIGHTS: [(&str, usize); 4] = [
    ("castling_us_ooo", at::CASTLING_US_OOO),
    ("castling_us_oo", at::CASTLING_US_OO),
    ("castling_them_ooo", at::CASTLING_THEM_OOO),
    ("castling_them_oo", at::CASTLING_THEM_OO),
];

/// A frame that was judged, and its position if it is one.
struct Step<'a> {
    view: View<'a>,
    board: Option<Board>,
    /// Whether both ways to index moves under a transposed board fit the policy.
    open: bool,
}

/// What is known of a game so far.
#[derive(Default)]
pub(super) struct Walk<'a> {
    before: Option<Step<'a>>,
    /// The legal moves of the position before, by policy index.
    legal: Vec<(u16, Move)>,
    repetitions: Repetitions,
    canonical: Canonical,
}

impl<'a> Walk<'a> {
    /// Tells what is wrong with the next frame, by itself and after those before it.
    pub(super) fn step(&mut self, frame: Frame<'a>, tell: &mut Tell<'_>) {
        let marks = policy::read(frame, tell);
        let Ok(view) = View::new(frame) else {
            self.lost();
            self.before = None;
            return;
        };
        let sound = view.judge_men(tell);
        view.judge_transform(tell);
        let followed = match self.before.take() {
            Some(before) => self.follow(&before, &view, tell),
            None => None,
        };
        let board = match followed {
            Some(board) => Some(board),
            None => {
                self.repetitions.clear();
                if sound { set_up(&view, tell) } else { None }
            }
        };
        if view.format.is_canonical() {
            self.canonical.judge(&view, tell);
        }
        self.repetitions.judge(&view, board.as_ref(), tell);
        let mut open = false;
        match &board {
            Some(board) => {
                let legal;
                (legal, open) = self.legal_moves(&view, board, &marks);
                marks.judge(frame, &legal, tell);
                policy::judge_indices(frame, &legal, tell);
            }
            None => policy::judge_indices(frame, &marks.legal, tell),
        }
        self.before = Some(Step { view, board, open });
    }

    fn lost(&mut self) {
        self.repetitions.clear();
        self.canonical.clear();
    }

    /// The position of `now`, played from the one before; `None` where no move leads there.
    fn follow(&mut self, before: &Step<'_>, now: &View<'_>, tell: &mut Tell<'_>) -> Option<Board> {
        let (was, frame) = (&before.view, now.frame);
        if was.frame.version() != frame.version() {
            let (was, is) = (was.frame.version(), frame.version());
            tell.breach(Rule::Version, at::VERSION, || format!("version {is} in a game of version {was}"));
        }
        if was.format != now.format {
            let (was, is) = (was.format.value(), now.format.value());
            tell.breach(Rule::InputFormat, at::INPUT_FORMAT, || format!("input_format {is} in a game that has {was}"));
            self.lost();
            return None;
        }
        if !now.format.is_canonical() {
            history::shifted(was.frame, frame, tell);
        }
        if was.black == now.black {
            let side = if now.black { "black" } else { "white" };
            let offset = if now.format.is_canonical() { at::INVARIANCE_INFO } else { at::SIDE_TO_MOVE_OR_ENPASSANT };
            tell.breach(Rule::SideToMove, offset, || format!("{side} is to move twice in a row"));
            tell.breach(Rule::Moves, at::PLANES, || format!("no move leads here: {side} is to move twice in a row"));
            self.lost();
            return None;
        }
        let played = before.board.as_ref().and_then(|board| self.played(board, was.frame, &now.placement()));
        let Some((index, played, next)) = played else {
            let lost = if before.board.is_some() { "" } else { ", which holds no position" };
            tell.breach(Rule::Moves, at::PLANES, || format!("no legal move leads here from the frame before{lost}"));
            self.canonical.clear();
            return None;
        };
        let told = was.frame.played_idx();
        let other = || was.transform.index(entry(was, played), PolicyMapping::HalfTurn);
        if was.frame.visits() > 0 && told != index && !(before.open && other() == Some(told)) {
            tell.breach_before(Rule::PlayedIdx, at::PLAYED_IDX, || {
                format!(
                    "played_idx is {told} ({}), but the next position comes from {index} ({})",
                    policy::name(usize::from(told)),
                    policy::name(usize::from(index))
                )
            });
        }
        consequences(now, &next, tell);
        Some(next)
    }

    /// The legal move that leads from `board` to `to`, the one that the frame names first; and the position then.
    fn played(&self, board: &Board, from: Frame<'_>, to: &Placement) -> Option<(u16, Move, Board)> {
        let us = board.side_to_move() as usize;
        let left = board.colors(board.side_to_move()).0 & !to.colors[us];
        let leads = |(index, played): &(u16, Move)| {
            // The man that moved is gone from its square; a castled king may stand where its rook stood, or stay.
            let castles = board.colors(board.side_to_move()).has(played.to);
            if left >> played.from as u32 & 1 == 0 && !castles {
                return None;
            }
            let mut next = board.clone();
            next.play_unchecked(*played);
            (Placement::of(&next) == *to).then_some((*index, *played, next))
        };
        let named = self.legal.iter().find(|(index, _)| *index == from.played_idx());
        named.and_then(leads).or_else(|| self.legal.iter().find_map(leads))
    }

    /// Lists the legal moves of a position for the next step; their indices, and whether these could be others.
    fn legal_moves(&mut self, view: &View<'_>, board: &Board, marks: &Marks) -> (Indices, bool) {
        if !view.transform.transposes() {
            return (self.list(view, board, PolicyMapping::AsPlanes), false);
        }
        // Writers differ in how they index moves under a transposed board: whatever fits the policy better.
        let turned = self.list(view, board, PolicyMapping::HalfTurn);
        let as_planes = self.list(view, board, PolicyMapping::AsPlanes);
        let (turned_by, by) = (turned.distance(&marks.legal), as_planes.distance(&marks.legal));
        if turned_by < by {
            return (self.list(view, board, PolicyMapping::HalfTurn), false);
        }
        (as_planes, turned_by == by)
    }

    fn list(&mut self, view: &View<'_>, board: &Board, mapping: PolicyMapping) -> Indices {
        self.legal.clear();
        let mut indices = Indices::NONE;
        board.generate_moves(|moves| {
            for played in moves {
                if let Some(index) = view.transform.index(entry(view, played), mapping) {
                    indices.add(usize::from(index));
                    self.legal.push((index, played));
                }
            }
            false
        });
        indices
    }
}

/// A move as the side to move sees it.
fn entry(view: &View<'_>, played: Move) -> Entry {
    let turn = if view.black { 56 } else { 0 };
    let promotion = match played.promotion {
        Some(Piece::Queen) => Some(Promotion::Queen),
        Some(Piece::Rook) => Some(Promotion::Rook),
        Some(Piece::Bishop) => Some(Promotion::Bishop),
        _ => None,
    };
    Entry { from: played.from as u8 ^ turn, to: played.to as u8 ^ turn, promotion }
}

/// Tells where the bytes after the planes differ from what the move left.
fn consequences(now: &View<'_>, board: &Board, tell: &mut Tell<'_>) {
    let us = board.side_to_move();
    let stored = |file: Option<File>| match (file, now.format) {
        (None, _) => 0,
        (Some(_), InputFormat::Classical) => 1,
        (Some(file), _) => 1u8 << file as u8,
    };
    let rights = [us, !us].map(|color| *board.castle_rights(color)).map(|rights| [rights.long, rights.short]);
    for ((found, expected), (name, offset)) in now.rights().iter().zip(rights.as_flattened()).zip(RIGHTS) {
        let expected = stored(*expected);
        if *found != expected {
            tell.breach(Rule::Castling, offset, || format!("{name} is {found}; after the move it is {expected}"));
        }
    }
    let (found, expected) = (now.frame.rule50_count(), board.halfmove_clock());
    if found != expected && found <= 100 {
        tell.breach(Rule::Rule50, at::RULE50_COUNT, || {
            format!("rule50_count is {found}; after the move it is {expected}")
        });
    }
    if now.format.is_canonical() {
        let passing = capturable(board).map_or(0, |file| 1u8 << file as u8);
        let expected = if now.transform.flips() { passing.reverse_bits() } else { passing };
        let found = now.frame.side_to_move_or_enpassant();
        if found != expected {
            tell.breach(Rule::EnPassant, at::SIDE_TO_MOVE_OR_ENPASSANT, || {
                format!("en-passant byte {found:#04x}; after the move it is {expected:#04x}")
            });
        }
    }
}

/// The file of a pawn that just moved two squares, if a pawn of the side to move is beside it.
fn capturable(board: &Board) -> Option<File> {
    let file = board.en_passant()?;
    let us = board.side_to_move();
    let pawns = board.colored_pieces(us, Piece::Pawn) & Rank::Fifth.relative_to(us).bitboard();
    (pawns & file.adjacent()).next_square().map(|_| file)
}

/// The position of a frame alone; tells why where it is none.
fn set_up(view: &View<'_>, tell: &mut Tell<'_>) -> Option<Board> {
    use cozy_chess::BoardBuilderError as Fault;
    // Malformed bytes are reported by the rules that own them.
    let mut builder = board::Board::from_frame(&view.frame).ok()?.builder();
    loop {
        match board::build(&builder) {
            Ok(board) => return Some(board),
            Err(Fault::InvalidCastlingRights) => {
                tell.breach(Rule::Castling, at::CASTLING_US_OOO, || {
                    format!("castling rights {:?}, but no king and rook stand so", view.rights())
                });
                builder.castle_rights = [CastleRights::EMPTY; 2];
            }
            Err(Fault::InvalidEnPassant) => {
                // Elsewhere it was only guessed from the board before.
                if view.format.is_canonical() {
                    let byte = view.frame.side_to_move_or_enpassant();
                    tell.breach(Rule::EnPassant, at::SIDE_TO_MOVE_OR_ENPASSANT, || {
                        format!("en-passant byte {byte:#04x}, but no pawn can have moved two squares there")
                    });
                }
                builder.en_passant = None;
            }
            Err(_) => {
                let side = if view.black { "white" } else { "black" };
                tell.breach(Rule::Position, at::PLANES, || format!("{side} just moved and is in check"));
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pawn_beside_makes_a_double_step_capturable() {
        let board = |fen: &str| fen.parse::<Board>().unwrap();
        assert_eq!(capturable(&board("4k3/8/8/8/6Pp/8/8/K7 b - g3 0 1")), Some(File::G));
        assert_eq!(capturable(&board("4k3/8/8/8/6Pb/8/8/K7 b - g3 0 1")), None);
        assert_eq!(capturable(&board("4k3/8/8/8/p5P1/8/8/K7 b - g3 0 1")), None);
    }
}
