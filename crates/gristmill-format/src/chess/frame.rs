//! Typed views of one V6 or V7 record: `Frame` reads, `FrameMut` writes.
//! Costs nothing but the loads; the length is checked once, values never are.

use gristmill_bytes::error::{Error, Kind, Result};

use super::record::{InputFormat, PLANES, POLICY, V6_BYTES, V7_BYTES, Version, at, known_format};

/// A read-only view of one record.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    bytes: &'a [u8],
}

/// A view of one record that can be written.
#[derive(Debug)]
pub struct FrameMut<'a> {
    bytes: &'a mut [u8],
}

fn check_length(len: usize) -> Result<()> {
    if len == V6_BYTES || len == V7_BYTES {
        return Ok(());
    }
    Err(Error::new(
        Kind::WrongSize,
        format!("a record of {len} bytes; a V6 record has {V6_BYTES} and a V7 record {V7_BYTES}"),
    ))
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut word = [0; N];
    word.copy_from_slice(&bytes[at..at + N]);
    word
}

macro_rules! scalars {
    ($($(#[$doc:meta])* $name:ident, $set:ident: $ty:ty = $at:expr;)*) => {
        /// One accessor per scalar field of V6.
        impl<'a> Frame<'a> {
            $($(#[$doc])* pub fn $name(&self) -> $ty { <$ty>::from_le_bytes(take(self.bytes, $at)) })*
        }

        /// One setter per scalar field of V6.
        impl<'a> FrameMut<'a> {
            $($(#[$doc])* pub fn $set(&mut self, value: $ty) -> &mut Self {
                self.bytes[$at..$at + size_of::<$ty>()].copy_from_slice(&value.to_le_bytes());
                self
            })*
        }
    };
}

scalars! {
    /// Version tag: 6 or 7 (6 also in a record that was widened to V7 size).
    version, set_version: u32 = at::VERSION;
    /// Stored value of the input format.
    input_format_value, set_input_format_value: u32 = at::INPUT_FORMAT;
    /// Queenside right of the side to move: 0 or 1; formats >= 2 the rook's file bit.
    castling_us_ooo, set_castling_us_ooo: u8 = at::CASTLING_US_OOO;
    /// Kingside right of the side to move.
    castling_us_oo, set_castling_us_oo: u8 = at::CASTLING_US_OO;
    /// Queenside right of the opponent.
    castling_them_ooo, set_castling_them_ooo: u8 = at::CASTLING_THEM_OOO;
    /// Kingside right of the opponent.
    castling_them_oo, set_castling_them_oo: u8 = at::CASTLING_THEM_OO;
    /// Formats 1 and 2: 1 when black is to move; formats >= 3: en-passant file mask.
    side_to_move_or_enpassant, set_side_to_move_or_enpassant: u8 = at::SIDE_TO_MOVE_OR_ENPASSANT;
    /// Plies since the last capture or pawn move.
    rule50_count, set_rule50_count: u8 = at::RULE50_COUNT;
    /// Bits: 0-2 transform, 3 best move proven, 4 maximum length, 5 adjudicated, 6 deleted, 7 black (formats >= 3).
    invariance_info, set_invariance_info: u8 = at::INVARIANCE_INFO;
    /// 0 since V6.
    dummy, set_dummy: u8 = at::DUMMY;
    /// Search value of the root for the side to move, -1..1.
    root_q, set_root_q: f32 = at::ROOT_Q;
    /// Search value of the best move, -1..1.
    best_q, set_best_q: f32 = at::BEST_Q;
    /// Draw probability of the root, 0..1.
    root_d, set_root_d: f32 = at::ROOT_D;
    /// Draw probability of the best move, 0..1.
    best_d, set_best_d: f32 = at::BEST_D;
    /// Expected plies left at the root.
    root_m, set_root_m: f32 = at::ROOT_M;
    /// Expected plies left after the best move.
    best_m, set_best_m: f32 = at::BEST_M;
    /// Moves-left target, in plies.
    plies_left, set_plies_left: f32 = at::PLIES_LEFT;
    /// Game result for the side to move: 1, 0, -1 (fractions after rescoring).
    result_q, set_result_q: f32 = at::RESULT_Q;
    /// 1 for a draw, else 0 (fractions after rescoring).
    result_d, set_result_d: f32 = at::RESULT_D;
    /// Search value of the move played.
    played_q, set_played_q: f32 = at::PLAYED_Q;
    /// Draw probability of the move played.
    played_d, set_played_d: f32 = at::PLAYED_D;
    /// Expected plies left after the move played.
    played_m, set_played_m: f32 = at::PLAYED_M;
    /// Network value before search; NaN when unknown.
    orig_q, set_orig_q: f32 = at::ORIG_Q;
    /// Network draw probability before search; NaN when unknown.
    orig_d, set_orig_d: f32 = at::ORIG_D;
    /// Network plies left before search; NaN when unknown.
    orig_m, set_orig_m: f32 = at::ORIG_M;
    /// Search visits; 0 marks data upgraded from an older version.
    visits, set_visits: u32 = at::VISITS;
    /// Policy index of the move played.
    played_idx, set_played_idx: u16 = at::PLAYED_IDX;
    /// Policy index of the best move.
    best_idx, set_best_idx: u16 = at::BEST_IDX;
    /// Divergence of visits from policy, in nats; 0 when unknown.
    policy_kld, set_policy_kld: f32 = at::POLICY_KLD;
    /// Short-term value; meaningful in V7.
    q_st, set_q_st: f32 = at::Q_ST;
}

impl<'a> Frame<'a> {
    /// A view of `bytes`. Errors: `WrongSize` unless it is one V6 or V7 record long.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        check_length(bytes.len())?;
        Ok(Frame { bytes })
    }

    /// A view of one record of the size of V7.
    pub(super) fn sized(bytes: &'a [u8; V7_BYTES]) -> Self {
        Frame { bytes }
    }

    /// The bytes of the record.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The input format. Errors: `OutOfRange` for a value that is none of the seven.
    pub fn input_format(&self) -> Result<InputFormat> {
        known_format(self.input_format_value()).map_err(|e| e.at_byte(at::INPUT_FORMAT as u64))
    }

    /// Visit fraction of policy index `i`; negative or NaN marks an illegal move. Panics unless `i < 1858`.
    pub fn probability(&self, i: usize) -> f32 {
        assert!(i < POLICY, "policy index {i} of {POLICY}");
        f32::from_le_bytes(take(self.bytes, at::PROBABILITIES + 4 * i))
    }

    /// All visit fractions, in order of policy index.
    pub fn probabilities(&self) -> impl ExactSizeIterator<Item = f32> + use<'a> {
        self.probability_bytes().chunks_exact(4).map(|b| f32::from_le_bytes(take(b, 0)))
    }

    /// The stored little-endian f32 of the policy, 7432 bytes.
    pub fn probability_bytes(&self) -> &'a [u8] {
        &self.bytes[at::PROBABILITIES..at::PLANES]
    }

    /// Stored word of plane `i`: square `s` is bit `s ^ 7`. Panics unless `i < 104`.
    pub fn plane(&self, i: usize) -> u64 {
        assert!(i < PLANES, "plane {i} of {PLANES}");
        u64::from_le_bytes(take(self.bytes, at::PLANES + 8 * i))
    }

    /// The stored planes, 832 bytes.
    pub fn plane_bytes(&self) -> &'a [u8] {
        &self.bytes[at::PLANES..at::CASTLING_US_OOO]
    }

    /// Short-term draw probability; 0 in a V6 record.
    pub fn d_st(&self) -> f32 {
        self.tail(at::D_ST).map_or(0.0, f32::from_le_bytes)
    }

    /// Policy index of the opponent's reply, 65535 if none; 0 in a V6 record.
    pub fn opp_played_idx(&self) -> u16 {
        self.tail(at::OPP_PLAYED_IDX).map_or(0, u16::from_le_bytes)
    }

    /// Policy index of the move after that, 65535 if none; 0 in a V6 record.
    pub fn next_played_idx(&self) -> u16 {
        self.tail(at::NEXT_PLAYED_IDX).map_or(0, u16::from_le_bytes)
    }

    fn tail<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        (self.bytes.len() == V7_BYTES).then(|| take(self.bytes, at))
    }
}

