//! Steps of packed trajectories by number -> records, or those of their fields that tensors are made of.
//! The pack keeps the blocks that it unpacked for one step: its neighbours use them, and for a while any other step does.

use gristmill_format::demo::pack::{PackedTrajectory, Scratch};
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::layout::{DType, Layout};
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::table::{FrameTable, Pick};

use crate::chunks::open::ChunkPack;

impl ChunkPack {
    /// Gives each of `rows` to `read`: its place in `rows`, the trajectory and its number in that.
    fn steps(
        &self,
        rows: impl Iterator<Item = u64>,
        mut read: impl FnMut(usize, &PackedTrajectory<'_>, usize, &mut Scratch) -> Result<()>,
    ) -> Result<()> {
        self.with_tools(|tools| self.read_steps(rows, &mut read, tools.tool::<Scratch>()))
    }

    fn read_steps(
        &self,
        rows: impl Iterator<Item = u64>,
        read: &mut impl FnMut(usize, &PackedTrajectory<'_>, usize, &mut Scratch) -> Result<()>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut last = None;
        for (i, row) in rows.enumerate() {
            let missing = || Error::new(Kind::Missing, format!("frame {row} of {}", self.len()));
            let (number, game, frame) = self.find(row).ok_or_else(missing)?;
            let file = &self.files[number];
            let named = |e: Error| file.named(game, e);
            let packed = match last.take().filter(|(before, _)| *before == (number, game)) {
                Some((_, packed)) => packed,
                None => self.trajectory(file, game).map_err(named)?,
            };
            scratch.turn_to(self.first[number].1 + game as u64, &self.unpacked);
            let done = read(i, &packed, frame as usize, scratch);
            done.map_err(|e| named(e.in_frame(frame as usize)))?;
            last = Some(((number, game), packed));
        }
        Ok(())
    }

    /// Records of trajectories, back to back.
    pub(super) fn step_records(&self, rows: &[u64], out: &mut [u8]) -> Result<()> {
        let size = self.layout().size();
        self.steps(rows.iter().copied(), |i, packed, frame, scratch| {
            packed.record(frame, scratch, &mut out[i * size..][..size])
        })
    }

    /// Some fields, by their numbers in the layout, of some steps: each back to back to the start of its buffer.
    ///
    /// Errors: as [`PackedTrajectory::fields`], with the place.
    pub(crate) fn step_fields(
        &self,
        rows: impl Iterator<Item = u64>,
        fields: &[usize],
        out: &mut [&mut [u8]],
    ) -> Result<()> {
        let sizes: Vec<usize> = fields.iter().map(|field| self.layout().fields()[*field].bytes()).collect();
        self.steps(rows, |i, packed, frame, scratch| {
            let part = |(column, size): (_, &usize)| -> &mut [u8] {
                let column: &mut &mut [u8] = column;
                &mut column[i * size..][..*size]
            };
            let mut parts: Vec<&mut [u8]> = out.iter_mut().zip(&sizes).map(part).collect();
            packed.fields(frame, fields, scratch, &mut parts)
        })
    }

    /// Tensors of steps. Where each is a field, no other field is read.
    pub(super) fn step_tensors(&self, encoder: &dyn Encoder, picks: &[Pick], out: &mut [&mut [u8]]) -> Result<()> {
        let rows = picks.iter().map(|pick| pick.row);
        if let Some(fields) = fields(encoder, self.layout()) {
            return self.step_fields(rows, &fields, out);
        }
        let rows: Vec<u64> = rows.collect();
        let size = self.layout().size();
        let mut records = vec![0; rows.len() * size];
        self.step_records(&rows, &mut records)?;
        let row = |(record, pick): (_, &Pick)| {
            let provenance = Provenance { source: pick.row, ..Provenance::default() };
            Row { record, provenance, bits: pick.bits, sparse: None }
        };
        let rows: Vec<Row<'_>> = records.chunks_exact(size).zip(picks).map(row).collect();
        encoder.encode(&rows, out)
    }
}

/// The numbers of the fields that an encoder's tensors are, where each is one.
fn fields(encoder: &dyn Encoder, layout: &Layout) -> Option<Vec<usize>> {
    let all = layout.fields();
    let number = |spec: &gristmill_format::encode::TensorSpec| {
        all.iter().position(|field| {
            let same = matches!(field.dtype, DType::Scalar(scalar, _) if scalar == spec.dtype);
            same && field.name == spec.name && field.shape == spec.row_shape
        })
    };
    encoder.outputs().iter().map(number).collect()
}
