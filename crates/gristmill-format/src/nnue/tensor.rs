//! The names of tensors of NNUE -> their shapes, and their rows of a board.
//! One name is one tensor; every kind of chess position has them under the same names.

use gristmill_bytes::encode::TensorSpec;
use gristmill_bytes::layout::Scalar;

use super::board::{Board, Side};
use super::feature::{FeatureSet, MEN};

/// Whose view features are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Viewer {
    /// By colour: whether Black.
    Colour(bool),
    /// By whose move it is.
    Side(Side),
}

/// A tensor of a position. `[..]` below is the shape of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tensor {
    /// i32 `[32]`: features ascending, then -1.
    Features(FeatureSet, Viewer),
    /// `white_to_move` f32 `[]`: 1 or 0.
    WhiteToMove,
    /// `men_bucket` i32 `[]`: a quarter of the men but one, 0 to 7.
    MenBucket,
}

const WHITE: Viewer = Viewer::Colour(false);
const BLACK: Viewer = Viewer::Colour(true);
const TO_MOVE: Viewer = Viewer::Side(Side::ToMove);
const WAITING: Viewer = Viewer::Side(Side::Waiting);

impl Tensor {
    /// All of them, with their names.
    pub const ALL: [(&str, Tensor); 10] = [
        ("halfkp_white", Tensor::Features(FeatureSet::HalfKp, WHITE)),
        ("halfkp_black", Tensor::Features(FeatureSet::HalfKp, BLACK)),
        ("halfkp_stm", Tensor::Features(FeatureSet::HalfKp, TO_MOVE)),
        ("halfkp_nstm", Tensor::Features(FeatureSet::HalfKp, WAITING)),
        ("halfkav2_hm_white", Tensor::Features(FeatureSet::HalfKaV2Hm, WHITE)),
        ("halfkav2_hm_black", Tensor::Features(FeatureSet::HalfKaV2Hm, BLACK)),
        ("halfkav2_hm_stm", Tensor::Features(FeatureSet::HalfKaV2Hm, TO_MOVE)),
        ("halfkav2_hm_nstm", Tensor::Features(FeatureSet::HalfKaV2Hm, WAITING)),
        ("white_to_move", Tensor::WhiteToMove),
        ("men_bucket", Tensor::MenBucket),
    ];

    /// The tensor of this name.
    pub fn named(name: &str) -> Option<Self> {
        Tensor::ALL.iter().find(|(own, _)| *own == name).map(|(_, tensor)| *tensor)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Tensor::ALL.iter().find(|(_, own)| *own == self).map_or("", |(name, _)| name)
    }

    /// Whether it can be made only where the position says who is White.
    pub fn needs_colours(self) -> bool {
        matches!(self, Tensor::Features(_, Viewer::Colour(_)) | Tensor::WhiteToMove)
    }

    /// Its name, element type and row.
    pub fn spec(self) -> TensorSpec {
        let (dtype, shape): (Scalar, &[usize]) = match self {
            Tensor::Features(..) => (Scalar::I32, &[MEN]),
            Tensor::WhiteToMove => (Scalar::F32, &[]),
            Tensor::MenBucket => (Scalar::I32, &[]),
        };
        TensorSpec::new(self.name(), dtype, shape)
    }

    /// Writes its row of a board. Where it [needs colours](Tensor::needs_colours) and the board has none, the side to move is
    /// taken for White.
    pub fn write(self, board: &Board, row: &mut [u8]) {
        let white = board.is_black(Side::Waiting);
        match self {
            Tensor::Features(set, viewer) => {
                let side = match viewer {
                    Viewer::Side(side) => side,
                    Viewer::Colour(black) if black == white => Side::Waiting,
                    Viewer::Colour(_) => Side::ToMove,
                };
                if let Ok(cells) = row.as_chunks_mut::<4>().0.try_into() {
                    set.write(board, side, cells);
                }
            }
            Tensor::WhiteToMove => row.copy_from_slice(&f32::from(white).to_le_bytes()),
            Tensor::MenBucket => row.copy_from_slice(&((board.count() as i32 - 1) / 4).to_le_bytes()),
        }
    }
}
