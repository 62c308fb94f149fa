//! The members of a shard, one after another -> its frames. Each member is read once, and an array copied once: to its
//! record. What a frame stores like the one before is compared instead of parsed.

use gristmill_bytes::container::pickle::Pattern;
use gristmill_bytes::container::tar::Member;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Scalar;

use super::group::{Grouper, Part, Role};
use super::member;
use super::meta::ShardMeta;
use crate::names::shown;
use crate::trajectory::{End, Trajectories};
use crate::value::{Extra, Value};

/// Field that ends an episode.
pub(super) const DONES: &str = "dones";

/// Field that says which step a frame is, where frames are stored in another order.
pub(super) const FRAME: &str = "frame";

/// Frames that are being read.
#[derive(Debug)]
pub(super) struct Reader {
    max: usize,
    grouper: Grouper,
    /// What the shard says about itself.
    pub(super) meta: Option<ShardMeta>,
    /// The frames so far, in the order of the tar, trajectories ended where they ended.
    pub(super) to: Trajectories,
    /// Whether a frame is open; how many of its members have come, and name and byte of the last.
    open: bool,
    place: usize,
    last: (String, u64),
    /// How the members of the frames before were written, by their place in the frame.
    known: Vec<Option<Known>>,
    /// The number that each frame gives itself; `None` once one gives none.
    pub(super) numbers: Option<Vec<Number>>,
    /// Frames that were begun, and how many were there before the first of them.
    frames: usize,
    before: usize,
    /// Bytes of records that are given away together.
    block: usize,
    /// What is to be given away.
    ready: Option<Trajectories>,
    /// Members that are not data by their names.
    pub(super) ignored: usize,
}

/// A member that was an array or a NumPy scalar, little-endian and in C order.
#[derive(Debug)]
struct Known {
    field: String,
    suffix: String,
    pattern: Pattern,
    scalar: Scalar,
    shape: Vec<usize>,
}

impl Reader {
    /// Reads values of at most `max` bytes into `to`, which is empty.
    pub(super) fn new(to: Trajectories, max: usize) -> Reader {
        Reader {
            max,
            grouper: Grouper::default(),
            meta: None,
            to,
            open: false,
            place: 0,
            last: (String::new(), 0),
            known: Vec::new(),
            numbers: Some(Vec::new()),
            frames: 0,
            before: 0,
            block: usize::MAX,
            ready: None,
            ignored: 0,
        }
    }

    /// The same; the first frame is not the first of its shard: it has this number.
    pub(super) fn starting_at(self, number: usize) -> Reader {
        Reader { before: number, ..self }
    }

    /// The same, which gives frames away as soon as there are `bytes` of records.
    pub(super) fn in_blocks(self, bytes: usize) -> Reader {
        Reader { block: bytes, ..self }
    }

    /// Frames that are to be taken away.
    pub(super) fn ready(&mut self) -> Option<Trajectories> {
        self.ready.take()
    }

    /// Takes the next member in.
    ///
    /// Errors, with member, frame and byte: as [`super::Shard::read`]; nothing can be read after one.
    pub(super) fn member(&mut self, member: &Member, bytes: &[u8]) -> Result<()> {
        let place = |e: Error| e.in_member(shown(&member.name)).at_byte(member.offset);
        let Some(part) = self.grouper.next(&member.name).map_err(place)? else {
            self.ignored += 1;
            return Ok(());
        };
        match part.role {
            Role::Metadata => return self.metadata(bytes).map_err(place),
            Role::Begins => {
                self.end_frame()?;
                self.begin_frame(part.key).map_err(place)?;
            }
            Role::GoesOn => {}
        }
        let within = |e: Error| {
            let at = e.place().offset.unwrap_or(0) + member.offset;
            // An array within a member has a name of its own.
            let name = e.place().member.as_deref().unwrap_or(&member.name);
            Error::new(e.kind(), e.detail()).in_member(shown(name)).at_byte(at)
        };
        let number = self.before + self.frames - 1;
        self.field(&part, member, bytes).map_err(|e| within(e).in_frame(number))?;
        self.place += 1;
        self.last.0.clone_from(&member.name);
        self.last.1 = member.offset;
        Ok(())
    }

    /// Ends the last frame; the tar is over. What no `dones` ended is left open.
    ///
    /// Errors: as [`Reader::member`].
    pub(super) fn finish(&mut self) -> Result<()> {
        self.end_frame()
    }

    fn begin_frame(&mut self, key: &str) -> Result<()> {
        self.to.begin();
        self.open = true;
        self.place = 0;
        self.frames += 1;
        self.to.extra("__key__".to_owned(), Extra::Text(key.to_owned()))
    }

