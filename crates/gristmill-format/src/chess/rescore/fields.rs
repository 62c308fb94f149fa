//! One record by itself -> whether a rescorer may trust it.
//! Values, bytes and policy; moves are the replay's.

use super::game::Fault;
use super::settings::{Compat, Quirk};
use crate::chess::check::Rule;
use crate::chess::check::policy::each_marked;
use crate::chess::frame::Frame;
use crate::chess::record::{InputFormat, POLICY, V7_BYTES, Version, at};

/// The input format of a sound record.
///
/// Errors: the first fault.
pub(super) fn judge(frame: Frame<'_>, compat: Compat) -> Result<InputFormat, Fault> {
    version(frame)?;
    let format = frame.input_format().map_err(|e| (Rule::InputFormat, at::INPUT_FORMAT, e.detail().to_owned()))?;
    numbers(frame)?;
    bytes(frame, format)?;
    policy(frame)?;
    indices(frame, compat)?;
    Ok(format)
}

fn version(frame: Frame<'_>) -> Result<(), Fault> {
    let tag = Version::from_number(frame.version());
    // A V6 record that was widened keeps its tag.
    let fits = tag == Some(Version::V6) || tag == Some(Version::V7) && frame.bytes().len() == V7_BYTES;
    if fits {
        return Ok(());
    }
    let text = format!("version {} in a record of {} bytes", frame.version(), frame.bytes().len());
    Err((Rule::Version, at::VERSION, text))
}

fn numbers(frame: Frame<'_>) -> Result<(), Fault> {
    let q = |value: f32| (-1.0..=1.0).contains(&value);
    let d = |value: f32| (0.0..=1.0).contains(&value);
    let m = |value: f32| (0.0..f32::INFINITY).contains(&value);
    let or_unknown = |value: f32, good: bool| good || value.is_nan();
    let checks = [
        (q(frame.best_q()), "best_q", at::BEST_Q, frame.best_q()),
        (q(frame.root_q()), "root_q", at::ROOT_Q, frame.root_q()),
        (q(frame.played_q()), "played_q", at::PLAYED_Q, frame.played_q()),
        (q(frame.result_q()), "result_q", at::RESULT_Q, frame.result_q()),
        (d(frame.best_d()), "best_d", at::BEST_D, frame.best_d()),
        (d(frame.root_d()), "root_d", at::ROOT_D, frame.root_d()),
        (d(frame.played_d()), "played_d", at::PLAYED_D, frame.played_d()),
        (m(frame.result_d()), "result_d", at::RESULT_D, frame.result_d()),
        (m(frame.best_m()), "best_m", at::BEST_M, frame.best_m()),
        (m(frame.root_m()), "root_m", at::ROOT_M, frame.root_m()),
        (m(frame.played_m()), "played_m", at::PLAYED_M, frame.played_m()),
        (m(frame.plies_left()), "plies_left", at::PLIES_LEFT, frame.plies_left()),
        (or_unknown(frame.orig_q(), q(frame.orig_q())), "orig_q", at::ORIG_Q, frame.orig_q()),
        (or_unknown(frame.orig_d(), d(frame.orig_d())), "orig_d", at::ORIG_D, frame.orig_d()),
        (or_unknown(frame.orig_m(), m(frame.orig_m())), "orig_m", at::ORIG_M, frame.orig_m()),
    ];
    match checks.iter().find(|(good, ..)| !good) {
        None => Ok(()),
        Some((_, name, offset, value)) => {
            let expected = match name.as_bytes().last() {
                Some(b'q') => "-1 to 1",
                Some(b'd') if *name != "result_d" => "0 to 1",
                _ => "0 or more",
            };
            Err((Rule::Values, *offset, format!("{name} is {value}; expected {expected}")))
        }
    }
}

fn bytes(frame: Frame<'_>, format: InputFormat) -> Result<(), Fault> {
    for offset in at::CASTLING_US_OOO..=at::CASTLING_THEM_OO {
        let value = frame.bytes()[offset];
        let good = if format.has_castling_masks() { value.count_ones() <= 1 } else { value <= 1 };
        if !good {
            let expected = if format.has_castling_masks() { "at most one bit" } else { "0 or 1" };
            return Err((Rule::Castling, offset, format!("castling byte {value:#04x}; expected {expected}")));
        }
    }
    let side = frame.side_to_move_or_enpassant();
    if format.is_canonical() && side.count_ones() > 1 {
        let text = format!("en-passant byte {side:#04x}; expected at most one bit");
        return Err((Rule::EnPassant, at::SIDE_TO_MOVE_OR_ENPASSANT, text));
    }
    if !format.is_canonical() && side > 1 {
        let text = format!("side to move {side}; expected 0 or 1");
        return Err((Rule::SideToMove, at::SIDE_TO_MOVE_OR_ENPASSANT, text));
    }
    if frame.rule50_count() > 100 {
        let text = format!("rule50_count is {}; expected 0 to 100", frame.rule50_count());
        return Err((Rule::Rule50, at::RULE50_COUNT, text));
    }
    Ok(())
}

fn policy(frame: Frame<'_>) -> Result<(), Fault> {
    let (mut sum, mut wrong) = (0.0f64, None);
    each_marked(frame, |i, p| {
        if (0.0..=1.0).contains(&p) {
            sum += f64::from(p);
        } else if !p.is_nan() {
            wrong = wrong.or(Some((i, p)));
        }
    });
    if let Some((i, p)) = wrong {
        let text = format!("probability {i} is {p}; expected 0 to 1, or -1 for an illegal move");
        return Err((Rule::PolicyValues, at::PROBABILITIES + 4 * i, text));
    }
    if !(0.99..=1.01).contains(&sum) {
        let text = format!("the probabilities of legal moves sum to {sum:.4}; expected 0.99 to 1.01");
        return Err((Rule::PolicySum, at::PROBABILITIES, text));
    }
    Ok(())
}

fn indices(frame: Frame<'_>, compat: Compat) -> Result<(), Fault> {
    let searched = frame.visits() > 0;
    for (rule, offset, index) in [
        (Rule::BestIdx, at::BEST_IDX, usize::from(frame.best_idx())),
        (Rule::PlayedIdx, at::PLAYED_IDX, usize::from(frame.played_idx())),
    ] {
        let past_end = index == POLICY && compat.has(Quirk::IndexPastEnd);
        if index >= POLICY && !past_end {
            return Err((rule, offset, format!("index {index}; expected 0 to {}", POLICY - 1)));
        }
        // Behind the policy lies the first plane: the original takes half of it for a probability.
        let p = if past_end { f32::from_bits(frame.plane(0) as u32) } else { frame.probability(index) };
        // An unknown probability is none.
        if searched && (p < 0.0 || p.is_nan()) {
            return Err((rule, offset, format!("index {index}, whose probability is {p}")));
        }
    }
    Ok(())
}
