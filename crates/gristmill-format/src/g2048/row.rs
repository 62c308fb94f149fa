//! The step row: its fields, the two layouts that files have (46 bytes packed, 48 aligned), and typed reading and writing.
//! Knows the bytes alone; what values mean is in the files beside it.

use std::sync::{Arc, LazyLock};

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};

use super::board::{Board, Packed};

/// Bytes of an aligned row: the documented dtype, and the form of chunks in memory.
pub const ALIGNED_BYTES: usize = 48;

/// Bytes of a packed row: what existing packs hold on disk.
pub const PACKED_BYTES: usize = 46;

/// The `descr` of packed rows as existing packs spell it (`'<u1'` for bytes, a comma after every field). NumPy reads
/// it as the same dtype that it would itself spell with `'|u1'`.
pub const PACKED_DESCR: &str = "[('run_id', '<u4'), ('step_index', '<u4'), ('board', '<u8'), ('board_eval', '<i4'), \
('tile_65536_mask', '<u2'), ('move_dir', '<u1'), ('valuation_type', '<u1'), ('ev_legal', '<u1'), ('max_rank', '<u1'), \
('seed', '<u4'), ('branch_evs', '<f4', (4,)), ]";

const FIELDS: [(&str, Scalar, &[usize]); 11] = [
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

/// Byte offsets of the fields of an aligned row. A packed row has the same up to `max_rank`; then `seed` and
/// `branch_evs` lie two bytes earlier.
pub mod at {
    #![allow(missing_docs, reason = "the names are the fields of the row")]
    pub const RUN_ID: usize = 0;
    pub const STEP_INDEX: usize = 4;
    pub const BOARD: usize = 8;
    pub const BOARD_EVAL: usize = 16;
    pub const TILE_65536_MASK: usize = 20;
    pub const MOVE_DIR: usize = 22;
    pub const VALUATION_TYPE: usize = 23;
    pub const EV_LEGAL: usize = 24;
    pub const MAX_RANK: usize = 25;
    pub const SEED: usize = 28;
    pub const BRANCH_EVS: usize = 32;
}

/// Bytes before the gap that only aligned rows have, and the width of the gap.
const BEFORE_GAP: usize = at::MAX_RANK + 1;
const GAP: usize = ALIGNED_BYTES - PACKED_BYTES;

/// The 48-byte layout: NumPy's `align=True` of the fields.
pub fn layout_aligned() -> &'static Arc<Layout> {
    static LAYOUT: LazyLock<Arc<Layout>> =
        LazyLock::new(|| Arc::new(Layout::aligned(&FIELDS).expect("a constant list of distinct fields")));
    &LAYOUT
}

/// The 46-byte layout: the same fields without padding.
pub fn layout_packed() -> &'static Arc<Layout> {
    static LAYOUT: LazyLock<Arc<Layout>> =
        LazyLock::new(|| Arc::new(Layout::packed(&FIELDS).expect("a constant list of distinct fields")));
    &LAYOUT
}

/// How the bytes of a row are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RowForm {
    /// 48 bytes with C alignment.
    #[default]
    Aligned,
    /// 46 bytes without padding.
    Packed,
}

impl RowForm {
    /// Bytes of one row.
    pub fn bytes(self) -> usize {
        match self {
            RowForm::Aligned => ALIGNED_BYTES,
            RowForm::Packed => PACKED_BYTES,
        }
    }

    /// The layout.
    pub fn layout(self) -> &'static Arc<Layout> {
        match self {
            RowForm::Aligned => layout_aligned(),
            RowForm::Packed => layout_packed(),
        }
    }
}

/// One step of a game: the position before a move, the move, and what the player thought of all four.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepRow {
    /// Position of the game in its pack; 0 in a raw log.
    pub run_id: u32,
    /// Index of the step in its game, as logged.
    pub step_index: u32,
    /// The board before the move, in nibbles; ranks clamped to 15.
    pub board: u64,
    /// The heuristic value of the unclamped board.
    pub board_eval: i32,
    /// Bit i: cell i has rank 16 or more.
    pub tile_65536_mask: u16,
    /// 0 up, 1 down, 2 left, 3 right.
    pub move_dir: u8,
    /// Where the EVs come from: an id into the pack's table of names.
    pub valuation_type: u8,
    /// Bit i (up, down, left, right): the branch was logged with a number.
    pub ev_legal: u8,
    /// Highest rank, as logged.
    pub max_rank: u8,
    /// Low 32 bits of the game's seed.
    pub seed: u32,
    /// EVs of up, down, left, right; +0.0 where not legal.
    pub branch_evs: [f32; 4],
}

