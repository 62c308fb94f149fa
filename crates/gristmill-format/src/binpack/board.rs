//! Men as a file has them -> a board that plays moves by the format's rules: pins do not matter, rooks may start anywhere.
//! Refuses what cannot be a position or a move; never plays one that it did not check.

use cozy_chess::{BitBoard, Color, Square};
use cozy_chess::{
    get_bishop_moves, get_king_moves, get_knight_moves, get_pawn_attacks, get_pawn_quiets, get_rook_moves,
};
use gristmill_bytes::error::{Error, Kind, Result};

use super::men::{Men, Move, Sort};

/// First byte of the men, in a stem and in a record.
const PCS: u64 = 8;

/// What stands for no square.
const NOWHERE: u8 = 64;

/// A pawn that has just made a double step and can be taken in passing.
const PASSING: u8 = 12;
/// Rooks that may castle: White's, and one more for Black's.
const RIGHT: u8 = 13;
/// The black king where Black moves.
const BLACK_MOVES: u8 = 15;

const FIRST_RANK: u64 = 0xff;

/// Who stands where, who moves, who may castle, and who can be taken in passing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Board {
    men: Men,
    /// The men of White and of Black.
    sides: [u64; 2],
    sorts: [u64; 6],
    /// Rooks that may castle.
    rights: u64,
    /// The pawn that can be taken in passing.
    passing: u8,
    black: bool,
}

/// The bit of a square.
fn bit(square: u8) -> u64 {
    1 << (square & 63)
}

/// The square of the lowest set bit. At least one bit must be set.
fn lowest(mask: u64) -> u8 {
    mask.trailing_zeros() as u8 & 63
}

/// The square of set bit `i`, counted from 0 at the lowest. More than `i` bits must be set.
fn nth(mut mask: u64, i: u32) -> u8 {
    for _ in 0..i {
        mask &= mask - 1;
    }
    lowest(mask)
}

fn square(square: u8) -> Square {
    Square::index(usize::from(square & 63))
}

fn color(black: bool) -> Color {
    if black { Color::Black } else { Color::White }
}

/// The name of a square.
fn name(square: u8) -> String {
    self::square(square).to_string()
}

/// What four bits say: sort, and whether Black's.
fn sort_of(nibble: u8, square: u8) -> (usize, bool) {
    match nibble {
        0..PASSING => (usize::from(nibble >> 1), nibble & 1 == 1),
        PASSING => (Sort::Pawn as usize, square >= 32),
        BLACK_MOVES => (Sort::King as usize, true),
        _ => (Sort::Rook as usize, nibble > RIGHT),
    }
}

fn wrong(detail: impl Into<String>) -> Error {
    Error::new(Kind::OutOfRange, detail)
}

impl Board {
    /// Makes the board of these men.
    ///
    /// Errors: `OutOfRange` with the byte of the record or stem for what cannot be a position.
    pub fn new(men: Men) -> Result<Self> {
        let count = men.occ.count_ones();
        if !(2..=32).contains(&count) {
            return Err(wrong(format!("{count} men on the board, expected 2 to 32")).at_byte(0));
        }
        let mut board = Board { men, sides: [0; 2], sorts: [0; 6], rights: 0, passing: NOWHERE, black: false };
        let (mut left, mut pcs) = (men.occ, men.pcs);
        for i in 0..u64::from(count) {
            let (at, nibble) = (lowest(left), (pcs & 15) as u8);
            (left, pcs) = (left & (left - 1), pcs >> 4);
            let (sort, black) = sort_of(nibble, at);
            board.sides[usize::from(black)] |= bit(at);
            board.sorts[sort] |= bit(at);
            match nibble {
                PASSING if board.passing != NOWHERE => {
                    return Err(wrong("a second pawn that has just made a double step").at_byte(PCS + i / 2));
                }
                PASSING => board.passing = at,
                RIGHT.. if nibble == BLACK_MOVES => board.black = true,
                RIGHT.. => board.rights |= bit(at),
                _ => {}
            }
        }
        if pcs != 0 {
            let byte = PCS + u64::from(count) / 2;
            return Err(wrong(format!("a man without a square, beyond the {count} on the board")).at_byte(byte));
        }
        board.check().map_err(|e| e.at_byte(PCS))?;
        Ok(board)
    }

