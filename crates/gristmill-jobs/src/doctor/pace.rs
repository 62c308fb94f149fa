//! The first chunks of some data -> how fast they are read and decoded here, and how small they would be packed.
//! A measurement of this machine, now: no two are alike, and nothing else may depend on it.

use std::path::Path;

use gristmill_engine::kinds::{self, Way};
use gristmill_engine::selection;
use gristmill_engine::store::Residence;
use gristmill_format::source::{Chunk, Kept};
use serde::Serialize;

use crate::files::{self, Found};
use crate::meter::Meter;
use crate::work::Opened;

/// A sample is over after this many frames, or this long.
const FRAMES: u64 = 1 << 16;
const SECONDS: f64 = 1.0;

/// Bytes of records of trajectories that are packed for the sample.
const MOST_PACKED: usize = 128 << 20;

/// Rows of a pack that are read at a time.
const ROWS: u64 = 4096;

/// What was measured of a sample.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Pace {
    /// Frames of the sample.
    pub frames: u64,
    /// Seconds that reading and decoding took, on one thread.
    pub seconds: f64,
    /// Bytes of the sample as stored.
    pub stored: u64,
    /// Bytes of the same in a pack; absent where it is packed already, or where packing was not tried.
    pub packed: Option<u64>,
}

/// Measures the first chunks at a path.
pub(super) fn sample(path: &Path) -> Pace {
    let mut sampling = Sampling { meter: Meter::default(), pace: Pace::default(), kept: Kept::default(), packs: true };
    let Ok(listing) = files::list(path) else { return sampling.pace };
    for closed in &listing.files {
        if sampling.is_over() {
            break;
        }
        let before = sampling.meter.now().wall;
        let Found::File(file) = closed.open() else { continue };
        sampling.pace.seconds += sampling.meter.now().wall - before;
        sampling.file(&file);
    }
    for folder in listing.packs {
        sampling.rows(&folder);
    }
    if !sampling.packs {
        sampling.pace.packed = None;
    }
    sampling.pace
}

struct Sampling {
    meter: Meter,
    pace: Pace,
    kept: Kept,
    /// Whether all so far can be packed, and is not yet.
    packs: bool,
}

impl Sampling {
    fn is_over(&self) -> bool {
        self.pace.frames >= FRAMES || self.pace.seconds >= SECONDS
    }

    fn file(&mut self, file: &Opened) {
        let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
        let way = kinds::of(file.kind.name()).ok().and_then(|kind| {
            let packed = kind.codec().is_some_and(|codec| codec.format() == file.source.describe().format);
            if packed { None } else { kind.way() }
        });
        if matches!(way, Some(Way::Sets)) && self.pace.packed.is_none() {
            self.set(file);
        }
        for i in 0..file.source.len() {
            if self.is_over() {
                break;
            }
            let before = self.meter.now().wall;
            let decoded = file.fetch(i, &mut stored).and_then(|()| file.decode(i, &stored, &mut chunk));
            self.pace.seconds += self.meter.now().wall - before;
            if decoded.is_ok() {
                self.pace.frames += chunk.frames as u64;
                if !matches!(way, Some(Way::Sets)) {
                    self.pace.stored += stored.len() as u64;
                    self.pack(way, &chunk);
                }
            }
        }
    }

    /// Packs the first trajectories of a file, which stand for all.
    fn set(&mut self, file: &Opened) {
        match file.kind.packed(file, MOST_PACKED) {
            Some((stored, packed)) => (self.pace.stored, self.pace.packed) = (stored, Some(packed)),
            None => self.packs = false,
        }
    }

    fn pack(&mut self, way: Option<Way>, chunk: &Chunk) {
        let mut out = Vec::new();
        let bytes = match way {
            Some(Way::Rows) => Some(chunk.records().len()),
            Some(Way::Chunks(_, packing)) => (packing.pack)(chunk, &mut self.kept, &mut out).ok().map(|()| out.len()),
            Some(Way::Sets) | None => None,
        };
        self.packs &= bytes.is_some();
        *self.pace.packed.get_or_insert(0) += bytes.unwrap_or_default() as u64;
    }

    fn rows(&mut self, folder: &Path) {
        self.packs = false;
        let Ok(pack) = selection::open(folder, Residence::Mapped) else { return };
        let table = pack.table();
        let (mut at, mut out) = (0, Vec::new());
        while at < table.len() && !self.is_over() {
            let rows: Vec<u64> = (at..table.len().min(at + ROWS)).collect();
            out.resize(rows.len() * table.layout().size(), 0);
            let before = self.meter.now().wall;
            let read = table.gather(&rows, &mut out);
            self.pace.seconds += self.meter.now().wall - before;
            if read.is_err() {
                return;
            }
            self.pace.frames += rows.len() as u64;
            self.pace.stored += out.len() as u64;
            at += ROWS;
        }
    }
}
