//! A packed game -> what its frames are weighed by, straight from their bodies: no board is replayed, no policy read.
//! Gives the bits that the whole records hold; a frame with corrections is read whole.

use gristmill_bytes::error::Result;

use super::cursor::Cursor;
use super::decode::{PackedGame, Position, Wanted, bit};
use super::scalars::UNKNOWN;
use crate::chess::record::at;
use crate::chess::weight::JUDGED_BYTES;

/// Bits of a head that say whether a value is stored.
const BEST_Q: u32 = 1 << 1;
const ORIG_Q: u32 = 1 << 12;
const POLICY_KLD: u32 = 1 << 15;
const UP_TO_KLD: u32 = 2 * POLICY_KLD - 1;

impl PackedGame<'_> {
    /// Appends a record of [`layout_judged`](crate::chess::weight::layout_judged) for each frame.
    ///
    /// Errors, with frame and byte: `Corrupt`, `Truncated`. The rest of a frame is not checked.
    pub fn judged(&self, position: impl Fn() -> Position, out: &mut Vec<u8>) -> Result<()> {
        out.reserve(self.frames() * JUDGED_BYTES);
        for k in 0..self.frames() {
            self.judge(k, &position, out).map_err(|e| e.in_frame(k))?;
        }
        Ok(())
    }

    fn judge(&self, k: usize, position: &impl Fn() -> Position, out: &mut Vec<u8>) -> Result<()> {
        let (body, start) = self.parts.body(k)?;
        let mut from = Cursor::within(body, start);
        let head = from.u32()?;
        if head & bit::PATCH != 0 {
            let mut whole = position();
            self.position(k, Wanted::Whole, &mut whole)?;
            for field in [at::BEST_Q, at::ORIG_Q, at::POLICY_KLD] {
                out.extend_from_slice(&whole.record()[field..field + 4]);
            }
            return Ok(());
        }
        from.varint()?;
        from.take(1 + usize::from(head & bit::DEPTH != 0))?;
        let stored = head & UP_TO_KLD;
        let (values, _) = from.take(4 * stored.count_ones() as usize)?.as_chunks::<4>();
        // The best move's values come first; after them the order is that of the bits.
        let value = |bit: u32, otherwise: u32| {
            let before = if bit == BEST_Q { 0 } else { (stored & (bit - 1)).count_ones() as usize };
            if stored & bit != 0 { values[before] } else { otherwise.to_le_bytes() }
        };
        for bytes in [value(BEST_Q, 0), value(ORIG_Q, UNKNOWN), value(POLICY_KLD, 0)] {
            out.extend_from_slice(&bytes);
        }
        Ok(())
    }
}
