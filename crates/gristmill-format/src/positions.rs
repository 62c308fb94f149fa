//! Records of positions with a score and a result -> features of both sides, score, result, planes, features of NNUE, and what a kind
//! adds. The kind says where the men of a record stand. Numbers alone: no scale, no sigmoid and no buckets, which belong to the network.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use gristmill_bytes::encode::{Encoder, Row, TensorSpec};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};

use crate::nnue::{self, MEN, NONE, Tensor};

/// Name, element and shape of a row of a tensor.
pub type Named = (&'static str, Scalar, &'static [usize]);

/// Planes: six sorts of men of both sides.
const PLANES: usize = 12;

/// The tensors that all kinds of positions have. The first [`USUAL`] are made if a user names none.
const TENSORS: [Named; 5] = [
    ("stm", Scalar::I32, &[MEN]),
    ("nstm", Scalar::I32, &[MEN]),
    ("score", Scalar::F32, &[]),
    ("result", Scalar::F32, &[]),
    ("planes", Scalar::F32, &[PLANES, 8, 8]),
];
const USUAL: usize = 4;

/// A position, as one kind stores it.
pub trait Placed: Sized + Debug + Send + Sync + 'static {
    /// What its records are, in the plural, such as `boards`.
    const RECORDS: &'static str;
    /// What to say of records of another kind.
    const UNFIT: &'static str;
    /// Whether its records say who is White.
    const COLOURS: bool;
    /// Tensors that it has besides those of all kinds.
    const MORE: &'static [Named] = &[];

    /// The layout of its records.
    fn layout() -> &'static Arc<Layout>;

    /// The bytes of a record that say where men stand.
    fn place() -> Range<usize>;

    /// Reads a record.
    ///
    /// Errors: `OutOfRange` and the like, with the byte.
    fn read(record: &[u8]) -> Result<Self>;

    /// Square (0 is a1), sort (0 to 5: pawn to king) and whether it is of the side to move, of each man; as that side sees the board.
    fn men(&self) -> impl Iterator<Item = (u8, u8, bool)>;

    /// Whether Black is to move; none for a kind without colours.
    fn black_to_move(&self) -> Option<bool>;

    /// The score, in the units of the kind, for the side to move.
    fn score(&self) -> f32;

    /// 0, 0.5 or 1: a loss, a draw, a win of the side to move.
    fn result(&self) -> f32;

    /// Writes a row of tensor `number` of [`Placed::MORE`].
    fn write(&self, number: usize, row: &mut [u8]) {
        let _ = (number, row);
    }
}

/// A tensor that a user chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// By its number among [`TENSORS`].
    Usual(usize),
    /// By its number among those of the kind.
    More(usize),
    /// One of NNUE.
    Nnue(Tensor),
}

/// Positions of one kind as tensors.
#[derive(Debug)]
pub struct PlacedEncoder<P> {
    outputs: Vec<TensorSpec>,
    wanted: Vec<Wanted>,
    kind: PhantomData<fn() -> P>,
}

impl<P: Placed> PlacedEncoder<P> {
    /// The tensors called `names`, in that order; features, score and result if there are no names.
    ///
    /// Errors: `Missing` naming the tensors that there are, or what to take instead; `Corrupt` for a name twice.
    pub fn new(names: &[String]) -> Result<Self> {
        let wanted: Vec<Wanted> = match names {
            [] => (0..USUAL).map(Wanted::Usual).collect(),
            names => names.iter().map(|name| named::<P>(name)).collect::<Result<_>>()?,
        };
        if let Some(i) = (0..wanted.len()).find(|i| wanted[..*i].contains(&wanted[*i])) {
            return Err(Error::new(Kind::Corrupt, format!("the tensor `{}` is named twice", names[i])));
        }
        let spec = |(name, dtype, shape): Named| TensorSpec::new(name, dtype, shape);
        let outputs = wanted.iter().map(|wanted| match wanted {
            Wanted::Usual(number) => spec(TENSORS[*number]),
            Wanted::More(number) => spec(P::MORE[*number]),
            Wanted::Nnue(tensor) => tensor.spec(),
        });
        Ok(PlacedEncoder { outputs: outputs.collect(), wanted, kind: PhantomData })
    }
}

