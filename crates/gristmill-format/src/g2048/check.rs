//! The step rows of a game, one after another -> what is wrong with them: the rule, the byte, what was expected.
//! Judges only; no bytes make it panic. Holds one row, so that a pack of any size can pass through.

use super::board::{Board, MAX_PACKED_RANK};
use super::heuristic::board_eval;
use super::moves::{Move, legal, slide, spawned};
use super::row::{StepRow, at};

/// What can be wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A bit of the mask stands for rank 16, which clamps its nibble to 15.
    Mask,
    /// `board_eval` is the heuristic value of the board; not judged where a rank above 16 was clamped.
    BoardEval,
    /// `max_rank` is the highest rank of the board; 16 and more are one.
    MaxRank,
    /// `move_dir` is 0 to 3 and changes the board.
    Move,
    /// A row has EVs for all legal moves, or for none; for an illegal move only 0, which older logs write.
    EvLegal,
    /// EVs are numbers, and +0.0 where there is none.
    Evs,
    /// Each row of a game has the index after that of the row before.
    StepIndex,
    /// Each board is the one after the move before, and one new tile: 2 or 4.
    Continuity,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 8] = [
        Rule::Mask,
        Rule::BoardEval,
        Rule::MaxRank,
        Rule::Move,
        Rule::EvLegal,
        Rule::Evs,
        Rule::StepIndex,
        Rule::Continuity,
    ];

    /// A short stable word for counters and reports.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Mask => "mask",
            Rule::BoardEval => "board_eval",
            Rule::MaxRank => "max_rank",
            Rule::Move => "move",
            Rule::EvLegal => "ev_legal",
            Rule::Evs => "evs",
            Rule::StepIndex => "step_index",
            Rule::Continuity => "continuity",
        }
    }

    /// First byte, within the aligned row, of the field that the rule is about.
    pub fn offset(self) -> usize {
        match self {
            Rule::Mask => at::TILE_65536_MASK,
            Rule::BoardEval => at::BOARD_EVAL,
            Rule::MaxRank => at::MAX_RANK,
            Rule::Move => at::MOVE_DIR,
            Rule::EvLegal => at::EV_LEGAL,
            Rule::Evs => at::BRANCH_EVS,
            Rule::StepIndex => at::STEP_INDEX,
            Rule::Continuity => at::BOARD,
        }
    }
}

/// Judges rows in their order; a row of another run begins a game.
#[derive(Debug, Clone, Default)]
pub struct Checker {
    before: Option<StepRow>,
}

impl Checker {
    /// Judges the next row and gives every rule that it breaks to `tell`, with what was expected and found.
    pub fn row(&mut self, row: &StepRow, tell: &mut dyn FnMut(Rule, String)) {
        let board = row.decoded_board();
        alone(row, &board, tell);
        if let Some(before) = self.before.filter(|before| before.run_id == row.run_id) {
            if before.step_index.checked_add(1) != Some(row.step_index) {
                tell(Rule::StepIndex, format!("step {} follows step {}", row.step_index, before.step_index));
            }
            let after = Move::from_index(before.move_dir).and_then(|mv| slide(&before.decoded_board(), mv).ok()?);
            // An invalid move was reported at its own row.
            if let Some(after) = after
                && spawned(&after.board, &board).is_none()
            {
                let line = |board: &Board| board.to_string().replace('\n', " /");
                let (expected, found) = (line(&after.board), line(&board));
                tell(Rule::Continuity, format!("expected {expected} and one new 2 or 4, found {found}"));
            }
        }
        self.before = Some(*row);
    }
}

