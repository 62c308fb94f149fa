//! A plain shard -> where each frame lies and where trajectories end, by one pass over headers and small members; and the
//! frames at such places. Reads only the members of the requested frames.

use gristmill_bytes::container::tar::{Blocks, Held, Member, Members, TarLimits, Windows};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::{ReadAt, Span, read_span};

use super::group::{Grouper, Role};
use super::member;
use super::meta::ShardMeta;
use super::reader::{DONES, FRAME, Number, Reader, note, order_of_time};
use crate::names::shown;
use crate::trajectory::{End, Trajectories};
use crate::value::Value;

/// Bytes read at a time where most are passed over.
const GLANCE: usize = 4096;

/// Most bytes that are reserved for records before they are read.
const RESERVED: usize = 8 << 20;

/// What makes the trajectories of a plain shard reachable one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShardIndex {
    /// From the first header of each frame to the end of its last member, in order of time.
    pub frames: Vec<Span>,
    /// The frame after the last of each trajectory, and how it ended.
    pub ends: Vec<(usize, End)>,
    /// The metadata member's payload.
    pub meta: Option<Span>,
    /// Whether the frames are stored in another order than that of time.
    pub shuffled: bool,
    /// What comes after the end mark of the tar.
    pub behind: Option<Error>,
}

impl ShardIndex {
    /// Looks through a plain tar: all headers, and the members `dones` and `frame`. `None` for one whose members cannot be read
    /// alone, since a global header says something of all of them.
    ///
    /// Errors, with member and byte: whatever is wrong with the tar, its names, those two members or the metadata.
    /// Everything else in the frames is checked when they are read.
    pub fn scan(from: &(impl ReadAt + ?Sized), max: usize) -> Result<Option<ShardIndex>> {
        let mut members = Members::new(Windows::new(from, GLANCE)?, TarLimits::default()).lenient(true);
        let (mut index, mut grouper, mut frames) = (ShardIndex::default(), Grouper::default(), Vec::<Seen>::new());
        let mut meta: Option<ShardMeta> = None;
        let mut payload = Vec::new();
        while let Some(member) = members.following()? {
            if members.depend() {
                return Ok(None);
            }
            let place = |e: Error| {
                let at = e.place().offset.unwrap_or(0) + member.offset;
                Error::new(e.kind(), e.detail()).in_member(shown(&member.name)).at_byte(at)
            };
            let Some(part) = grouper.next(&member.name).map_err(place)? else { continue };
            if part.role == Role::Metadata {
                members.blocks().read(member.offset, bounded(&member, max).map_err(place)?, &mut payload)?;
                let found = ShardMeta::parse(&payload, max).map_err(place)?;
                found.follows(meta.as_ref(), frames.len()).map_err(place)?;
                index.meta.get_or_insert(Span { offset: member.offset, len: member.len });
                meta.get_or_insert(found);
                continue;
            }
            if part.role == Role::Begins {
                frames.push(Seen { span: Span { offset: member.header, len: 0 }, ..Seen::default() });
            }
            let number = frames.len() - 1;
            let Some(frame) = frames.last_mut() else { continue };
            frame.span.len = member.offset + member.len - frame.span.offset;
            if part.field == DONES || part.field == FRAME {
                members.blocks().read(member.offset, bounded(&member, max).map_err(place)?, &mut payload)?;
                let noted = frame.look(&member, &part.field, &part.suffix, &payload, max);
                noted.map_err(|e| place(e).in_frame(number))?;
            }
        }
        index.behind = members.behind();
        index.settle(&frames)?;
        Ok(Some(index))
    }

    /// Puts frames into order of time and ends trajectories.
    fn settle(&mut self, frames: &[Seen]) -> Result<()> {
        let numbers: Option<Vec<Number>> = frames.iter().map(|frame| frame.number).collect();
        let order = numbers.map(|numbers| order_of_time(&numbers)).transpose()?.flatten();
        self.shuffled = order.is_some();
        for i in 0..frames.len() {
            let frame = &frames[order.as_ref().map_or(i, |order| order[i])];
            self.frames.push(frame.span);
            if frame.done {
                self.ends.push((self.frames.len(), End::Terminated));
            }
        }
        let ended = self.ends.last().map_or(0, |(end, _)| *end);
        if ended < self.frames.len() {
            self.ends.push((self.frames.len(), End::Truncated));
        }
        Ok(())
    }