    /// That it can be a position.
    fn check(&self) -> Result<()> {
        let pawns = self.sorts[Sort::Pawn as usize] & (FIRST_RANK | FIRST_RANK << 56);
        if pawns != 0 {
            return Err(wrong(format!("a pawn on {}, expected none on the first or last rank", name(lowest(pawns)))));
        }
        for (side, men) in [("White", self.sides[0]), ("Black", self.sides[1])] {
            let (kings, men) = ((men & self.sorts[Sort::King as usize]).count_ones(), men.count_ones());
            if kings != 1 || men > 16 {
                return Err(wrong(format!("{side} has {kings} kings and {men} men, expected 1 and at most 16")));
            }
        }
        if self.kings_touch() {
            return Err(wrong(format!(
                "kings side by side, on {} and {}",
                name(self.king(false)),
                name(self.king(true))
            )));
        }
        for black in [false, true] {
            let (king, rooks) = (self.king(black), self.rights & self.sides[usize::from(black)]);
            let home = if black { FIRST_RANK << 56 } else { FIRST_RANK };
            let below = bit(king) - 1;
            let many = (rooks & below).count_ones() > 1 || (rooks & !below).count_ones() > 1;
            if rooks != 0 && (bit(king) & home == 0 || rooks & !home != 0 || many) {
                let detail = format!(
                    "a rook on {} that may castle, with its king on {}: expected both at home, and one rook on each side",
                    name(lowest(rooks)),
                    name(king)
                );
                return Err(wrong(detail));
            }
        }
        let (passed, rank) = (self.passing, if self.black { 3 } else { 4 });
        if passed != NOWHERE && (passed / 8 != rank || self.men.occ & bit(passed ^ 8) != 0) {
            return Err(wrong(format!("a pawn on {} that cannot have made a double step just now", name(passed))));
        }
        Ok(())
    }

    /// The men, as files have them.
    pub fn men(&self) -> &Men {
        &self.men
    }

    /// Occupied squares.
    pub fn occ(&self) -> u64 {
        self.men.occ
    }

    /// Whether Black moves.
    pub fn black(&self) -> bool {
        self.black
    }

    /// Whether a man of the side that does not move stands there.
    pub fn other(&self, square: u8) -> bool {
        self.sides[usize::from(!self.black)] & bit(square) != 0
    }

    /// Each man by square, its sort, and whether it is White's.
    pub fn placed(&self) -> impl Iterator<Item = (u8, Sort, bool)> {
        let (mut left, mut pcs) = (self.men.occ, self.men.pcs);
        std::iter::from_fn(move || {
            let square = (left != 0).then(|| lowest(left))?;
            let (sort, black) = sort_of((pcs & 15) as u8, square);
            (left, pcs) = (left & (left - 1), pcs >> 4);
            Some((square, Sort::ALL[sort], !black))
        })
    }

    /// The same as the side to move sees it, its own men below: square, sort, and whether it is its own, by square.
    pub fn seen(&self) -> impl Iterator<Item = (u8, Sort, bool)> {
        let (own, turn) = (self.own(), if self.black { 56 } else { 0 });
        let mut left = if self.black { self.men.occ.swap_bytes() } else { self.men.occ };
        std::iter::from_fn(move || {
            let seen = (left != 0).then(|| lowest(left))?;
            left &= left - 1;
            let square = seen ^ turn;
            Some((seen, Sort::ALL[self.sort_at(square)], own & bit(square) != 0))
        })
    }

    /// Squares of the rooks that may castle.
    pub fn rights(&self) -> u64 {
        self.rights
    }

    /// The square on which a pawn can be taken in passing.
    pub fn passing(&self) -> Option<u8> {
        (self.passing != NOWHERE).then_some(self.passing ^ 8)
    }

    fn own(&self) -> u64 {
        self.sides[usize::from(self.black)]
    }

    fn king(&self, black: bool) -> u8 {
        lowest(self.sorts[Sort::King as usize] & self.sides[usize::from(black)])
    }

    fn kings_touch(&self) -> bool {
        get_king_moves(square(self.king(false))).has(square(self.king(true)))
    }

    /// Whether the side to move is in check.
    pub fn in_check(&self) -> bool {
        self.attacked(self.king(self.black), !self.black, self.men.occ, 0)
    }

    /// Whether a side attacks a square while `occ` is occupied. Men on the squares of `without` attack nothing.
    fn attacked(&self, at: u8, by_black: bool, occ: u64, without: u64) -> bool {
        let men = |sort: Sort| BitBoard(self.sorts[sort as usize] & self.sides[usize::from(by_black)] & !without);
        let (at, occ, queens) = (square(at), BitBoard(occ), men(Sort::Queen));
        let hits = get_pawn_attacks(at, color(!by_black)) & men(Sort::Pawn)
            | get_knight_moves(at) & men(Sort::Knight)
            | get_king_moves(at) & men(Sort::King)
            | get_bishop_moves(at, occ) & (men(Sort::Bishop) | queens)
            | get_rook_moves(at, occ) & (men(Sort::Rook) | queens);
        !hits.is_empty()
    }

    /// The sort of the man on an occupied square.
    fn sort_at(&self, at: u8) -> usize {
        sort_of(self.nibble(at), at).0
    }

