//! The members of one tar: where each lies and what it is called, 20-odd bytes each plus the name.
//! Holds no payload and reads nothing.

use crate::error::{Error, Kind, Result};

/// Place of one member, as the index keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// First byte of the payload within the tar.
    pub offset: u64,
    /// Bytes of payload.
    pub len: u64,
    /// Where the name ends in [`TarIndex::names`]; it starts where the previous one ends.
    pub name_end: u32,
}

/// One regular file in the tar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// First byte of the payload within the tar.
    pub offset: u64,
    /// Bytes of payload, as the tar says; the file may end before.
    pub len: u64,
    /// Full name; bytes that are not UTF-8 are replaced.
    pub name: &'a str,
}

impl Entry<'_> {
    /// The part of the name after the last `/`.
    pub fn base_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(self.name)
    }
}

/// All regular files of a tar in file order, and what was wrong on the way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TarIndex {
    names: String,
    slots: Vec<Slot>,
    faults: Vec<Error>,
}

impl TarIndex {
    /// An index from its parts, as kept by a side index.
    ///
    /// Errors: `Corrupt` when offsets do not grow or names do not fit together.
    pub fn from_parts(names: String, slots: Vec<Slot>, faults: Vec<Error>) -> Result<Self> {
        let mut last = (0, 0);
        for (i, slot) in slots.iter().enumerate() {
            let grows = slot.offset > last.0 && slot.name_end >= last.1;
            if !grows || !names.is_char_boundary(slot.name_end as usize) {
                return Err(Error::new(Kind::Corrupt, format!("stored tar index: member {i} is out of order")));
            }
            last = (slot.offset, slot.name_end);
        }
        if last.1 as usize != names.len() {
            return Err(Error::new(Kind::Corrupt, "stored tar index: names left over"));
        }
        Ok(TarIndex { names, slots, faults })
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Member `i`.
    pub fn get(&self, i: usize) -> Option<Entry<'_>> {
        let slot = self.slots.get(i)?;
        let start = if i == 0 { 0 } else { self.slots[i - 1].name_end };
        let name = self.names.get(start as usize..slot.name_end as usize)?;
        Some(Entry { offset: slot.offset, len: slot.len, name })
    }

    /// All members, in file order.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        (0..self.len()).filter_map(|i| self.get(i))
    }

    /// All names, back to back; [`Slot::name_end`] parts them.
    pub fn names(&self) -> &str {
        &self.names
    }

    /// All places, in file order.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// What was wrong, each with its byte in the tar. Members before (and after) a fault remain usable.
    pub fn faults(&self) -> &[Error] {
        &self.faults
    }

    /// The members that `keep` wants, and the faults unchanged.
    #[must_use]
    pub fn filter(&self, mut keep: impl FnMut(Entry<'_>) -> bool) -> Self {
        let mut kept = TarIndex { faults: self.faults.clone(), ..TarIndex::default() };
        for entry in self.iter().filter(|e| keep(*e)) {
            kept.push(entry.offset, entry.len, entry.name);
        }
        kept.names.shrink_to_fit();
        kept.slots.shrink_to_fit();
        kept
    }

    /// Adds a member; returns false, and adds nothing, when 4 GiB of names are reached.
    pub(super) fn push(&mut self, offset: u64, len: u64, name: &str) -> bool {
        let Ok(name_end) = u32::try_from(self.names.len() + name.len()) else { return false };
        self.names.push_str(name);
        self.slots.push(Slot { offset, len, name_end });
        true
    }

    /// Forgets the members, and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.slots.clear();
    }

    /// Notes a fault.
    pub(super) fn fault(&mut self, error: Error) {
        self.faults.push(error);
    }
}
