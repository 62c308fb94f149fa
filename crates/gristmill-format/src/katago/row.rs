//! A record -> whether it can be a row of KataGo, and what is on its board. Checks only rules that every program that writes such
//! rows keeps; never judges moves.

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Layout;

use super::form::{Form, GLOBALS, PLANES, POLICY, TARGETS};

/// The size of the board of a row, and its stones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Board {
    /// Points of the board, which may be smaller than its frame.
    pub points: u32,
    /// Stones of the side to move.
    pub own: u32,
    /// Stones of the other side.
    pub other: u32,
}

/// The board of a record; none if the layout is not one of KataGo.
pub fn board(layout: &Layout, record: &[u8]) -> Board {
    let bits = |i: usize| {
        let (field, len) = layout.field(PLANES).and_then(|field| Some((field, *field.shape.get(1)?)))?;
        let plane = record.get(field.offset + i * len..)?.get(..len)?;
        Some(plane.iter().map(|byte| byte.count_ones()).sum())
    };
    let [points, own, other] = [0, 1, 2].map(|i| bits(i).unwrap_or(0));
    Board { points, own, other }
}

/// The point of number `i` in a plane.
pub fn is_set(plane: &[u8], i: usize) -> bool {
    plane.get(i / 8).is_some_and(|byte| byte >> (7 - i % 8) & 1 == 1)
}

/// Checks that a record can be a row of KataGo.
///
/// Errors, with the member: `OutOfRange` for bits after the last point of a plane, stones off the board or two on one
/// point, visits below 0, an input or target that is not finite.
pub fn check(form: &Form, record: &[u8]) -> Result<()> {
    let refused =
        |member: &str, detail: String| Err(Error::new(Kind::OutOfRange, detail).in_member(format!("{member}.npy")));
    let (planes, behind) = (form.bytes(PLANES, record), form.points().wrapping_neg() % 8);
    let len = form.points().div_ceil(8);
    let odd = |plane: &[u8]| plane.last().is_some_and(|last| last & ((1 << behind) - 1) != 0);
    if let Some(i) = planes.chunks_exact(len).position(odd) {
        return refused(PLANES, format!("plane {i} has bits after point {}", form.points() - 1));
    }
    let [on, own, other] = [0, 1, 2].map(|i| form.plane(i, record));
    for (i, ((on, own), other)) in on.iter().zip(own).zip(other).enumerate() {
        let (beside, both) = ((own | other) & !on, own & other);
        if beside | both != 0 {
            let at = 8 * i + (beside | both).leading_zeros() as usize;
            let (y, x) = (at / form.edge(), at % form.edge());
            let what = if both != 0 {
                "stones of both sides (planes 1, 2) stand"
            } else {
                "a stone beside the board (plane 0) stands"
            };
            return refused(PLANES, format!("{what} at row {y}, column {x}"));
        }
    }
    let visits = form.bytes(POLICY, record).as_chunks().0.iter().map(|visits| i16::from_le_bytes(*visits));
    if let Some((at, visits)) = visits.enumerate().find(|(_, visits)| *visits < 0) {
        let moves = form.points() + 1;
        return refused(POLICY, format!("{visits} visits of move {} of policy {}", at % moves, at / moves));
    }
    for member in [GLOBALS, TARGETS] {
        let mut numbers = form.bytes(member, record).as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        if let Some(at) = numbers.position(|number| !number.is_finite()) {
            return refused(member, format!("number {at} is infinite or no number"));
        }
    }
    Ok(())
}
