//! A set of tables and a position -> its value, and the plies to the next capture or pawn move.
//! Needs no lock and keeps no state: any number of threads may probe, any number of sets may live side by side.

use std::collections::BTreeMap;

use cozy_chess::{Board, Color, Move, Piece, Rank, Square};

use super::coverage::{Coverage, Present, close, coverage};
use super::material::Material;
use super::table::Table;
use super::wdl::{Unprobed, Wdl};
use crate::chess::board::kings_touch;
use crate::error::{Error, Kind};

/// The tables of one material.
#[derive(Debug)]
struct Entry<B> {
    wdl: Table<B>,
    /// Absent when its file is, or when some table that a move leads to is.
    dtz: Option<Table<B>>,
}

/// A set of Syzygy tables; each position that it answers is covered with all its captures and promotions.
#[derive(Debug)]
pub struct Tables<B> {
    entries: Vec<Entry<B>>,
    /// Material as it stands on a board -> place in `entries`, and whether Black has the first side's men. Sorted.
    by_material: Vec<(Material, u32, bool)>,
    coverage: Coverage,
}

/// Value of a position, and what kind of move reaches it.
struct Resolved {
    wdl: Wdl,
    /// Whether a capture wins, or capturing in passing is the only best move.
    by_capture: bool,
}

impl<B: AsRef<[u8]>> Tables<B> {
    /// Makes a set of tables. Of two of the same material and kind the first counts.
    pub fn new(tables: impl IntoIterator<Item = Table<B>>) -> Self {
        let mut found: BTreeMap<Material, [Option<Table<B>>; 2]> = BTreeMap::new();
        for table in tables {
            let slot = &mut found.entry(table.material().ordered()).or_default()[table.kind() as usize];
            slot.get_or_insert(table);
        }
        let present =
            |tables: &[Option<Table<B>>; 2]| Present { tables: [tables[0].is_some(), tables[1].is_some()], wdl: false };
        let mut here = found.iter().map(|(m, tables)| (*m, present(tables))).collect();
        close(&mut here);
        let mut set = Tables { entries: Vec::new(), by_material: Vec::new(), coverage: coverage(&here) };
        for (material, [wdl, dtz]) in found {
            let Some(wdl) = wdl.filter(|_| here[&material].wdl) else { continue };
            let named = wdl.material();
            let number = u32::try_from(set.entries.len()).unwrap_or(u32::MAX);
            set.by_material.push((named, number, false));
            if !named.is_symmetric() {
                set.by_material.push((named.swapped(), number, true));
            }
            let dtz = dtz.filter(|_| here[&material].dtz());
            set.entries.push(Entry { wdl, dtz });
        }
        set.by_material.sort_unstable_by_key(|(material, ..)| *material);
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

    fn entry(&self, board: &Board) -> Result<(&Entry<B>, bool), Unprobed> {
        let material = Material::of(board);
        let found = self.by_material.binary_search_by_key(&material, |(m, ..)| *m);
        let (_, number, swapped) = self.by_material[found.map_err(|_| Unprobed::Missing(material.ordered()))?];
        Ok((&self.entries[number as usize], swapped))
    }

    fn stored(&self, board: &Board) -> Result<Wdl, Unprobed> {
        if board.occupied().len() == 2 {
            return Ok(Wdl::Draw);
        }
        let (entry, swapped) = self.entry(board)?;
        entry.wdl.stored_wdl(board, swapped).map_err(Unprobed::Corrupt)
    }

    /// The better of what is stored and of what captures reach, once it is known to lie between `alpha` and `beta`.
    fn search(&self, board: &Board, mut alpha: Wdl, beta: Wdl) -> Result<Wdl, Unprobed> {
        for (capture, _) in captures(board) {
            let value = -self.search(&played(board, capture), -beta, -alpha)?;
            if value > alpha {
                if value >= beta {
                    return Ok(value);
                }
                alpha = value;
            }
        }
        Ok(self.stored(board)?.max(alpha))
    }

    fn resolve(&self, board: &Board) -> Result<Resolved, Unprobed> {
        let (mut best, mut in_passing) = (None::<Wdl>, None::<Wdl>);
        for (capture, passing) in captures(board) {
            let alpha = best.unwrap_or(Wdl::Loss);
            let wdl = -self.search(&played(board, capture), Wdl::Loss, -alpha)?;
            if wdl == Wdl::Win {
                return Ok(Resolved { wdl, by_capture: true });
            }
            let slot = if passing { &mut in_passing } else { &mut best };
            *slot = (*slot).max(Some(wdl));
        }
        let stored = self.stored(board)?;
        if in_passing > best {
            if in_passing > Some(stored) {
                return Ok(Resolved { wdl: in_passing.unwrap_or(stored), by_capture: true });
            }
            best = in_passing;
        }
        if let Some(wdl) = best.filter(|best| *best >= stored) {
            return Ok(Resolved { wdl, by_capture: wdl > Wdl::Draw });
        }
        // Tables know no capture in passing: what they take for stalemate is none when that is the only move.
        if let Some(wdl) = in_passing.filter(|_| stored == Wdl::Draw && only_in_passing(board)) {
            return Ok(Resolved { wdl, by_capture: true });
        }
        Ok(Resolved { wdl: stored, by_capture: false })
    }

    fn plies(&self, board: &Board, depth: u32) -> Result<i32, Unprobed> {
        let Resolved { wdl, by_capture } = self.resolve(board)?;
        if wdl == Wdl::Draw {
            return Ok(0);
        }
        let zeroing = wdl.plies_when_zeroing();
        if by_capture {
            return Ok(zeroing);
        }
        let wins = wdl > Wdl::Draw;
        if wins {
            for pawn_move in moves(board).into_iter().filter(|m| is_pawn(board, *m) && !is_capture(board, *m)) {
                if -self.resolve(&played(board, pawn_move))?.wdl == wdl {
                    return Ok(zeroing);
                }
            }
        }
        let (entry, swapped) = self.entry(board)?;
        let table = entry.dtz.as_ref().ok_or_else(|| Unprobed::Missing(entry.wdl.material()))?;
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
