//! What is measured: the configuration of a stream, or a pack -> loaders of it with any number of threads, where its data lie,
//! and how large what passes through is. Runs nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::config::{DataLoaderConfig, IndexConfig, StageKind, TensorGeneratorConfig};
use gristmill_engine::error::{Error, Result};
use gristmill_engine::kinds::{self, Kind, Way};
use gristmill_engine::names::is_pack;
use gristmill_engine::pipeline::{DataLoader, Engine, IndexLoader};
use gristmill_engine::selection::{self, Selection};
use gristmill_engine::store::Residence;
use gristmill_engine::table::IndexInput;
use gristmill_format::encode::Encoder;

use super::machine::Sizes;
use super::shares::Shape;
use super::storage::Unit;

/// Bytes that are read at a time from anywhere in a pack, and how often.
const PIECE: u64 = 4096;
const PIECES: u64 = 1024;

/// About how many batches a loader holds at once: those that wait, and those that it makes.
const UNDER_WAY: usize = 6;

/// What to measure.
#[derive(Debug, Clone)]
pub enum Target {
    /// A stream.
    Stream(Box<DataLoaderConfig>),
    /// All rows of a pack, by the encoder of their kind, whatever the configuration says.
    Rows(PathBuf, Box<IndexConfig>),
}

/// A target whose data are open.
pub(super) enum Opened {
    Stream { config: Box<DataLoaderConfig>, encoder: Arc<dyn Encoder>, folders: Vec<PathBuf> },
    Rows { input: IndexInput, config: Box<IndexConfig>, pack: Selection },
}

impl Target {
    /// Opens the data.
    ///
    /// Errors: as the opening of a pack; `Config` for what cannot be fed.
    pub(super) fn open(&self) -> Result<Opened> {
        match self {
            Target::Stream(config) => {
                let generator = generator(config)?;
                let encoder = kinds::encoding(&generator.encoder)?.of_stream(&generator.tensors);
                let encoder = encoder.map_err(|e| e.in_stage("tensors"))?;
                let files = |stage: &StageKind<'_>| match stage {
                    StageKind::FilePathProvider(files) => Some(files.directory.clone()),
                    _ => None,
                };
                let stages = config.stage.iter().filter_map(|stage| stage.kind().ok());
                let folders = stages.filter_map(|stage| files(&stage)).collect();
                Ok(Opened::Stream { config: config.clone(), encoder, folders })
            }
            Target::Rows(folder, config) => {
                let pack = Selection::all(selection::open(folder, Residence::Mapped)?);
                let kind = if is_pack(folder)? { kinds::of(pack.pack().form())? } else { of_rows()? };
                let encoder = kind.encoder();
                let config = IndexConfig { encoder, epochs: None, ..(**config).clone() };
                Ok(Opened::Rows { input: pack.input_for(&config.encoder)?, config: Box::new(config), pack })
            }
        }
    }
}

/// The first output of a stream.
fn generator(config: &DataLoaderConfig) -> Result<&TensorGeneratorConfig> {
    let found = config.stage.iter().find_map(|stage| match stage.kind() {
        Ok(StageKind::TensorGenerator(generator)) => Some(generator),
        _ => None,
    });
    found.ok_or_else(|| Error::config("stage", "no stage makes tensors: there is nothing to measure"))
}

/// The kind that is packed in rows.
fn of_rows() -> Result<&'static dyn Kind> {
    let found = kinds::packable().find(|(_, way)| matches!(way, Way::Rows)).map(|(kind, _)| kind);
    found.ok_or_else(|| Error::Unsupported("no kind of games is packed in rows".to_owned()))
}

impl Opened {
    /// Makes a loader with this many threads.
    ///
    /// Errors: as its making.
    pub(super) fn engine(&self, threads: usize) -> Result<Arc<dyn Engine>> {
        let threads = Some(threads);
        Ok(match self {
            Opened::Stream { config, .. } => {
                Arc::new(DataLoader::new(DataLoaderConfig { threads, ..(**config).clone() })?)
            }
            Opened::Rows { input, config, .. } => {
                Arc::new(IndexLoader::new(input.clone(), IndexConfig { threads, ..(**config).clone() })?)
            }
        })
    }

    /// Sizes of what passes through a loader, and of the buffers that it copies to.
    pub(super) fn sizes(&self, engine: &dyn Engine) -> (Shape, Sizes) {
        let (tensors, batch) = engine.outputs().first().map_or((0, 0), |output| {
            let bytes: usize = output.tensors.iter().map(|tensor| tensor.row_bytes()).sum();
            (bytes, bytes * output.batch_size)
        });
        let filled = batch.saturating_mul(UNDER_WAY);
        match self {
            Opened::Stream { config, encoder, .. } => {
                let record = encoder.input().size();
                let reservoirs = config.stage.iter().filter_map(|stage| match stage.kind() {
                    Ok(StageKind::ShufflingFrameSampler(sampler)) => Some(sampler.reservoir_size_per_thread),
                    _ => None,
                });
                let copied = reservoirs.max().unwrap_or(0).max(1024).saturating_mul(record);
                let shape = Shape { record: record as f64, tensors: tensors as f64, ..Shape::default() };
                (shape, Sizes { copied, filled, ..Sizes::default() })
            }
            Opened::Rows { input, pack, .. } => {
                let table = &input.table;
                let straight = table.straight().is_some();
                let stored: u64 = data(pack).iter().map(|(_, size)| size).sum();
                let row = match straight {
                    true => stored as f64 / table.len().max(1) as f64,
                    false => table.layout().size() as f64,
                };
                let shape = Shape { record: row, tensors: tensors as f64, row, straight, whole: false };
                let row = (row.round() as usize).max(1);
                let table = row.saturating_mul(usize::try_from(table.len()).unwrap_or(usize::MAX));
                (shape, Sizes { copied: filled, filled, row, table })
            }
        }
    }

    /// Pieces anywhere in the files of a pack, in an order in which each is far from the one before; none of a stream.
    pub(super) fn pieces(&self) -> Vec<Unit> {
        let Opened::Rows { pack, .. } = self else { return Vec::new() };
        let files = data(pack);
        let all: u64 = files.iter().map(|(_, size)| size.div_ceil(PIECE)).sum();
        let piece = |i: u64| {
            let spread = u128::from((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) * u128::from(all);
            let mut at = (spread >> 64) as u64;
            let (path, _) = files.iter().find(|(_, size)| {
                let pieces = size.div_ceil(PIECE);
                let here = at < pieces;
                at -= if here { 0 } else { pieces };
                here
            })?;
            Some(Unit { path: path.clone(), offset: at * PIECE, len: PIECE })
        };
        (0..PIECES.min(all)).filter_map(piece).collect()
    }
}

/// The files of the frames of a pack, with their sizes: those named as the one that has the first frame.
fn data(pack: &Selection) -> Vec<(PathBuf, u64)> {
    let (first, _) = pack.locate(0);
    let folder = pack.pack().folder();
    let stem = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let letters = name.split(['-', '.']).next().unwrap_or_default().to_owned();
        (letters, path.extension().unwrap_or_default().to_owned())
    };
    let wanted = stem(Path::new(&first));
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths: BTreeSet<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let named = paths.into_iter().filter(|path| stem(path) == wanted);
    named.filter_map(|path| Some((path.clone(), path.metadata().ok()?.len()))).collect()
}
