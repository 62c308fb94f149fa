//! The frames of a shard -> their records as plain bytes, without a copy: fields stay in the tar, and a span of records is gathered
//! where it is wanted. Padding is zero.

use std::ops::Range;
use std::sync::Arc;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Layout;
use gristmill_bytes::plain::{Plain, Scattered};
use gristmill_bytes::source::{Span, span_len};
use xxhash_rust::xxh3::Xxh3Default;

use super::apart::Apart;
use crate::trajectory::Trajectories;

/// Records are read where they lie if their places take at most one byte for this number of bytes of records.
const PER_PLACE: usize = 64;

/// Zero bytes between fields.
const PADDING: [u8; 64] = [0; 64];

/// The unpacked bytes of a shard.
#[derive(Debug, Clone)]
pub(super) struct Tar(pub(super) Arc<Vec<u8>>);

impl AsRef<[u8]> for Tar {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A part of each record.
#[derive(Debug, Clone, Copy)]
pub(super) enum Piece {
    /// The field of this number, and its number of bytes.
    Field(usize, usize),
    /// This number of bytes of padding.
    Padding(usize),
}

/// Records that lie field by field in the bytes of a shard.
#[derive(Debug)]
pub(super) struct Placed {
    tar: Tar,
    all: Trajectories,
    /// Bytes of a record.
    size: usize,
    pieces: Vec<Piece>,
    /// Whether the file itself is the tar.
    stored: bool,
}

impl Placed {
    /// The records of `all`, whose frames were read over `tar`: what is `stored`, or what that unpacks to.
    pub(super) fn new(tar: Tar, mut all: Trajectories, stored: bool) -> Self {
        all.forget_extras();
        let layout = all.layout().cloned();
        let size = layout.as_ref().map_or(0, |layout| layout.size());
        let pieces = layout.map_or_else(Vec::new, |layout| pieces(&layout));
        Placed { tar, all, size, pieces, stored }
    }

    /// Gives the bytes of a record, one after another.
    fn each(&self, frame: usize, mut to: impl FnMut(&[u8])) {
        for piece in &self.pieces {
            match *piece {
                Piece::Field(slot, _) => to(self.all.nth_field(frame, slot).unwrap_or_default()),
                Piece::Padding(mut len) => {
                    while len > 0 {
                        let some = len.min(PADDING.len());
                        to(&PADDING[..some]);
                        len -= some;
                    }
                }
            }
        }
    }

    fn frames(&self) -> usize {
        self.all.frames()
    }

    /// XXH3-64 of the records of some frames.
    fn sum(&self, frames: Range<usize>) -> u64 {
        let mut hash = Xxh3Default::new();
        frames.for_each(|frame| self.each(frame, |bytes| hash.update(bytes)));
        hash.digest()
    }

    /// The frames whose records a span of whole records has.
    fn frames_of(&self, span: Span) -> Range<usize> {
        let size = self.size.max(1);
        let first = span.offset as usize / size;
        first..first + span.len as usize / size
    }
}

fn pieces(layout: &Layout) -> Vec<Piece> {
    let mut slots: Vec<usize> = (0..layout.fields().len()).collect();
    slots.sort_by_key(|slot| layout.fields()[*slot].offset);
    let (mut pieces, mut at) = (Vec::new(), 0);
    for slot in slots {
        let field = &layout.fields()[slot];
        pieces.extend((field.offset > at).then(|| Piece::Padding(field.offset - at)));
        pieces.push(Piece::Field(slot, field.bytes()));
        at = field.offset + field.bytes();
    }
    pieces.extend((layout.size() > at).then(|| Piece::Padding(layout.size() - at)));
    pieces
}

impl Plain for Placed {
    fn len(&self) -> usize {
        self.frames() * self.size
    }

    fn takes(&self) -> usize {
        self.tar.0.capacity() + self.all.beside()
    }

    fn read(&self, span: Span, most: u64, buf: &mut Vec<u8>) -> Result<()> {
        let len = span_len(Plain::len(self) as u64, span, most)?;
        let (size, first) = (self.size.max(1), span.offset as usize);
        if !first.is_multiple_of(size) || !len.is_multiple_of(size) {
            return Err(Error::new(Kind::WrongSize, format!("{len} bytes of records of {size}")).at_byte(span.offset));
        }
        buf.clear();
        buf.reserve_exact(len);
        for frame in self.frames_of(Span { len: len as u64, ..span }) {
            self.each(frame, |bytes| buf.extend_from_slice(bytes));
        }
        Ok(())
    }

    fn digest(&self) -> u64 {
        self.sum(0..self.frames())
    }

    fn scattered(&self, spans: &mut dyn Iterator<Item = Span>) -> Option<Box<dyn Scattered>> {
        let places = self.all.places().filter(|_| self.stored)?.clone();
        if places.takes() > Plain::len(self) / PER_PLACE {
            return None;
        }
        let fields = self.all.layout()?.fields().len();
        let sums = spans.map(|span| (span, self.sum(self.frames_of(span)))).collect();
        Some(Box::new(Apart { places, fields, size: self.size, pieces: self.pieces.clone(), sums }))
    }

    fn into_bytes(self: Box<Self>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Plain::len(&*self));
        (0..self.frames()).for_each(|frame| self.each(frame, |part| bytes.extend_from_slice(part)));
        bytes
    }

    fn into_room(self: Box<Self>) -> Vec<u8> {
        let Placed { tar, all, .. } = *self;
        drop(all);
        Arc::into_inner(tar.0).unwrap_or_default()
    }
}
