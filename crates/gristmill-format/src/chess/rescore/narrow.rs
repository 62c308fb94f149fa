//! V7 -> V6, where nothing is lost by it: the values that V6 has no room for are those that widening computes.
//! Changes no other field than version and `q_st`, which becomes 0.

use std::sync::Arc;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::Chunk;

use super::{record_size, widen};
use crate::chess::frame::{Frame, FrameMut};
use crate::chess::record::{V6_BYTES, V7_BYTES, Version, layout_v6};

/// The name under which [`narrow`] refuses a game.
pub const LOSSY: &str = "lossy";

/// Turns the V7 records of the game in `chunk` into V6; how many there were, 0 for a game of V6.
///
/// With `lossy` the short-term values, the next moves and the reserved bytes are dropped whatever they are; without it
/// only where [`super::widen`] with the same `theta` gives them back to the bit.
///
/// Errors: `Refused` by [`LOSSY`], with the first frame that would lose something; the chunk is then left in any state.
/// `Empty`, and `Unsupported` for other records than V6 and V7.
pub fn narrow(chunk: &mut Chunk, theta: f32, lossy: bool) -> Result<usize> {
    let size = record_size(chunk)?;
    if chunk.frames == 0 {
        return Err(Error::new(Kind::Empty, "the game has no frames"));
    }
    if size == V6_BYTES {
        return Ok(0);
    }
    let wide = chunk.records().to_vec();
    shorten(&wide, chunk)?;
    if !lossy {
        let mut again = Chunk { bytes: chunk.records().to_vec(), layout: chunk.layout.clone(), ..Chunk::default() };
        again.frames = chunk.frames;
        widen(&mut again, theta)?;
        let (was, is) = (wide.chunks_exact(V7_BYTES), again.bytes.chunks_exact(V7_BYTES));
        if let Some(frame) = was.zip(is).position(|(was, is)| was != is) {
            let text = "V6 has no room for the short-term values and next moves of this V7 game, and they cannot be \
                        computed again from the rest; convert with `lossy` to drop them";
            return Err(Error::new(Kind::Refused(LOSSY), text).in_frame(frame));
        }
    }
    Ok(chunk.frames)
}

fn shorten(wide: &[u8], chunk: &mut Chunk) -> Result<()> {
    chunk.bytes.clear();
    for record in wide.chunks_exact(V7_BYTES) {
        let start = chunk.bytes.len();
        chunk.bytes.extend_from_slice(&record[..V6_BYTES]);
        // Records of V7's size that say V6 were widened without new values: what is in `q_st` is V6's own.
        if Frame::new(record)?.version() != Version::V6.number() {
            let mut frame = FrameMut::new(&mut chunk.bytes[start..])?;
            frame.set_version(Version::V6.number()).set_q_st(0.0);
        }
    }
    chunk.layout = Some(Arc::clone(layout_v6()));
    Ok(())
}
