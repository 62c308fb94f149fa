//! A set of tables and a position -> its value, and the plies to the next capture or pawn move.
//! Needs no lock and keeps no state: any number of threads may probe, any number of sets may live side by side.

use std::collections::BTreeMap;

use cozy_chess::{Board, Color, Move, Piece, Rank, Square};
use gristmill_bytes::error::{Error, Kind};

use super::coverage::{Coverage, coverage};
use super::material::Material;
use super::table::{Table, TableKind};
use super::wdl::{Unprobed, Wdl};
use crate::chess::board::kings_touch;

/// The tables of one material, by kind.
type Entry<B> = [Option<Table<B>>; 2];

/// A set of Syzygy tables. It answers for a position wherever the tables that its answer rests on are there.
#[derive(Debug)]
pub struct Tables<B> {
    entries: Vec<Entry<B>>,
    /// Material as it stands on a board -> place in `entries`. Sorted.
    by_material: Vec<(Material, u32)>,
    coverage: Coverage,
}

/// Value of a position, and what kind of move reaches it.
struct Resolved {
    wdl: Wdl,
    /// Whether a capture wins, or capturing in passing is the only best move. Where a table is missing that would tell, why.
    by_capture: Result<bool, Unprobed>,
}

impl<B: AsRef<[u8]>> Tables<B> {
    /// Makes a set of tables. Of two of the same material and kind the first counts.
    pub fn new(tables: impl IntoIterator<Item = Table<B>>) -> Self {
        let mut found: BTreeMap<Material, Entry<B>> = BTreeMap::new();
        for table in tables {
            let slot = &mut found.entry(table.material().ordered()).or_default()[table.kind() as usize];
            slot.get_or_insert(table);
        }
        let here = found.iter().map(|(m, tables)| (*m, tables.each_ref().map(Option::is_some))).collect();
        let mut set = Tables { entries: Vec::new(), by_material: Vec::new(), coverage: coverage(&here) };
        for (material, entry) in found {
            let number = u32::try_from(set.entries.len()).unwrap_or(u32::MAX);
            set.by_material.push((material, number));
            if !material.is_symmetric() {
                set.by_material.push((material.swapped(), number));
            }
            set.entries.push(entry);
        }
        set.by_material.sort_unstable_by_key(|(material, _)| *material);
        set
    }

    /// What it covers.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// The value of `board` for the side to move; two bare kings are a draw. The fifty-move counter is taken as 0.
    pub fn wdl(&self, board: &Board) -> Result<Wdl, Unprobed> {
        check(board, &self.coverage)?;
        Ok(self.resolve(board)?.wdl)
    }

    /// Plies to the next capture or pawn move when both sides play by it: positive for the side that wins, 0 for a draw,
    /// 101 and more where the fifty-move rule spoils the win. May be one too few, as tables round. A side that is mated
    /// has -1.
    pub fn dtz(&self, board: &Board) -> Result<i32, Unprobed> {
        check(board, &self.coverage)?;
        self.plies(board, 0)
    }

    /// The table of a kind for the men of `board`, and whether Black has the first side's.
    fn table(&self, board: &Board, kind: TableKind) -> Result<(&Table<B>, bool), Unprobed> {
        let material = Material::of(board);
        let found = self.by_material.binary_search_by_key(&material, |(m, _)| *m).ok();
        let table = found.and_then(|i| self.entries[self.by_material[i].1 as usize][kind as usize].as_ref());
        let table = table.ok_or_else(|| Unprobed::Missing(material.ordered(), kind))?;
        Ok((table, table.material() != material))
    }

    fn stored(&self, board: &Board) -> Result<Wdl, Unprobed> {
        if board.occupied().len() == 2 {
            return Ok(Wdl::Draw);
        }
        let (table, swapped) = self.table(board, TableKind::Wdl)?;
        table.stored_wdl(board, swapped).map_err(Unprobed::Corrupt)
    }

