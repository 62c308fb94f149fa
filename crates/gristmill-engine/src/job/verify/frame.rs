//! One record -> what is wrong with it: ranges, policy, indices, boards (spec 2.1 to 2.5).
//! Whether its moves are legal is another check's matter.

use gristmill_format::chess::record::{POLICY, at};
use gristmill_format::chess::{Frame, InputFormat};

/// How far the sum of a policy may be from 1 (spec 2.3).
const SUM_TOLERANCE: f64 = 0.01;

/// How far a value may leave its range by rounding.
const ROUNDING: f32 = 1e-4;

/// Something wrong with a record: its byte offset in it, and what was expected and found.
pub(super) type Wrong = (usize, String);

/// Gives all that is wrong with `frame` to `tell`.
pub(super) fn check(frame: Frame<'_>, tell: &mut dyn FnMut(Wrong)) {
    let Ok(format) = frame.input_format() else {
        let found = frame.input_format_value();
        return tell((at::INPUT_FORMAT, format!("input_format {found}; known are 1, 2, 3, 4, 5, 132 and 133")));
    };
    values(frame, tell);
    bytes(frame, format, tell);
    policy(frame, tell);
    board(frame, tell);
}

fn values(frame: Frame<'_>, tell: &mut dyn FnMut(Wrong)) {
    let mut range = |name: &str, offset: usize, value: f32, low: f32, high: f32| {
        if !(low - ROUNDING..=high + ROUNDING).contains(&value) {
            tell((offset, format!("{name} is {value}; expected {low} to {high}")));
        }
    };
    let most = f32::MAX;
    for (name, offset, value) in [
        ("root_q", at::ROOT_Q, frame.root_q()),
        ("best_q", at::BEST_Q, frame.best_q()),
        ("played_q", at::PLAYED_Q, frame.played_q()),
        ("result_q", at::RESULT_Q, frame.result_q()),
    ] {
        range(name, offset, value, -1.0, 1.0);
    }
    for (name, offset, value) in [
        ("root_d", at::ROOT_D, frame.root_d()),
        ("best_d", at::BEST_D, frame.best_d()),
        ("played_d", at::PLAYED_D, frame.played_d()),
        ("result_d", at::RESULT_D, frame.result_d()),
    ] {
        range(name, offset, value, 0.0, 1.0);
    }
    for (name, offset, value) in [
        ("root_m", at::ROOT_M, frame.root_m()),
        ("best_m", at::BEST_M, frame.best_m()),
        ("played_m", at::PLAYED_M, frame.played_m()),
        ("plies_left", at::PLIES_LEFT, frame.plies_left()),
    ] {
        range(name, offset, value, 0.0, most);
    }
    range("policy_kld", at::POLICY_KLD, frame.policy_kld(), 0.0, most);
    if !frame.orig_q().is_nan() {
        range("orig_q", at::ORIG_Q, frame.orig_q(), -1.0, 1.0);
    }
    if !frame.orig_d().is_nan() {
        range("orig_d", at::ORIG_D, frame.orig_d(), 0.0, 1.0);
    }
    if !frame.orig_m().is_nan() {
        range("orig_m", at::ORIG_M, frame.orig_m(), 0.0, most);
    }
    if frame.version() >= 7 {
        range("q_st", at::Q_ST, frame.q_st(), -1.0, 1.0);
        range("d_st", at::D_ST, frame.d_st(), 0.0, 1.0);
    }
    let (q, d) = (frame.result_q(), frame.result_d());
    if q.abs() + d > 1.0 + ROUNDING {
        tell((at::RESULT_D, format!("result_q {q} and result_d {d} leave a negative chance to win or lose")));
    }
}

fn bytes(frame: Frame<'_>, format: InputFormat, tell: &mut dyn FnMut(Wrong)) {
    for (name, offset, value) in [
        ("castling_us_ooo", at::CASTLING_US_OOO, frame.castling_us_ooo()),
        ("castling_us_oo", at::CASTLING_US_OO, frame.castling_us_oo()),
        ("castling_them_ooo", at::CASTLING_THEM_OOO, frame.castling_them_ooo()),
        ("castling_them_oo", at::CASTLING_THEM_OO, frame.castling_them_oo()),
    ] {
        match format.has_castling_masks() {
            true if value.count_ones() > 1 => {
                tell((offset, format!("{name} is {value}; expected one rook file bit or 0")))
            }
            false if value > 1 => tell((offset, format!("{name} is {value}; expected 0 or 1"))),
            _ => {}
        }
    }
    let side = frame.side_to_move_or_enpassant();
    match format.is_canonical() {
        true if side.count_ones() > 1 => {
            tell((at::SIDE_TO_MOVE_OR_ENPASSANT, format!("en-passant byte {side}; expected one file bit or 0")));
        }
        false if side > 1 => tell((at::SIDE_TO_MOVE_OR_ENPASSANT, format!("side to move {side}; expected 0 or 1"))),
        _ => {}
    }
    if frame.rule50_count() > 100 {
        tell((at::RULE50_COUNT, format!("rule50_count is {}; expected 0 to 100", frame.rule50_count())));
    }
}

fn policy(frame: Frame<'_>, tell: &mut dyn FnMut(Wrong)) {
    let (mut sum, mut legal) = (0.0, 0);
    for (i, p) in frame.probabilities().enumerate() {
        if (0.0..=1.0 + ROUNDING).contains(&p) {
            sum += f64::from(p);
            legal += 1;
        } else if p != -1.0 && !p.is_nan() {
            let offset = at::PROBABILITIES + 4 * i;
            return tell((offset, format!("probability {i} is {p}; expected -1 for an illegal move, else 0 to 1")));
        }
    }
    if legal == 0 {
        return tell((at::PROBABILITIES, "no move is legal: every probability is negative".to_owned()));
    }
    if (sum - 1.0).abs() > SUM_TOLERANCE {
        tell((at::PROBABILITIES, format!("the {legal} probabilities sum to {sum:.4}; expected 1 within 0.01")));
    }
    // Data upgraded from an older version (no visits) has no move indices.
    if frame.visits() == 0 {
        return;
    }
    for (name, offset, index) in
        [("played_idx", at::PLAYED_IDX, frame.played_idx()), ("best_idx", at::BEST_IDX, frame.best_idx())]
    {
        let index = usize::from(index);
        if index >= POLICY {
            tell((offset, format!("{name} is {index}; expected 0 to {}", POLICY - 1)));
        } else if frame.probability(index) < 0.0 {
            tell((offset, format!("{name} is {index}, which its policy marks as illegal")));
        }
    }
}

fn board(frame: Frame<'_>, tell: &mut dyn FnMut(Wrong)) {
    let mut seen = 0;
    for plane in 0..12 {
        let word = frame.plane(plane);
        let offset = at::PLANES + 8 * plane;
        if seen & word != 0 {
            tell((offset, format!("plane {plane} has a man where another plane has one")));
        }
        seen |= word;
        if matches!(plane, 5 | 11) && word.count_ones() != 1 {
            tell((offset, format!("plane {plane} has {} kings; expected one", word.count_ones())));
        }
    }
}
