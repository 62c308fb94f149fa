//! Positions -> features of both sides, score and result, as trainers of small networks take them; or planes.
//! Numbers alone: no scale, no sigmoid and no buckets, which belong to the network.

use gristmill_bytes::encode::{Encoder, Row, TensorSpec};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};
use std::ops::Range;

use super::boards::BOARD;
use super::record::{Position, at, layout};

/// Men of a position, and so numbers of its features.
const MEN: usize = 32;

/// Planes: six sorts of men of both sides.
const PLANES: usize = 12;

/// The tensors that there are: name, element and shape of a row.
const TENSORS: [(&str, Scalar, &[usize]); 6] = [
    ("stm", Scalar::I32, &[MEN]),
    ("nstm", Scalar::I32, &[MEN]),
    ("score", Scalar::F32, &[]),
    ("result", Scalar::F32, &[]),
    ("planes", Scalar::F32, &[PLANES, 8, 8]),
    ("board", Scalar::U8, &[BOARD]),
];

/// The number of the boards among them.
const BOARDS: usize = 5;

/// How many of them there are where none is named.
const USUAL: usize = 4;

/// What stands after the last feature of a position.
pub const NONE: i32 = -1;

/// Positions as tensors.
#[derive(Debug)]
pub struct PositionEncoder {
    outputs: Vec<TensorSpec>,
    /// The number of each among [`TENSORS`].
    numbers: Vec<usize>,
    /// Whether one of them needs features.
    has_features: bool,
}

impl PositionEncoder {
    /// The tensors called `names`, in that order; features, score and result where none is named.
    ///
    /// Errors: `Missing` naming the tensors that there are; `Corrupt` for a name twice.
    pub fn new(names: &[String]) -> Result<Self> {
        let number = |name: &String| {
            TENSORS.iter().position(|(own, ..)| own == name).ok_or_else(|| {
                let all: Vec<&str> = TENSORS.iter().map(|(own, ..)| *own).collect();
                let detail = format!("there is no tensor `{name}` of positions; there are {}", all.join(", "));
                Error::new(Kind::Missing, detail)
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
        let has_features = numbers.iter().any(|number| matches!(number, 0 | 1 | 4));
        Ok(PositionEncoder { outputs: numbers.iter().map(spec).collect(), numbers, has_features })
    }
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
            let position = Position::new(row.record).map_err(|e| e.in_frame(row.provenance.frame as usize))?;
            let mut both = [[NONE; MEN]; 2];
            let count = if self.has_features { features(&position, &mut both) } else { 0 };
            for ((number, spec), out) in self.numbers.iter().zip(&self.outputs).zip(out.iter_mut()) {
                let size = spec.row_bytes();
                let out = &mut out[i * size..][..size];
                if *number == BOARDS {
                    out.copy_from_slice(&position.board_bytes());
                    continue;
                }
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