impl<'a> FrameMut<'a> {
    /// A view of `bytes`, left as they are. Errors: `WrongSize` unless it is one V6 or V7 record long.
    pub fn new(bytes: &'a mut [u8]) -> Result<Self> {
        check_length(bytes.len())?;
        Ok(FrameMut { bytes })
    }

    /// Overwrites `bytes` with a blank record of the version that its length tells: no move legal,
    /// `orig_*` unknown (NaN), no next moves (65535), all else zero.
    ///
    /// Errors: `WrongSize` unless it is one V6 or V7 record long.
    pub fn blank(bytes: &'a mut [u8], format: InputFormat) -> Result<Self> {
        let mut frame = FrameMut::new(bytes)?;
        frame.bytes.fill(0);
        for i in 0..POLICY {
            frame.set_probability(i, -1.0);
        }
        frame.set_orig_q(f32::NAN).set_orig_d(f32::NAN).set_orig_m(f32::NAN);
        let wide = frame.bytes.len() == V7_BYTES;
        if wide {
            frame.bytes[at::OPP_PLAYED_IDX..at::RESERVED].fill(0xff);
        }
        let version = if wide { Version::V7 } else { Version::V6 };
        frame.set_version(version.number()).set_input_format_value(format.value());
        Ok(frame)
    }

