//! The first chunks of the data of a stream -> where they lie, and how fast inflating alone and encoding alone are, on this
//! machine, now. Holds its sample in memory, so that no disk is measured.

use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::holdings::Holdings;
use gristmill_format::container::gzip::{self, Inflater};
use gristmill_format::container::zstd;
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::layout::Conform;
use gristmill_format::source::{Chunk, Span};
use serde::Serialize;

use super::storage::Unit;
use crate::files::{self, Found};
use crate::meter::Meter;
use crate::work::Opened;

/// A sample has at most this many records, and this many bytes of them: more than a cache holds.
const RECORDS: usize = 4096;
const BYTES: usize = 64 << 20;

/// Maximum number of bytes that a chunk or a file of the sample may inflate to.
const MAX_INFLATED: usize = 256 << 20;

/// Rows encoded in one call, as a loader does.
const ROWS: usize = 256;

/// Most places to read from that a sample notes, and most bytes that are read from each file that it does not open.
const UNITS: usize = 2048;
const MAX_READ: u64 = 4 << 20;

/// How fast the sample inflates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Inflation {
    /// How it is compressed.
    pub form: &'static str,
    /// Inflated bytes a second of processor time, on one thread.
    pub bytes_per_second: f64,
    /// Inflated bytes of a position.
    pub bytes_per_frame: f64,
}

/// Chunks as stored, and their records as the encoder takes them.
pub(super) struct Sample<'a> {
    encoder: &'a dyn Encoder,
    /// Compressed bytes, and how they are compressed.
    stored: Vec<(Form, Vec<u8>)>,
    /// The positions in them.
    stored_frames: usize,
    /// In the layout of the encoder, back to back.
    records: Vec<u8>,
    /// Whether its files are inflated as a whole, when they are opened.
    pub(super) whole: bool,
    /// Where the data lie that a loader reads, piece by piece.
    pub(super) units: Vec<Unit>,
}

/// How bytes are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Gzip,
    Zstd,
}

impl Form {
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            _ if bytes.starts_with(&gzip::MAGIC) => Some(Form::Gzip),
            _ if bytes.starts_with(&zstd::MAGIC) => Some(Form::Zstd),
            _ => None,
        }
    }
}

impl<'a> Sample<'a> {
    /// The first games found in `folders`.
    ///
    /// Errors: `Path` for a folder that is not there; `Stage` when there is no readable game, with what lies there.
    pub(super) fn of(folders: &[PathBuf], encoder: &'a dyn Encoder) -> Result<Self> {
        let mut sample = Sample {
            encoder,
            stored: Vec::new(),
            stored_frames: 0,
            records: Vec::new(),
            whole: false,
            units: Vec::new(),
        };
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
        self.records.len() / self.encoder.input().size().max(1)
    }

    fn is_full(&self) -> bool {
        self.frames() >= RECORDS || self.records.len() >= BYTES
    }

    fn add(&mut self, folder: &Path) -> Result<()> {
        let Ok(listing) = files::list(folder) else { return Ok(()) };
        for closed in &listing.files {
            if !self.is_full() {
                if let Found::File(file) = closed.open() {
                    self.file(&file)?;
                }
            } else if self.units.len() < UNITS {
                let len = std::fs::metadata(closed.path()).map_or(0, |found| found.len()).min(MAX_READ);
                self.units.push(Unit { path: closed.path().into(), offset: 0, len });
            }
        }
        Ok(())
    }