    fn place(&self, at: u8) -> u32 {
        4 * (self.men.occ & (bit(at) - 1)).count_ones()
    }

    fn nibble(&self, at: u8) -> u8 {
        (self.men.pcs >> self.place(at)) as u8 & 15
    }

    fn set(&mut self, at: u8, nibble: u8) {
        let place = self.place(at);
        self.men.pcs = self.men.pcs & !(15 << place) | u128::from(nibble) << place;
    }

    fn lift(&mut self, at: u8) {
        let (place, gone) = (self.place(at), !bit(at));
        let low = self.men.pcs & ((1 << place) - 1);
        self.men.pcs = low | self.men.pcs >> place >> 4 << place;
        self.men.occ &= gone;
        self.sides.iter_mut().for_each(|side| *side &= gone);
        self.sorts.iter_mut().for_each(|sort| *sort &= gone);
    }

    fn put(&mut self, at: u8, sort: usize, black: bool) {
        let place = self.place(at);
        let low = self.men.pcs & ((1 << place) - 1);
        let nibble = 2 * sort as u128 + u128::from(black);
        self.men.pcs = low | nibble << place | (self.men.pcs >> place) << place << 4;
        self.men.occ |= bit(at);
        self.sides[usize::from(black)] |= bit(at);
        self.sorts[sort] |= bit(at);
    }

    /// Where a man of the side to move can go, castling aside.
    fn targets(&self, from: u8, sort: usize) -> u64 {
        let (own, occ, at) = (self.own(), BitBoard(self.men.occ), square(from));
        match Sort::ALL[sort] {
            Sort::Pawn => {
                let passing = self.passing().map_or(0, bit);
                let taken = get_pawn_attacks(at, color(self.black)).0 & (self.men.occ & !own | passing);
                taken | get_pawn_quiets(at, color(self.black), occ).0
            }
            Sort::Knight => get_knight_moves(at).0 & !own,
            Sort::Bishop => get_bishop_moves(at, occ).0 & !own,
            Sort::Rook => get_rook_moves(at, occ).0 & !own,
            Sort::Queen => (get_bishop_moves(at, occ).0 | get_rook_moves(at, occ).0) & !own,
            Sort::King => get_king_moves(at).0 & !own,
        }
    }

    /// Whether a pawn there promotes when it moves.
    fn promotes(&self, from: u8, sort: usize) -> bool {
        sort == Sort::Pawn as usize && from / 8 == if self.black { 1 } else { 6 }
    }

    /// How many men the side to move has: one of them moves.
    pub fn movers(&self) -> u32 {
        self.own().count_ones()
    }

    /// Man `i` of the side to move, counted from the lowest square, and how many moves it has. Callers check `i` first.
    pub fn mover(&self, i: u32) -> Mover {
        let from = nth(self.own(), i);
        let sort = self.sort_at(from);
        let targets = self.targets(from, sort);
        let ways = targets.count_ones();
        let ways = match Sort::ALL[sort] {
            Sort::Pawn if self.promotes(from, sort) => 4 * ways,
            Sort::King => ways + (self.rights & self.own()).count_ones(),
            _ => ways,
        };
        Mover { from, sort, targets, ways }
    }

    /// Move `i` of a man, counted as the format counts them. The man must have more than `i` moves.
    pub fn way(&self, mover: &Mover, i: u32) -> Move {
        let Mover { from, sort, targets, .. } = *mover;
        if self.promotes(from, sort) {
            return Move::of(1, from, nth(targets, i / 4), (i % 4) as u16);
        }
        let plain = targets.count_ones();
        if i >= plain {
            return Move::of(2, from, nth(self.rights & self.own(), i - plain), 0);
        }
        let to = nth(targets, i);
        let passing = sort == Sort::Pawn as usize && self.passing() == Some(to);
        Move::of(if passing { 3 } else { 0 }, from, to, 0)
    }

    /// The numbers of a move, which was checked: the man, how many ways it has, and which of them it takes.
    pub fn number(&self, played: Move) -> (u32, u32, u32) {
        let below = |mask: u64, at: u8| (mask & (bit(at) - 1)).count_ones();
        let man = below(self.own(), played.from());
        let mover = self.mover(man);
        let way = match (played.promotion(), played.is_castling()) {
            (Some(_), _) => 4 * below(mover.targets, played.to()) + u32::from(played.0 & 3),
            (_, true) => mover.targets.count_ones() + below(self.rights & self.own(), played.to()),
            _ => below(mover.targets, played.to()),
        };
        (man, mover.ways, way)
    }

