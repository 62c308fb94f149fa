//! Boards -> features of both sides, score and result, as trainers of small networks take them; planes; features of NNUE.
//! Numbers alone: no scale, no sigmoid and no buckets, which belong to the network.

use gristmill_bytes::encode::{Encoder, Row, TensorSpec};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};
use std::ops::Range;

use super::board::{Board, OTHER, at, layout};
use crate::nnue::{self, MEN, NONE, Tensors, Wanted};

/// Planes: six sorts of men of both sides.
const PLANES: usize = 12;

/// The tensors that there are.
const TENSORS: Tensors = Tensors {
    of: "boards",
    own: &[
        ("stm", Scalar::I32, &[MEN]),
        ("nstm", Scalar::I32, &[MEN]),
        ("score", Scalar::F32, &[]),
        ("result", Scalar::F32, &[]),
        ("planes", Scalar::F32, &[PLANES, 8, 8]),
    ],
    usual: 4,
    colours: false,
};

/// Boards as tensors.
#[derive(Debug)]
pub struct BoardEncoder {
    outputs: Vec<TensorSpec>,
    wanted: Vec<Wanted>,
    /// Whether one of them is of NNUE.
    nnue: bool,
}

impl BoardEncoder {
    /// The tensors called `names`, in that order; features, score and result where none is named.
    ///
    /// Errors: `Missing` naming the tensors that there are; `Corrupt` for a name twice.
    pub fn new(names: &[String]) -> Result<Self> {
        let (wanted, outputs) = TENSORS.chosen(names)?;
        let nnue = wanted.iter().any(|wanted| matches!(wanted, Wanted::Nnue(_)));
        Ok(BoardEncoder { outputs, wanted, nnue })
    }
}

/// The men of a board as NNUE sees them; it does not say whose move it is.
fn men(board: &Board) -> Result<nnue::Board> {
    let mut men = [0; PLANES];
    for (square, man) in board.pieces() {
        if let Some(mask) = men.get_mut(usize::from(man & 7) + PLANES / 2 * usize::from(man & OTHER != 0)) {
            *mask |= 1 << square;
        }
    }
    nnue::Board::new(men, None).map_err(|e| e.at_byte(at::OCC as u64))
}

/// The feature of a man, as the side to move sees it, and as the other does.
fn features(square: u8, man: u8) -> [i32; 2] {
    let (sort, other) = (i32::from(man & 7), i32::from(man & OTHER != 0));
    let (square, turned) = (i32::from(square), i32::from(square ^ 56));
    [384 * other + 64 * sort + square, 384 * (1 - other) + 64 * sort + turned]
}

impl Encoder for BoardEncoder {
    fn input(&self) -> &Layout {
        layout()
    }

    fn fits(&self, records: &Layout) -> Result<()> {
        if *records == **layout() {
            return Ok(());
        }
        Err(Error::new(
            Kind::Unfit,
            "records of something else, expected boards of bulletformat: the encoder `bullet` is theirs",
        ))
    }

    fn position(&self) -> Vec<Range<usize>> {
        std::iter::once(at::OCC..at::SCORE).collect()
    }

    fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    fn encode(&self, rows: &[Row<'_>], out: &mut [&mut [u8]]) -> Result<()> {
        for (i, row) in rows.iter().enumerate() {
            let in_frame = |e: Error| e.in_frame(row.provenance.frame as usize);
            let board = Board::new(row.record).map_err(in_frame)?;
            let seen = if self.nnue { Some(men(&board).map_err(in_frame)?) } else { None };
            for ((wanted, spec), out) in self.wanted.iter().zip(&self.outputs).zip(out.iter_mut()) {
                let size = spec.row_bytes();
                let bytes = &mut out[i * size..][..size];
                let number = match wanted {
                    Wanted::Own(number) => number,
                    Wanted::Nnue(tensor) => {
                        seen.iter().for_each(|board| tensor.write(board, bytes));
                        continue;
                    }
                };
                let cells = bytes.as_chunks_mut::<4>().0;
                match number {
                    0 | 1 => {
                        cells.fill(NONE.to_le_bytes());
                        for (cell, (square, man)) in cells.iter_mut().zip(board.pieces()) {
                            *cell = features(square, man)[*number].to_le_bytes();
                        }
                    }
                    2 => cells.fill(f32::from(board.score()).to_le_bytes()),
                    3 => cells.fill((f32::from(board.result()) / 2.0).to_le_bytes()),
                    _ => {
                        cells.fill([0; 4]);
                        for (square, man) in board.pieces() {
                            if let Some(cell) = cells.get_mut(features(square, man)[0] as usize) {
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
