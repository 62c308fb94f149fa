//! Files of demonstrations as chunk sources: every trajectory a chunk of records.
//! A file is read whole when it is opened, within a bound, and kept decoded: its chunks cost a copy each.

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::{Chunk, ChunkSource, Description, Limits, ReadAt, Span, read_span};

use super::{Form, ReadOptions, read};
use crate::budget::MAX_BYTES;
use crate::pack::{PACKED, PackedTrajectory};
use crate::shard::{Shard, ShardMeta};
use crate::trajectory::{KIND, Trajectories};

/// A file of trajectories.
#[derive(Debug)]
pub struct DemoFile {
    description: Description,
    trajectories: Trajectories,
    meta: Option<ShardMeta>,
    about: Vec<(&'static str, String)>,
    shuffled: bool,
    faults: Vec<Error>,
}

impl DemoFile {
    /// Reads a file in any form of demonstrations, as it is.
    ///
    /// Errors: as [`read`]; `TooLarge` beyond [`MAX_BYTES`].
    pub fn open(key: &str, from: &dyn ReadAt) -> Result<DemoFile> {
        DemoFile::open_as(key, from, true)
    }

    /// As [`DemoFile::open`]; unless `strict`, what follows the end of a tar is a fault of the source.
    ///
    /// Errors: as [`DemoFile::open`].
    pub fn open_as(key: &str, from: &dyn ReadAt, strict: bool) -> Result<DemoFile> {
        let mut bytes = Vec::new();
        read_span(from, Span::WHOLE, MAX_BYTES as u64, &mut bytes)?;
        read(key, &bytes, &ReadOptions { strict, ..ReadOptions::default() })
    }

    /// Trajectories that were read from the file called `key`.
    pub fn new(key: &str, form: Form, trajectories: Trajectories) -> DemoFile {
        let description = Description { key: key.to_owned(), format: form.name(), kind: KIND };
        DemoFile { description, trajectories, meta: None, about: Vec::new(), shuffled: false, faults: Vec::new() }
    }

    /// What a shard called `key` holds.
    pub fn of_shard(key: &str, shard: Shard) -> DemoFile {
        let about = shard.meta.as_ref().map(ShardMeta::about).unwrap_or_default();
        let file = DemoFile::new(key, Form::Shard, shard.trajectories);
        DemoFile { meta: shard.meta, about, shuffled: shard.shuffled, ..file }
    }

    /// The packed trajectory in `stored`, whose records were decoded into `chunk`.
    ///
    /// Errors: what was packed beside the records, and cannot be read.
    pub fn of_packed(key: &str, stored: &[u8], chunk: &Chunk) -> Result<DemoFile> {
        let packed = PackedTrajectory::new(stored)?;
        let about = packed.about()?;
        let meta = about.metadata.map(|pickle| ShardMeta::parse(&pickle, MAX_BYTES)).transpose()?;
        let extras = packed.extras(0..packed.frames())?;
        let trajectories = Trajectories::of_records(about.layout, chunk.records().to_vec(), extras, packed.end());
        let description = Description { key: key.to_owned(), format: PACKED, kind: KIND };
        Ok(DemoFile { description, trajectories, meta, about: Vec::new(), shuffled: false, faults: Vec::new() })
    }

    /// The same, with a fact about it.
    #[must_use]
    pub(super) fn with(mut self, name: &'static str, value: String) -> Self {
        self.about.push((name, value));
        self
    }

    /// The same, with a fault that left its trajectories whole.
    #[must_use]
    pub fn noting(mut self, fault: Option<Error>) -> Self {
        self.faults.extend(fault);
        self
    }

    /// The trajectories.
    pub fn trajectories(&self) -> &Trajectories {
        &self.trajectories
    }

    /// What it is, and the trajectories alone.
    pub(super) fn into_trajectories(self) -> (Description, Trajectories) {
        (self.description, self.trajectories)
    }

    /// What a shard says about itself.
    pub fn meta(&self) -> Option<&ShardMeta> {
        self.meta.as_ref()
    }

    /// Whether a shard has its frames in another order than that of time.
    pub fn shuffled(&self) -> bool {
        self.shuffled
    }

    /// Adds the trajectories of the next of several shards. One without an end continues in it.
    ///
    /// Errors: `OutOfRange` for metadata that does not mix, naming what differs; `WrongSize` and `Missing` for frames of
    /// another layout; `TooLarge` beyond the bound.
    pub fn append(&mut self, next: DemoFile) -> Result<()> {
        if let (Some(own), Some(other)) = (&self.meta, &next.meta) {
            own.mixes_with(other)?;
        }
        self.trajectories.append(next.trajectories)
    }
}

impl ChunkSource for DemoFile {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn len(&self) -> usize {
        self.trajectories.ends().len()
    }

    /// Nothing needs to be fetched: an empty span.
    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)> {
        (i < self.len()).then_some((Span { offset: 0, len: 0 }, None))
    }

    fn decode(&self, i: usize, _: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        out.frames = 0;
        let found = self.trajectories.span(i).zip(self.trajectories.layout());
        let Some((frames, layout)) = found else {
            return Err(Error::new(Kind::Missing, format!("there are {} trajectories", self.len())).in_chunk(i));
        };
        let size = layout.size();
        if frames.len() * size > limits.max_chunk_bytes {
            let detail = format!(
                "a trajectory of {} frames of {size} bytes; the bound is {} bytes: raise max_chunk_bytes",
                frames.len(),
                limits.max_chunk_bytes
            );
            return Err(Error::new(Kind::TooLarge, detail).in_chunk(i));
        }
        out.bytes.clear();
        out.bytes.resize(frames.len() * size, 0);
        self.trajectories.copy_records(frames.clone(), &mut out.bytes)?;
        out.layout = Some(layout.clone());
        out.frames = frames.len();
        out.trailing = 0;
        Ok(())
    }

    fn limits(&self) -> Limits {
        Limits { max_chunk_bytes: MAX_BYTES }
    }

    fn about(&self) -> &[(&'static str, String)] {
        &self.about
    }

    fn faults(&self) -> &[Error] {
        &self.faults
    }
}