/// The rules that need no other row.
fn alone(row: &StepRow, board: &Board, tell: &mut dyn FnMut(Rule, String)) {
    let repacked = board.pack();
    if repacked.board != row.board {
        tell(Rule::Mask, format!("mask {:#06x} on board {:#018x}", row.tile_65536_mask, row.board));
    }
    let clamped = row.max_rank > MAX_PACKED_RANK;
    let value = board_eval(board);
    if !clamped && value.as_ref().ok() != Some(&row.board_eval) {
        let expected = value.map_or_else(|e| e.to_string(), |value| value.to_string());
        tell(Rule::BoardEval, format!("{}, expected {expected}", row.board_eval));
    }
    if row.max_rank.min(MAX_PACKED_RANK) != board.max_rank() {
        tell(Rule::MaxRank, format!("{}, the board has {}", row.max_rank, board.max_rank()));
    }
    let legal = legal(board);
    match Move::from_index(row.move_dir) {
        None => tell(Rule::Move, format!("move {}; expected 0 to 3", row.move_dir)),
        Some(mv) if legal >> mv.index() & 1 == 0 => tell(Rule::Move, format!("{} changes nothing", mv.name())),
        Some(_) => {}
    }
    let zero = |i: usize| row.branch_evs[i] == 0.0;
    let beyond = (0..4).any(|i| row.ev_legal >> i & 1 == 1 && legal >> i & 1 == 0 && !zero(i));
    if row.ev_legal >> 4 != 0 || beyond || row.ev_legal != 0 && legal & !row.ev_legal != 0 {
        tell(Rule::EvLegal, format!("bits {:04b} (right, left, down, up), legal are {legal:04b}", row.ev_legal));
    }
    let absent = |i: usize| row.ev_legal >> i & 1 == 0;
    if (0..4).any(|i| row.branch_evs[i].is_nan() || absent(i) && row.branch_evs[i].to_bits() != 0) {
        tell(Rule::Evs, format!("{:?} with bits {:04b}", row.branch_evs, row.ev_legal));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two good rows of a game: left, and a 2 appears.
    fn rows() -> [StepRow; 2] {
        let row = |step_index, board: u64| {
            let decoded = Board::from_nibbles(board);
            let ev_legal = legal(&decoded);
            StepRow {
                step_index,
                board,
                board_eval: board_eval(&decoded).unwrap(),
                move_dir: 2,
                ev_legal,
                max_rank: decoded.max_rank(),
                branch_evs: [0, 1, 2, 3].map(|i| f32::from(ev_legal >> i & 1) * 1.5),
                ..StepRow::default()
            }
        };
        [row(6, 0x0013_0000_0000_0000), row(7, 0x1300_0000_0100_0000)]
    }

    fn broken(rows: &[StepRow]) -> Vec<&'static str> {
        let (mut checker, mut found) = (Checker::default(), Vec::new());
        rows.iter().for_each(|row| checker.row(row, &mut |rule, _| found.push(rule.name())));
        found
    }

    #[test]
    fn a_sound_game_breaks_no_rule() {
        assert_eq!(broken(&rows()), [""; 0]);
        let [mut a, b] = rows();
        // Older logs: no EVs at all, or 0 for illegal moves.
        (a.ev_legal, a.branch_evs) = (0, [0.0; 4]);
        assert_eq!(broken(&[a, b]), [""; 0]);
        (a.ev_legal, a.branch_evs) = (15, [0.0, 1.0, 1.0, -0.0]);
        assert_eq!(broken(&[a, b]), [""; 0]);
        // Another run starts again.
        assert_eq!(broken(&[StepRow { run_id: 1, ..b }, a]), [""; 0]);
    }

    #[test]
    fn every_change_is_caught_by_its_rule_alone() {
        type Change = fn(&mut StepRow);
        let cases: [(&str, Change); 12] = [
            ("board_eval", |row| row.board_eval += 1),
            ("max_rank", |row| row.max_rank += 1),
            ("move", |row| row.move_dir = 4),
            ("move", |row| row.move_dir = 0),
            ("ev_legal", |row| row.ev_legal |= 16),
            ("ev_legal", |row| (row.ev_legal, row.branch_evs[0]) = (15, 1.0)),
            ("ev_legal", |row| (row.ev_legal, row.branch_evs[1]) = (row.ev_legal & !2, 0.0)),
            ("evs", |row| row.branch_evs[1] = f32::NAN),
            ("evs", |row| row.branch_evs[0] = -0.0),
            ("step_index", |row| row.step_index += 1),
            ("step_index", |row| row.step_index = 0),
            ("continuity", |row| row.move_dir = 1),
        ];
        for (rule, change) in cases {
            let [mut a, mut b] = rows();
            if rule == "step_index" {
                change(&mut b);
            } else {
                change(&mut a);
            }
            assert_eq!(broken(&[a, b]), [rule]);
        }
        let [a, b] = rows();
        let moved = StepRow { board: b.board >> 4, ..b };
        assert!(broken(&[a, moved]).contains(&"continuity"));
        let masked = StepRow { tile_65536_mask: 1 << 15, ..a };
        assert!(broken(&[masked]).contains(&"mask"));
    }

    #[test]
    fn ranks_that_packs_do_not_keep_apart_are_not_held_against_a_row() {
        let board = Board::EMPTY.with(0, 17).with(1, 1);
        let packed = board.pack();
        let row = StepRow {
            board: packed.board,
            tile_65536_mask: packed.mask,
            board_eval: board_eval(&board).unwrap(),
            max_rank: 17,
            move_dir: 3,
            ..StepRow::default()
        };
        assert_eq!(broken(&[row]), [""; 0]);
    }
}
