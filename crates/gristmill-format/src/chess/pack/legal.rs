//! A frame -> the policy indices of its legal moves, straight from the masks: what a packed game need not store.
//! The same moves as those of `Board` wherever that knows the position. Of anything else it never breaks, and what it says
//! is of no use: packing asks both.

use cozy_chess::{
    BitBoard, Color, Square, get_between_rays, get_bishop_moves, get_bishop_rays, get_king_moves, get_knight_moves,
    get_line_rays, get_pawn_attacks, get_rook_moves, get_rook_rays,
};

use crate::chess::board;
use crate::chess::frame::Frame;
use crate::chess::policy::{self, Promotion};
use crate::chess::record::{POLICY, at};
use crate::chess::transform::{PolicyMapping, Transform};

/// The first rank of the side to move.
const FIRST: u64 = 0xff;
/// The third: a pawn there may move on to the fourth.
const THIRD: u64 = 0xff << 16;
/// The last: where pawns promote.
const LAST: u64 = 0xff << 56;
const FILE_A: u64 = 0x0101_0101_0101_0101;
const FILE_H: u64 = FILE_A << 7;

/// A position as the side to move sees it: square `8 * rank + file`, its own first rank the lowest.
struct View {
    /// Pawns, knights, bishops, rooks, queens, king.
    own: [u64; 6],
    other: [u64; 6],
    occupied: u64,
    own_men: u64,
    king: Square,
    /// Files of the rooks that it may castle with: queenside, kingside.
    rooks: [Option<u8>; 2],
    /// File of a pawn that can be captured in passing.
    en_passant: Option<u8>,
}

/// Replaces `moves` by the policy indices of the legal moves of a frame, ascending, without reading its policy; `false`
/// where it is no position of a game.
pub(super) fn legal(frame: &Frame<'_>, mapping: PolicyMapping, moves: &mut Vec<u16>) -> bool {
    moves.clear();
    let Some((view, transform)) = View::of(frame) else { return false };
    match transform {
        Transform::NONE => view.list(moves),
        transform => view.list_under(transform, mapping, moves),
    }
    true
}

fn squares(mask: u64) -> impl Iterator<Item = Square> {
    BitBoard(mask).into_iter()
}

fn mask(square: Square) -> u64 {
    1 << square as u8
}

fn only(mask: u64) -> Option<Square> {
    mask.is_power_of_two().then(|| Square::index(mask.trailing_zeros() as usize))
}

impl View {
    fn of(frame: &Frame<'_>) -> Option<(Self, Transform)> {
        let format = frame.input_format().ok()?;
        let transform =
            if format.is_canonical() { Transform::from_bits(frame.invariance_info()) } else { Transform::NONE };
        let men: [u64; 12] = std::array::from_fn(|plane| board::current(frame, plane, transform));
        let (own, other) = (*men.first_chunk()?, *men.last_chunk()?);
        let all = |men: &[u64; 6]| men.iter().fold(0, |all, men| all | men);
        let (own_men, other_men) = (all(&own), all(&other));
        // The king of the other side does not move, but there is one.
        only(other[5])?;
        let castle = |byte: u8, corner, offset| board::rook_file(byte, corner, format, offset).ok();
        let rooks = [
            castle(frame.castling_us_ooo(), 0, at::CASTLING_US_OOO)?,
            castle(frame.castling_us_oo(), 7, at::CASTLING_US_OO)?,
        ];
        let en_passant = board::en_passant(frame, format, transform);
        let view = View { own, other, occupied: own_men | other_men, own_men, king: only(own[5])?, rooks, en_passant };
        Some((view, transform))
    }

    /// The squares that the other side attacks, through the king, too.
    fn attacked(&self) -> u64 {
        let [pawns, knights, bishops, rooks, queens, king] = self.other;
        let through = BitBoard(self.occupied & !mask(self.king));
        let mut all = (pawns & !FILE_A) >> 9 | (pawns & !FILE_H) >> 7;
        squares(knights).for_each(|from| all |= get_knight_moves(from).0);
        squares(bishops | queens).for_each(|from| all |= get_bishop_moves(from, through).0);
        squares(rooks | queens).for_each(|from| all |= get_rook_moves(from, through).0);
        squares(king).for_each(|from| all |= get_king_moves(from).0);
        all
    }

    /// Men of the other side that slide towards the king if nothing is between.
    fn sliders(&self) -> u64 {
        let [.., bishops, rooks, queens, _] = self.other;
        get_bishop_rays(self.king).0 & (bishops | queens) | get_rook_rays(self.king).0 & (rooks | queens)
    }