impl StepRow {
    /// The board, with rank 16 where the mask says so.
    pub fn decoded_board(&self) -> Board {
        Board::unpack(Packed { board: self.board, mask: self.tile_65536_mask })
    }

    /// The bytes of the aligned form; padding is zero.
    pub fn to_aligned(&self) -> [u8; ALIGNED_BYTES] {
        let mut out = [0; ALIGNED_BYTES];
        out[at::RUN_ID..][..4].copy_from_slice(&self.run_id.to_le_bytes());
        out[at::STEP_INDEX..][..4].copy_from_slice(&self.step_index.to_le_bytes());
        out[at::BOARD..][..8].copy_from_slice(&self.board.to_le_bytes());
        out[at::BOARD_EVAL..][..4].copy_from_slice(&self.board_eval.to_le_bytes());
        out[at::TILE_65536_MASK..][..2].copy_from_slice(&self.tile_65536_mask.to_le_bytes());
        out[at::MOVE_DIR] = self.move_dir;
        out[at::VALUATION_TYPE] = self.valuation_type;
        out[at::EV_LEGAL] = self.ev_legal;
        out[at::MAX_RANK] = self.max_rank;
        out[at::SEED..][..4].copy_from_slice(&self.seed.to_le_bytes());
        for (i, ev) in self.branch_evs.iter().enumerate() {
            out[at::BRANCH_EVS + 4 * i..][..4].copy_from_slice(&ev.to_le_bytes());
        }
        out
    }

    /// The row of the aligned form; padding is ignored.
    #[inline]
    pub fn from_aligned(bytes: &[u8; ALIGNED_BYTES]) -> Self {
        StepRow {
            run_id: word(bytes, at::RUN_ID),
            step_index: word(bytes, at::STEP_INDEX),
            board: u64::from(word(bytes, at::BOARD)) | u64::from(word(bytes, at::BOARD + 4)) << 32,
            board_eval: word(bytes, at::BOARD_EVAL).cast_signed(),
            tile_65536_mask: u16::from_le_bytes([bytes[at::TILE_65536_MASK], bytes[at::TILE_65536_MASK + 1]]),
            move_dir: bytes[at::MOVE_DIR],
            valuation_type: bytes[at::VALUATION_TYPE],
            ev_legal: bytes[at::EV_LEGAL],
            max_rank: bytes[at::MAX_RANK],
            seed: word(bytes, at::SEED),
            branch_evs: [branch_ev(bytes, 0), branch_ev(bytes, 1), branch_ev(bytes, 2), branch_ev(bytes, 3)],
        }
    }

    /// The bytes of the packed form.
    pub fn to_packed(&self) -> [u8; PACKED_BYTES] {
        narrowed(&self.to_aligned())
    }

    /// The row of the packed form.
    pub fn from_packed(bytes: &[u8; PACKED_BYTES]) -> Self {
        StepRow::from_aligned(&widened(bytes))
    }
}

