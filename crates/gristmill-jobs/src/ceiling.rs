//! Some chunks -> how fast inflating alone and encoding alone can be, on this machine, now.
//! Holds its sample in memory, so that no disk is measured.

use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::holdings::Holdings;
use gristmill_format::chess::{ChessEncoder, Outputs, Version, layout_v7};
use gristmill_format::container::gzip::Inflater;
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::layout::Conform;
use gristmill_format::source::Chunk;

use super::files::{self, Found};
use super::meter::Meter;
use crate::work::Opened;

/// A sample has at most this many records: 33 MB, more than a cache holds.
const SAMPLE: usize = 4096;

/// Maximum number of bytes a game of the sample may inflate to.
const MAX_GAME: usize = 16 << 20;

/// Rows encoded in one call, as a loader does.
const ROWS: usize = 256;

/// Chunks as stored, and their records as encoders take them.
#[derive(Debug, Default)]
pub(super) struct Sample {
    stored: Vec<Vec<u8>>,
    /// V7 records, back to back.
    records: Vec<u8>,
}

impl Sample {
    /// The first games found in `folders`.
    ///
    /// Errors: `Path` for a folder that is not there; `Stage` when there is no readable game, with what lies there.
    pub(super) fn of(folders: &[PathBuf]) -> Result<Self> {
        let mut sample = Sample::default();
        for folder in folders {
            sample.add(folder)?;
        }
        if sample.frames() == 0 {
            return Err(nothing(folders));
        }
        Ok(sample)
    }

    /// How many records.
    pub(super) fn frames(&self) -> usize {
        self.records.len() / Version::V7.bytes()
    }

    fn add(&mut self, folder: &Path) -> Result<()> {
        files::walk(folder, &mut |found| match found {
            Found::File(file) if self.frames() < SAMPLE => self.file(&file),
            _ => Ok(()),
        })
    }

    fn file(&mut self, file: &Opened) -> Result<()> {
        let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
        for i in 0..file.source.len() {
            if self.frames() >= SAMPLE {
                break;
            }
            if file.fetch(i, &mut stored).and_then(|()| file.decode(i, &stored, &mut chunk)).is_err() {
                continue;
            }
            let Some(layout) = chunk.layout.clone() else { continue };
            let Ok(conform) = Conform::new(&layout, layout_v7()) else { continue };
            let at = self.records.len();
            self.records.resize(at + chunk.frames * Version::V7.bytes(), 0);
            conform.records(chunk.records(), &mut self.records[at..])?;
            self.stored.push(stored.clone());
        }
        Ok(())
    }

    /// Microseconds a frame to inflate the sample, on one thread: the best of some passes.
    pub(super) fn inflate_us(&self, passes: usize) -> Result<f64> {
        let (mut inflater, mut out) = (Inflater::default(), Vec::new());
        self.best(passes, || {
            for stored in &self.stored {
                inflater.inflate(stored, MAX_GAME, &mut out)?;
            }
            Ok(())
        })
    }

    /// Microseconds a frame to encode the sample into `tensors`, on one thread: the best of some passes.
    /// Every frame has a row of its own, so that what is written goes to memory, as a loader's batches do.
    pub(super) fn encode_us(&self, tensors: &[String], passes: usize) -> Result<f64> {
        let encoder = ChessEncoder::new(&Outputs::parse(tensors)?)?;
        let rows: Vec<Row<'_>> = self
            .records
            .chunks_exact(Version::V7.bytes())
            .map(|record| Row { record, provenance: Provenance::default(), bits: 0, sparse: None })
            .collect();
        let sizes: Vec<usize> = encoder.outputs().iter().map(|spec| spec.row_bytes()).collect();
        let mut columns: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0; rows.len() * size]).collect();
        self.best(passes, || {
            for (i, rows) in rows.chunks(ROWS).enumerate() {
                let first = i * ROWS;
                let mut out: Vec<&mut [u8]> = columns
                    .iter_mut()
                    .zip(&sizes)
                    .map(|(column, size)| &mut column[first * size..(first + rows.len()) * size])
                    .collect();
                encoder.encode(rows, &mut out)?;
            }
            Ok(())
        })
    }

    fn best(&self, passes: usize, mut pass: impl FnMut() -> Result<()>) -> Result<f64> {
        let meter = Meter::default();
        let mut best = f64::INFINITY;
        for _ in 0..passes.max(1) {
            let before = meter.now().cpu;
            pass()?;
            best = best.min(meter.now().cpu - before);
        }
        Ok(best * 1e6 / self.frames() as f64)
    }
}

/// The error where no game can be read.
fn nothing(places: &[PathBuf]) -> Error {
    let mut told = Vec::new();
    for place in places {
        let holds = Holdings::of(place);
        let found = match std::fs::metadata(place) {
            Err(e) if holds.is_empty() => return Error::path(place, &e),
            _ if holds.has_games() => "holds none that can be read".to_owned(),
            _ => holds.told(place),
        };
        told.push(format!("{} {found}", place.display()));
    }
    let message = format!("no games of chess to measure with: {}", told.join("; "));
    Error::Stage { stage: "bench".into(), message }
}