    /// The better of what is stored and of what captures reach, once it is known to lie between `alpha` and `beta`.
    ///
    /// What is stored is never too high. So where the table of some capture is missing, what another capture reaches or
    /// what is stored still answers if it is as high as matters.
    fn search(&self, board: &Board, mut alpha: Wdl, beta: Wdl) -> Result<Wdl, Unprobed> {
        let mut missing = None;
        for (capture, _) in captures(board) {
            let Some(value) = unless_missing(self.search(&played(board, capture), -beta, -alpha), &mut missing)? else {
                continue;
            };
            if -value > alpha {
                if -value >= beta {
                    return Ok(-value);
                }
                alpha = -value;
            }
        }
        let stored = self.stored(board)?;
        match missing {
            Some(missing) if stored < beta => Err(missing),
            _ => Ok(stored.max(alpha)),
        }
    }

    fn resolve(&self, board: &Board) -> Result<Resolved, Unprobed> {
        let (mut best, mut in_passing, mut missing) = (None::<Wdl>, None::<Wdl>, None);
        for (capture, passing) in captures(board) {
            let alpha = best.unwrap_or(Wdl::Loss);
            let next = self.search(&played(board, capture), Wdl::Loss, -alpha);
            let Some(wdl) = unless_missing(next, &mut missing)?.map(|wdl| -wdl) else { continue };
            if wdl == Wdl::Win {
                return Ok(Resolved { wdl, by_capture: Ok(true) });
            }
            let slot = if passing { &mut in_passing } else { &mut best };
            *slot = (*slot).max(Some(wdl));
        }
        let stored = self.stored(board)?;
        if let Some(missing) = missing {
            return match stored {
                Wdl::Win => Ok(Resolved { wdl: stored, by_capture: Err(missing) }),
                _ => Err(missing),
            };
        }
        if in_passing > best {
            if in_passing > Some(stored) {
                return Ok(Resolved { wdl: in_passing.unwrap_or(stored), by_capture: Ok(true) });
            }
            best = in_passing;
        }
        if let Some(wdl) = best.filter(|best| *best >= stored) {
            return Ok(Resolved { wdl, by_capture: Ok(wdl > Wdl::Draw) });
        }
        // Tables know no capture in passing: what they take for stalemate is none when that is the only move.
        if let Some(wdl) = in_passing.filter(|_| stored == Wdl::Draw && only_in_passing(board)) {
            return Ok(Resolved { wdl, by_capture: Ok(true) });
        }
        Ok(Resolved { wdl: stored, by_capture: Ok(false) })
    }

    fn plies(&self, board: &Board, depth: u32) -> Result<i32, Unprobed> {
        let Resolved { wdl, by_capture } = self.resolve(board)?;
        if wdl == Wdl::Draw {
            return Ok(0);
        }
        let zeroing = wdl.plies_when_zeroing();
        if by_capture? {
            return Ok(zeroing);
        }
        let wins = wdl > Wdl::Draw;
        if wins {
            let mut missing = None;
            for pawn_move in moves(board).into_iter().filter(|m| is_pawn(board, *m) && !is_capture(board, *m)) {
                let next = self.resolve(&played(board, pawn_move)).map(|next| next.wdl);
                if unless_missing(next, &mut missing)?.is_some_and(|next| -next == wdl) {
                    return Ok(zeroing);
                }
            }
            missing.map_or(Ok(()), Err)?;
        }
        let (table, swapped) = self.table(board, TableKind::Dtz)?;
        if let Some(plies) = table.stored_dtz(board, swapped, wdl).map_err(Unprobed::Corrupt)? {
            return Ok(zeroing + if wins { plies } else { -plies });
        }
        if depth > 0 {
            // Every table stores one side; two in a row that store the other contradict each other.
            let text = "the table stores the plies of neither side; fetch it again";
            return Err(Unprobed::Corrupt(Error::new(Kind::Corrupt, text)));
        }
        self.plies_after_one(board, wdl, depth)
    }

