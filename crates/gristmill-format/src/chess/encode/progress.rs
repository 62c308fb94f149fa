//! A whole game -> in each of its records, how many plies later the next capture or pawn move is.
//! Written where V7 keeps zeros, for the way to the encoder alone: never into a file.

use std::sync::Arc;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::Chunk;

use crate::chess::frame::Frame;
use crate::chess::record::{V6_BYTES, V7_BYTES, at, layout_v6, layout_v7, spread};

/// The first of the reserved bytes; 0 there means that nothing is known.
const PROGRESS: usize = at::RESERVED;

/// What [`write`] has found, where there is such a ply.
pub(super) fn of(frame: &Frame<'_>) -> Option<u8> {
    Some(frame.bytes()[PROGRESS]).filter(|plies| *plies > 0)
}

/// Makes V7 records of V6 ones, and writes into each how many plies later a record follows whose fifty-move count is 0.
///
/// Errors: `Unsupported` for other records.
pub(super) fn write(chunk: &mut Chunk) -> Result<()> {
    match &chunk.layout {
        Some(layout) if layout == layout_v7() => {}
        Some(layout) if layout == layout_v6() => {
            chunk.bytes.truncate(chunk.frames * V6_BYTES);
            spread(&mut chunk.bytes, V6_BYTES, V7_BYTES);
            chunk.layout = Some(Arc::clone(layout_v7()));
        }
        _ => return Err(Error::new(Kind::Unsupported, "plies until progress are of chess records V6 and V7")),
    }
    let mut next: Option<usize> = None;
    for i in (0..chunk.frames).rev() {
        let record = &mut chunk.bytes[i * V7_BYTES..(i + 1) * V7_BYTES];
        record[PROGRESS] = next.and_then(|next| u8::try_from(next - i).ok()).unwrap_or(0);
        if record[at::RULE50_COUNT] == 0 {
            next = Some(i);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::frame::FrameMut;
    use crate::chess::record::InputFormat;

    #[test]
    fn each_record_says_how_far_the_next_progress_is() {
        let counts = [0u8, 0, 1, 2, 0, 1, 2];
        let expected = [Some(1), Some(3), Some(2), Some(1), None, None, None];
        for size in [V6_BYTES, V7_BYTES] {
            let mut chunk = Chunk { frames: counts.len(), ..Chunk::default() };
            for count in counts {
                let mut record = vec![0; V7_BYTES];
                FrameMut::blank(&mut record, InputFormat::Classical).unwrap();
                record[at::RULE50_COUNT] = count;
                // What a file has there does not count.
                record[PROGRESS] = 77;
                chunk.bytes.extend_from_slice(&record[..size]);
            }
            chunk.layout = Some(Arc::clone(if size == V6_BYTES { layout_v6() } else { layout_v7() }));
            write(&mut chunk).unwrap();
            assert_eq!(chunk.layout.as_ref(), Some(layout_v7()));
            let found: Vec<_> = (0..counts.len()).map(|i| of(&Frame::new(chunk.record(i)).unwrap())).collect();
            assert_eq!(found, expected, "{size}");
        }
        assert_eq!(write(&mut Chunk::default()).unwrap_err().kind(), Kind::Unsupported);
    }
}
