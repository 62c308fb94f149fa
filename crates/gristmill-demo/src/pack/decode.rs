//! Packed bytes -> any step, field or value by itself. Reads a block for what is small and one for each piece that is new;
//! every number is held against its bounds before it is used.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gristmill_bytes::container::blocks::Open;
use gristmill_bytes::container::shelf::Shelf;
use gristmill_bytes::error::{Error, Kind, Result};

use super::beside;
use super::header::{About, Cut, Header, Place};
use crate::trajectory::End;
use crate::value::Extra;

/// A packed trajectory.
#[derive(Debug)]
pub struct PackedTrajectory<'a> {
    bytes: &'a [u8],
    header: Header,
}

/// What a reader keeps from one step to the next: the last block of each run, and buffers.
#[derive(Debug, Default)]
pub struct Scratch {
    chunk: Option<u64>,
    shelf: Option<Arc<Shelf>>,
    runs: Vec<Open>,
    row: Vec<u8>,
    piece: Vec<u8>,
}

impl Scratch {
    /// Prepares the reader for trajectory `chunk`, whose unpacked blocks `shelf` keeps. Forgets the blocks of another trajectory.
    pub fn turn_to(&mut self, chunk: u64, shelf: &Arc<Shelf>) {
        if self.chunk.replace(chunk) != Some(chunk) {
            self.shelf = Some(Arc::clone(shelf));
            self.turn();
        }
    }

    /// Forgets everything.
    pub fn forget(&mut self) {
        (self.chunk, self.shelf) = (None, None);
        self.turn();
    }

    fn turn(&mut self) {
        let (chunk, shelf) = (self.chunk.unwrap_or_default(), self.shelf.as_ref());
        self.runs.iter_mut().for_each(|open| open.turn_to(chunk, shelf));
    }
}

impl<'a> PackedTrajectory<'a> {
    /// Looks at the header of a packed trajectory.
    ///
    /// Errors, with the byte: `Truncated`, `UnknownVersion`, `Corrupt`.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        Ok(PackedTrajectory { bytes, header: Header::read(bytes)? })
    }

    /// How many frames it has, at least one.
    pub fn frames(&self) -> usize {
        self.header.frames as usize
    }

    /// Bytes of a record.
    pub fn record_bytes(&self) -> usize {
        self.header.record as usize
    }

    /// How it ended.
    pub fn end(&self) -> End {
        self.header.end
    }

    /// What it is of.
    ///
    /// Errors, with the byte: `Corrupt`, `TooLarge`.
    pub fn about(&self) -> Result<About> {
        self.header.about(self.bytes)
    }

    /// Whether all that is said of another one once, but for its end and length, is said of this one in the same bytes.
    pub fn is_of_the_same(&self, other: &PackedTrajectory<'_>) -> bool {
        let said = self.header.told(self.bytes);
        said.is_some() && said == other.header.told(other.bytes)
    }

    /// Reads record `frame` into `out`, whose padding becomes zero. `scratch` [is turned](Scratch::turn_to) to this trajectory.
    ///
    /// Errors: `Missing` for a frame that does not exist, `WrongSize` for `out`, `Corrupt` with the byte.
    pub fn record(&self, frame: usize, scratch: &mut Scratch, out: &mut [u8]) -> Result<()> {
        if out.len() != self.record_bytes() {
            let detail = format!("{} bytes for a record of {}", out.len(), self.record_bytes());
            return Err(Error::new(Kind::WrongSize, detail));
        }
        self.row(frame, scratch)?;
        let mut behind = 0;
        for place in &self.header.fields {
            let offset = place.offset as usize;
            out[behind..offset].fill(0);
            behind = offset + place.bytes as usize;
            self.value(place, scratch, &mut out[offset..behind])?;
        }
        out[behind..].fill(0);
        Ok(())
    }

    /// Reads some fields of one frame, by their numbers in the layout, each into its slice.
    ///
    /// Errors: as [`PackedTrajectory::record`].
    pub fn fields(&self, frame: usize, fields: &[usize], scratch: &mut Scratch, out: &mut [&mut [u8]]) -> Result<()> {
        self.row(frame, scratch)?;
        for (field, out) in fields.iter().zip(out) {
            let place = self.header.fields.get(*field).filter(|place| place.bytes as usize == out.len());
            let wrong = || Error::new(Kind::WrongSize, format!("{} bytes for field {field}", out.len()));
            self.value(place.ok_or_else(wrong)?, scratch, out)?;
        }
        Ok(())
    }

    /// What travels beside some frames, by field.
    ///
    /// Errors, with the byte: `Corrupt`, `Truncated`.
    pub fn extras(&self, frames: Range<usize>) -> Result<BTreeMap<String, Vec<(usize, Extra)>>> {
        beside::read(&self.header, self.bytes, &frames)
    }

    /// Reads the row of a frame.
    fn row(&self, frame: usize, scratch: &mut Scratch) -> Result<()> {
        let rows = self.header.runs[0];
        if scratch.runs.len() < self.header.runs.len() {
            scratch.runs.resize_with(self.header.runs.len(), Open::default);
            scratch.turn();
        }
        scratch.row.resize(rows.item as usize, 0);
        let number = u32::try_from(frame).unwrap_or(u32::MAX);
        rows.copy(self.bytes, number, &mut scratch.runs[0], &mut scratch.row)
    }

    /// Reads a field of the frame whose row was read.
    fn value(&self, place: &Place, scratch: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let Scratch { runs, row, piece, .. } = scratch;
        let row = &row[place.at as usize..];
        if place.run == 0 {
            out.copy_from_slice(&row[..out.len()]);
            return Ok(());
        }
        let run = self.header.runs[usize::from(place.run)];
        let (open, size) = (&mut runs[usize::from(place.run)], run.item as usize);
        let pieces = out.len() / size;
        let numbers = row.as_chunks().0[..pieces].iter().map(|number| u32::from_le_bytes(*number));
        if place.cut == Cut::First {
            return numbers.zip(out.chunks_exact_mut(size)).try_for_each(|(i, out)| run.copy(self.bytes, i, open, out));
        }
        let unit = place.unit as usize;
        piece.resize(size, 0);
        for (first, number) in numbers.enumerate() {
            run.copy(self.bytes, number, open, piece)?;
            if unit == 1 {
                out[first..].iter_mut().step_by(pieces).zip(&*piece).for_each(|(to, from)| *to = *from);
                continue;
            }
            let elements = out.chunks_exact_mut(unit).skip(first).step_by(pieces);
            elements.zip(piece.chunks_exact(unit)).for_each(|(to, from)| to.copy_from_slice(from));
        }
        Ok(())
    }
}
