//! The older boards of a record against the records before it, and the planes that mark repeated positions.
//! Knows the game as far as it was seen; what lies before its first record cannot be judged.

use super::view::View;
use super::{Rule, Tell};
use crate::chess::frame::Frame;
use crate::chess::record::{PLANES, at};
use crate::chess::transform::{flip, mirror};

/// Boards in a record, and planes of each.
const BOARDS: usize = 8;
const PER_BOARD: usize = 13;
const REPEATED: usize = 12;

/// One board: twelve masks and the plane of repetition.
type Men = [u64; PER_BOARD];

/// The same board as the other side sees it.
fn turned(men: &Men) -> Men {
    let mut turned = *men;
    for (plane, mask) in turned.iter_mut().enumerate().take(REPEATED) {
        *mask = mirror(men[(plane + 6) % 12]);
    }
    turned
}

/// Tells where the older boards of a frame differ from the boards of the frame before (formats 1 and 2).
pub(super) fn shifted(before: Frame<'_>, now: Frame<'_>, tell: &mut Tell<'_>) {
    let words = |frame: Frame<'_>| -> [u64; PLANES] {
        let words = frame.plane_bytes().as_chunks().0;
        std::array::from_fn(|i| u64::from_le_bytes(words[i]))
    };
    let (before, mut now) = (words(before), words(now));
    let mut any = 0;
    for board in (1..BOARDS).rev() {
        for k in 0..PER_BOARD {
            let older = PER_BOARD * (board - 1);
            let expected = if k == REPEATED { before[older + k] } else { mirror(before[older + (k + 6) % 12]) };
            now[PER_BOARD * board + k] ^= expected;
            any |= now[PER_BOARD * board + k];
        }
    }
    if any == 0 {
        return;
    }
    let mut wrong: [Option<usize>; 2] = [None, None];
    for plane in (PER_BOARD..PLANES).filter(|plane| now[*plane] != 0) {
        wrong[usize::from(plane % PER_BOARD == REPEATED)].get_or_insert(plane);
    }
    for (plane, rule) in wrong.into_iter().zip([Rule::History, Rule::Repetition]) {
        if let Some(plane) = plane {
            tell.breach(rule, at::PLANES + 8 * plane, || differs(plane));
        }
    }
}

fn differs(plane: usize) -> String {
    let board = plane / PER_BOARD;
    format!("plane {plane}, of board {board}, is not that of board {} in the frame before", board - 1)
}

/// What a canonical frame's history depends on.
struct Past {
    /// As its own side to move saw it, the transform undone.
    men: Men,
    rights: [u8; 4],
    en_passant: bool,
    rule50: u8,
}

/// The frames of a game in a canonical format, latest last.
#[derive(Default)]
pub(super) struct Canonical {
    past: Vec<Past>,
}

impl Canonical {
    /// Tells what is wrong with the older boards of the next frame, and remembers it.
    pub(super) fn judge(&mut self, now: &View<'_>, tell: &mut Tell<'_>) {
        let frame = now.frame;
        let boards: [Men; BOARDS] = std::array::from_fn(|board| {
            std::array::from_fn(|k| now.transform.undo(flip(frame.plane(PER_BOARD * board + k))))
        });
        let wrong = if now.format.value() % 128 == 5 { self.repeated(&boards, now) } else { self.recent(&boards, now) };
        if let Some((board, reason)) = wrong {
            tell.breach(Rule::History, at::PLANES + 8 * PER_BOARD * board, || format!("board {board} {reason}"));
        }
        let [a, b, c, d] = now.rights();
        self.past.push(Past {
            men: boards[0],
            rights: [a, b, c, d],
            en_passant: frame.side_to_move_or_enpassant() != 0,
            rule50: frame.rule50_count(),
        });
    }

    /// Forgets what was seen: the next frame does not follow.
    pub(super) fn clear(&mut self) {
        self.past.clear();
    }

