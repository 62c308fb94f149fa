//! Demonstrations that are open: trajectories by number, fields of all steps, what travels beside them. One face over what is
//! in memory, what is reached by its place in shards or in a pack, and what was written into columns.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use gristmill_format::demo::form::DemoFile;
use gristmill_format::demo::pack::PACKED;
use gristmill_format::demo::shard::ShardMeta;
use gristmill_format::demo::trajectory::{End, Trajectories};
use gristmill_format::demo::value::Extra;
use gristmill_format::layout::{Field, Layout};
use gristmill_format::source::ChunkSource;
use gristmill_format::{Error, Kind, Result};

use super::columns::Columns;
use super::indexed::Indexed;
use super::origin::Origins;
use super::packed::Packed;

/// A field's extras: frame and value.
pub type Extras = Vec<(usize, Extra)>;

/// Trajectories, wherever they are.
#[derive(Debug)]
pub struct Demonstrations {
    key: String,
    source: String,
    max: usize,
    data: Data,
}

#[derive(Debug)]
enum Data {
    Held(DemoFile, Origins),
    Indexed(Indexed),
    Columns(Columns),
    Packed(Packed),
}

impl Demonstrations {
    pub(super) fn held(source: String, file: DemoFile, origins: Origins, max: usize) -> Self {
        Demonstrations { key: file.describe().key.clone(), source, max, data: Data::Held(file, origins) }
    }

    pub(super) fn indexed(key: String, source: String, shards: Indexed, max: usize) -> Self {
        Demonstrations { key, source, max, data: Data::Indexed(shards) }
    }

    pub(super) fn columns(key: String, source: String, columns: Columns, max: usize) -> Self {
        Demonstrations { key, source, max, data: Data::Columns(columns) }
    }

    pub(super) fn packed(key: String, source: String, pack: Packed, max: usize) -> Self {
        Demonstrations { key, source, max, data: Data::Packed(pack) }
    }

    /// File name without directory.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Short name of the form, such as `demo.shard`.
    pub fn format(&self) -> &str {
        match &self.data {
            Data::Held(file, _) => file.describe().format,
            Data::Indexed(_) => "demo.shard",
            Data::Columns(columns) => columns.format(),
            Data::Packed(_) => PACKED,
        }
    }

    /// The file in which trajectory `i` begins, and its number there; none where that is not known any more.
    pub fn origin(&self, i: usize) -> Option<(&str, u64)> {
        match &self.data {
            Data::Held(_, origins) => origins.of(i),
            Data::Indexed(shards) => shards.origins.of(i),
            Data::Columns(columns) => columns.origins().of(i),
            Data::Packed(_) => None,
        }
    }

    /// The layout of the records, once there is a frame.
    pub fn layout(&self) -> Option<&Arc<Layout>> {
        match &self.data {
            Data::Held(file, _) => file.trajectories().layout(),
            Data::Indexed(shards) => shards.layout.as_ref(),
            Data::Columns(columns) => Some(columns.layout()),
            Data::Packed(pack) => pack.layout(),
        }
    }

    /// The frame after the last of each trajectory, and how it ended.
    pub fn ends(&self) -> &[(usize, End)] {
        match &self.data {
            Data::Held(file, _) => file.trajectories().ends(),
            Data::Indexed(shards) => &shards.ends,
            Data::Columns(columns) => columns.ends(),
            Data::Packed(pack) => pack.ends(),
        }
    }

    /// How many frames there are.
    pub fn frames(&self) -> usize {
        match &self.data {
            Data::Held(file, _) => file.trajectories().frames(),
            Data::Indexed(shards) => shards.frames,
            Data::Columns(columns) => columns.frames(),
            Data::Packed(pack) => pack.frames(),
        }
    }

    /// What a shard says about itself.
    pub fn meta(&self) -> Option<&ShardMeta> {
        match &self.data {
            Data::Held(file, _) => file.meta(),
            Data::Indexed(shards) => shards.meta.as_ref(),
            Data::Columns(columns) => columns.meta(),
            Data::Packed(pack) => pack.meta(),
        }
    }

