//! Files of demonstrations as chunk sources: every trajectory a chunk of records.
//! A file is read whole when it is opened, within a bound, and kept decoded: its chunks cost a copy each.

use crate::error::{Error, Kind, Result};
use crate::source::{Access, Chunk, ChunkSource, Description, Limits, ReadAt, Span, read_span};

use super::shard::{Shard, ShardMeta};
use super::trajectory::Trajectories;

/// Most bytes of one file, unpacked: a larger one is to be split into several shards.
pub const MAX_BYTES: usize = 2 << 30;

/// A file of trajectories.
#[derive(Debug)]
pub struct DemoFile {
    description: Description,
    trajectories: Trajectories,
    meta: Option<ShardMeta>,
}

impl DemoFile {
    /// Reads a WebDataset shard.
    ///
    /// Errors: as [`Shard::read`]; `TooLarge` beyond [`MAX_BYTES`].
    pub fn shard(key: &str, from: &dyn ReadAt) -> Result<DemoFile> {
        let mut bytes = Vec::new();
        read_span(from, Span::WHOLE, MAX_BYTES as u64, &mut bytes)?;
        let shard = Shard::read(&bytes, MAX_BYTES)?;
        Ok(DemoFile::new(key, "demo.shard", shard.trajectories, shard.meta))
    }

    /// Trajectories that were read from the file called `key`, in the form called `format`.
    pub fn new(key: &str, format: &'static str, trajectories: Trajectories, meta: Option<ShardMeta>) -> DemoFile {
        let description = Description { key: key.to_owned(), format, access: Access::Solid };
        DemoFile { description, trajectories, meta }
    }

    /// The trajectories.
    pub fn trajectories(&self) -> &Trajectories {
        &self.trajectories
    }

    /// What a shard says about itself.
    pub fn meta(&self) -> Option<&ShardMeta> {
        self.meta.as_ref()
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
        out.bytes.extend_from_slice(&self.trajectories.records()[frames.start * size..frames.end * size]);
        out.layout = Some(layout.clone());
        out.frames = frames.len();
        out.trailing = 0;
        Ok(())
    }
}
