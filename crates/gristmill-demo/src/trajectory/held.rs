//! Records of one layout, extras and the ends of episodes: the form every demonstration takes.
//! Holds what was added; joins what belongs together, and refuses what does not fit.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Field, Layout, Order, Scalar};

use super::add::Open;
use super::store::{Part, Places, Store, Tape};
use crate::names::shown;
use crate::value::Extra;

/// How a trajectory ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The environment said that the episode was over.
    Terminated,
    /// It was cut: a time limit, a fragment, the end of the data.
    Truncated,
}

/// Records of one layout, back to back, whole trajectories one after another.
#[derive(Debug, Clone, Default)]
pub struct Trajectories {
    pub(super) layout: Option<Arc<Layout>>,
    pub(super) store: Store,
    /// Extras by field, one for each frame that has it.
    pub(super) extras: BTreeMap<String, Vec<(usize, Extra)>>,
    /// The frame after the last of each trajectory, and how it ended.
    ends: Vec<(usize, End)>,
    pub(super) frames: usize,
    /// Bytes that records and extras may take.
    pub(super) bound: usize,
    pub(super) taken: usize,
    /// The frame that is being added.
    pub(super) adding: Open,
}

impl Trajectories {
    /// None yet, of at most `bound` bytes.
    pub fn new(bound: usize) -> Self {
        Trajectories { bound, ..Trajectories::default() }
    }

    /// The same, with room for `bytes` of records.
    pub(crate) fn with_room(mut self, bytes: usize) -> Self {
        self.store.records.reserve_exact(bytes.min(self.bound));
        self
    }

    /// None yet, of at most `bound` bytes beside those of `tape`: what lies in it stays there.
    pub fn over(tape: Tape, bound: usize) -> Self {
        let store = Store { parts: vec![Part::new(0, tape)], ..Store::default() };
        Trajectories { bound, store, ..Trajectories::default() }
    }

    /// One trajectory of records that are there, with what travels beside them.
    pub fn of_records(
        layout: Arc<Layout>,
        records: Vec<u8>,
        extras: BTreeMap<String, Vec<(usize, Extra)>>,
        end: End,
    ) -> Self {
        let (frames, taken) = (records.len() / layout.size(), records.len());
        let store = Store { records, ..Store::default() };
        let mut all = Trajectories { layout: Some(layout), store, extras, frames, taken, ..Trajectories::default() };
        all.bound = taken;
        all.end(end);
        all
    }

    /// Ends the trajectory after the last frame, unless it has no frames.
    pub fn end(&mut self, how: End) {
        if self.open() > 0 {
            self.ends.push((self.frames, how));
        }
    }

    /// Takes all frames away; those that follow have the same layout.
    #[must_use]
    pub fn take(&mut self) -> Trajectories {
        let empty = Trajectories { layout: self.layout.clone(), bound: self.bound, ..Trajectories::default() };
        std::mem::replace(self, empty)
    }

    /// Adds the trajectories of `next` after these. One without an end here (cut, and the last `dones` not true)
    /// continues there.
    ///
    /// Errors: `WrongSize` where its records have another layout, `TooLarge` beyond the bound; nothing is added then.
    pub fn append(&mut self, next: Trajectories) -> Result<()> {
        let Some(layout) = &next.layout else { return Ok(()) };
        if let Some(own) = self.layout.as_ref().filter(|own| *own != layout) {
            let (one, two) = (own.to_descr(), layout.to_descr());
            return Err(Error::new(Kind::WrongSize, format!("records of {two} after records of {one}")));
        }
        let taken = self.taken.saturating_add(next.taken);
        if taken > self.bound {
            let detail = format!("more than {} bytes of frames; raise the bound if they are real", self.bound);
            return Err(Error::new(Kind::TooLarge, detail));
        }
        let done = |all: &Trajectories| {
            let last = all.frames.checked_sub(1)?;
            Some(all.field(last, "dones")?.iter().any(|b| *b != 0))
        };
        if done(self) == Some(false) && self.ends.last() == Some(&(self.frames, End::Truncated)) {
            self.ends.pop();
        }
        if self.store.parts.is_empty() != next.store.parts.is_empty() && self.frames > 0 {
            return Err(Error::new(Kind::Unsupported, "frames that were copied after frames that were not"));
        }
        self.layout.get_or_insert_with(|| layout.clone());
        if self.store.records.is_empty() {
            self.store.records = next.store.records;
        } else {
            self.store.records.extend_from_slice(&next.store.records);
        }
        let parts = next.store.parts.into_iter();
        self.store.parts.extend(parts.map(|part| part.after(self.frames)));
        for (name, extras) in next.extras {
            let own = self.extras.entry(name).or_default();
            own.extend(extras.into_iter().map(|(frame, extra)| (frame + self.frames, extra)));
        }
        self.ends.extend(next.ends.iter().map(|(end, how)| (end + self.frames, *how)));
        self.frames += next.frames;
        self.taken = taken;
        Ok(())
    }

