//! Versions, sizes and field offsets of the records, the two layouts that frames have, and the input formats.
//! Numbers only: reads no record.

use std::sync::{Arc, OnceLock};

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};

/// Entries of the policy vector.
pub const POLICY: usize = 1858;
/// Stored planes: 8 boards of 13.
pub const PLANES: usize = 104;

/// Bytes of a V3 record.
pub const V3_BYTES: usize = 8276;
/// Bytes of a V4 record.
pub const V4_BYTES: usize = 8292;
/// Bytes of a V5 record.
pub const V5_BYTES: usize = 8308;
/// Bytes of a V6 record.
pub const V6_BYTES: usize = 8356;
/// Bytes of a V7 record.
pub const V7_BYTES: usize = 8396;

/// Byte offsets of the fields of a V6 or V7 record (the last four exist in V7 only).
pub mod at {
    #![allow(missing_docs, reason = "the names are the fields of docs/format/chess.md")]
    pub const VERSION: usize = 0;
    pub const INPUT_FORMAT: usize = 4;
    pub const PROBABILITIES: usize = 8;
    pub const PLANES: usize = 7440;
    pub const CASTLING_US_OOO: usize = 8272;
    pub const CASTLING_US_OO: usize = 8273;
    pub const CASTLING_THEM_OOO: usize = 8274;
    pub const CASTLING_THEM_OO: usize = 8275;
    pub const SIDE_TO_MOVE_OR_ENPASSANT: usize = 8276;
    pub const RULE50_COUNT: usize = 8277;
    pub const INVARIANCE_INFO: usize = 8278;
    pub const DUMMY: usize = 8279;
    pub const ROOT_Q: usize = 8280;
    pub const BEST_Q: usize = 8284;
    pub const ROOT_D: usize = 8288;
    pub const BEST_D: usize = 8292;
    pub const ROOT_M: usize = 8296;
    pub const BEST_M: usize = 8300;
    pub const PLIES_LEFT: usize = 8304;
    pub const RESULT_Q: usize = 8308;
    pub const RESULT_D: usize = 8312;
    pub const PLAYED_Q: usize = 8316;
    pub const PLAYED_D: usize = 8320;
    pub const PLAYED_M: usize = 8324;
    pub const ORIG_Q: usize = 8328;
    pub const ORIG_D: usize = 8332;
    pub const ORIG_M: usize = 8336;
    pub const VISITS: usize = 8340;
    pub const PLAYED_IDX: usize = 8344;
    pub const BEST_IDX: usize = 8346;
    pub const POLICY_KLD: usize = 8348;
    pub const Q_ST: usize = 8352;
    pub const D_ST: usize = 8356;
    pub const OPP_PLAYED_IDX: usize = 8360;
    pub const NEXT_PLAYED_IDX: usize = 8362;
    pub const RESERVED: usize = 8364;
}

/// The fields of a V7 record in order; a V6 record has all but the last four.
const FIELDS: [(&str, Scalar, &[usize]); 36] = [
    ("version", Scalar::U32, &[]),
    ("input_format", Scalar::U32, &[]),
    ("probabilities", Scalar::F32, &[POLICY]),
    ("planes", Scalar::U64, &[PLANES]),
    ("castling_us_ooo", Scalar::U8, &[]),
    ("castling_us_oo", Scalar::U8, &[]),
    ("castling_them_ooo", Scalar::U8, &[]),
    ("castling_them_oo", Scalar::U8, &[]),
    ("side_to_move_or_enpassant", Scalar::U8, &[]),
    ("rule50_count", Scalar::U8, &[]),
    ("invariance_info", Scalar::U8, &[]),
    ("dummy", Scalar::U8, &[]),
    ("root_q", Scalar::F32, &[]),
    ("best_q", Scalar::F32, &[]),
    ("root_d", Scalar::F32, &[]),
    ("best_d", Scalar::F32, &[]),
    ("root_m", Scalar::F32, &[]),
    ("best_m", Scalar::F32, &[]),
    ("plies_left", Scalar::F32, &[]),
    ("result_q", Scalar::F32, &[]),
    ("result_d", Scalar::F32, &[]),
    ("played_q", Scalar::F32, &[]),
    ("played_d", Scalar::F32, &[]),
    ("played_m", Scalar::F32, &[]),
    ("orig_q", Scalar::F32, &[]),
    ("orig_d", Scalar::F32, &[]),
    ("orig_m", Scalar::F32, &[]),
    ("visits", Scalar::U32, &[]),
    ("played_idx", Scalar::U16, &[]),
    ("best_idx", Scalar::U16, &[]),
    ("policy_kld", Scalar::F32, &[]),
    ("q_st", Scalar::F32, &[]),
    ("d_st", Scalar::F32, &[]),
    ("opp_played_idx", Scalar::U16, &[]),
    ("next_played_idx", Scalar::U16, &[]),
    ("reserved", Scalar::F32, &[8]),
];