    fn end_frame(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.open) {
            return Ok(());
        }
        let number = self.before + self.frames - 1;
        let (last, at) = (&self.last.0, self.last.1);
        self.to.commit().map_err(|e| e.in_frame(number).in_member(shown(last)).at_byte(at))?;
        let numbered = |numbers: &Vec<Number>| numbers.len() == self.frames;
        self.numbers = self.numbers.take().filter(numbered);
        if is_done(&self.to, self.to.frames() - 1) {
            self.to.end(End::Terminated);
        }
        if self.to.records().len() >= self.block {
            self.ready = Some(self.to.take());
        }
        Ok(())
    }

    fn field(&mut self, part: &Part<'_>, member: &Member, bytes: &[u8]) -> Result<()> {
        if let Some(Some(known)) = self.known.get(self.place)
            && known.field == part.field
            && known.suffix == part.suffix
            && let Some(own) = known.pattern.fits(bytes)
        {
            if part.field == FRAME {
                note(&mut self.numbers, known.scalar, own, member.offset)?;
            }
            return self.to.array(&known.field, known.scalar, &known.shape, own);
        }
        let read = member::read(&member.name, &part.field, &part.suffix, bytes, self.max)?;
        let mut values = Vec::new();
        read.values(&part.field, &mut values)?;
        if let [(field, Value::Array { scalar, shape, bytes: std::borrow::Cow::Borrowed(own) })] = values.as_slice()
            && let Some(pattern) = read.pattern(bytes, own)
            && pattern.fits(bytes) == Some(own)
        {
            if self.known.len() <= self.place {
                self.known.resize_with(self.place + 1, || None);
            }
            let (field, shape) = (field.clone(), shape.clone());
            let suffix = part.suffix.clone().into_owned();
            self.known[self.place] = Some(Known { field, suffix, pattern, scalar: *scalar, shape });
        }
        for (field, value) in values {
            match value {
                Value::Array { scalar, shape, bytes } => {
                    if field == FRAME {
                        note(&mut self.numbers, scalar, &bytes, member.offset)?;
                    }
                    self.to.array(&field, scalar, &shape, &bytes)?;
                }
                Value::Extra(extra) => self.to.extra(field, extra)?,
            }
        }
        Ok(())
    }

    /// The metadata must come first; where shards were joined, all must say the same.
    fn metadata(&mut self, bytes: &[u8]) -> Result<()> {
        let found = ShardMeta::parse(bytes, self.max)?;
        found.follows(self.meta.as_ref(), self.frames)?;
        self.meta.get_or_insert(found);
        Ok(())
    }
}

/// The number that a frame gives itself, and the byte of its member.
pub(super) type Number = (f64, u64);

/// Notes the number of a frame.
pub(super) fn note(numbers: &mut Option<Vec<Number>>, scalar: Scalar, bytes: &[u8], at: u64) -> Result<()> {
    if scalar == Scalar::F64 {
        *numbers = None;
        return Ok(());
    }
    let number = scalar.number(bytes);
    let number = number.ok_or_else(|| Error::new(Kind::Corrupt, "expected the number of the frame"))?;
    if let Some(numbers) = numbers {
        numbers.push((number, at));
    }
    Ok(())
}

/// Whether the episode ended with a frame.
pub(super) fn is_done(all: &Trajectories, frame: usize) -> bool {
    all.field(frame, DONES).is_some_and(|bytes| bytes.iter().any(|b| *b != 0))
}

/// The order that the numbers of frames give, where it is another than that of the tar.
///
/// Errors: `Corrupt` where two frames have one number.
pub(super) fn order_of_time(numbers: &[Number]) -> Result<Option<Vec<usize>>> {
    // Joined shards number their frames again, each from 0: an order of their own that is already that of time.
    let joined = numbers.first().is_some_and(|first| first.0 == 0.0);
    if numbers.windows(2).all(|pair| pair[1].0 > pair[0].0 || joined && pair[1].0 == 0.0) {
        return Ok(None);
    }
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|a, b| numbers[*a].0.total_cmp(&numbers[*b].0));
    if let Some(twice) = order.windows(2).find(|pair| numbers[pair[0]].0 == numbers[pair[1]].0) {
        let (number, at) = numbers[twice[1]];
        let detail = format!("two frames are number {number}");
        return Err(Error::new(Kind::Corrupt, detail).in_frame(twice[1]).at_byte(at));
    }
    Ok(Some(order))
}
