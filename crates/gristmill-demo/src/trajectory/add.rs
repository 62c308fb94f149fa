//! One frame, field by field -> the record after those that are there. The first frame decides the layout.
//! A field is copied once, to its place; a frame that turns out to lack something leaves nothing behind.

use std::ops::Range;
use std::sync::Arc;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Field, Layout, Order, Scalar};

use super::held::{Trajectories, layout};
use super::store::Tape;
use crate::names::shown;
use crate::value::{Extra, Value};

/// A frame that is being added.
#[derive(Debug, Clone, Default)]
pub(super) struct Open {
    /// Where its record starts.
    start: usize,
    /// Which fields have come.
    filled: Vec<bool>,
    /// The field that is expected next: fields come in the same order in every frame.
    next: usize,
    /// Of the first frame, whose layout is not known yet: its arrays.
    first: Vec<(String, Scalar, Vec<usize>, Waiting)>,
    extras: Vec<(String, Extra)>,
    /// Bytes of the extras.
    beside: usize,
}

/// An array of the first frame.
#[derive(Debug, Clone)]
enum Waiting {
    Copied(Vec<u8>),
    /// Left where it lies.
    Taped(Tape, Range<usize>),
}

impl Waiting {
    fn bytes(&self) -> &[u8] {
        match self {
            Waiting::Copied(bytes) => bytes,
            Waiting::Taped(tape, range) => &tape.bytes()[range.clone()],
        }
    }
}

