//! Positions -> features of both sides, score and result, as trainers of small networks take them; planes; features of NNUE.
//! Numbers alone: no scale, no sigmoid and no buckets, which belong to the network.

use std::ops::Range;

use gristmill_bytes::encode::{Encoder, Row, TensorSpec};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};

use super::boards::BOARD;
use super::record::{Position, at, layout};
use crate::nnue::{self, MEN, NONE, Tensors, Wanted};

/// Planes: six sorts of men of both sides.
const PLANES: usize = 12;

/// The tensors that there are.
const TENSORS: Tensors = Tensors {
    of: "positions",
    own: &[
        ("stm", Scalar::I32, &[MEN]),
        ("nstm", Scalar::I32, &[MEN]),
        ("score", Scalar::F32, &[]),
        ("result", Scalar::F32, &[]),
        ("planes", Scalar::F32, &[PLANES, 8, 8]),
        ("board", Scalar::U8, &[BOARD]),
    ],
    usual: 4,
    colours: true,
};

/// The number of the boards among its own.
const BOARDS: usize = 5;

/// Positions as tensors.
#[derive(Debug)]
pub struct PositionEncoder {
    outputs: Vec<TensorSpec>,
    wanted: Vec<Wanted>,
    /// Whether one of them needs features, and whether one is of NNUE.
    features: bool,
    nnue: bool,
}

impl PositionEncoder {
    /// The tensors called `names`, in that order; features, score and result where none is named.
    ///
    /// Errors: `Missing` naming the tensors that there are; `Corrupt` for a name twice.
    pub fn new(names: &[String]) -> Result<Self> {
        let (wanted, outputs) = TENSORS.chosen(names)?;
        let features = wanted.iter().any(|wanted| matches!(wanted, Wanted::Own(0 | 1 | 4)));
        let nnue = wanted.iter().any(|wanted| matches!(wanted, Wanted::Nnue(_)));
        Ok(PositionEncoder { outputs, wanted, features, nnue })
    }
}

/// The men of a position as NNUE sees them.
fn men(position: &Position) -> Result<nnue::Board> {
    let mut men = [0; PLANES];
    for (square, sort, own) in position.board().seen() {
        if let Some(mask) = men.get_mut(sort as usize + if own { 0 } else { PLANES / 2 }) {
            *mask |= 1 << square;
        }
    }
    nnue::Board::new(men, Some(position.board().black())).map_err(|e| e.at_byte(at::OCC as u64))
}

/// The features of the men of a position, as the side to move sees it and as the other does; how many there are.
fn features(position: &Position, both: &mut [[i32; MEN]; 2]) -> usize {
    let mut count = 0;
    for (square, sort, own) in position.board().seen().take(MEN) {
        let (sort, square, other) = (sort as i32, i32::from(square), i32::from(!own));
        both[0][count] = 384 * other + 64 * sort + square;
        both[1][count] = 384 * (1 - other) + 64 * sort + (square ^ 56);
        count += 1;
    }
    count
}

impl Encoder for PositionEncoder {
    fn input(&self) -> &Layout {
        layout()
    }

    fn fits(&self, records: &Layout) -> Result<()> {
        if *records == **layout() {
            return Ok(());
        }
        Err(Error::new(
            Kind::Unfit,
            "records of something else, expected positions of a binpack: the encoder `binpack` is theirs",
        ))
    }

    fn position(&self) -> Vec<Range<usize>> {
        std::iter::once(at::OCC..at::MOVE).collect()
    }

    fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    fn encode(&self, rows: &[Row<'_>], out: &mut [&mut [u8]]) -> Result<()> {
        for (i, row) in rows.iter().enumerate() {
            let in_frame = |e: Error| e.in_frame(row.provenance.frame as usize);
            let position = Position::new(row.record).map_err(in_frame)?;
            let mut both = [[NONE; MEN]; 2];
            let count = if self.features { features(&position, &mut both) } else { 0 };
            let seen = if self.nnue { Some(men(&position).map_err(in_frame)?) } else { None };
            for ((wanted, spec), out) in self.wanted.iter().zip(&self.outputs).zip(out.iter_mut()) {
                let size = spec.row_bytes();
                let out = &mut out[i * size..][..size];
                let number = match wanted {
                    Wanted::Nnue(tensor) => {
                        seen.iter().for_each(|board| tensor.write(board, out));
                        continue;
                    }
                    Wanted::Own(BOARDS) => {
                        out.copy_from_slice(&position.board_bytes());
                        continue;
                    }
                    Wanted::Own(number) => number,
                };
                let cells = out.as_chunks_mut::<4>().0;
                match number {
                    0 | 1 => {
                        for (cell, feature) in cells.iter_mut().zip(both[*number]) {
                            *cell = feature.to_le_bytes();
                        }
                    }
                    2 => cells.fill(f32::from(position.told().score).to_le_bytes()),
                    3 => cells.fill((f32::from(position.told().result + 1) / 2.0).to_le_bytes()),
                    _ => {
                        cells.fill([0; 4]);
                        for feature in &both[0][..count] {
                            if let Some(cell) = cells.get_mut(*feature as usize) {
                                *cell = 1f32.to_le_bytes();
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