/// The tensor of this name.
fn named<P: Placed>(name: &str) -> Result<Wanted> {
    let among = |tensors: &[Named]| tensors.iter().position(|(own, ..)| *own == name);
    if let Some(number) = among(&TENSORS) {
        return Ok(Wanted::Usual(number));
    }
    if let Some(number) = among(P::MORE) {
        return Ok(Wanted::More(number));
    }
    let fits = |tensor: Tensor| P::COLOURS || !tensor.needs_colours();
    let detail = match Tensor::named(name) {
        Some(tensor) if fits(tensor) => return Ok(Wanted::Nnue(tensor)),
        Some(_) => {
            let advice = "take tensors that end in _stm and _nstm";
            format!("{} do not say who is White, as `{name}` needs; {advice}", P::RECORDS)
        }
        None => {
            let own = TENSORS.iter().chain(P::MORE).map(|(own, ..)| *own);
            let nnue = Tensor::ALL.iter().filter(|(_, tensor)| fits(*tensor)).map(|(name, _)| *name);
            let all: Vec<&str> = own.chain(nnue).collect();
            format!("there is no tensor `{name}` of {}; there are {}", P::RECORDS, all.join(", "))
        }
    };
    Err(Error::new(Kind::Missing, detail))
}

/// The feature of a man, as the side to move sees it and as the other side does.
fn features((square, sort, own): (u8, u8, bool)) -> [i32; 2] {
    let (sort, other) = (i32::from(sort), i32::from(!own));
    [384 * other + 64 * sort + i32::from(square), 384 * (1 - other) + 64 * sort + i32::from(square ^ 56)]
}

/// The men of a position as NNUE sees them.
fn seen<P: Placed>(position: &P) -> Result<nnue::Board> {
    let mut men = [0; PLANES];
    for (square, sort, own) in position.men() {
        if let Some(mask) = men.get_mut(usize::from(sort) + if own { 0 } else { PLANES / 2 }) {
            *mask |= 1 << square;
        }
    }
    nnue::Board::new(men, position.black_to_move()).map_err(|e| e.at_byte(P::place().start as u64))
}

/// Writes a row of tensor `number` of [`TENSORS`].
fn write<P: Placed>(position: &P, number: usize, row: &mut [u8]) {
    let cells = row.as_chunks_mut::<4>().0;
    match number {
        0 | 1 => {
            cells.fill(NONE.to_le_bytes());
            for (cell, man) in cells.iter_mut().zip(position.men()) {
                *cell = features(man)[number].to_le_bytes();
            }
        }
        2 => cells.fill(position.score().to_le_bytes()),
        3 => cells.fill(position.result().to_le_bytes()),
        _ => {
            cells.fill([0; 4]);
            for man in position.men() {
                if let Some(cell) = cells.get_mut(features(man)[0] as usize) {
                    *cell = 1f32.to_le_bytes();
                }
            }
        }
    }
}

impl<P: Placed> Encoder for PlacedEncoder<P> {
    fn input(&self) -> &Layout {
        P::layout()
    }

    fn fits(&self, records: &Layout) -> Result<()> {
        if *records == **P::layout() {
            return Ok(());
        }
        Err(Error::new(Kind::Unfit, P::UNFIT))
    }

    fn position(&self) -> Vec<Range<usize>> {
        std::iter::once(P::place()).collect()
    }

    fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    fn encode(&self, rows: &[Row<'_>], out: &mut [&mut [u8]]) -> Result<()> {
        let needs_nnue = self.wanted.iter().any(|wanted| matches!(wanted, Wanted::Nnue(_)));
        for (i, row) in rows.iter().enumerate() {
            let in_frame = |e: Error| e.in_frame(row.provenance.frame as usize);
            let position = P::read(row.record).map_err(in_frame)?;
            let board = if needs_nnue { Some(seen(&position).map_err(in_frame)?) } else { None };
            for ((wanted, spec), out) in self.wanted.iter().zip(&self.outputs).zip(out.iter_mut()) {
                let size = spec.row_bytes();
                let row = &mut out[i * size..][..size];
                match wanted {
                    Wanted::Usual(number) => write(&position, *number, row),
                    Wanted::More(number) => position.write(*number, row),
                    Wanted::Nnue(tensor) => board.iter().for_each(|board| tensor.write(board, row)),
                }
            }
        }
        Ok(())
    }
}