impl Trajectories {
    /// Adds one frame. Fields of no fixed size become extras; of the others the first frame fixes names, types and shapes.
    ///
    /// Errors: `Missing` for a field that this frame lacks or the first one did not have, `WrongSize` for another shape or
    /// type, `Corrupt` for a field twice, `Empty` for a frame without arrays, `TooLarge` beyond the bound. Nothing is added then.
    pub fn push(&mut self, values: Vec<(String, Value<'_>)>) -> Result<()> {
        self.begin();
        for (name, value) in values {
            match value {
                Value::Array { scalar, shape, bytes } => self.array(&name, scalar, &shape, &bytes)?,
                Value::Extra(extra) => self.extra(name, extra)?,
            }
        }
        self.commit()
    }

    /// Adds a frame of other trajectories, as it is.
    ///
    /// Errors: as [`Trajectories::push`]; `Missing` for a frame that is not there.
    pub fn push_from(&mut self, all: &Trajectories, frame: usize) -> Result<()> {
        let layout = all.layout.clone().filter(|_| frame < all.frames);
        let layout = layout.ok_or_else(|| Error::new(Kind::Missing, format!("there are {} frames", all.frames)))?;
        self.begin();
        for field in layout.fields() {
            let bytes = all.field(frame, &field.name).unwrap_or_default();
            if let DType::Scalar(scalar, _) = field.dtype {
                self.array(&field.name, scalar, &field.shape, bytes)?;
            }
        }
        for (name, known) in &all.extras {
            if let Ok(at) = known.binary_search_by_key(&frame, |(frame, _)| *frame) {
                self.extra(name.clone(), known[at].1.clone())?;
            }
        }
        self.commit()
    }

    /// Begins a frame; one that was begun and not committed is gone.
    pub fn begin(&mut self) {
        self.abandon();
        self.adding.start = self.store.records.len();
        self.adding.next = 0;
        self.adding.filled.clear();
        self.adding.filled.resize(self.layout.as_ref().map_or(0, |layout| layout.fields().len()), false);
    }

    /// Adds an array to the frame: little-endian, in C order.
    ///
    /// Errors: as [`Trajectories::push`]; the frame is gone then.
    pub fn array(&mut self, name: &str, scalar: Scalar, shape: &[usize], bytes: &[u8]) -> Result<()> {
        let Some(layout) = self.layout.clone() else {
            let taken: usize = self.adding.first.iter().map(|(.., waiting)| waiting.bytes().len()).sum();
            self.bounded(taken + bytes.len())?;
            let tape = self.store.parts.last().map(|part| part.tape.clone());
            let taped = tape.and_then(|tape| tape.place(bytes).map(|range| Waiting::Taped(tape, range)));
            let waiting = taped.unwrap_or_else(|| Waiting::Copied(bytes.to_vec()));
            self.adding.first.push((name.to_owned(), scalar, shape.to_vec(), waiting));
            return Ok(());
        };
        let placed = self.place(&layout, name, scalar, shape, bytes);
        if placed.is_err() {
            self.abandon();
        }
        placed
    }

    /// Adds to the frame what has no fixed size.
    ///
    /// Errors: `TooLarge` beyond the bound; the frame is gone then.
    pub fn extra(&mut self, name: String, extra: Extra) -> Result<()> {
        self.adding.beside = self.adding.beside.saturating_add(size_of::<(usize, Extra)>() + extra.len());
        self.bounded(0)?;
        self.adding.extras.push((name, extra));
        Ok(())
    }

    /// Ends the frame.
    ///
    /// Errors: as [`Trajectories::push`]; the frame is gone then.
    pub fn commit(&mut self) -> Result<()> {
        let layout = match &self.layout {
            Some(layout) => layout.clone(),
            None => self.first_frame()?,
        };
        if let Some(i) = self.adding.filled.iter().position(|filled| !filled) {
            let detail = format!("the field `{}` of the frames before is absent", shown(&layout.fields()[i].name));
            self.abandon();
            return Err(Error::new(Kind::Missing, detail));
        }
        match self.store.parts.last_mut() {
            Some(part) => part.settle(self.frames + 1 - part.first, layout.fields().len(), true),
            None => {
                self.bounded(layout.size())?;
                self.store.records.resize(self.adding.start + layout.size(), 0);
                self.taken += layout.size();
            }
        }
        self.taken += self.adding.beside;
        self.adding.beside = 0;
        for (name, extra) in self.adding.extras.drain(..) {
            match self.extras.get_mut(&name) {
                Some(known) => known.push((self.frames, extra)),
                None => _ = self.extras.insert(name, vec![(self.frames, extra)]),
            }
        }
        self.adding.start = self.store.records.len();
        self.frames += 1;
        Ok(())
    }

    /// Takes back what came of a frame.
    pub fn abandon(&mut self) {
        let (fields, size) = self.layout.as_ref().map_or((0, 0), |layout| (layout.fields().len(), layout.size()));
        match self.store.parts.last_mut() {
            Some(part) => part.settle(self.frames - part.first, fields, false),
            None => self.store.records.truncate(self.frames * size),
        }
        self.adding.first.clear();
        self.adding.extras.clear();
        self.adding.beside = 0;
    }

    /// Makes the layout of the first frame, and its record.
    fn first_frame(&mut self) -> Result<Arc<Layout>> {
        let first = std::mem::take(&mut self.adding.first);
        let made = layout(first.iter().map(|(name, scalar, shape, _)| (name.as_str(), *scalar, &shape[..])));
        let made = made.and_then(|layout| self.bounded(layout.size()).map(|()| Arc::new(layout)));
        let layout = match made {
            Ok(layout) => layout,
            Err(e) => {
                self.abandon();
                return Err(e);
            }
        };
        self.adding.filled.resize(layout.fields().len(), false);
        for (name, scalar, shape, waiting) in &first {
            if let Err(e) = self.place(&layout, name, *scalar, shape, waiting.bytes()) {
                self.abandon();
                return Err(e);
            }
        }
        Ok(self.layout.insert(layout).clone())
    }

    fn place(&mut self, layout: &Layout, name: &str, scalar: Scalar, shape: &[usize], bytes: &[u8]) -> Result<()> {
        let fields = layout.fields();
        let expected = fields.get(self.adding.next).filter(|field| field.name == name).map(|_| self.adding.next);
        let slot = expected.or_else(|| fields.iter().position(|field| field.name == name));
        let Some(slot) = slot else {
            return Err(Error::new(Kind::Missing, format!("the frames before have no field `{}`", shown(name))));
        };
        let field = &fields[slot];
        if field.dtype != DType::Scalar(scalar, Order::Little) || field.shape != shape || bytes.len() != field.bytes() {
            return Err(differs(field, scalar, shape));
        }
        if std::mem::replace(&mut self.adding.filled[slot], true) {
            return Err(Error::new(Kind::Corrupt, format!("the frame has its field `{}` twice", shown(name))));
        }
        self.adding.next = slot + 1;
        if let Some(part) = self.store.parts.last_mut() {
            self.adding.beside += part.note(self.frames - part.first, fields.len(), slot, bytes);
            return self.bounded(0);
        }
        if self.store.records.len() == self.adding.start {
            self.bounded(layout.size())?;
        }
        let (records, at) = (&mut self.store.records, self.adding.start + field.offset);
        if records.len() <= at {
            // Fields in their order: nothing is written twice.
            records.resize(at, 0);
            records.extend_from_slice(bytes);
        } else {
            let end = at + bytes.len();
            records.resize(records.len().max(end), 0);
            records[at..end].copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Refuses a frame of `more` bytes, its extras not counted, that does not fit any more.
    fn bounded(&mut self, more: usize) -> Result<()> {
        if self.taken.saturating_add(more).saturating_add(self.adding.beside) > self.bound {
            let detail = format!("more than {} bytes of frames; raise the bound if they are real", self.bound);
            self.abandon();
            return Err(Error::new(Kind::TooLarge, detail));
        }
        Ok(())
    }
}

fn differs(field: &Field, scalar: Scalar, shape: &[usize]) -> Error {
    let DType::Scalar(known, _) = field.dtype else {
        return Error::new(Kind::WrongSize, format!("field `{}`: records within records", shown(&field.name)));
    };
    let detail = format!(
        "field `{}`: {} {shape:?}, but {} {:?} in the frames before",
        shown(&field.name),
        scalar.code(),
        known.code(),
        field.shape
    );
    Error::new(Kind::WrongSize, detail)
}