    fn file(&mut self, file: &Opened) -> Result<()> {
        let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
        let whole = file.demo.is_some();
        self.whole |= whole;
        if whole {
            self.units.push(Unit { path: file.path.clone().into(), offset: 0, len: file.size.min(MAX_READ) });
            if file.size <= BYTES as u64
                && let Ok(bytes) = std::fs::read(&file.path)
                && let Some(form) = Form::of(&bytes)
            {
                self.stored.push((form, bytes));
                let all = file.demo.as_ref().map(|demo| demo.trajectories());
                let spans = all.iter().flat_map(|all| (0..file.source.len()).filter_map(|i| all.span(i)));
                self.stored_frames += spans.map(|span| span.len()).sum::<usize>();
            }
        }
        for i in 0..file.source.len() {
            if let Some((Span { offset, len }, _)) = file.source.locate(i).filter(|_| !whole)
                && self.units.len() < UNITS
            {
                let len = if len == Span::REST { file.size.saturating_sub(offset) } else { len };
                self.units.push(Unit { path: file.path.clone().into(), offset, len });
            }
            if self.is_full() {
                continue;
            }
            if file.fetch(i, &mut stored).and_then(|()| file.decode(i, &stored, &mut chunk)).is_err()
                || self.encoder.complete(&mut chunk).is_err()
            {
                continue;
            }
            let (Some(layout), to) = (chunk.layout.clone(), self.encoder.input()) else { continue };
            let (Ok(()), Ok(conform)) = (self.encoder.fits(&layout), Conform::new(&layout, to)) else { continue };
            let at = self.records.len();
            self.records.resize(at + chunk.frames * to.size(), 0);
            conform.records(chunk.records(), &mut self.records[at..])?;
            if let Some(form) = Form::of(&stored).filter(|_| !whole) {
                self.stored.push((form, stored.clone()));
                self.stored_frames += chunk.frames;
            }
        }
        Ok(())
    }

    /// How fast the sample inflates, on one thread: the best of some passes. None where nothing of it is compressed.
    pub(super) fn inflation(&self, passes: usize) -> Option<Inflation> {
        let (form, _) = self.stored.first()?;
        let (mut inflater, mut out, mut inflated) = (Inflater::default(), Vec::new(), 0);
        let seconds = best(passes, || {
            inflated = 0;
            for (form, stored) in &self.stored {
                match form {
                    Form::Gzip => _ = inflater.inflate(stored, MAX_INFLATED, &mut out)?,
                    Form::Zstd => zstd::decompress(stored, MAX_INFLATED, &mut out)?,
                }
                inflated += out.len();
            }
            Ok(())
        });
        Some(Inflation {
            form: if *form == Form::Gzip { "gzip" } else { "zstd" },
            bytes_per_second: inflated as f64 / seconds.ok()?,
            bytes_per_frame: inflated as f64 / self.stored_frames.max(1) as f64,
        })
    }

    /// Microseconds a frame to encode the sample, on one thread: the best of some passes.
    /// Every frame has a row of its own, so that what is written goes to memory, as a loader's batches do.
    pub(super) fn encode_us(&self, passes: usize) -> Result<f64> {
        let rows: Vec<Row<'_>> = self
            .records
            .chunks_exact(self.encoder.input().size())
            .map(|record| Row { record, provenance: Provenance::default(), bits: Default::default(), sparse: None })
            .collect();
        let sizes: Vec<usize> = self.encoder.outputs().iter().map(|spec| spec.row_bytes()).collect();
        let mut columns: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0; rows.len() * size]).collect();
        let seconds = best(passes, || {
            for (i, rows) in rows.chunks(ROWS).enumerate() {
                let first = i * ROWS;
                let mut out: Vec<&mut [u8]> = columns
                    .iter_mut()
                    .zip(&sizes)
                    .map(|(column, size)| &mut column[first * size..(first + rows.len()) * size])
                    .collect();
                self.encoder.encode(rows, &mut out)?;
            }
            Ok(())
        })?;
        Ok(seconds * 1e6 / self.frames() as f64)
    }
}

/// The least processor time, in seconds, that one of some passes takes. The calling thread alone is to be at work.
pub(super) fn best(passes: usize, mut pass: impl FnMut() -> Result<()>) -> Result<f64> {
    let meter = Meter::default();
    let mut best = f64::INFINITY;
    for _ in 0..passes.max(1) {
        let before = meter.now().cpu;
        pass()?;
        best = best.min(meter.now().cpu - before);
    }
    Ok(best.max(1e-9))
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
    let message = format!("no games to measure with: {}", told.join("; "));
    Error::Stage { stage: "bench".into(), message }
}