    /// Frames since the last end.
    pub fn open(&self) -> usize {
        self.frames - self.ends.last().map_or(0, |(end, _)| *end)
    }

    /// The layout, once there is a frame.
    pub fn layout(&self) -> Option<&Arc<Layout>> {
        self.layout.as_ref()
    }

    /// All records, back to back; none where frames were left where they lie ([`Trajectories::over`]).
    pub fn records(&self) -> &[u8] {
        &self.store.records
    }

    /// All records, as [`Trajectories::records`].
    pub(crate) fn into_records(self) -> Vec<u8> {
        self.store.records
    }

    /// Lets go of what travels beside the records.
    pub(crate) fn forget_extras(&mut self) {
        self.extras = BTreeMap::new();
    }

    /// Bytes of memory that places take where frames were left where they lie, with what lies nowhere there.
    pub(crate) fn beside(&self) -> usize {
        self.store.parts.iter().map(|part| part.places.takes()).sum()
    }

    /// Where the fields lie in the bytes of the one shard over which the frames were left; none where they were not, or over several.
    pub(crate) fn places(&self) -> Option<&Places> {
        match self.store.parts.as_slice() {
            [part] => Some(&part.places),
            _ => None,
        }
    }

    /// The bytes of field number `slot` in one frame.
    pub(crate) fn nth_field(&self, frame: usize, slot: usize) -> Option<&[u8]> {
        self.store.field(self.layout.as_ref()?, frame, slot)
    }

    /// Writes the records of some frames to the start of `out`, whose padding is left as it is.
    ///
    /// Errors: `Missing` where there are no such frames, `WrongSize` where `out` is too short.
    pub fn copy_records(&self, frames: Range<usize>, out: &mut [u8]) -> Result<()> {
        let Some(layout) = self.layout.as_ref().filter(|_| frames.end <= self.frames) else {
            if frames.is_empty() && frames.end <= self.frames {
                return Ok(());
            }
            return Err(Error::new(Kind::Missing, format!("there are {} frames", self.frames)));
        };
        if out.len() < frames.len() * layout.size() {
            return Err(Error::new(Kind::WrongSize, format!("{} bytes for {} records", out.len(), frames.len())));
        }
        self.store.copy(layout, frames, out);
        Ok(())
    }

    /// Writes one field of some frames, back to back, to the start of `out`.
    ///
    /// Errors: `Missing` for a field or frame that is not there, `WrongSize` where `out` is too short.
    pub fn gather(&self, name: &str, frames: impl Iterator<Item = usize>, out: &mut [u8]) -> Result<()> {
        let missing = || Error::new(Kind::Missing, format!("there is no field `{name}`"));
        let layout = self.layout.as_ref().ok_or_else(missing)?;
        let slot = layout.fields().iter().position(|field| field.name == name).ok_or_else(missing)?;
        let size = layout.fields()[slot].bytes();
        let mut rest = out;
        for frame in frames {
            let bytes = self.store.field(layout, frame, slot).filter(|_| frame < self.frames);
            let bytes = bytes.ok_or_else(|| Error::new(Kind::Missing, format!("there are {} frames", self.frames)))?;
            let short = || Error::new(Kind::WrongSize, "more frames than there is room for");
            let (to, after) = rest.split_at_mut_checked(size).ok_or_else(short)?;
            to.copy_from_slice(bytes);
            rest = after;
        }
        Ok(())
    }

    /// How many frames there are.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The frame after the last of each trajectory, and how it ended.
    pub fn ends(&self) -> &[(usize, End)] {
        &self.ends
    }

    /// The frames of trajectory `i`.
    pub fn span(&self, i: usize) -> Option<Range<usize>> {
        let end = self.ends.get(i)?.0;
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before].0);
        Some(start..end)
    }

    /// The extras of a field: frame and value.
    pub fn extras(&self) -> &BTreeMap<String, Vec<(usize, Extra)>> {
        &self.extras
    }

    /// The bytes of a field in one frame.
    pub fn field(&self, frame: usize, name: &str) -> Option<&[u8]> {
        let layout = self.layout.as_ref().filter(|_| frame < self.frames)?;
        let slot = layout.fields().iter().position(|field| field.name == name)?;
        self.store.field(layout, frame, slot)
    }
}

/// Maximum number of arrays of a frame.
const MAX_FIELDS: usize = 4096;

/// Maximum number of axes of a field: a column of it has one more, and older releases of NumPy have 32.
const MAX_AXES: usize = 31;

