//! One tensor of pairs: which rows of a column stand in a row of it, in which pass, and what is made of them.
//! Numbers are checked once, when the pairs are made; afterwards nothing is out of range.

use std::fmt::Debug;
use std::sync::Arc;

use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::runtime::cast::Cast;
use gristmill_stages::stage::pair::{drawn, offsets};

use super::puzzle::Puzzle;

/// Bytes that stay where they are for as long as they are held.
pub trait Held: Debug + Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

impl Held for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Rows of equal size, one after another.
#[derive(Debug, Clone)]
pub struct Column {
    /// All of them.
    pub rows: Arc<dyn Held>,
    /// Bytes of one.
    pub row_bytes: usize,
}

impl Column {
    fn len(&self) -> u64 {
        (self.rows.bytes().len() / self.row_bytes.max(1)) as u64
    }

    fn row(&self, number: u64) -> &[u8] {
        let start = number as usize * self.row_bytes;
        &self.rows.bytes()[start..start + self.row_bytes]
    }
}

/// Which rows of its column a pair shows.
#[derive(Debug, Clone)]
pub enum Steps {
    /// The one of its own number.
    Own,
    /// As many as `each` says, of these numbers (i64, little-endian); -1 for a row of zeros.
    Listed {
        /// The numbers of all pairs.
        numbers: Arc<dyn Held>,
        /// How many a pair has.
        each: usize,
    },
    /// One before the step of the pair, by an offset that is drawn for each pass.
    Before {
        /// The step among all, for each pair (u64, little-endian).
        later: Arc<dyn Held>,
        /// The same within its trajectory.
        within: Arc<dyn Held>,
        /// Least offset, and greatest.
        range: (u64, u64),
        /// Root of what is drawn.
        seed: u64,
    },
}

/// A row that is smaller than the rows of the tensor: zeros follow it on every axis.
#[derive(Debug, Clone)]
pub struct Padding {
    /// Its shape.
    pub from: Vec<usize>,
    /// That of the tensor's rows.
    pub to: Vec<usize>,
    /// Bytes of an element, after it was cast.
    pub item: usize,
}

/// What stands in one tensor.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Rows of a column.
    Rows {
        /// The column.
        column: Column,
        /// Which of its rows.
        steps: Steps,
        /// What is made of their elements.
        cast: Cast,
        /// What stands behind them; nothing where they fill their row.
        padding: Option<Padding>,
    },
    /// A picture, cut into tiles that are put together in another order.
    Tiles {
        /// Pictures.
        column: Column,
        /// Which of them.
        steps: Steps,
        /// In which order.
        puzzle: Arc<Puzzle>,
        /// What is made of their elements.
        cast: Cast,
        /// As of rows.
        padding: Option<Padding>,
    },
    /// The class of the order of the tiles (i64).
    Class(Arc<Puzzle>),
}

/// Memory that is used again for each row.
#[derive(Debug, Default)]
pub struct Scratch {
    numbers: Vec<i64>,
    made: Vec<u8>,
    cast: Vec<u8>,
}

impl Steps {
    fn each(&self) -> usize {
        if let Steps::Listed { each, .. } = self { *each } else { 1 }
    }

    /// Sees to it that all pairs have their numbers, and that these are rows of a column of `rows`.
    fn check(&self, pairs: u64, rows: u64) -> Result<()> {
        let lacking = |found: usize| {
            Error::new(Kind::WrongSize, format!("{found} numbers of steps for {pairs} pairs of {}", self.each()))
        };
        let beyond = |number: i64| Error::new(Kind::OutOfRange, format!("step {number} of {rows}"));
        match self {
            Steps::Own if pairs > rows => Err(lacking(rows as usize)),
            Steps::Own => Ok(()),
            Steps::Listed { numbers, each } => {
                let (found, rest) = numbers.bytes().as_chunks::<8>();
                if !rest.is_empty() || Some(found.len() as u64) != pairs.checked_mul(*each as u64) {
                    return Err(lacking(found.len()));
                }
                let numbers = found.iter().map(|number| i64::from_le_bytes(*number));
                let is_row = |number: &i64| *number == -1 || u64::try_from(*number).is_ok_and(|number| number < rows);
                numbers.clone().find(|number| !is_row(number)).map_or(Ok(()), |number| Err(beyond(number)))
            }
            Steps::Before { later, within, range: (least, most), .. } => {
                let (later, within) = (later.bytes().as_chunks::<8>().0, within.bytes().as_chunks::<8>().0);
                if later.len() as u64 != pairs || within.len() as u64 != pairs || *least == 0 || least > most {
                    return Err(lacking(later.len().min(within.len())));
                }
                let fits = |(later, within): (&[u8; 8], &[u8; 8])| {
                    let (later, within) = (u64::from_le_bytes(*later), u64::from_le_bytes(*within));
                    if later < rows && within >= *least && within <= later { Ok(()) } else { Err(beyond(later as i64)) }
                };
                later.iter().zip(within).try_for_each(fits)
            }
        }
    }

