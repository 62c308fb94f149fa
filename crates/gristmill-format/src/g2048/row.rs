//! One step of a game as 48 bytes: the documented aligned dtype (spec 2.3).
//! A view of bytes; judges nothing.

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Kind, Result};
use crate::layout::{Layout, Scalar};

/// The 48-byte layout.
pub fn layout() -> &'static Arc<Layout> {
    static LAYOUT: OnceLock<Arc<Layout>> = OnceLock::new();
    LAYOUT.get_or_init(|| {
        let fields: &[(&str, Scalar, &[usize])] = &[
            ("run_id", Scalar::U32, &[]),
            ("step_index", Scalar::U32, &[]),
            ("board", Scalar::U64, &[]),
            ("board_eval", Scalar::I32, &[]),
            ("tile_65536_mask", Scalar::U16, &[]),
            ("move_dir", Scalar::U8, &[]),
            ("valuation_type", Scalar::U8, &[]),
            ("ev_legal", Scalar::U8, &[]),
            ("max_rank", Scalar::U8, &[]),
            ("seed", Scalar::U32, &[]),
            ("branch_evs", Scalar::F32, &[4]),
        ];
        Arc::new(Layout::aligned(fields).expect("a constant"))
    })
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct StepRow<'a>(&'a [u8; 48]);

impl<'a> StepRow<'a> {
    /// A view of 48 bytes. Errors: `WrongSize`.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        let sized = bytes.try_into().map(StepRow);
        sized.map_err(|_| Error::new(Kind::WrongSize, format!("a step row of {} bytes, expected 48", bytes.len())))
    }

    fn at<const N: usize>(self, offset: usize) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&self.0[offset..offset + N]);
        out
    }

    /// `run_id`.
    pub fn run_id(self) -> u32 {
        u32::from_le_bytes(self.at(0))
    }

    /// `step_index`.
    pub fn step_index(self) -> u32 {
        u32::from_le_bytes(self.at(4))
    }

    /// `board`.
    pub fn board(self) -> u64 {
        u64::from_le_bytes(self.at(8))
    }

    /// `board_eval`.
    pub fn board_eval(self) -> i32 {
        i32::from_le_bytes(self.at(16))
    }

    /// `tile_65536_mask`.
    pub fn tile_65536_mask(self) -> u16 {
        u16::from_le_bytes(self.at(20))
    }

    /// `move_dir`.
    pub fn move_dir(self) -> u8 {
        self.0[22]
    }

    /// `valuation_type`.
    pub fn valuation_type(self) -> u8 {
        self.0[23]
    }

    /// `ev_legal`.
    pub fn ev_legal(self) -> u8 {
        self.0[24]
    }

    /// `max_rank`.
    pub fn max_rank(self) -> u8 {
        self.0[25]
    }

    /// `branch_evs`.
    pub fn branch_evs(self) -> [f32; 4] {
        std::array::from_fn(|i| f32::from_le_bytes(self.at(32 + 4 * i)))
    }
}