/// The aligned, little-endian layout of some fields, in their order.
///
/// Errors: `Empty` without any; `Corrupt` where two share a name; `TooLarge` for too many; `Unsupported` for fields that NumPy's
/// records cannot have.
pub fn layout<'a>(fields: impl Iterator<Item = (&'a str, Scalar, &'a [usize])>) -> Result<Layout> {
    let (mut placed, mut offset) = (Vec::new(), 0usize);
    for (name, scalar, shape) in fields {
        if placed.len() == MAX_FIELDS {
            return Err(Error::new(Kind::TooLarge, format!("a frame of more than {MAX_FIELDS} arrays")));
        }
        let narrow = |n: usize| i32::try_from(n).is_ok();
        if shape.len() > MAX_AXES || !shape.iter().all(|dim| narrow(*dim)) || !narrow(scalar.size()) {
            let detail = format!(
                "the field `{}` is {} {shape:?}: no record of NumPy has elements of 2^31 bytes, axes of that length or more than \
                 {MAX_AXES} of them",
                shown(name),
                scalar.code()
            );
            return Err(Error::new(Kind::Unsupported, detail));
        }
        offset = offset.next_multiple_of(scalar.swap_unit().max(1));
        let dtype = DType::Scalar(scalar, Order::Little);
        let bytes = shape.iter().try_fold(scalar.size(), |n, dim| n.checked_mul(*dim));
        let field = Field { name: name.to_owned(), dtype, shape: shape.to_vec(), offset };
        offset = bytes
            .and_then(|bytes| offset.checked_add(bytes))
            .ok_or_else(|| Error::new(Kind::TooLarge, format!("the field `{}` of shape {shape:?}", shown(name))))?;
        placed.push(field);
    }
    if placed.is_empty() {
        return Err(Error::new(Kind::Empty, "a frame without a single array"));
    }
    Layout::new(placed, offset.next_multiple_of(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn frame(obs: &[u8], act: f32) -> Vec<(String, Value<'_>)> {
        let obs = Value::Array { scalar: Scalar::U8, shape: vec![obs.len()], bytes: obs.into() };
        let act = Value::scalar(Scalar::F32, &act.to_le_bytes());
        vec![("obs".into(), obs), ("acts".into(), act), ("infos".into(), Value::Extra(Extra::Text("hi".into())))]
    }

    #[test]
    fn frames_become_aligned_records_with_extras_beside_them() {
        let mut all = Trajectories::new(1 << 10);
        all.push(frame(&[1, 2, 3], 0.5)).unwrap();
        all.end(End::Terminated);
        all.end(End::Truncated);
        all.push(frame(&[4, 5, 6], 1.5)).unwrap();
        all.push(frame(&[7, 8, 9], 2.5)).unwrap();
        all.end(End::Truncated);
        assert_eq!(all.layout().unwrap().to_descr(), "[('obs', '|u1', (3,)), ('', '|V1'), ('acts', '<f4')]");
        assert_eq!(all.ends(), [(1, End::Terminated), (3, End::Truncated)]);
        assert_eq!((all.span(1), all.span(2)), (Some(1..3), None));
        assert_eq!(all.field(2, "acts"), Some(&2.5f32.to_le_bytes()[..]));
        assert_eq!(all.field(1, "obs"), Some(&[4, 5, 6][..]));
        assert_eq!(all.extras()["infos"].len(), 3);
    }

    #[test]
    fn frames_that_differ_are_refused_and_leave_nothing() {
        let mut all = Trajectories::new(100);
        all.push(frame(&[1, 2, 3], 0.5)).unwrap();
        assert_eq!(all.push(frame(&[1, 2], 0.5)).unwrap_err().kind(), Kind::WrongSize);
        assert_eq!(all.push(frame(&[1, 2, 3], 0.5).split_off(1)).unwrap_err().kind(), Kind::Missing);
        let mut more = frame(&[1, 2, 3], 0.5);
        more.push(("rews".into(), Value::scalar(Scalar::F64, &[0; 8])));
        assert_eq!(all.push(more).unwrap_err().kind(), Kind::Missing);
        let mut twice = frame(&[1, 2, 3], 0.5);
        twice.push(("acts".into(), Value::scalar(Scalar::F32, &[0; 4])));
        assert_eq!(all.push(twice).unwrap_err().kind(), Kind::Corrupt);
        assert_eq!((all.frames(), all.records().len()), (1, 8));
        while all.frames() < 100 {
            if let Err(e) = all.push(frame(&[1, 2, 3], 0.5)) {
                assert_eq!(e.kind(), Kind::TooLarge);
                return;
            }
        }
        panic!("the bound was not kept");
    }
}
