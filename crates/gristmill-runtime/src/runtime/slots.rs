//! Records -> slots -> records: as they are or, where a record has a long array most of whose entries are the same, folded
//! to a quarter. What does not fold waits beside the slots, within a bound. Which entries mean what is not known here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::arena::Arena;

/// A long array of a record: elements of four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Long {
    /// Where it begins in the record.
    pub offset: usize,
    /// How many elements it has.
    pub count: usize,
}

/// How many records are unfolded at a time: they stay in the processor's cache.
const GROUP: usize = 8;

/// Elements compared in one step.
const RUN: usize = 16;

/// Entries of the array that tell which value is the usual one.
const PROBES: usize = 7;

/// Bytes before the marks of a folded record: how many entries are unusual, and what the others are.
const HEAD: usize = 8;

/// Stands for the number of entries of a record that waits beside the slots.
const BESIDE: u32 = u32::MAX;

impl Long {
    /// Maximum number of entries that may be unusual in a folded record: an eighth.
    fn most(self) -> usize {
        self.count / 8
    }

    /// Bytes of the marks: a bit for each element, in whole words.
    fn marks(self) -> usize {
        self.count.div_ceil(64) * 8
    }

    fn bytes(self) -> usize {
        4 * self.count
    }

    /// Bytes of a folded record of `size` bytes.
    pub fn folded(self, size: usize) -> usize {
        HEAD + self.marks() + 4 * self.most() + size - self.bytes()
    }

    /// Folds a record; `false` where too many entries are unusual.
    fn fold(self, record: &[u8], slot: &mut [u8]) -> bool {
        let array = record[self.offset..self.offset + self.bytes()].as_chunks::<4>().0;
        let usual = usual(array);
        let (marks, values, rest) = self.parts(slot);
        let (mut found, most) = (0, self.most());
        let mut word = 0u64;
        for (run, elements) in array.chunks(RUN).enumerate() {
            if run % (64 / RUN) == 0 && run > 0 {
                marks[run / (64 / RUN) - 1] = word.to_le_bytes();
                word = 0;
            }
            let differs = elements.iter().fold(0, |differs, e| differs | (u32::from_le_bytes(*e) ^ usual));
            if differs == 0 {
                continue;
            }
            for (i, element) in elements.iter().enumerate().filter(|(_, e)| u32::from_le_bytes(**e) != usual) {
                if found == most {
                    return false;
                }
                word |= 1 << (run % (64 / RUN) * RUN + i);
                values[found] = *element;
                found += 1;
            }
        }
        if let Some(last) = marks.last_mut() {
            *last = word.to_le_bytes();
        }
        rest[..self.offset].copy_from_slice(&record[..self.offset]);
        let behind = &record[self.offset + self.bytes()..];
        rest[self.offset..self.offset + behind.len()].copy_from_slice(behind);
        slot[..4].copy_from_slice(&(found as u32).to_le_bytes());
        slot[4..HEAD].copy_from_slice(&usual.to_le_bytes());
        true
    }

    /// Unfolds a record.
    fn unfold(self, slot: &[u8], record: &mut [u8]) {
        let number = |at: usize| [slot[at], slot[at + 1], slot[at + 2], slot[at + 3]];
        let (marks, slot) = slot[HEAD..].split_at(self.marks());
        let (values, rest) = slot.split_at(4 * self.most());
        let behind = record.len() - self.offset - self.bytes();
        record[..self.offset].copy_from_slice(&rest[..self.offset]);
        record[self.offset + self.bytes()..].copy_from_slice(&rest[self.offset..self.offset + behind]);
        let array = record[self.offset..self.offset + self.bytes()].as_chunks_mut::<4>().0;
        array.fill(number(4));
        let mut values = values.as_chunks::<4>().0.iter();
        for (at, word) in marks.as_chunks::<8>().0.iter().enumerate() {
            let mut word = u64::from_le_bytes(*word);
            while word != 0 {
                let element = 64 * at + word.trailing_zeros() as usize;
                if let (Some(element), Some(value)) = (array.get_mut(element), values.next()) {
                    *element = *value;
                }
                word &= word - 1;
            }
        }
    }

    /// Marks, values and the rest of a slot that is written.
    fn parts(self, slot: &mut [u8]) -> (&mut [[u8; 8]], &mut [[u8; 4]], &mut [u8]) {
        let (marks, slot) = slot[HEAD..].split_at_mut(self.marks());
        let (values, rest) = slot.split_at_mut(4 * self.most());
        (marks.as_chunks_mut().0, values.as_chunks_mut().0, rest)
    }
}

