//! The records of one game -> what does not fit together: sides that do not alternate, results that change.
//! Gives each record to the frame check first.

use gristmill_format::Result;
use gristmill_format::chess::Frame;
use gristmill_format::chess::record::at;
use gristmill_format::source::Chunk;

use super::frame;

/// Something wrong with a game: the frame, the byte offset in its record, what was expected and found.
pub(super) type Wrong = (usize, usize, String);

/// Bit of `invariance_info` that says black is to move, in canonical formats.
const BLACK: u8 = 1 << 7;

/// Gives all that is wrong with the game in `chunk` to `tell`.
pub(super) fn check(chunk: &Chunk, tell: &mut dyn FnMut(Wrong)) -> Result<()> {
    let whole = whole_results(chunk)?;
    let mut before: Option<Frame<'_>> = None;
    for i in 0..chunk.frames {
        let now = Frame::new(chunk.record(i))?;
        frame::check(now, &mut |(offset, detail)| tell((i, offset, detail)));
        if whole && (now.result_q() == 0.0) != (now.result_d() == 1.0) {
            let detail = format!("result_q {} and result_d {} contradict each other", now.result_q(), now.result_d());
            tell((i, at::RESULT_D, detail));
        }
        if let Some(before) = before {
            follows(before, now, whole, &mut |offset, detail| tell((i, offset, detail)));
        }
        before = Some(now);
    }
    Ok(())
}

/// Whether every result is a win, a draw or a loss: then it is the game's, while fractions (of rescored
/// games) may differ from ply to ply.
fn whole_results(chunk: &Chunk) -> Result<bool> {
    for i in 0..chunk.frames {
        let frame = Frame::new(chunk.record(i))?;
        if ![-1.0, 0.0, 1.0].contains(&frame.result_q()) || ![0.0, 1.0].contains(&frame.result_d()) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_black(frame: Frame<'_>) -> bool {
    match frame.input_format() {
        Ok(format) if format.is_canonical() => frame.invariance_info() & BLACK != 0,
        _ => frame.side_to_move_or_enpassant() == 1,
    }
}

fn follows(before: Frame<'_>, now: Frame<'_>, whole: bool, tell: &mut dyn FnMut(usize, String)) {
    if before.input_format_value() != now.input_format_value() {
        let (was, is) = (before.input_format_value(), now.input_format_value());
        return tell(at::INPUT_FORMAT, format!("input_format {is} in a game that has {was}"));
    }
    if is_black(before) == is_black(now) {
        let side = if is_black(now) { "black" } else { "white" };
        tell(at::SIDE_TO_MOVE_OR_ENPASSANT, format!("{side} is to move twice in a row"));
    } else if whole && before.result_q() != -now.result_q() {
        let (was, is) = (before.result_q(), now.result_q());
        tell(at::RESULT_Q, format!("result_q {is} after {was} of the other side; one game has one result"));
    }
}
