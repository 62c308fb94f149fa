//! V6 -> V7: short-term values from the search values to come, and the next two moves.
//! Adds the V7 fields and `q_st`; touches nothing else but the version.

use std::sync::Arc;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::Chunk;

use super::record_size;
use crate::chess::frame::{Frame, FrameMut};
use crate::chess::record::{V6_BYTES, V7_BYTES, Version, layout_v7, spread};

/// No next move.
const NO_MOVE: u16 = u16::MAX;

/// Turns the V6 records of the game in `chunk` into V7; how many there were, 0 for a game of V7.
///
/// `theta` is the decay of the short-term values per ply, 0 to 1. What V6 has in the place of `q_st` is written over.
///
/// Errors: `Empty`, and `Unsupported` for other records than V6 and V7.
pub fn widen(chunk: &mut Chunk, theta: f32) -> Result<usize> {
    let size = record_size(chunk)?;
    if chunk.frames == 0 {
        return Err(Error::new(Kind::Empty, "the game has no frames"));
    }
    if Frame::new(chunk.record(0))?.version() != Version::V6.number() {
        return Ok(0);
    }
    chunk.bytes.truncate(chunk.frames * size);
    if size == V6_BYTES {
        spread(&mut chunk.bytes, V6_BYTES, V7_BYTES);
        chunk.layout = Some(Arc::clone(layout_v7()));
    }
    fill(&mut chunk.bytes, theta);
    Ok(chunk.frames)
}

/// Fills the V7 fields of a game whose records have room for them.
fn fill(records: &mut [u8], theta: f32) {
    let frames = records.len() / V7_BYTES;
    let (mut value, mut draw) = (0.0f32, 0.0f32);
    for k in (0..frames).rev() {
        let frame = frame(records, V7_BYTES, k);
        // The sums are kept as the side sees them that moved first.
        let sign = if k % 2 == 1 { -1.0 } else { 1.0 };
        let (now, d) = (frame.root_q() * sign, frame.root_d());
        if k + 1 == frames {
            (value, draw) = (now, d);
        } else {
            (value, draw) = (theta * value + (1.0 - theta) * now, theta * draw + (1.0 - theta) * d);
        }
        let [next, next_but_one] = next_moves(records, V7_BYTES, k);
        let mut frame = FrameMut::new(&mut records[k * V7_BYTES..(k + 1) * V7_BYTES]).expect("records of one size");
        frame.set_q_st(value * sign).set_short_term(draw.max(0.0), next, next_but_one);
        frame.set_version(Version::V7.number());
    }
}

fn frame(records: &[u8], size: usize, i: usize) -> Frame<'_> {
    Frame::new(&records[i * size..(i + 1) * size]).expect("records of one size")
}

/// What the next frame and the one after it played.
pub(super) fn next_moves(records: &[u8], size: usize, k: usize) -> [u16; 2] {
    let frames = records.len() / size;
    [k + 1, k + 2].map(|i| if i < frames { frame(records, size, i).played_idx() } else { NO_MOVE })
}