    /// That a move can be played here; none always can.
    ///
    /// Errors: `OutOfRange`.
    pub fn check_move(&self, played: Move) -> Result<()> {
        let (from, to) = (played.from(), played.to());
        let refuse = || wrong(format!("the move {}{} ({:#06x}) cannot be played here", name(from), name(to), played.0));
        if played == Move::NONE {
            return Ok(());
        }
        if self.own() & bit(from) == 0 || (played.promotion().is_none() && played.0 & 3 != 0) {
            return Err(refuse());
        }
        let sort = self.sort_at(from);
        if played.is_castling() {
            if sort != Sort::King as usize || self.rights & self.own() & bit(to) == 0 {
                return Err(refuse());
            }
            return self.check_way(from, to);
        }
        let passing = sort == Sort::Pawn as usize && self.passing() == Some(to);
        let fits = self.promotes(from, sort) == played.promotion().is_some() && passing == played.is_passing();
        if !fits || self.targets(from, sort) & bit(to) == 0 {
            return Err(refuse());
        }
        if self.king(!self.black) == to {
            return Err(wrong(format!("the move {}{} takes the king", name(from), name(to))));
        }
        Ok(())
    }

    /// Where king and rook land.
    fn castled(from: u8, rook: u8) -> (u8, u8) {
        let home = from & 56;
        if rook > from { (home + 6, home + 5) } else { (home + 2, home + 3) }
    }

    /// That nobody stands where king and rook pass or land.
    fn check_way(&self, from: u8, rook: u8) -> Result<()> {
        let (king, beside) = Board::castled(from, rook);
        let ends = [from, rook, king, beside];
        let (first, last) = (ends.iter().min(), ends.iter().max());
        let (first, last) = (first.copied().unwrap_or(0), last.copied().unwrap_or(0));
        let way = (bit(first) - 1) ^ (bit(last) | (bit(last) - 1));
        if self.men.occ & way & !bit(from) & !bit(rook) != 0 {
            return Err(wrong(format!("castling from {} with the rook on {} over other men", name(from), name(rook))));
        }
        Ok(())
    }

    /// Plays a move that [`Board::way`] gave or [`Board::check_move`] let pass; whether it took a man or moved a pawn.
    ///
    /// Errors: `OutOfRange` for castling over men, for taking the king, and for kings that come to stand side by side.
    pub fn play(&mut self, played: Move) -> Result<bool> {
        let (from, to, black) = (played.from(), played.to(), self.black);
        let sort = self.sort_at(from);
        if self.passing != NOWHERE {
            self.set(self.passing, u8::from(!black));
        }
        let passed = std::mem::replace(&mut self.passing, NOWHERE);
        let mut final_one = sort == Sort::Pawn as usize;
        if played.is_castling() {
            self.check_way(from, to)?;
            let (king, rook) = Board::castled(from, to);
            self.lift(from);
            self.lift(to);
            self.put(king, sort, black);
            self.put(rook, Sort::Rook as usize, black);
        } else {
            if self.men.occ & bit(to) != 0 {
                if self.king(!black) == to {
                    return Err(wrong(format!("the move {}{} takes the king", name(from), name(to))));
                }
                self.lift(to);
                final_one = true;
            } else if played.is_passing() {
                self.lift(passed);
            }
            self.lift(from);
            self.put(to, played.promotion().map_or(sort, |sort| sort as usize), black);
        }
        self.rights &= !(bit(from) | bit(to));
        if sort == Sort::King as usize {
            let mut rooks = self.rights & self.own();
            self.rights &= !rooks;
            while rooks != 0 {
                self.set(lowest(rooks), 2 * Sort::Rook as u8 + u8::from(black));
                rooks &= rooks - 1;
            }
            if self.kings_touch() {
                return Err(wrong(format!("the move {}{} puts kings side by side", name(from), name(to))));
            }
        }
        self.black = !black;
        if sort == Sort::Pawn as usize && from ^ to == 16 && self.can_be_taken(to) {
            self.set(to, PASSING);
            self.passing = to;
        }
        let king = self.king(true);
        self.set(king, if self.black { BLACK_MOVES } else { 2 * Sort::King as u8 + 1 });
        Ok(final_one)
    }

    /// Whether the side to move may take the pawn in passing that has just come there, its own king safe after it.
    fn can_be_taken(&self, pawn: u8) -> bool {
        let behind = square(pawn ^ 8);
        let mut takers = get_pawn_attacks(behind, color(!self.black)).0 & self.sorts[Sort::Pawn as usize] & self.own();
        while takers != 0 {
            let from = takers & takers.wrapping_neg();
            takers &= takers - 1;
            let occ = self.men.occ & !from & !bit(pawn) | bit(pawn ^ 8);
            if !self.attacked(self.king(self.black), !self.black, occ, bit(pawn)) {
                return true;
            }
        }
        false
    }
}

/// A man that moves.
#[derive(Debug, Clone, Copy)]
pub struct Mover {
    from: u8,
    sort: usize,
    targets: u64,
    /// How many ways it has to move.
    pub ways: u32,
}