    /// Names and values of what is known about it, for people.
    pub fn about(&self) -> Vec<(String, String)> {
        let owned = |(name, value): &(&'static str, String)| ((*name).to_owned(), value.clone());
        match &self.data {
            Data::Held(file, _) => file.about().iter().map(owned).collect(),
            Data::Indexed(shards) => shards.meta.iter().flat_map(ShardMeta::about).map(|a| owned(&a)).collect(),
            Data::Columns(columns) => columns.about().to_vec(),
            Data::Packed(pack) => pack.about().to_vec(),
        }
    }

    /// The frames of trajectory `i`.
    ///
    /// Errors: `Missing`.
    pub fn span(&self, i: usize) -> Result<Range<usize>> {
        let ends = self.ends();
        let missing = || Error::new(Kind::Missing, format!("there are {} trajectories", ends.len())).in_chunk(i);
        let end = ends.get(i).ok_or_else(missing)?.0;
        Ok(i.checked_sub(1).map_or(0, |before| ends[before].0)..end)
    }

    /// The field called `name`.
    ///
    /// Errors: `Missing`.
    pub fn field(&self, name: &str) -> Result<&Field> {
        let field = self.layout().and_then(|layout| layout.field(name));
        field.ok_or_else(|| self.place(Error::new(Kind::Missing, format!("there is no field `{name}`"))))
    }

    /// Writes the records of some frames to the start of `out`, which is zero.
    ///
    /// Errors, with file, member, frame and byte: what is wrong with them.
    pub fn records(&self, frames: Range<usize>, out: &mut [u8]) -> Result<()> {
        match &self.data {
            Data::Held(file, _) => file.trajectories().copy_records(frames, out),
            Data::Columns(columns) => columns.records(frames, out),
            Data::Packed(pack) => pack.records(frames, out),
            Data::Indexed(shards) => {
                let size = shards.layout.as_ref().map_or(0, |layout| layout.size());
                let start = frames.start;
                shards.blocks((frames.start, frames.end), None, self.max, &mut |from, block| {
                    block.copy_records(0..block.frames(), &mut out[(from - start) * size..])
                })
            }
        }
        .map_err(|e| self.place(e))
    }

    /// Writes some fields of all frames, each back to back to the start of its buffer; shards are gone through once for all.
    ///
    /// Errors: as [`Demonstrations::records`]; `Missing` for a field that is not there.
    pub fn columns_into(&self, wanted: &mut [(&str, &mut [u8])]) -> Result<()> {
        let sizes = wanted.iter().map(|(name, _)| Ok(self.field(name)?.bytes())).collect::<Result<Vec<_>>>()?;
        let all = 0..self.frames();
        match &self.data {
            Data::Held(file, _) => {
                wanted.iter_mut().try_for_each(|(name, out)| file.trajectories().gather(name, all.clone(), out))
            }
            Data::Columns(columns) => {
                wanted.iter_mut().try_for_each(|(name, out)| columns.read(name, all.clone(), out))
            }
            Data::Packed(pack) => pack.columns(all, wanted),
            Data::Indexed(shards) => {
                // One field is picked out of each frame; of several the whole frame is read, in one go.
                let only = if let [(name, _)] = wanted { Some(*name) } else { None };
                shards.blocks((0, all.end), only, self.max, &mut |from, block| {
                    wanted.iter_mut().zip(&sizes).try_for_each(|((name, out), size)| {
                        block.gather(name, 0..block.frames(), &mut out[from * size..])
                    })
                })
            }
        }
        .map_err(|e| self.place(e))
    }

    /// Bytes of one field of all frames.
    ///
    /// Errors: `Missing`; `TooLarge` where they may not be held in memory at once.
    pub fn column_bytes(&self, name: &str) -> Result<usize> {
        let bytes = self.field(name)?.bytes().checked_mul(self.frames());
        bytes.filter(|bytes| *bytes <= self.max).ok_or_else(|| {
            let detail = format!("`{name}` of {} steps takes more than {} bytes", self.frames(), self.max);
            self.place(advise(Error::new(Kind::TooLarge, detail)))
        })
    }

    /// The `.npy` file of one field, where there is one.
    pub fn column_file(&self, name: &str) -> Option<PathBuf> {
        match &self.data {
            Data::Columns(columns) => columns.file(name),
            _ => None,
        }
    }

    /// What travels beside some frames, by field.
    ///
    /// Errors: as [`Demonstrations::records`].
    pub fn extras(&self, frames: Range<usize>) -> Result<Vec<(String, Extras)>> {
        match &self.data {
            Data::Held(file, _) => Ok(extras(file.trajectories(), frames.clone(), frames.start)),
            Data::Columns(columns) => columns.extras(frames).map_err(|e| self.place(e)),
            Data::Packed(pack) => pack.extras(frames).map_err(|e| self.place(e)),
            Data::Indexed(shards) => {
                let found = shards.read(frames.start, frames.end, None, self.max).map_err(|e| self.place(e))?;
                Ok(extras(&found, 0..found.frames(), 0))
            }
        }
    }

    /// Writes the records of some frames to the start of `out`, which is zero, and returns what travels beside them, by field. Shards
    /// are gone through once for both.
    ///
    /// Errors: as [`Demonstrations::records`].
    pub fn records_with_extras(&self, frames: Range<usize>, out: &mut [u8]) -> Result<BTreeMap<String, Extras>> {
        let Data::Indexed(shards) = &self.data else {
            self.records(frames.clone(), out)?;
            return Ok(self.extras(frames)?.into_iter().collect());
        };
        let size = shards.layout.as_ref().map_or(0, |layout| layout.size());
        let mut beside: BTreeMap<String, Extras> = BTreeMap::new();
        let read = shards.blocks((frames.start, frames.end), None, self.max, &mut |from, block| {
            let first = from - frames.start;
            for (name, own) in extras(&block, 0..block.frames(), 0) {
                let own = own.into_iter().map(|(frame, extra)| (first + frame, extra));
                beside.entry(name).or_default().extend(own);
            }
            block.copy_records(0..block.frames(), &mut out[first * size..])
        });
        read.map_err(|e| self.place(e))?;
        Ok(beside)
    }

    /// All of it, block by block, for a caller that writes it elsewhere.
    ///
    /// Errors: as [`Demonstrations::records`], and what `each` gives.
    pub fn blocks(
        &self,
        each: &mut dyn FnMut(&Trajectories) -> gristmill_runtime::Result<()>,
    ) -> gristmill_runtime::Result<()> {
        match &self.data {
            Data::Held(file, _) => each(file.trajectories()),
            Data::Packed(pack) => pack.blocks(each),
            Data::Columns(_) => Err(Error::new(Kind::Unsupported, "it lies in columns already").into()),
            Data::Indexed(shards) => {
                shards.blocks((0, shards.frames), None, self.max, &mut |_, block| each(&block).map_err(told))?;
                Ok(())
            }
        }
    }

    fn place(&self, e: Error) -> Error {
        e.in_source(&self.source)
    }
}

fn extras(all: &Trajectories, frames: Range<usize>, first: usize) -> Vec<(String, Extras)> {
    let own = |(name, known): (&String, &Extras)| {
        let from = known.partition_point(|(frame, _)| *frame < frames.start);
        let to = known.partition_point(|(frame, _)| *frame < frames.end);
        (name.clone(), known[from..to].iter().map(|(frame, extra)| (frame - first, extra.clone())).collect())
    };
    all.extras().iter().map(own).collect()
}

/// A refusal of the engine as one of bytes, to be handed through a reader of them.
pub(super) fn told(e: gristmill_runtime::Error) -> Error {
    match e {
        gristmill_runtime::Error::Format(e) => e,
        gristmill_runtime::Error::Path { path, kind, message } => {
            Error::new(Kind::Io(kind), message).in_source(path.display().to_string())
        }
        other => Error::new(Kind::Io(std::io::ErrorKind::Interrupted), other.to_string()),
    }
}

/// A refusal of what is too large for memory, with what to do.
pub(super) fn advise(e: Error) -> Error {
    if e.kind() != Kind::TooLarge {
        return e;
    }
    let place = e.place().clone();
    let advice = "give a folder to keep it in files (`columns`), or raise `max_bytes`";
    let mut advised = Error::new(Kind::TooLarge, format!("{}; {advice}", e.detail()));
    if let Some(source) = place.source {
        advised = advised.in_source(source);
    }
    if let Some(member) = place.member {
        advised = advised.in_member(member);
    }
    match place.offset {
        Some(offset) => advised.at_byte(offset),
        None => advised,
    }
}
