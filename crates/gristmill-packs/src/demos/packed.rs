//! A pack of trajectories -> the same interface as other demonstrations: any steps of any field, and their metadata.
//! Holds ends and metadata alone; unpacks a step when it is read.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::demo::budget::MAX_BYTES;
use gristmill_format::demo::shard::ShardMeta;
use gristmill_format::demo::trajectory::{End, Trajectories};
use gristmill_format::layout::Layout;
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::store::Residence;
use gristmill_runtime::table::FrameTable;

use super::data::Extras;
use crate::chunks::metadata::Games;
use crate::chunks::open::ChunkPack;
use crate::kinds::demo::begun;
use crate::pack::METADATA;

/// Steps whose records are unpacked by one call.
const STEPS: usize = 4096;

/// The trajectories of a pack.
#[derive(Debug)]
pub struct Packed {
    pack: ChunkPack,
    layout: Arc<Layout>,
    ends: Vec<(usize, End)>,
    meta: Option<ShardMeta>,
    about: Vec<(String, String)>,
}

impl Packed {
    /// Opens the pack in `folder`. Metadata of not more than `max` bytes is read.
    ///
    /// Errors: as [`ChunkPack::open`] and [`ChunkPack::told`]; `OutOfRange` where trajectories cannot be one data set, since
    /// colours, spaces or environments differ.
    pub fn open(folder: &Path, max: usize) -> gristmill_runtime::Result<Self> {
        let pack = ChunkPack::open(folder, Residence::Mapped)?;
        let ends = pack.ends()?;
        let fits = |end: u64| usize::try_from(end).map_err(|_| Error::new(Kind::TooLarge, format!("{end} steps")));
        let ends: Result<Vec<(usize, End)>> = ends.into_iter().map(|(end, how)| Ok((fits(end)?, how))).collect();
        let (mut meta, mut about): (Option<ShardMeta>, Option<Vec<(String, String)>>) = (None, None);
        for (game, told) in pack.told()? {
            let apart = |e: Error| {
                let (first, this) = (pack.source(0), pack.source(game));
                let advice = "they cannot be one data set; gristmill.open(PACK).where(...) in Python takes them apart";
                let detail = format!("`{this}` does not go with `{first}`: {}; {advice}", e.detail());
                Error::new(e.kind(), detail).in_source(folder.display().to_string())
            };
            let found = told.metadata.as_ref().map(|pickle| ShardMeta::parse(pickle, max)).transpose()?;
            match (&meta, found) {
                (Some(own), Some(found)) => own.mixes_with(&found).map_err(apart)?,
                (None, found) => meta = found,
                (Some(_), None) => {}
            }
            match &about {
                Some(own) => same_environment(own, &told.facts).map_err(apart)?,
                None => about = Some(told.facts),
            }
        }
        let layout = Arc::new(pack.layout().clone());
        let told = |meta: &ShardMeta| meta.about().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let about = meta.as_ref().map_or_else(|| about.unwrap_or_default(), told);
        Ok(Packed { pack, layout, ends: ends?, meta, about })
    }

    /// The layout of the records; `None` in a pack without trajectories.
    pub fn layout(&self) -> Option<&Arc<Layout>> {
        (!self.ends.is_empty()).then_some(&self.layout)
    }

    /// Where each trajectory ends, in frames, and how.
    pub fn ends(&self) -> &[(usize, End)] {
        &self.ends
    }

    pub(super) fn frames(&self) -> usize {
        self.ends.last().map_or(0, |(end, _)| *end)
    }

    /// The metadata of the shard that the trajectories came from.
    pub fn meta(&self) -> Option<&ShardMeta> {
        self.meta.as_ref()
    }

    /// What else the pack says of its trajectories: names and values.
    pub fn about(&self) -> &[(String, String)] {
        &self.about
    }

    /// Unpacks the records of some frames to the start of `out`.
    pub(super) fn records(&self, frames: Range<usize>, out: &mut [u8]) -> Result<()> {
        let size = self.layout.size();
        for (from, out) in frames.clone().step_by(STEPS).zip(out.chunks_mut(STEPS * size)) {
            let rows: Vec<u64> = (from as u64..frames.end.min(from + STEPS) as u64).collect();
            let len = rows.len() * size;
            self.pack.gather(&rows, &mut out[..len])?;
        }
        Ok(())
    }