    /// The position `plies` before the next frame, as that frame's side to move sees it.
    fn seen(&self, plies: usize) -> Option<(Men, &Past)> {
        let past = &self.past[self.past.len().checked_sub(plies)?];
        Some((if plies % 2 == 1 { turned(&past.men) } else { past.men }, past))
    }

    /// Formats 3, 4 and 132: the plies before, up to the first that cannot be repeated any more.
    fn recent(&self, boards: &[Men; BOARDS], now: &View<'_>) -> Option<(usize, &'static str)> {
        let mut over = now.frame.rule50_count() == 0;
        for (h, board) in boards.iter().enumerate().skip(1) {
            let seen = self.seen(h);
            if let Some((_, past)) = &seen {
                let [a, b, c, d] = past.rights;
                let rights = if h % 2 == 1 { [c, d, a, b] } else { past.rights };
                over |= rights != now.rights() || past.en_passant;
            }
            match seen {
                _ if over && *board != [0; PER_BOARD] => return Some((h, "is there, but the history ends before it")),
                Some((men, _)) if !over && men != *board => return Some((h, "is not that of the frame so far back")),
                // What was before the game may be there or not.
                None => over |= *board == [0; PER_BOARD],
                _ => {}
            }
            over |= seen.is_some_and(|(_, past)| past.rule50 == 0);
        }
        None
    }

    /// Formats 5 and 133: repeated positions only, the latest first.
    fn repeated(&self, boards: &[Men; BOARDS], now: &View<'_>) -> Option<(usize, &'static str)> {
        let whole = usize::from(now.frame.rule50_count()) <= self.past.len();
        let mut plies = 1;
        for (h, board) in boards.iter().enumerate().skip(1) {
            if *board == [0; PER_BOARD] {
                let more = boards[h..].iter().any(|later| *later != [0; PER_BOARD]);
                return more.then_some((h, "is empty, and an older one is not"));
            }
            while self.seen(plies).is_some_and(|(men, _)| men != *board) {
                plies += 1;
            }
            if whole && plies > self.past.len() {
                return Some((h, "is none of the earlier positions in their order"));
            }
            plies += 1;
        }
        None
    }
}

/// The positions since the last capture or pawn move.
#[derive(Default)]
pub(super) struct Repetitions {
    /// Hash without en passant, and whether a pawn could be taken in passing.
    seen: Vec<(u64, bool)>,
    /// Whether `seen` goes back to that move.
    whole: bool,
}

impl Repetitions {
    /// Forgets what was seen: the next position does not follow.
    pub(super) fn clear(&mut self) {
        self.seen.clear();
        self.whole = false;
    }

    /// Tells whether the repetition plane of `now` says what the game does; `board` is its position, if it is known.
    pub(super) fn judge(&mut self, now: &View<'_>, board: Option<&cozy_chess::Board>, tell: &mut Tell<'_>) {
        let offset = at::PLANES + 8 * REPEATED;
        let plane = now.frame.plane(REPEATED);
        if plane != 0 && plane != u64::MAX {
            tell.breach(Rule::Repetition, offset, || format!("plane {REPEATED} is {plane:#x}; expected 0 or all ones"));
        }
        let Some(board) = board else { return self.clear() };
        if board.halfmove_clock() == 0 {
            self.seen.clear();
            self.whole = true;
        }
        let hash = board.hash_without_ep();
        let same = |(other, passing): &&(u64, bool)| *other == hash && !passing;
        let earlier = || self.seen.iter().rev().skip(3).step_by(2);
        let repeated = earlier().any(|other| same(&other));
        // A pawn that could be taken in passing makes a difference to some and, where it is pinned, not to others.
        let open = earlier().any(|(other, passing)| *other == hash && *passing);
        if repeated && plane == 0 {
            tell.breach(Rule::Repetition, offset, || {
                "the position occurred before, but is not marked as repeated".into()
            });
        } else if !repeated && !open && self.whole && plane != 0 {
            tell.breach(Rule::Repetition, offset, || {
                "the position is marked as repeated, but never occurred before".into()
            });
        }
        self.seen.push((hash, board.en_passant().is_some()));
    }
}
