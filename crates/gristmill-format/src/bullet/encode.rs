//! Boards -> features of both sides, score and result, as trainers of small networks take them; or planes.
//! Numbers alone: no scale, no sigmoid and no buckets, which belong to the network.

use gristmill_bytes::encode::{Encoder, Row, TensorSpec};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};
use std::ops::Range;

use super::board::{Board, OTHER, at, layout};

/// Men of a board, and so numbers of its features.
const MEN: usize = 32;

/// Planes: six sorts of men of both sides.
const PLANES: usize = 12;

/// The tensors that there are: name, element and shape of a row.
const TENSORS: [(&str, Scalar, &[usize]); 5] = [
    ("stm", Scalar::I32, &[MEN]),
    ("nstm", Scalar::I32, &[MEN]),
    ("score", Scalar::F32, &[]),
    ("result", Scalar::F32, &[]),
    ("planes", Scalar::F32, &[PLANES, 8, 8]),
];

/// How many of them there are where none is named.
const USUAL: usize = 4;

/// What stands after the last feature of a board.
pub const NONE: i32 = -1;

/// Boards as tensors.
#[derive(Debug)]
pub struct BoardEncoder {
    outputs: Vec<TensorSpec>,
    /// The number of each among [`TENSORS`].
    numbers: Vec<usize>,
}

impl BoardEncoder {
    /// The tensors called `names`, in that order; features, score and result where none is named.
    ///
    /// Errors: `Missing` naming the tensors that there are; `Corrupt` for a name twice.
    pub fn new(names: &[String]) -> Result<Self> {
        let number = |name: &String| {
            TENSORS.iter().position(|(own, ..)| own == name).ok_or_else(|| {
                let all: Vec<&str> = TENSORS.iter().map(|(own, ..)| *own).collect();
                Error::new(
                    Kind::Missing,
                    format!("there is no tensor `{name}` of boards; there are {}", all.join(", ")),
                )
            })
        };
        let numbers: Vec<usize> = match names {
            [] => (0..USUAL).collect(),
            names => names.iter().map(number).collect::<Result<_>>()?,
        };
        if let Some(i) = (0..numbers.len()).find(|i| numbers[..*i].contains(&numbers[*i])) {
            return Err(Error::new(Kind::Corrupt, format!("the tensor `{}` is named twice", TENSORS[numbers[i]].0)));
        }
        let spec = |number: &usize| TensorSpec::new(TENSORS[*number].0, TENSORS[*number].1, TENSORS[*number].2);
        Ok(BoardEncoder { outputs: numbers.iter().map(spec).collect(), numbers })
    }
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
            let board = Board::new(row.record).map_err(|e| e.in_frame(row.provenance.frame as usize))?;
            for ((number, spec), out) in self.numbers.iter().zip(&self.outputs).zip(out.iter_mut()) {
                let size = spec.row_bytes();
                let cells = out[i * size..][..size].as_chunks_mut::<4>().0;
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
