//! The records of a game -> a key that the same game has however it was recorded, and the game with colours exchanged too.
//! Looks at where the men stand, nothing else: no result, no search, no version. Never fails on records that were read.
//!
//! The key is `docs/format/content.md`'s; which key a game has is a promise.

use gristmill_bytes::error::Result;
use xxhash_rust::xxh3::Xxh3;

use super::board::current;
use super::frame::Frame;
use super::record::InputFormat;
use super::transform::Transform;

/// Masks of the men of one position.
const MEN: usize = 12;

/// Who a game is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// XXH3-128 of castling rights at the start and of all positions, as the side to move sees them.
    pub key: u128,
    /// Which image of the key's game it is: whether Black moves first.
    pub black_first: bool,
}

/// The identity of the game whose records of `size` bytes these are.
///
/// Errors: `WrongSize` for records that are not those of V6 or V7; `OutOfRange` for an unknown input format.
pub fn identity(records: &[u8], size: usize) -> Result<Identity> {
    let mut hash = Xxh3::new();
    let mut black_first = false;
    let mut bytes = [0; 8 * MEN];
    for (i, record) in records.chunks_exact(size).enumerate() {
        let frame = Frame::new(record)?;
        let format = frame.input_format()?;
        let transform =
            if format.is_canonical() { Transform::from_bits(frame.invariance_info()) } else { Transform::NONE };
        if i == 0 {
            black_first = match format.is_canonical() {
                true => frame.invariance_info() & 0x80 != 0,
                false => frame.side_to_move_or_enpassant() != 0,
            };
            hash.update(&rights(&frame, format));
        }
        for (plane, word) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *word = current(&frame, plane, transform).to_le_bytes();
        }
        hash.update(&bytes);
    }
    Ok(Identity { key: hash.digest128(), black_first })
}

/// Files of the rooks that may castle, a bit each: ours a-side and h-side, theirs.
fn rights(frame: &Frame<'_>, format: InputFormat) -> [u8; 4] {
    let stored = [frame.castling_us_ooo(), frame.castling_us_oo(), frame.castling_them_ooo(), frame.castling_them_oo()];
    if format.has_castling_masks() {
        return stored;
    }
    let corners = [0x01, 0x80, 0x01, 0x80];
    std::array::from_fn(|i| if stored[i] == 0 { 0 } else { corners[i] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::frame::FrameMut;
    use crate::chess::record::{V6_BYTES, V7_BYTES};
    use crate::chess::transform::flip;
    use proptest::prelude::*;

    /// A game of made-up positions: men by plane, as the side to move sees them.
    fn game(positions: &[[u64; MEN]], black_first: bool, format: InputFormat, size: usize, bits: u8) -> Vec<u8> {
        let mut records = vec![0; positions.len() * size];
        for (i, (record, men)) in records.chunks_exact_mut(size).zip(positions).enumerate() {
            let black = black_first != (i % 2 == 1);
            let mut frame = FrameMut::blank(record, format).unwrap();
            let transform = if format.is_canonical() { Transform::from_bits(bits) } else { Transform::NONE };
            for (plane, mask) in men.iter().enumerate() {
                frame.set_plane(plane, flip(transform.apply(*mask)));
            }
            if format.is_canonical() {
                frame.set_invariance_info(bits & 7 | u8::from(black) << 7);
            } else {
                frame.set_side_to_move_or_enpassant(black.into());
            }
            if i == 0 && (!format.is_canonical() || bits & 7 == 0) {
                let mask = format.has_castling_masks();
                frame.set_castling_us_ooo(1).set_castling_them_oo(if mask { 0x80 } else { 1 });
            }
        }
        records
    }

    const START: [u64; MEN] =
        [0xff00, 0x42, 0x24, 0x81, 0x08, 0x10, 0xff << 48, 0x42 << 56, 0x24 << 56, 0x81 << 56, 8 << 56, 16 << 56];

    #[test]
    fn the_key_is_the_published_one() {
        let found = identity(&game(&[START], false, InputFormat::Classical, V6_BYTES, 0), V6_BYTES).unwrap();
        let bytes: Vec<u8> =
            [1, 0, 0, 0x80].into_iter().chain(START.iter().flat_map(|mask| mask.to_le_bytes())).collect();
        assert_eq!(found.key, xxhash_rust::xxh3::xxh3_128(&bytes));
        assert_eq!(format!("{:032x}", found.key), GOLDEN);
    }

    const GOLDEN: &str = "d8ba052099b556346d45bf94b5ea7dd7";

    proptest! {
            #[test]
            fn a_game_has_one_key_however_it_is_recorded(positions in prop::collection::vec(prop::array::uniform12(any::<u64>()), 1..5),
                                                         other in any::<u64>(), bits in 0u8..8) {
                let of = |positions: &[[u64; MEN]], black, format, size, bits| identity(&game(positions, black, format, size, bits), size).unwrap();
                let one = of(&positions, false, InputFormat::Classical, V6_BYTES, 0);
                prop_assert!(!one.black_first);
                for (format, size) in [(InputFormat::Castling, V7_BYTES), (InputFormat::CanonicalV2, V6_BYTES), (InputFormat::Classical, V7_BYTES)] {
                    for black in [false, true] {
                        let found = of(&positions, black, format, size, 0);
                        prop_assert_eq!((found.key, found.black_first), (one.key, black));
                    }
                }
    // Under a transform no side may castle, so this is another game; its own images agree.
                let turned = of(&positions, true, InputFormat::Canonical, V6_BYTES, bits.max(1));
                let straight = of(&positions, false, InputFormat::Canonical, V7_BYTES, 8 - bits.max(1));
                prop_assert_eq!(turned.key, straight.key);
                let mut changed = positions.clone();
                changed.last_mut().unwrap()[3] ^= other;
                prop_assert_eq!(of(&changed, false, InputFormat::Classical, V6_BYTES, 0).key == one.key, other == 0);
            }
        }
}