fn word(bytes: &[u8; ALIGNED_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn branch_ev(bytes: &[u8; ALIGNED_BYTES], direction: usize) -> f32 {
    f32::from_bits(word(bytes, at::BRANCH_EVS + 4 * direction))
}

/// One packed row -> the same row aligned, its padding zero.
pub fn widened(packed: &[u8; PACKED_BYTES]) -> [u8; ALIGNED_BYTES] {
    let mut out = [0; ALIGNED_BYTES];
    out[..BEFORE_GAP].copy_from_slice(&packed[..BEFORE_GAP]);
    out[BEFORE_GAP + GAP..].copy_from_slice(&packed[BEFORE_GAP..]);
    out
}

/// One aligned row -> the same row packed.
pub fn narrowed(aligned: &[u8; ALIGNED_BYTES]) -> [u8; PACKED_BYTES] {
    let mut out = [0; PACKED_BYTES];
    out[..BEFORE_GAP].copy_from_slice(&aligned[..BEFORE_GAP]);
    out[BEFORE_GAP..].copy_from_slice(&aligned[BEFORE_GAP + GAP..]);
    out
}

/// Packed rows -> aligned ones.
///
/// Errors: `WrongSize` when `packed` is not a whole number of rows or `aligned` has not the same number.
pub fn widen(packed: &[u8], aligned: &mut [u8]) -> Result<()> {
    let (from, rest) = packed.as_chunks::<PACKED_BYTES>();
    let (to, more) = aligned.as_chunks_mut::<ALIGNED_BYTES>();
    same_number(from.len() == to.len() && rest.is_empty() && more.is_empty(), packed.len(), RowForm::Packed)?;
    from.iter().zip(to).for_each(|(from, to)| *to = widened(from));
    Ok(())
}

/// Aligned rows -> packed ones.
///
/// Errors: as [`widen`].
pub fn narrow(aligned: &[u8], packed: &mut [u8]) -> Result<()> {
    let (from, rest) = aligned.as_chunks::<ALIGNED_BYTES>();
    let (to, more) = packed.as_chunks_mut::<PACKED_BYTES>();
    same_number(from.len() == to.len() && rest.is_empty() && more.is_empty(), aligned.len(), RowForm::Aligned)?;
    from.iter().zip(to).for_each(|(from, to)| *to = narrowed(from));
    Ok(())
}

fn same_number(same: bool, bytes: usize, form: RowForm) -> Result<()> {
    if same {
        return Ok(());
    }
    let detail = format!("{bytes} bytes of {}-byte rows for another number of rows", form.bytes());
    Err(Error::new(Kind::WrongSize, detail))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use gristmill_bytes::layout::Conform;

    /// The first row of a real pack.
    const REAL: [u8; 46] = [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0xec, 0xb1, 0xfd, 0x0e, 0xe0, 0x36, 0, 0, 0, 3, 0, 0x0a, 0x0f, 0x55,
        0xbe, 0x3b, 0x10, 0, 0, 0, 0, 0x9c, 0x6a, 0x94, 0xc5, 0, 0, 0, 0, 0xf4, 0x65, 0xc6, 0xc4,
    ];

    #[test]
    fn a_real_row_reads_as_published() {
        let row = StepRow::from_packed(&REAL);
        let board = 0xfdb1_ec10_0000_0000;
        assert_eq!((row.run_id, row.step_index, row.board, row.board_eval), (0, 0, board, 3_596_302));
        assert_eq!((row.move_dir, row.valuation_type, row.ev_legal, row.max_rank), (3, 0, 0b1010, 15));
        assert_eq!((row.seed, row.branch_evs), (272_350_805, [0.0, -4749.326, 0.0, -1587.186]));
        assert_eq!(row.to_packed(), REAL);
        assert_eq!(super::super::heuristic::board_eval(&row.decoded_board()).unwrap(), row.board_eval);
    }

    #[test]
    fn offsets_are_those_of_the_layouts() {
        let offsets = [
            at::RUN_ID,
            at::STEP_INDEX,
            at::BOARD,
            at::BOARD_EVAL,
            at::TILE_65536_MASK,
            at::MOVE_DIR,
            at::VALUATION_TYPE,
            at::EV_LEGAL,
            at::MAX_RANK,
            at::SEED,
            at::BRANCH_EVS,
        ];
        let aligned = layout_aligned();
        assert_eq!(aligned.fields().iter().map(|f| f.offset).collect::<Vec<_>>(), offsets);
        assert_eq!((aligned.size(), layout_packed().size()), (ALIGNED_BYTES, PACKED_BYTES));
        let packed = layout_packed();
        assert_eq!((packed.field("seed").unwrap().offset, packed.field("branch_evs").unwrap().offset), (26, 30));
        assert_eq!(aligned.to_descr().matches("|V2").count(), 1);
    }

    #[test]
    fn the_descr_of_existing_packs_is_the_packed_layout() {
        assert_eq!(&Layout::parse_descr(PACKED_DESCR).unwrap(), &**layout_packed());
    }

    #[test]
    fn unequal_numbers_of_rows_are_refused() {
        assert!(widen(&[0; 47], &mut [0; 48]).is_err());
        assert!(widen(&[0; 46], &mut [0; 96]).is_err());
        assert!(narrow(&[0; 48], &mut [0; 47]).is_err());
    }

    proptest! {
        #[test]
        fn both_forms_and_the_layouts_agree(bytes in prop::collection::vec(any::<u8>(), 46 * 3)) {
            let mut wide = [0xee; 48 * 3];
            widen(&bytes, &mut wide).unwrap();
            let mut conformed = [0xee; 48 * 3];
            Conform::new(layout_packed(), layout_aligned()).unwrap().records(&bytes, &mut conformed).unwrap();
            prop_assert_eq!(wide, conformed);
            let mut back = [0; 46 * 3];
            narrow(&wide, &mut back).unwrap();
            prop_assert_eq!(&back[..], &bytes[..]);
            for (packed, aligned) in bytes.as_chunks().0.iter().zip(wide.as_chunks().0) {
                prop_assert_eq!(&StepRow::from_packed(packed).to_aligned(), aligned);
                prop_assert_eq!(&StepRow::from_aligned(aligned).to_packed(), packed);
            }
        }
    }
}