    /// The same record, to read.
    pub fn as_frame(&self) -> Frame<'_> {
        Frame { bytes: self.bytes }
    }

    /// Sets the visit fraction of policy index `i`. Panics unless `i < 1858`.
    pub fn set_probability(&mut self, i: usize, value: f32) -> &mut Self {
        assert!(i < POLICY, "policy index {i} of {POLICY}");
        self.put(at::PROBABILITIES + 4 * i, &value.to_le_bytes())
    }

    /// Sets the stored word of plane `i`: square `s` is bit `s ^ 7`. Panics unless `i < 104`.
    pub fn set_plane(&mut self, i: usize, word: u64) -> &mut Self {
        assert!(i < PLANES, "plane {i} of {PLANES}");
        self.put(at::PLANES + 8 * i, &word.to_le_bytes())
    }

    /// Sets the V7 fields: short-term draw probability and the next two moves (65535 for none).
    /// Panics on a V6 record.
    pub fn set_short_term(&mut self, d_st: f32, opp_played_idx: u16, next_played_idx: u16) -> &mut Self {
        self.put(at::D_ST, &d_st.to_le_bytes())
            .put(at::OPP_PLAYED_IDX, &opp_played_idx.to_le_bytes())
            .put(at::NEXT_PLAYED_IDX, &next_played_idx.to_le_bytes())
    }

    fn put(&mut self, at: usize, value: &[u8]) -> &mut Self {
        self.bytes[at..at + value.len()].copy_from_slice(value);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = vec![1; V7_BYTES];
        let mut frame = FrameMut::blank(&mut bytes, InputFormat::Canonical).unwrap();
        frame.set_probability(3, 0.5).set_plane(103, 7).set_visits(9).set_played_idx(8).set_best_m(-2.5);
        frame.set_short_term(0.25, 11, 12);
        let frame = frame.as_frame();
        assert_eq!((frame.version(), frame.input_format().unwrap()), (7, InputFormat::Canonical));
        assert_eq!((frame.probability(3), frame.probability(4), frame.plane(103)), (0.5, -1.0, 7));
        assert_eq!((frame.visits(), frame.played_idx(), frame.best_m()), (9, 8, -2.5));
        assert_eq!((frame.d_st(), frame.opp_played_idx(), frame.next_played_idx()), (0.25, 11, 12));
        assert!(frame.orig_q().is_nan() && frame.q_st() == 0.0);
        assert_eq!(frame.probabilities().filter(|&p| p >= 0.0).count(), 1);
    }

    #[test]
    fn a_short_record_has_no_tail() {
        let mut bytes = vec![1; V6_BYTES];
        let frame = FrameMut::blank(&mut bytes, InputFormat::Classical).unwrap();
        assert_eq!((frame.as_frame().version(), frame.as_frame().d_st()), (6, 0.0));
        assert_eq!(Frame::new(&bytes[1..]).unwrap_err().kind(), Kind::WrongSize);
    }
}