/// The 8356-byte layout of a V6 record.
pub fn layout_v6() -> &'static Arc<Layout> {
    static LAYOUT: OnceLock<Arc<Layout>> = OnceLock::new();
    LAYOUT.get_or_init(|| packed(FIELDS.len() - 4))
}

/// The 8396-byte layout of a V7 record: V6, then `d_st`, `opp_played_idx`, `next_played_idx`, `reserved`.
pub fn layout_v7() -> &'static Arc<Layout> {
    static LAYOUT: OnceLock<Arc<Layout>> = OnceLock::new();
    LAYOUT.get_or_init(|| packed(FIELDS.len()))
}

fn packed(fields: usize) -> Arc<Layout> {
    Arc::new(Layout::packed(&FIELDS[..fields]).expect("a constant list of distinct fields"))
}

/// The version of a stored record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// 8276 bytes: no input format, no searched values.
    V3,
    /// 8292 bytes: V3 and four searched values.
    V4,
    /// 8308 bytes: V4 with an input format and moves left.
    V5,
    /// 8356 bytes: what self-play writes today.
    V6,
    /// 8396 bytes: V6 with short-term values and the next two moves.
    V7,
}

impl Version {
    /// All of them, oldest first.
    pub const ALL: [Version; 5] = [Version::V3, Version::V4, Version::V5, Version::V6, Version::V7];

    /// The version whose tag is `number`; `None` for any other, third-party tags such as 70 and 170 included.
    pub fn from_number(number: u32) -> Option<Self> {
        Version::ALL.into_iter().find(|v| v.number() == number)
    }

    /// The tag in the first four bytes of a record.
    pub fn number(self) -> u32 {
        match self {
            Version::V3 => 3,
            Version::V4 => 4,
            Version::V5 => 5,
            Version::V6 => 6,
            Version::V7 => 7,
        }
    }

    /// Bytes of one record.
    pub fn bytes(self) -> usize {
        match self {
            Version::V3 => V3_BYTES,
            Version::V4 => V4_BYTES,
            Version::V5 => V5_BYTES,
            Version::V6 => V6_BYTES,
            Version::V7 => V7_BYTES,
        }
    }
}

/// How the planes and the bytes after them are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InputFormat {
    /// 1: classical 112 planes.
    Classical,
    /// 2: castling rights as rook files, for Chess960.
    Castling,
    /// 3: canonical orientation of the board.
    Canonical,
    /// 4: canonical, fifty-move counter in hundredths.
    CanonicalHectoplies,
    /// 132: the same for the armageddon variant.
    CanonicalHectopliesArmageddon,
    /// 5: canonical, history holds repeated positions only.
    CanonicalV2,
    /// 133: the same for the armageddon variant.
    CanonicalV2Armageddon,
}

impl InputFormat {
    /// All of them, in order of value.
    pub const ALL: [InputFormat; 7] = [
        InputFormat::Classical,
        InputFormat::Castling,
        InputFormat::Canonical,
        InputFormat::CanonicalHectoplies,
        InputFormat::CanonicalV2,
        InputFormat::CanonicalHectopliesArmageddon,
        InputFormat::CanonicalV2Armageddon,
    ];

