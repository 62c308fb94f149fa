//! A path -> what it is: format, counts, layout, and one frame drawn.
//! Reads every chunk once to count its frames; judges nothing, which is what `verify` does.

mod chunk_pack;
mod pack_frame;
mod shelf;
mod strip;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use gristmill_engine::chunks::is_pack;
use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::error::Result;
use gristmill_engine::holdings::Holdings;
use gristmill_engine::lineage;
use gristmill_engine::pack::metadata::Metadata;
use gristmill_engine::pack::{METADATA, shards};
use gristmill_engine::store::Residence;
use gristmill_engine::store::files::{is_file, is_folder, stat};
use gristmill_engine::store::newest;
use gristmill_engine::table::FrameTable;
use gristmill_format::demo::form::DemoFile;
use gristmill_format::layout::{DType, Layout};
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind};
use serde::Serialize;

use super::files::{self, Found};
use super::pack::is_unreadable;
use super::rewrite::left_in;
use crate::work::Opened;
use crate::work::drawn::record;

pub use crate::work::drawn::{
    BranchView, Cell, ChessView, DemoView, DrawnView, FramePlace, FrameView, MoveView, Record, Step, StepView,
    ValueRow, ValueView,
};
pub use chunk_pack::{PackView, Results};
pub use shelf::{Game, Shelf};
pub use strip::{Strip, StripOptions, field_png, strips, write_png};

/// The format of a folder that is a pack of 2048 games.
const PACK: &str = "2048.pack";

/// What is at a path.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Inspection {
    /// The path.
    pub path: String,
    /// Format of the file, such as `lc0.gz`; for a directory the format of its files, or `mixed`.
    pub format: String,
    /// Sort key: the file name; absent for a directory.
    pub key: Option<String>,
    /// Data files.
    pub files: u64,
    /// Files that are of no known format.
    pub skipped: u64,
    /// Size of the data files in bytes.
    pub size: u64,
    /// Chunks, bad ones included.
    pub chunks: u64,
    /// Frames of the good chunks.
    pub frames: u64,
    /// Chunks that cannot be decoded.
    pub bad_chunks: u64,
    /// Files and chunks that the system refused to read: their content is unknown.
    pub unreadable: u64,
    /// What is wrong with the first of those, or with the first file that cannot be opened.
    pub first_fault: Option<String>,
    /// Files by format.
    pub formats: BTreeMap<&'static str, u64>,
    /// What the file says about itself.
    pub about: BTreeMap<&'static str, String>,
    /// What a pack of whole games is as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack: Option<PackView>,
    /// The records, once one was decoded.
    pub layout: Option<LayoutView>,
    /// The requested frame.
    pub frame: Option<FrameView>,
    /// The file itself, where it is one of demonstrations: strips are drawn of it.
    #[serde(skip)]
    pub demo: Option<Arc<DemoFile>>,
}

/// A layout as data.
#[derive(Debug, Clone, Serialize)]
pub struct LayoutView {
    /// Bytes of a record.
    pub size: usize,
    /// NumPy's description of the dtype.
    pub descr: String,
    /// The fields in order.
    pub fields: Vec<FieldView>,
}

/// One field of a layout.
#[derive(Debug, Clone, Serialize)]
pub struct FieldView {
    /// Name.
    pub name: String,
    /// NumPy's type string, such as `<f4`; of a nested record its description.
    pub dtype: String,
    /// Shape within one record.
    pub shape: Vec<usize>,
    /// Byte offset.
    pub offset: usize,
}

/// Which frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// A frame of a chunk, both counted from 0.
    InChunk(usize, usize),
    /// A frame of a pack, counted over all its games; of another file that of its first chunk.
    Frame(u64),
    /// A step of a run of a pack of 2048.
    Step {
        /// Id of the run.
        run: u64,
        /// Number of the step, from 0.
        step: u64,
    },
}

/// Inspects the file or directory at `path`; `which` is the frame of a file or pack to show in full. Without it the
/// first frame of a good first chunk is shown in short.
///
/// Errors: `Format` when a file cannot be opened, or the requested frame does not exist or cannot be drawn.
pub fn inspect(path: &Path, which: Option<Which>) -> Result<Inspection> {
    let mut seen = Inspection { path: path.display().to_string(), ..Inspection::default() };
    let path = &*newest(path)?;
    if is_folder(path)? {
        let is_rows = || is_file(&path.join(METADATA));
        if let Some(which) = which
            && (is_pack(path)? || is_rows()?)
        {
            seen.frame = Some(pack_frame::view(path, which)?);
        } else if which.is_some() {
            let detail = "a directory has no chunk of its own; name one of its files, or a pack";
            return Err(Error::new(Kind::Missing, detail).in_source(&seen.path).into());
        }
        if is_pack(path)? {
            seen.chunk_pack(path)?;
        } else {
            files::walk(path, &mut |found| {
                seen.add(found)?;
                Ok(())
            })?;
        }
    } else {
        let file = match files::file(path) {
            Found::File(file) => file,
            Found::Fault(e) => return Err(e.into()),
            Found::Other | Found::Pack(_) | Found::Unlisted(_) => {
                return Err(Error::new(Kind::UnknownFormat, "no data").into());
            }
        };
        let key = file.source.describe().key.clone();
        seen.demo = file.demo.clone();
        seen.frame = match which {
            Some(Which::InChunk(chunk, at)) => Some(view(&file, chunk, at, true)?),
            Some(Which::Frame(at)) => Some(view(&file, 0, usize::try_from(at).unwrap_or(usize::MAX), true)?),
            Some(Which::Step { .. }) => {
                return Err(gristmill_engine::Error::config(
                    "run",
                    "runs are those of packs of 2048; name the folder of one",
                ));
            }
            None => view(&file, 0, 0, false).ok(),
        };
        seen.add(Found::File(file))?;
        seen.key = Some(key);
    }
    if seen.files == 0 && seen.first_fault.is_none() {
        let detail = format!("nothing to inspect: it {}", Holdings::of(path).told(path));
        return Err(Error::new(Kind::Empty, detail).in_source(&seen.path).into());
    }
    seen.format = match seen.formats.len() {
        0 => "none".to_owned(),
        1 => seen.formats.keys().next().copied().unwrap_or_default().to_owned(),
        _ => "mixed".to_owned(),
    };
    Ok(seen)
}

