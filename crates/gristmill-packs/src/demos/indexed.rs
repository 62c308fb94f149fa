//! Plain shards, one after another as one -> any frame of them by its place: only requested frames are read.
//! Where frames lie is looked up in the side index, or found by one pass over the headers and noted there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_format::demo::form::ReadOptions;
use gristmill_format::demo::shard::{ShardIndex, ShardMeta, read_frames};
use gristmill_format::demo::trajectory::{End, Trajectories};
use gristmill_format::layout::Layout;
use gristmill_format::source::{ReadAt, read_span};
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::facts::Facts;
use gristmill_runtime::store::files::stat;
use gristmill_runtime::store::open_file;

use super::origin::Origins;

/// Frames that are decoded at a time where all of them are wanted, and bytes of records that they may have unless one has more.
const BLOCK: usize = 256;
const BLOCK_BYTES: usize = 4 << 20;

/// Shards whose frames are reached by their place.
#[derive(Debug)]
pub(super) struct Indexed {
    shards: Vec<Shard>,
    pub(super) layout: Option<Arc<Layout>>,
    pub(super) meta: Option<ShardMeta>,
    /// The frame after the last of each trajectory of all, and how it ended.
    pub(super) ends: Vec<(usize, End)>,
    pub(super) frames: usize,
    pub(super) origins: Origins,
}

struct Shard {
    path: PathBuf,
    from: Arc<dyn ReadAt>,
    index: ShardIndex,
    /// Frames of the shards before.
    first: usize,
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard").field("path", &self.path).field("first", &self.first).finish_non_exhaustive()
    }
}

/// The side index, kept in the folder `index`, of the folder that `path` lies in. Without one, or where it cannot be
/// opened, the headers of shards are read each time.
pub(super) fn facts_of(path: &Path, index: Option<&Path>) -> Option<Facts> {
    Facts::open(index?, folder_of(path)).ok()
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Where the frames of a plain shard lie; `None` where they cannot be read alone.
///
/// Errors, with the file: as [`ShardIndex::scan`], and as `options` have it.
pub(super) fn look(
    path: &Path,
    facts: Option<&Facts>,
    options: &ReadOptions,
) -> Result<Option<(Arc<dyn ReadAt>, ShardIndex)>> {
    let place = |e: Error| e.in_source(path.display().to_string());
    // The state of the file before it is read: any later change makes the fact one about another file.
    let stat = stat(path).map_err(gristmill_runtime::Error::of_reading)?;
    let from = open_file(path)?;
    if let Some(known) = facts.and_then(|facts| facts.shard(&stat)) {
        return Ok(Some((from, known)));
    }
    let found = ShardIndex::scan(&*from, options.max_bytes).map_err(place)?;
    if let Some(found) = &found {
        let behind = options.judged(found.behind.clone()).map_err(place)?;
        // One with a fault is never noted: each reader finds the fault again.
        if let Some(facts) = facts.filter(|_| behind.is_none()) {
            facts.record_shard(&stat, found);
        }
    }
    Ok(found.map(|found| (from, found)))
}

impl Indexed {
    pub(crate) fn new() -> Indexed {
        Indexed {
            shards: Vec::new(),
            layout: None,
            meta: None,
            ends: Vec::new(),
            frames: 0,
            origins: Origins::default(),
        }
    }

    /// Adds a shard after those that are there. A trajectory without an end continues in it.
    ///
    /// Errors, with the file: whatever is wrong with its metadata or its first frame; `OutOfRange` and `WrongSize` where they do
    /// not go with those of the shards before.
    pub(super) fn add(&mut self, path: &Path, from: Arc<dyn ReadAt>, index: ShardIndex, max: usize) -> Result<()> {
        let place = |e: Error| e.in_source(path.display().to_string());
        if let Some(span) = index.meta {
            let mut bytes = Vec::new();
            read_span(&*from, span, max as u64, &mut bytes).map_err(place)?;
            let meta = ShardMeta::parse(&bytes, max).map_err(|e| place(e.at_byte(span.offset)))?;
            match &self.meta {
                Some(first) => first.mixes_with(&meta).map_err(place)?,
                None => self.meta = Some(meta),
            }
        }
        if let Some(first) = index.frames.get(..1) {
            let found = read_frames(&*from, first, 0, None, max).map_err(place)?;
            let layout = found.layout().cloned();
            if let (Some(own), Some(layout)) = (&self.layout, &layout)
                && own != layout
            {
                let detail = format!("records of {} after records of {}", layout.to_descr(), own.to_descr());
                return Err(place(Error::new(Kind::WrongSize, detail)));
            }
            self.layout = self.layout.take().or(layout);
        }
        let has_dones = self.layout.as_ref().is_some_and(|layout| layout.field("dones").is_some());
        let goes_on = self.ends.last() == Some(&(self.frames, End::Truncated));
        let goes_on = has_dones && goes_on && !index.frames.is_empty();
        self.origins.begin(name_of(path), self.ends.len(), goes_on);
        if goes_on {
            self.ends.pop();
        }
        self.ends.extend(index.ends.iter().map(|(end, how)| (end + self.frames, *how)));
        let count = index.frames.len();
        self.shards.push(Shard { path: path.to_owned(), from, index, first: self.frames });
        self.frames += count;
        Ok(())
    }

    /// Decodes frames `start..end`, or one field of them; no trajectory of theirs is ended but by `dones`.
    ///
    /// Errors, with file, member, frame and byte: what is wrong with them; `TooLarge` beyond `max` bytes.
    pub(super) fn read(&self, start: usize, end: usize, only: Option<&str>, max: usize) -> Result<Trajectories> {
        let mut all = Trajectories::new(max);
        for shard in &self.shards {
            let count = shard.index.frames.len();
            let from = start.saturating_sub(shard.first).min(count);
            let to = end.saturating_sub(shard.first).min(count);
            if from < to {
                let place = |e: Error| e.in_source(shard.path.display().to_string());
                let found = read_frames(&*shard.from, &shard.index.frames[from..to], from, only, max).map_err(place)?;
                self.fits(&found, only).map_err(place)?;
                all.append(found).map_err(place)?;
            }
        }
        Ok(all)
    }

    /// Whether frames have the layout of the first: those that are read alone have nothing before them to differ from.
    fn fits(&self, found: &Trajectories, only: Option<&str>) -> Result<()> {
        let (Some(own), Some(layout)) = (&self.layout, found.layout()) else { return Ok(()) };
        let same = match only {
            None => own == layout,
            Some(name) => {
                let of = |layout: &Layout| layout.field(name).map(|field| (field.dtype.clone(), field.shape.clone()));
                of(own) == of(layout)
            }
        };
        if same {
            return Ok(());
        }
        let detail = format!("a frame of {} among frames of {}", layout.to_descr(), own.to_descr());
        Err(Error::new(Kind::WrongSize, detail))
    }

    /// Gives one field of some frames, block by block, to `each`: the first frame of the block, and the block.
    ///
    /// Errors: as [`Indexed::read`], and what `each` gives.
    pub(crate) fn blocks(
        &self,
        (start, end): (usize, usize),
        only: Option<&str>,
        max: usize,
        each: &mut dyn FnMut(usize, Trajectories) -> Result<()>,
    ) -> Result<()> {
        let size = self.layout.as_ref().map_or(1, |layout| layout.size());
        let block = (BLOCK_BYTES / size).clamp(1, BLOCK);
        for from in (start..end).step_by(block) {
            each(from, self.read(from, end.min(from + block), only, max)?)?;
        }
        Ok(())
    }
}