/// The value that most entries of an array seem to have.
fn usual(array: &[[u8; 4]]) -> u32 {
    let probe = |i: usize| array.get(i * array.len() / PROBES).map_or(0, |e| u32::from_le_bytes(*e));
    let probes: [u32; PROBES] = std::array::from_fn(probe);
    let times = |value: &u32| probes.iter().filter(|other| *other == value).count();
    probes.iter().copied().max_by_key(times).unwrap_or(0)
}

/// Records that wait beside the slots, and how many bytes of them there may be.
#[derive(Debug)]
struct Beside {
    records: Mutex<HashMap<u32, Box<[u8]>>>,
    most: u64,
    bytes: AtomicU64,
}

/// There is no room for a record that does not fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

/// Slots for records of one size.
#[derive(Debug)]
pub struct Slots {
    arena: Arena,
    size: usize,
    long: Option<(Long, Beside)>,
}

impl Slots {
    /// `slots` free slots for records of `size` bytes, folded where `long` says how; of what does not fold, at most `beside`
    /// bytes wait.
    ///
    /// Errors: no memory.
    pub fn new(slots: usize, size: usize, long: Option<Long>, beside: u64) -> std::io::Result<Self> {
        let arena = Arena::new(slots, long.map_or(size, |long| long.folded(size)))?;
        let beside = || Beside { records: Mutex::default(), most: beside, bytes: AtomicU64::new(0) };
        Ok(Slots { arena, size, long: long.map(|long| (long, beside())) })
    }

    /// Whether records are filled here and there, and most of them not soon.
    pub fn scatter(&self, here_and_there: bool) {
        self.arena.scatter(here_and_there);
    }

    /// Room for one record, for [`Slots::fill`].
    pub fn scratch(&self) -> Vec<u8> {
        vec![0; if self.long.is_some() { self.size } else { 0 }]
    }

    /// Fills a free slot with a record that `write` writes.
    ///
    /// Errors: there is no room for one that does not fold; its slot is full and holds nothing.
    pub fn fill(&self, slot: u32, scratch: &mut [u8], write: impl FnOnce(&mut [u8])) -> Result<(), NoRoom> {
        let Some((long, beside)) = &self.long else {
            self.arena.fill(slot, |bytes| write(&mut bytes[..self.size]));
            return Ok(());
        };
        write(scratch);
        let mut folds = true;
        self.arena.fill(slot, |bytes| {
            folds = long.fold(scratch, bytes);
            if !folds {
                bytes[..4].copy_from_slice(&BESIDE.to_le_bytes());
            }
        });
        if folds { Ok(()) } else { beside.put(slot, scratch) }
    }

    /// Fills free slots with records that are never read.
    pub fn fill_blindly(&self, slots: impl Iterator<Item = u32>) {
        slots.for_each(|slot| self.arena.fill(slot, |_| ()));
    }

    /// Gives the records of full slots to `each`, some at a time with the place of the first, and frees the slots.
    ///
    /// Errors: what `each` says.
    pub fn drain<E>(&self, slots: &[u32], mut each: impl FnMut(usize, &[&[u8]]) -> Result<(), E>) -> Result<(), E> {
        self.arena.drain(slots, |views| {
            let Some((long, beside)) = &self.long else {
                let records: Vec<&[u8]> = views.iter().map(|view| &view[..self.size]).collect();
                return each(0, &records);
            };
            let mut records = vec![0; GROUP.min(slots.len()) * self.size];
            for (group, (views, slots)) in views.chunks(GROUP).zip(slots.chunks(GROUP)).enumerate() {
                for ((record, view), slot) in records.chunks_exact_mut(self.size).zip(views).zip(slots) {
                    match view.starts_with(&BESIDE.to_le_bytes()).then(|| beside.take(*slot)) {
                        Some(Some(whole)) => record.copy_from_slice(&whole),
                        Some(None) => record.fill(0),
                        None => long.unfold(view, record),
                    }
                }
                let records: Vec<&[u8]> = records.chunks_exact(self.size).take(views.len()).collect();
                each(GROUP * group, &records)?;
            }
            Ok(())
        })
    }

    /// Frees a full slot whose record is not wanted.
    pub fn discard(&self, slot: u32) {
        if let Some((_, beside)) = &self.long {
            self.arena.drain(&[slot], |views| views[0].starts_with(&BESIDE.to_le_bytes()).then(|| beside.take(slot)));
        } else {
            self.arena.discard(slot);
        }
    }
}