    /// Plies by way of the positions one move on, where the table stores only those.
    fn plies_after_one(&self, board: &Board, wdl: Wdl, depth: u32) -> Result<i32, Unprobed> {
        let wins = wdl > Wdl::Draw;
        let mut best = if wins { i32::MAX } else { wdl.plies_when_zeroing() };
        for quiet in moves(board).into_iter().filter(|m| !is_pawn(board, *m) && !is_capture(board, *m)) {
            let next = played(board, quiet);
            let plies = -self.plies(&next, depth + 1)?;
            if wins && plies == 1 && is_mate(&next) {
                return Ok(1);
            }
            match wins {
                true if plies > 0 => best = best.min(plies + 1),
                false => best = best.min(plies - 1),
                true => {}
            }
        }
        if best == i32::MAX {
            let text = "a won position has no move that wins; fetch the tables again";
            return Err(Unprobed::Corrupt(Error::new(Kind::Corrupt, text)));
        }
        Ok(best)
    }
}

/// A value; none where a table is missing, which is kept to tell.
fn unless_missing(value: Result<Wdl, Unprobed>, missing: &mut Option<Unprobed>) -> Result<Option<Wdl>, Unprobed> {
    match value {
        Ok(value) => Ok(Some(value)),
        Err(unprobed @ Unprobed::Missing(..)) => {
            missing.get_or_insert(unprobed);
            Ok(None)
        }
        Err(unprobed) => Err(unprobed),
    }
}

/// Refuses what no table can know.
fn check(board: &Board, coverage: &Coverage) -> Result<(), Unprobed> {
    if kings_touch(board) {
        return Err(Unprobed::Illegal);
    }
    let rights = |color| {
        let rights = board.castle_rights(color);
        rights.short.is_some() || rights.long.is_some()
    };
    if rights(Color::White) || rights(Color::Black) {
        return Err(Unprobed::Castling);
    }
    let (men, most) = (board.occupied().len() as usize, coverage.most_men);
    if men > most { Err(Unprobed::TooManyMen { men, most }) } else { Ok(()) }
}

fn played(board: &Board, m: Move) -> Board {
    let mut next = board.clone();
    next.play_unchecked(m);
    next
}

fn moves(board: &Board) -> Vec<Move> {
    let mut list = Vec::with_capacity(64);
    board.generate_moves(|moves| {
        list.extend(moves);
        false
    });
    list
}

/// The square that a pawn may take in passing on.
fn passing_square(board: &Board) -> Option<Square> {
    board.en_passant().map(|file| Square::new(file, Rank::Sixth.relative_to(board.side_to_move())))
}

/// The legal captures, promotions included, and whether each is in passing.
fn captures(board: &Board) -> Vec<(Move, bool)> {
    let them = board.colors(!board.side_to_move());
    let passing = passing_square(board);
    let mut list = Vec::new();
    if them.len() < 2 {
        return list;
    }
    board.generate_moves(|mut moves| {
        let passes = passing.filter(|_| moves.piece == Piece::Pawn).map_or(cozy_chess::BitBoard::EMPTY, Into::into);
        moves.to &= them | passes;
        list.extend(moves.into_iter().map(|m| (m, passes.has(m.to))));
        false
    });
    list
}

fn is_pawn(board: &Board, m: Move) -> bool {
    board.pieces(Piece::Pawn).has(m.from)
}

fn is_capture(board: &Board, m: Move) -> bool {
    board.occupied().has(m.to) || is_pawn(board, m) && passing_square(board) == Some(m.to)
}

/// Whether every legal move takes in passing.
fn only_in_passing(board: &Board) -> bool {
    let passing = passing_square(board);
    moves(board).into_iter().all(|m| is_pawn(board, m) && Some(m.to) == passing)
}

fn is_mate(board: &Board) -> bool {
    !board.checkers().is_empty() && !board.generate_moves(|_| true)
}
