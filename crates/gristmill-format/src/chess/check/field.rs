//! The fields of one record, each by itself: ranges, forms, NaN.
//! Looks at no other frame and at no move.

use super::{Rule, Tell};
use crate::chess::frame::Frame;
use crate::chess::record::{InputFormat, V7_BYTES, Version, at};

/// How far a value may leave its range by rounding.
pub(super) const ROUNDING: f32 = 1e-4;

/// A range that a value must lie in.
#[derive(Clone, Copy)]
enum Range {
    /// -1 to 1.
    Q,
    /// 0 to 1.
    D,
    /// 0 and more.
    M,
}

impl Range {
    fn holds(self, value: f32) -> bool {
        match self {
            Range::Q => value.abs() <= 1.0 + ROUNDING,
            Range::D => (-ROUNDING..=1.0 + ROUNDING).contains(&value),
            Range::M => value >= -ROUNDING,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Range::Q => "-1 to 1",
            Range::D => "0 to 1",
            Range::M => "0 or more",
        }
    }
}

/// Tells what is wrong with the fields of `frame`.
pub(super) fn judge(frame: Frame<'_>, tell: &mut Tell<'_>) {
    version(frame, tell);
    numbers(frame, tell);
    let Ok(format) = frame.input_format() else {
        let found = frame.input_format_value();
        return tell.breach(Rule::InputFormat, at::INPUT_FORMAT, || {
            format!("input_format {found}; known are 1, 2, 3, 4, 5, 132 and 133")
        });
    };
    bytes(frame, format, tell);
    reserved(frame, tell);
}

fn version(frame: Frame<'_>, tell: &mut Tell<'_>) {
    let (tag, wide) = (frame.version(), frame.bytes().len() == V7_BYTES);
    // A V6 record that was widened keeps its tag.
    if tag != Version::V6.number() && !(wide && tag == Version::V7.number()) {
        let fits = if wide { "6 or 7" } else { "6" };
        tell.breach(Rule::Version, at::VERSION, || {
            format!("version {tag} in a record of {} bytes; expected {fits}", frame.bytes().len())
        });
    }
}

/// Whether the short-term values mean anything.
fn has_short_term(frame: Frame<'_>) -> bool {
    frame.version() == Version::V7.number() && frame.bytes().len() == V7_BYTES
}

fn numbers(frame: Frame<'_>, tell: &mut Tell<'_>) {
    use Range::{D, M, Q};
    let mut number = |name: &str, offset: usize, value: f32, range: Range, may_be_unknown: bool| {
        if range.holds(value) && value.is_finite() || may_be_unknown && value.is_nan() {
            return;
        }
        let (rule, expected) = match value.is_finite() {
            true => (Rule::Values, range.name()),
            false => (Rule::Nan, "a finite number"),
        };
        tell.breach(rule, offset, || format!("{name} is {value}; expected {expected}"));
    };
    number("root_q", at::ROOT_Q, frame.root_q(), Q, false);
    number("best_q", at::BEST_Q, frame.best_q(), Q, false);
    number("root_d", at::ROOT_D, frame.root_d(), D, false);
    number("best_d", at::BEST_D, frame.best_d(), D, false);
    number("root_m", at::ROOT_M, frame.root_m(), M, false);
    number("best_m", at::BEST_M, frame.best_m(), M, false);
    number("plies_left", at::PLIES_LEFT, frame.plies_left(), M, false);
    number("result_q", at::RESULT_Q, frame.result_q(), Q, false);
    number("result_d", at::RESULT_D, frame.result_d(), D, false);
    number("played_q", at::PLAYED_Q, frame.played_q(), Q, false);
    number("played_d", at::PLAYED_D, frame.played_d(), D, false);
    number("played_m", at::PLAYED_M, frame.played_m(), M, false);
    number("orig_q", at::ORIG_Q, frame.orig_q(), Q, true);
    number("orig_d", at::ORIG_D, frame.orig_d(), D, true);
    number("orig_m", at::ORIG_M, frame.orig_m(), M, true);
    number("policy_kld", at::POLICY_KLD, frame.policy_kld(), M, false);
    if has_short_term(frame) {
        number("q_st", at::Q_ST, frame.q_st(), Q, false);
        number("d_st", at::D_ST, frame.d_st(), D, false);
    }
    let pairs = [
        ("root", at::ROOT_D, frame.root_q(), frame.root_d()),
        ("best", at::BEST_D, frame.best_q(), frame.best_d()),
        ("result", at::RESULT_D, frame.result_q(), frame.result_d()),
        ("played", at::PLAYED_D, frame.played_q(), frame.played_d()),
        ("orig", at::ORIG_D, frame.orig_q(), frame.orig_d()),
    ];
    for (name, offset, q, d) in pairs {
        if Range::Q.holds(q) && Range::D.holds(d) && q.abs() + d > 1.0 + 10.0 * ROUNDING {
            tell.breach(Rule::Values, offset, || {
                format!("{name}_q {q} and {name}_d {d} leave a negative chance to win or lose")
            });
        }
    }
}

fn bytes(frame: Frame<'_>, format: InputFormat, tell: &mut Tell<'_>) {
    for (name, offset, value) in [
        ("castling_us_ooo", at::CASTLING_US_OOO, frame.castling_us_ooo()),
        ("castling_us_oo", at::CASTLING_US_OO, frame.castling_us_oo()),
        ("castling_them_ooo", at::CASTLING_THEM_OOO, frame.castling_them_ooo()),
        ("castling_them_oo", at::CASTLING_THEM_OO, frame.castling_them_oo()),
    ] {
        match format.has_castling_masks() {
            true if value.count_ones() > 1 => tell
                .breach(Rule::Castling, offset, || format!("{name} is {value:#04x}; expected one rook file bit or 0")),
            false if value > 1 => {
                tell.breach(Rule::Castling, offset, || format!("{name} is {value}; expected 0 or 1"));
            }
            _ => {}
        }
    }
    let side = frame.side_to_move_or_enpassant();
    match format.is_canonical() {
        true if side.count_ones() > 1 => tell.breach(Rule::EnPassant, at::SIDE_TO_MOVE_OR_ENPASSANT, || {
            format!("en-passant byte {side:#04x}; expected one file bit or 0")
        }),
        false if side > 1 => tell.breach(Rule::SideToMove, at::SIDE_TO_MOVE_OR_ENPASSANT, || {
            format!("side to move {side}; expected 0 (white) or 1 (black)")
        }),
        _ => {}
    }
    let clock = frame.rule50_count();
    if clock > 100 {
        tell.breach(Rule::Rule50, at::RULE50_COUNT, || format!("rule50_count is {clock}; expected 0 to 100"));
    }
    let flags = frame.invariance_info();
    if !format.is_canonical() && flags & 0x87 != 0 {
        tell.breach(Rule::Flags, at::INVARIANCE_INFO, || {
            format!("invariance_info {flags:#04x}: bits 0, 1, 2 and 7 mean nothing in format {}", format.value())
        });
    }
}

fn reserved(frame: Frame<'_>, tell: &mut Tell<'_>) {
    let dummy = frame.bytes()[at::DUMMY];
    if dummy != 0 {
        tell.breach(Rule::Reserved, at::DUMMY, || format!("dummy is {dummy}; expected 0"));
    }
    if let Some(tail) = frame.bytes().get(at::RESERVED..)
        && let Some(i) = tail.iter().position(|byte| *byte != 0)
    {
        tell.breach(Rule::Reserved, at::RESERVED + i / 4 * 4, || format!("reserved[{}] is not 0", i / 4));
    }
}
