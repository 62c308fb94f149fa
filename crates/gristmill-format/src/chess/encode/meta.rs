//! The eight planes after the stored 104, by the format-aware rule of spec 3.
//! Format 1 is the legacy rule bit for bit; canonical planes are stored transformed and stay so.

use gristmill_bytes::error::Result;

use crate::chess::frame::Frame;
use crate::chess::record::InputFormat;

/// One plane: `value` on the squares of `word`, zero elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetaPlane {
    /// Squares as in a stored plane: square `s` is bit `s ^ 7`.
    pub word: u64,
    /// The value in f32 and f16 planes.
    pub value: f32,
    /// The value in u8 planes: the same, but for plane 109 the count itself, not divided.
    pub raw: u8,
}

impl MetaPlane {
    const ZERO: MetaPlane = MetaPlane { word: 0, value: 0.0, raw: 0 };

    fn constant(raw: u8) -> Self {
        MetaPlane { word: u64::MAX, value: f32::from(raw), raw }
    }

    fn ones(word: u64) -> Self {
        MetaPlane { word, value: 1.0, raw: 1 }
    }

    /// Bit `f` of `first` is file `f` of rank 1, of `last` that of rank 8.
    fn outer_ranks(first: u8, last: u8) -> Self {
        MetaPlane::ones(u64::from(first.reverse_bits()) | u64::from(last.reverse_bits()) << 56)
    }
}

/// Planes 104 to 111 of a frame. Errors: `OutOfRange` for an unknown input format.
pub fn meta_planes(frame: &Frame<'_>) -> Result<[MetaPlane; 8]> {
    let format = frame.input_format()?;
    let castling = if format.has_castling_masks() {
        [
            MetaPlane::outer_ranks(frame.castling_us_ooo(), frame.castling_them_ooo()),
            MetaPlane::outer_ranks(frame.castling_us_oo(), frame.castling_them_oo()),
            MetaPlane::ZERO,
            MetaPlane::ZERO,
        ]
    } else {
        [frame.castling_us_ooo(), frame.castling_us_oo(), frame.castling_them_ooo(), frame.castling_them_oo()]
            .map(MetaPlane::constant)
    };
    let side = frame.side_to_move_or_enpassant();
    let side = if format.is_canonical() { MetaPlane::outer_ranks(0, side) } else { MetaPlane::constant(side) };
    let count = frame.rule50_count();
    let full = if format.is_hectoplies() { 100.0 } else { 99.0 };
    let rule50 = MetaPlane { word: u64::MAX, value: f32::from(count) / full, raw: count };
    let armageddon = InputFormat::is_armageddon(format) && frame.invariance_info() >= 128;
    let armageddon = if armageddon { MetaPlane::ones(u64::MAX) } else { MetaPlane::ZERO };
    let [a, b, c, d] = castling;
    Ok([a, b, c, d, side, rule50, armageddon, MetaPlane::ones(u64::MAX)])
}