    /// Unpacks known fields of some frames to the start of their buffers.
    pub fn columns(&self, frames: impl Iterator<Item = usize>, wanted: &mut [(&str, &mut [u8])]) -> Result<()> {
        let fields = self.layout.fields();
        let number = |name: &str| fields.iter().position(|field| field.name == name);
        let numbers: Vec<usize> = wanted.iter().filter_map(|(name, _)| number(name)).collect();
        let mut out: Vec<&mut [u8]> = wanted.iter_mut().map(|(_, out)| &mut **out).collect();
        self.pack.step_fields(frames.map(|frame| frame as u64), &numbers, &mut out)
    }

    /// Replaces `out` by the records of the frames of one trajectory.
    ///
    /// Errors: as `Packed::records`; `TooLarge` for more than is ever packed.
    pub fn trajectory(&self, frames: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        let bytes = frames.len().checked_mul(self.layout.size()).filter(|bytes| *bytes <= MAX_BYTES);
        let too_large = || Error::new(Kind::TooLarge, format!("a trajectory of {} frames", frames.len()));
        out.clear();
        out.resize(bytes.ok_or_else(too_large)?, 0);
        self.records(frames, out)
    }

    /// What each trajectory is called in a split: the file in which it begins, and its number there. Where an older pack does not
    /// say that, no file and a hash of it, which is the same in every pack.
    ///
    /// Errors: those of the database.
    pub fn keys(&self) -> gristmill_runtime::Result<Vec<(String, u64)>> {
        let named = (0..self.ends.len()).map(|game| begun(self.pack.source(game as u64)));
        let mut found: Vec<(String, u64)> =
            named.map(|name| name.map_or_else(Default::default, |(file, number)| (file.to_owned(), number))).collect();
        if found.iter().all(|(file, _)| !file.is_empty()) {
            return Ok(found);
        }
        Games::open(&self.pack.folder().join(METADATA))?.each(&mut |game| {
            let place = usize::try_from(game.id).ok().and_then(|id| found.get_mut(id));
            if let Some((_, index)) = place.filter(|(file, _)| file.is_empty()) {
                *index = game.content as u64;
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// What travels beside some frames, by field; frames are counted from the first of them.
    pub fn extras(&self, frames: Range<usize>) -> Result<Vec<(String, Extras)>> {
        let mut found: Vec<(String, Extras)> = Vec::new();
        let first = self.ends.partition_point(|(end, _)| *end <= frames.start);
        for game in first..self.ends.len() {
            let start = game.checked_sub(1).map_or(0, |before| self.ends[before].0);
            if start >= frames.end {
                break;
            }
            let within = frames.start.saturating_sub(start)..frames.end.min(self.ends[game].0) - start;
            for (name, values) in self.pack.demonstration(game as u64)?.extras(within)? {
                let values = values.into_iter().map(|(frame, extra)| (start + frame - frames.start, extra));
                match found.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, all)) => all.extend(values),
                    None => found.push((name, values.collect())),
                }
            }
        }
        Ok(found)
    }

    /// All of it, a trajectory at a time.
    pub fn blocks(
        &self,
        each: &mut dyn FnMut(&Trajectories) -> gristmill_runtime::Result<()>,
    ) -> gristmill_runtime::Result<()> {
        let mut start = 0;
        for (game, (end, how)) in self.ends.iter().enumerate() {
            let mut records = Vec::new();
            self.trajectory(start..*end, &mut records)?;
            let extras = self.pack.demonstration(game as u64)?.extras(0..end - start)?;
            each(&Trajectories::of_records(Arc::clone(&self.layout), records, extras, *how))?;
            start = *end;
        }
        Ok(())
    }
}

/// That what files said about themselves names one environment.
fn same_environment(one: &[(String, String)], two: &[(String, String)]) -> Result<()> {
    let named = |facts: &[(String, String)]| {
        let found = facts.iter().find(|(name, _)| name == "env_name");
        found.map(|(_, value)| value.clone())
    };
    match (named(one), named(two)) {
        (Some(one), Some(two)) if one != two => {
            Err(Error::new(Kind::OutOfRange, format!("it is of the environment `{two}`, not `{one}`")))
        }
        _ => Ok(()),
    }
}