    /// The numbers of a pair in a pass.
    fn find(&self, pair: u64, pass: u64, numbers: &mut Vec<i64>) {
        numbers.clear();
        let number = |held: &Arc<dyn Held>, i: u64| {
            let bytes = held.bytes().as_chunks::<8>().0[i as usize];
            i64::from_le_bytes(bytes)
        };
        match self {
            Steps::Own => numbers.push(pair as i64),
            Steps::Listed { numbers: all, each } => {
                let first = pair * *each as u64;
                numbers.extend((first..first + *each as u64).map(|i| number(all, i)));
            }
            Steps::Before { later, within, range, seed } => {
                let (later, within) = (number(later, pair) as u64, number(within, pair) as u64);
                numbers.push((later - drawn(offsets(*seed, pass), (later, within), *range)) as i64);
            }
        }
    }
}

impl Padding {
    fn check(&self, bytes: usize, row_bytes: usize) -> Result<()> {
        let size = |shape: &[usize]| shape.iter().try_fold(self.item, |size, dim| size.checked_mul(*dim));
        let within = self.from.len() == self.to.len() && self.from.iter().zip(&self.to).all(|(from, to)| from <= to);
        if within && size(&self.from) == Some(bytes) && size(&self.to) == Some(row_bytes) {
            return Ok(());
        }
        let detail = format!("rows of shape {:?} in rows of shape {:?}", self.from, self.to);
        Err(Error::new(Kind::WrongSize, detail))
    }

    fn write(&self, from: &[u8], to: &mut [u8]) {
        to.fill(0);
        fill(from, to, (&self.from, &self.to), self.item);
    }
}

/// Copies an array of one shape to the front of one of another on every axis; elements have `item` bytes.
fn fill(from: &[u8], to: &mut [u8], (shape, room): (&[usize], &[usize]), item: usize) {
    let (Some((_, shape_below)), Some((_, room_below)), false) =
        (shape.split_first(), room.split_first(), shape == room)
    else {
        return to[..from.len()].copy_from_slice(from);
    };
    let (one, space) = (item * shape_below.iter().product::<usize>(), item * room_below.iter().product::<usize>());
    if one > 0 {
        for (from, to) in from.chunks_exact(one).zip(to.chunks_exact_mut(space)) {
            fill(from, to, (shape_below, room_below), item);
        }
    }
}

impl Piece {
    /// Sees to it that every pair has rows of `row_bytes` bytes.
    pub(super) fn check(&self, pairs: u64, row_bytes: usize) -> Result<()> {
        let (column, steps, cast, padding, made) = match self {
            Piece::Class(_) if row_bytes == 8 => return Ok(()),
            Piece::Class(_) => return Err(Error::new(Kind::WrongSize, "a class has 8 bytes".to_owned())),
            Piece::Rows { column, steps, cast, padding } => {
                (column, steps, cast, padding, steps.each().saturating_mul(column.row_bytes))
            }
            Piece::Tiles { column, steps, puzzle, cast, padding } => {
                puzzle.check(column.row_bytes)?;
                (column, steps, cast, padding, puzzle.bytes())
            }
        };
        if column.row_bytes == 0 || !column.rows.bytes().len().is_multiple_of(column.row_bytes) {
            let detail = format!("{} bytes of rows of {}", column.rows.bytes().len(), column.row_bytes);
            return Err(Error::new(Kind::WrongSize, detail));
        }
        steps.check(pairs, column.len())?;
        let bytes = cast.widened(made);
        match padding {
            Some(padding) => padding.check(bytes, row_bytes),
            None if bytes == row_bytes => Ok(()),
            None => Err(Error::new(Kind::WrongSize, format!("{bytes} bytes for a row of {row_bytes}"))),
        }
    }

    /// Writes the row of a pair in a pass.
    pub(super) fn write(&self, pair: u64, pass: u64, out: &mut [u8], scratch: &mut Scratch) {
        let (cast, padding) = match self {
            Piece::Class(puzzle) => return out.copy_from_slice(&puzzle.class(pair, pass).to_le_bytes()),
            Piece::Rows { column, steps, cast, padding } => {
                steps.find(pair, pass, &mut scratch.numbers);
                let bytes = cast.widened(column.row_bytes);
                let rows = |numbers: &[i64], out: &mut [u8]| {
                    for (number, to) in numbers.iter().zip(out.chunks_exact_mut(bytes)) {
                        match u64::try_from(*number) {
                            Ok(number) => cast.copy(column.row(number), to),
                            Err(_) => to.fill(0),
                        }
                    }
                };
                let Some(padding) = padding else { return rows(&scratch.numbers, out) };
                scratch.cast.resize(scratch.numbers.len() * bytes, 0);
                rows(&scratch.numbers, &mut scratch.cast);
                return padding.write(&scratch.cast, out);
            }
            Piece::Tiles { column, steps, puzzle, cast, padding } => {
                steps.find(pair, pass, &mut scratch.numbers);
                scratch.made.resize(puzzle.bytes(), 0);
                let number = scratch.numbers.first().and_then(|number| u64::try_from(*number).ok());
                let Some(number) = number else { return out.fill(0) };
                puzzle.put(puzzle.class(pair, pass), column.row(number), &mut scratch.made);
                (cast, padding)
            }
        };
        match padding {
            None => cast.copy(&scratch.made, out),
            Some(padding) => {
                scratch.cast.resize(cast.widened(scratch.made.len()), 0);
                cast.copy(&scratch.made, &mut scratch.cast);
                padding.write(&scratch.cast, out);
            }
        }
    }
}