/// How what is at `path` came to be: a pack, a folder that a job wrote, values, a tokenizer. Jobs, in order.
///
/// Errors: `Missing` where nothing tells it.
pub fn lineage(path: &Path) -> Result<Vec<lineage::Step>> {
    left_in(path).ok_or_else(|| {
        let detail =
            "nothing here tells how it came to be: no manifest, values.json or tokenizer with a lineage, and no ledger of a job";
        Error::new(Kind::Missing, detail).in_source(path.display().to_string()).into()
    })
}

impl Inspection {
    fn add(&mut self, found: Found) -> Result<()> {
        match found {
            Found::File(file) => self.file(&file),
            Found::Other => self.skipped += 1,
            Found::Fault(e) => {
                self.unreadable += u64::from(is_unreadable(&e));
                self.fault(e.to_string());
            }
            Found::Pack(folder) => {
                if let Err(e) = self.pack(&folder) {
                    self.fault(e.to_string());
                }
            }
            Found::Unlisted(unlisted) => {
                self.unreadable += if unlisted.is_unreadable() { unlisted.count } else { 0 };
                self.fault(unlisted.latest);
            }
        }
        Ok(())
    }

    /// Counts a pack by its headers and its database; no row is read.
    fn pack(&mut self, folder: &Path) -> Result<()> {
        *self.formats.entry(PACK).or_default() += 1;
        for shard in shards::list(folder)? {
            self.files += 1;
            self.frames += shard.rows;
            self.size += shard.rows * shard.layout.size() as u64;
            self.layout.get_or_insert_with(|| layout(&shard.layout));
        }
        self.chunks += Metadata::open(folder.join(METADATA))?.run_count()?;
        Ok(())
    }

    /// Counts a pack of whole games by its indexes; no game is decoded.
    fn chunk_pack(&mut self, folder: &Path) -> Result<()> {
        let held = ChunkPack::open(folder, Residence::Mapped)?;
        for (name, _) in held.checksums() {
            let path = folder.join(name);
            self.size += stat(&path)?.size;
            self.files += 1;
        }
        (self.chunks, self.frames) = (held.games(), held.len());
        self.layout = Some(layout(held.layout()));
        let pack = chunk_pack::view(folder)?;
        self.formats.insert(held.codec().format(), self.files);
        self.pack = Some(pack);
        Ok(())
    }

    fn fault(&mut self, text: String) {
        self.first_fault.get_or_insert(text);
    }

    fn file(&mut self, file: &Opened) {
        self.files += 1;
        self.size += file.size;
        *self.formats.entry(file.source.describe().format).or_default() += 1;
        if let Some(fault) = file.source.faults().first() {
            self.fault(fault.clone().in_source(&file.path).to_string());
        }
        for (name, value) in file.source.about() {
            self.about.entry(name).or_insert_with(|| value.clone());
        }
        let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
        for i in 0..file.source.len() {
            self.chunks += 1;
            match file.fetch(i, &mut stored).and_then(|()| file.decode(i, &stored, &mut chunk)) {
                Ok(()) => {
                    self.frames += chunk.frames as u64;
                    if self.layout.is_none() {
                        self.layout = chunk.layout.as_deref().map(layout);
                    }
                }
                Err(e) => {
                    match is_unreadable(&e) {
                        true => self.unreadable += 1,
                        false => self.bad_chunks += 1,
                    }
                    self.fault(e.to_string());
                }
            }
        }
    }
}

fn layout(layout: &Layout) -> LayoutView {
    let field = |f: &gristmill_format::layout::Field| FieldView {
        name: f.name.clone(),
        dtype: match &f.dtype {
            DType::Scalar(scalar, order) => scalar.type_str(*order),
            DType::Record(inner) => inner.to_descr(),
        },
        shape: f.shape.clone(),
        offset: f.offset,
    };
    LayoutView { size: layout.size(), descr: layout.to_descr(), fields: layout.fields().iter().map(field).collect() }
}

fn view(file: &Opened, i: usize, at: usize, full: bool) -> gristmill_format::Result<FrameView> {
    let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
    file.fetch(i, &mut stored)?;
    file.decode(i, &stored, &mut chunk)?;
    if at >= chunk.frames {
        let detail = format!("there is no frame {at}; the chunk has {}, counted from 0", chunk.frames);
        return Err(Error::new(Kind::Missing, detail).in_chunk(i).in_source(&file.path));
    }
    let place = FramePlace {
        chunk: i,
        frame: at,
        frames: chunk.frames,
        member: file.member(i).map(str::to_owned),
        record: chunk.layout.as_deref().filter(|_| full).map(|layout| record::record(layout, chunk.record(at))),
    };
    let drawn = file.kind.view(place, chunk.layout.as_deref(), chunk.record(at));
    drawn.map_err(|e| e.in_frame(at).in_chunk(i).in_source(&file.path))
}