    /// Who gives check, and which own men stand alone between the king and a slider.
    fn checks_and_pins(&self) -> (u64, u64) {
        let [pawns, knights, ..] = self.other;
        let mut checks = get_knight_moves(self.king).0 & knights | get_pawn_attacks(self.king, Color::White).0 & pawns;
        let mut pins = 0;
        for from in squares(self.sliders()) {
            let between = get_between_rays(self.king, from).0 & self.occupied;
            if between == 0 {
                checks |= mask(from);
            } else if between.is_power_of_two() {
                pins |= between & self.own_men;
            }
        }
        (checks, pins)
    }

    /// Where the king may go, and the rooks that it may castle with.
    fn of_king(&self, in_check: bool, pins: u64) -> u64 {
        let attacked = self.attacked();
        let mut to = get_king_moves(self.king).0 & !self.own_men & !attacked;
        for (rook, [king_to, rook_to]) in self.rooks.into_iter().zip([[2, 3], [6, 5]]) {
            let Some(rook) = rook.map(|file| Square::index(file.into())) else { continue };
            let may = !in_check && mask(self.king) & FIRST != 0 && mask(rook) & self.own[3] & !pins != 0;
            let [king_to, rook_to] = [king_to, rook_to].map(Square::index);
            let safe = get_between_rays(self.king, king_to).0 | mask(king_to);
            let empty = safe | get_between_rays(self.king, rook).0 | mask(rook_to);
            if may && safe & attacked == 0 && self.occupied & !mask(self.king) & !mask(rook) & empty == 0 {
                to |= mask(rook);
            }
        }
        to
    }

    /// Whether the king is safe once the pawn on `from` has captured in passing and stands on `to`.
    fn may_pass(&self, from: Square, to: Square) -> bool {
        let taken = mask(to) >> 8;
        let [pawns, knights, bishops, rooks, queens, _] = self.other;
        let occupied = BitBoard(self.occupied & !mask(from) & !taken | mask(to));
        let attackers = get_rook_moves(self.king, occupied).0 & (rooks | queens)
            | get_bishop_moves(self.king, occupied).0 & (bishops | queens)
            | get_knight_moves(self.king).0 & knights
            | get_pawn_attacks(self.king, Color::White).0 & pawns & !taken;
        attackers == 0
    }

    /// Where the pawn on `from` may go, if it keeps to `allowed`; or in passing.
    fn of_pawn(&self, from: Square, allowed: u64) -> u64 {
        let one = mask(from) << 8 & !self.occupied;
        let two = (one & THIRD) << 8 & !self.occupied;
        let takes = get_pawn_attacks(from, Color::White).0;
        let mut to = (one | two | takes & self.occupied & !self.own_men) & allowed;
        if let Some(file) = self.en_passant {
            let passed = Square::index(40 + usize::from(file));
            if takes & mask(passed) & !self.occupied != 0 && self.may_pass(from, passed) {
                to |= mask(passed);
            }
        }
        to
    }

    /// Calls `tell` with each square that something moves from, ascending, and where to.
    fn each(&self, mut tell: impl FnMut(Square, u64)) {
        let (checks, pins) = self.checks_and_pins();
        let [pawns, knights, bishops, rooks, queens, king] = self.own;
        let goals = match only(checks) {
            Some(checker) => get_between_rays(self.king, checker).0 | checks,
            None if checks == 0 => u64::MAX,
            None => 0,
        };
        let occupied = BitBoard(self.occupied);
        let some = if goals == 0 { king } else { self.own_men };
        for from in squares(some) {
            let man = mask(from);
            if man & king != 0 {
                tell(from, self.of_king(checks != 0, pins));
                continue;
            }
            let line = if man & pins != 0 { get_line_rays(self.king, from).0 } else { u64::MAX };
            let allowed = goals & line;
            if man & pawns != 0 {
                tell(from, self.of_pawn(from, allowed));
                continue;
            }
            let mut to = 0;
            if man & knights != 0 {
                to |= get_knight_moves(from).0;
            }
            if man & (bishops | queens) != 0 {
                to |= get_bishop_moves(from, occupied).0;
            }
            if man & (rooks | queens) != 0 {
                to |= get_rook_moves(from, occupied).0;
            }
            tell(from, to & !self.own_men & allowed);
        }
    }