impl Beside {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Box<[u8]>>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, slot: u32, record: &[u8]) -> Result<(), NoRoom> {
        let len = record.len() as u64;
        let add = |bytes: u64| bytes.checked_add(len).filter(|bytes| *bytes <= self.most);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).map_err(|_| NoRoom)?;
        self.lock().insert(slot, record.into());
        Ok(())
    }

    fn take(&self, slot: u32) -> Option<Box<[u8]>> {
        let record = self.lock().remove(&slot)?;
        self.bytes.fetch_sub(record.len() as u64, Ordering::Relaxed);
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: usize = 8396;
    const LONG: Long = Long { offset: 8, count: 1858 };

    /// What goes in comes out, in any order.
    fn round_trip(records: &[Vec<u8>], long: Option<Long>) {
        let size = records[0].len();
        let slots = Slots::new(records.len() + 3, size, long, u64::MAX).unwrap();
        let mut scratch = slots.scratch();
        let order: Vec<u32> = (0..records.len() as u32).rev().collect();
        for (slot, record) in order.iter().zip(records) {
            slots.fill(*slot, &mut scratch, |bytes| bytes.copy_from_slice(record)).unwrap();
        }
        let mut seen = 0;
        let mut each = |first: usize, views: &[&[u8]]| {
            assert_eq!(first, seen);
            seen += views.len();
            views.iter().zip(&records[first..]).for_each(|(view, record)| assert!(view == record));
            Ok::<_, ()>(())
        };
        slots.drain(&order, &mut each).unwrap();
        assert_eq!(seen, records.len());
        // All are free again.
        for (slot, record) in order.iter().zip(records) {
            slots.fill(*slot, &mut scratch, |bytes| bytes.copy_from_slice(record)).unwrap();
            slots.discard(*slot);
        }
    }

    #[test]
    fn a_million_positions_take_two_and_a_quarter_gigabytes() {
        assert_eq!(LONG.folded(SIZE).next_multiple_of(64), 2176);
        assert!(LONG.most() >= 218, "no position has more moves");
    }

    #[test]
    fn records_that_fold_and_those_that_do_not_come_out_as_they_were() {
        let record = |usual: f32, unusual: usize, seed: u8| {
            let mut record: Vec<u8> = (0..SIZE).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect();
            let array = record[LONG.offset..][..4 * LONG.count].as_chunks_mut::<4>().0;
            array.fill(usual.to_le_bytes());
            for i in 0..unusual {
                array[i * LONG.count / unusual.max(1)] = (i as f32 / 7.0).to_le_bytes();
            }
            record
        };
        let mut records: Vec<Vec<u8>> = Vec::new();
        for usual in [-1.0, 0.0, f32::NAN] {
            records.extend([0, 1, 20, 218, 232, 233, 600, 1858].map(|unusual| record(usual, unusual, unusual as u8)));
        }
        round_trip(&records, Some(LONG));
        round_trip(&records, None);
    }

    #[test]
    fn what_does_not_fold_waits_within_its_bound() {
        let size = 4 * 512 + 3;
        let slots = Slots::new(4, size, Some(Long { offset: 3, count: 512 }), 2 * size as u64).unwrap();
        let (mut scratch, ramp) = (slots.scratch(), (0..size).map(|i| (i / 7) as u8).collect::<Vec<u8>>());
        let mut fill = |slot| slots.fill(slot, &mut scratch, |bytes| bytes.copy_from_slice(&ramp));
        assert_eq!([0, 1, 2].map(&mut fill), [Ok(()), Ok(()), Err(NoRoom)]);
        slots.discard(0);
        assert_eq!(fill(3), Ok(()));
        let each = |_: usize, views: &[&[u8]]| {
            views.iter().for_each(|view| assert!(*view == ramp));
            Ok::<_, ()>(())
        };
        slots.drain(&[3, 1], each).unwrap();
        slots.discard(2);
    }

    proptest! {
        #[test]
        fn any_bytes_come_out_as_they_were(
            offset in 0usize..9, count in 1usize..300, behind in 0usize..9, values in 1u32..4, seed in any::<u64>(),
        ) {
            let size = offset + 4 * count + behind;
            let mut state = seed | 1;
            let mut byte = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                if state % 8 < 7 { 0 } else { (state >> 32) as u32 % values }
            };
            let records: Vec<Vec<u8>> = (0..20).map(|_| (0..size).map(|_| byte() as u8).collect()).collect();
            round_trip(&records, Some(Long { offset, count }));
        }
    }
}