    /// Whether the episode of the last frame continues after it.
    pub fn goes_on(&self) -> bool {
        self.ends.last().is_some_and(|(_, how)| *how == End::Truncated)
    }
}

/// What the headers and small members say of a frame.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    span: Span,
    done: bool,
    number: Option<Number>,
}

impl Seen {
    fn look(&mut self, member: &Member, field: &str, suffix: &str, bytes: &[u8], max: usize) -> Result<()> {
        let read = member::read(&member.name, field, suffix, bytes, max)?;
        let mut values = Vec::new();
        read.values(field, &mut values)?;
        for (name, value) in values {
            let Value::Array { scalar, bytes, .. } = value else { continue };
            if name == DONES {
                self.done = bytes.iter().any(|b| *b != 0);
            } else if name == FRAME {
                let mut number = Some(Vec::new());
                note(&mut number, scalar, &bytes, member.offset)?;
                self.number = number.and_then(|numbers| numbers.first().copied());
            }
        }
        Ok(())
    }
}

fn bounded(member: &Member, max: usize) -> Result<u64> {
    match usize::try_from(member.len).is_ok_and(|len| len <= max) {
        true => Ok(member.len),
        false => Err(Error::new(Kind::TooLarge, format!("a member of {} bytes; the bound is {max}", member.len))),
    }
}

/// Reads the frames that lie at `places`, the first of which has number `first`; those of one field alone where `only` names it.
/// No trajectory is ended but by `dones`.
///
/// Errors, with member, frame and byte: as [`super::Shard::read`]; `Corrupt` where something else lies there.
pub fn read_frames(
    from: &(impl ReadAt + ?Sized),
    places: &[Span],
    first: usize,
    only: Option<&str>,
    max: usize,
) -> Result<Trajectories> {
    // Records are shorter than what they lie in. Memory that grows would be copied, and touched page by page.
    let room = if only.is_none() { places.iter().fold(0, |sum: u64, place| sum.saturating_add(place.len)) } else { 0 };
    let all = Trajectories::new(max).with_room(usize::try_from(room).unwrap_or(RESERVED).min(RESERVED));
    let mut reader = Reader::new(all, max).starting_at(first);
    let (limits, mut held) = (TarLimits::default(), Vec::new());
    for (number, place) in (first..).zip(places) {
        let until = place.offset.saturating_add(place.len);
        if let Some(field) = only {
            let mut members = Members::within(Windows::new(from, GLANCE)?, limits, place.offset, until);
            let mut found = false;
            while let Some(member) = members.following()? {
                if Grouper::default().next(&member.name)?.is_some_and(|part| part.gives(field)) {
                    members.blocks().read(member.offset, bounded(&member, max)?, &mut held)?;
                    reader.member(&member, &held)?;
                    found = true;
                }
            }
            if !found {
                let detail = format!("the field `{field}` of the frames before is absent");
                return Err(Error::new(Kind::Missing, detail).in_frame(number).at_byte(place.offset));
            }
        } else {
            read_span(from, *place, max as u64, &mut held)?;
            let tape = Held { bytes: &held, base: place.offset };
            let mut members = Members::within(tape, limits, place.offset, until);
            while let Some(member) = members.following()? {
                reader.member(&member, members.blocks().payload(member.offset, member.len)?)?;
            }
        }
    }
    reader.finish()?;
    if reader.to.frames() != places.len() {
        let detail =
            format!("{} frames where {} were indexed: the shard has changed", reader.to.frames(), places.len());
        return Err(Error::new(Kind::Corrupt, detail).in_frame(first));
    }
    Ok(reader.to)
}