    /// The format whose stored value is `value`.
    pub fn from_value(value: u32) -> Option<Self> {
        Some(match value {
            1 => InputFormat::Classical,
            2 => InputFormat::Castling,
            3 => InputFormat::Canonical,
            4 => InputFormat::CanonicalHectoplies,
            5 => InputFormat::CanonicalV2,
            132 => InputFormat::CanonicalHectopliesArmageddon,
            133 => InputFormat::CanonicalV2Armageddon,
            _ => return None,
        })
    }

    /// The stored value.
    pub fn value(self) -> u32 {
        match self {
            InputFormat::Classical => 1,
            InputFormat::Castling => 2,
            InputFormat::Canonical => 3,
            InputFormat::CanonicalHectoplies => 4,
            InputFormat::CanonicalV2 => 5,
            InputFormat::CanonicalHectopliesArmageddon => 132,
            InputFormat::CanonicalV2Armageddon => 133,
        }
    }

    /// Whether castling rights are stored as rook files (value >= 2).
    pub fn has_castling_masks(self) -> bool {
        self.value() >= 2
    }

    /// Whether the board may be transformed and byte 8276 is an en-passant mask (value >= 3).
    pub fn is_canonical(self) -> bool {
        self.value() >= 3
    }

    /// Whether the fifty-move counter counts in hundredths (value >= 4).
    pub fn is_hectoplies(self) -> bool {
        self.value() >= 4
    }

    /// Whether plane 110 marks black to move (132 and 133).
    pub fn is_armageddon(self) -> bool {
        matches!(self, InputFormat::CanonicalHectopliesArmageddon | InputFormat::CanonicalV2Armageddon)
    }
}

/// The input format stored as `value`; `OutOfRange` for any but the seven.
pub(crate) fn known_format(value: u32) -> Result<InputFormat> {
    InputFormat::from_value(value).ok_or_else(|| {
        let detail = format!("input_format {value}; known are 1, 2, 3, 4, 5, 132 and 133");
        Error::new(Kind::OutOfRange, format!("{detail}. Is this chunk of another engine or of a newer lc0?"))
    })
}

/// Moves records of `from` bytes apart, in their place, so that each has `to` bytes: zeros after it.
pub(crate) fn spread(records: &mut Vec<u8>, from: usize, to: usize) {
    let count = records.len() / from;
    records.reserve_exact((count * to).saturating_sub(records.len()));
    records.resize(count * to, 0);
    for i in (0..count).rev() {
        records.copy_within(i * from..(i + 1) * from, i * to);
        records[i * to + from..(i + 1) * to].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_spread_where_they_are() {
        let mut records = vec![1, 2, 3, 4, 5, 6];
        spread(&mut records, 2, 3);
        assert_eq!(records, [1, 2, 0, 3, 4, 0, 5, 6, 0]);
        spread(&mut records, 3, 3);
        assert_eq!(records, [1, 2, 0, 3, 4, 0, 5, 6, 0]);
        spread(&mut Vec::new(), 2, 3);
    }

    #[test]
    fn layouts_have_the_published_sizes() {
        assert_eq!((layout_v6().size(), layout_v7().size()), (V6_BYTES, V7_BYTES));
        assert_eq!(layout_v6().fields(), &layout_v7().fields()[..layout_v6().fields().len()]);
    }

    #[test]
    fn classes_follow_the_value() {
        for value in 0..=300 {
            let Some(format) = InputFormat::from_value(value) else { continue };
            assert_eq!(format.value(), value);
            assert_eq!(format.has_castling_masks(), value >= 2);
            assert_eq!(format.is_canonical(), value >= 3);
            assert_eq!(format.is_hectoplies(), value >= 4);
            assert_eq!(format.is_armageddon(), value == 132 || value == 133);
        }
        assert!(InputFormat::ALL.iter().all(|f| InputFormat::from_value(f.value()) == Some(*f)));
    }

    #[test]
    fn foreign_version_tags_are_unknown() {
        assert_eq!(Version::from_number(6), Some(Version::V6));
        assert!([0, 1, 2, 8, 70, 170, u32::MAX].into_iter().all(|n| Version::from_number(n).is_none()));
    }
}