    /// Appends the indices of all moves. They ascend with the squares from and to; promotions follow all others.
    fn list(&self, moves: &mut Vec<u16>) {
        let mut promoting = [0; 8];
        self.each(|from, to| {
            moves.extend(squares(to).filter_map(|to| policy::index(from as u8, to as u8, None)));
            if mask(from) & self.own[0] != 0 {
                promoting[from as usize % 8] |= to & LAST;
            }
        });
        for (file, to) in (0..).zip(promoting).filter(|(_, to)| *to != 0) {
            let kinds = [Promotion::Queen, Promotion::Rook, Promotion::Bishop].map(Some);
            let each = squares(to).flat_map(|to| kinds.map(|kind| policy::index(48 + file, to as u8, kind)));
            moves.extend(each.flatten());
        }
    }

    /// The same where squares are turned.
    fn list_under(&self, transform: Transform, mapping: PolicyMapping, moves: &mut Vec<u16>) {
        // No two moves have one index, so that bits put them in order.
        let mut listed = [0u64; POLICY.div_ceil(64)];
        self.each(|from, to| {
            let promotes = mask(from) & self.own[0] != 0;
            for to in squares(to) {
                let all = [None, Some(Promotion::Queen), Some(Promotion::Rook), Some(Promotion::Bishop)];
                let kinds = if promotes && mask(to) & LAST != 0 { &all[..] } else { &all[..1] };
                for promotion in kinds {
                    let played = policy::Move { from: from as u8, to: to as u8, promotion: *promotion };
                    if let Some(index) = transform.index(played, mapping) {
                        listed[usize::from(index / 64)] |= 1 << (index % 64);
                    }
                }
            }
        });
        for (word, bits) in (0..).zip(listed) {
            moves.extend(squares(bits).map(|bit| 64 * word + bit as u16));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Board;
    use crate::chess::frame::FrameMut;
    use crate::chess::pack::tests::{ENDGAME, Numbers, START, game};
    use crate::chess::record::{InputFormat, V6_BYTES, Version};
    use crate::chess::transform::flip;

    /// What the moves of a frame are by the rules; none where these do not know the position.
    fn known(frame: &Frame<'_>, mapping: PolicyMapping) -> Option<Vec<u16>> {
        Board::under(frame, mapping).ok()?.legal_indices()
    }

    fn same(frame: &Frame<'_>) -> usize {
        let mut moves = vec![7];
        for mapping in [PolicyMapping::AsPlanes, PolicyMapping::HalfTurn] {
            let is_one = legal(frame, mapping, &mut moves);
            let Some(known) = known(frame, mapping) else { return 0 };
            let fen = Board::under(frame, mapping).unwrap().fen();
            assert!(is_one && moves == known, "{fen} {mapping:?}: {moves:?} for {known:?}");
        }
        1
    }

    #[test]
    fn moves_of_played_games_are_those_of_the_rules() {
        let starts = [
            START,
            ENDGAME,
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
            "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
            "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
            "1n1r3k/P1P1P3/8/8/8/8/p1p1p3/1N1R3K w - - 0 1",
            "rk1r4/8/8/8/8/8/8/RK1R4 w DAda - 0 1",
        ];
        for (start, format) in starts.iter().flat_map(|start| InputFormat::ALL.map(|format| (start, format))) {
            // Corners are all that the first formats know of rooks.
            if start.contains("DAda") && !format.has_castling_masks() {
                continue;
            }
            for seed in 0..6 {
                let records = game(seed, Version::V6, format, start, 120);
                let count: usize =
                    records.chunks_exact(V6_BYTES).map(|record| same(&Frame::new(record).unwrap())).sum();
                assert_eq!(count, records.len() / V6_BYTES);
            }
        }
    }

    /// A frame of men anywhere, with any rights: pins, checks, passing and castling in every way.
    fn anywhere(numbers: &mut Numbers, record: &mut [u8]) {
        let format = InputFormat::ALL[numbers.below(InputFormat::ALL.len())];
        let mut free: Vec<usize> = (0..64).collect();
        let mut men = [0u64; 12];
        let home = numbers.below(2) == 0;
        let mut place = |men: &mut u64, at: usize| {
            if let Some(at) = free.iter().position(|square| *square == at) {
                *men |= 1 << free.swap_remove(at);
            }
        };
        place(&mut men[5], if home { 4 } else { numbers.below(64) });
        place(&mut men[11], if home { 60 } else { numbers.below(64) });
        for corner in [0, 7].into_iter().filter(|_| home) {
            place(&mut men[3], corner);
            place(&mut men[9], 56 + corner);
        }
        for _ in 0..numbers.below(18) {
            let which = [0, 0, 1, 2, 3, 4, 6, 6, 7, 8, 9, 10][numbers.below(12)];
            let square = if which % 6 == 0 { 8 + numbers.below(48) } else { numbers.below(64) };
            place(&mut men[which], square);
        }
        let mut frame = FrameMut::blank(record, format).unwrap();
        // Formats 1 and 2 tell of passing by the board before, where a pawn of ours stands beside.
        let file = numbers.below(8);
        let passing = men[6] >> (32 + file) & 1 == 1 && numbers.below(2) == 0;
        // Any transform, though writers take few of them where there are pawns.
        let turned = if format.is_canonical() { numbers.below(8) as u8 } else { 0 };
        let transform = Transform::from_bits(turned);
        for (i, mask) in men.into_iter().enumerate() {
            frame.set_plane(i, flip(transform.apply(mask)));
            let before = if i == 6 && passing { mask & !(1 << (32 + file)) | 1 << (48 + file) } else { mask };
            frame.set_plane(13 + i, flip(transform.apply(before)));
        }
        if format.is_canonical() {
            frame.set_invariance_info(turned | if numbers.below(2) == 0 { 0x80 } else { 0 });
            let stored = if transform.flips() { 7 - file } else { file };
            frame.set_side_to_move_or_enpassant(if passing { 1 << stored } else { 0 });
        } else {
            frame.set_side_to_move_or_enpassant(numbers.below(2) as u8);
        }
        if home {
            let mut right = |file: u8| match (numbers.below(2), format.has_castling_masks()) {
                (0, _) => 0,
                (_, true) => 1 << file,
                (_, false) => 1,
            };
            let [a, b, c, d] = [right(0), right(7), right(0), right(7)];
            frame.set_castling_us_ooo(a).set_castling_us_oo(b).set_castling_them_ooo(c).set_castling_them_oo(d);
        }
    }

    #[test]
    fn moves_of_positions_that_are_rare_in_games_are_those_of_the_rules() {
        let (mut numbers, mut record) = (Numbers(5), vec![0; V6_BYTES]);
        let (mut count, mut castling, mut passing, mut checks) = (0, 0, 0, 0);
        for _ in 0..60_000 {
            anywhere(&mut numbers, &mut record);
            let frame = Frame::new(&record).unwrap();
            if same(&frame) == 0 {
                continue;
            }
            let (view, _) = View::of(&frame).unwrap();
            let moves = known(&frame, PolicyMapping::AsPlanes).unwrap();
            count += 1;
            castling += usize::from(moves.contains(&103) && view.own[3] & 128 != 0 && view.own[5] == 16);
            passing += usize::from(view.en_passant.is_some());
            checks += usize::from(view.checks_and_pins().0 != 0);
        }
        assert!(
            count > 20_000 && castling > 100 && passing > 100 && checks > 1000,
            "{count} {castling} {passing} {checks}"
        );
    }

    #[test]
    fn bytes_that_are_no_position_break_nothing() {
        let (mut numbers, mut moves, mut listed) = (Numbers(6), Vec::new(), 0);
        for i in 0..20_000 {
            let mut record: Vec<u8> = (0..V6_BYTES).map(|_| numbers.below(256) as u8).collect();
            let mut frame = FrameMut::new(&mut record).unwrap();
            frame.set_version(6).set_input_format_value(InputFormat::ALL[i % InputFormat::ALL.len()].value());
            // Men upon men, but not on every square: from there nothing could move.
            for plane in 0..26 {
                let sparse = (0..4).fold(u64::MAX, |mask, _| mask & numbers.below(usize::MAX) as u64);
                frame.set_plane(plane, sparse);
            }
            frame.set_plane(5, 1 << numbers.below(64)).set_plane(11, 1 << numbers.below(64));
            let rights = [0u8, 1, 4, 128].map(|byte| byte >> (i % 2));
            let [a, b, c, d] = rights;
            frame.set_castling_us_ooo(a).set_castling_us_oo(b).set_castling_them_ooo(c).set_castling_them_oo(d);
            legal(&frame.as_frame(), PolicyMapping::AsPlanes, &mut moves);
            assert!(moves.iter().all(|index| usize::from(*index) < POLICY) && moves.is_sorted());
            listed += usize::from(!moves.is_empty());
        }
        assert!(listed > 10_000, "{listed}");
    }
}
