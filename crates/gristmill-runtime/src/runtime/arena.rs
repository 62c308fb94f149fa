//! Slots of equal size in one stretch of huge pages: where frames wait between decoding and encoding.
//! A slot is written by one task, then read by one task, then free; anything else is caught and panics.
//! With `sheet.rs` and `pages.rs`, the only file of the machinery that may use `unsafe`.
#![allow(unsafe_code)]

use memmap2::{Advice, MmapMut};

use std::sync::OnceLock;

use super::pinned::Pin;
use super::sync::atomic::{AtomicU8, Ordering};

/// Zeroed memory on huge pages where the system has them, aligned to a page.
#[derive(Debug)]
pub struct Region {
    /// Dropped before the mapping. `None` inside: it could not be pinned, and is not tried again.
    pin: OnceLock<Option<Pin>>,
    /// Owns the mapping; touched only through `base`.
    map: MmapMut,
    base: *mut u8,
    len: usize,
}

// SAFETY: the pointer is to memory that the region owns; who may touch which bytes is decided by
// `Claims`, whose states are atomic.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// A region of `len` bytes. Errors: what the system says when there is no memory left.
    pub fn new(len: usize) -> std::io::Result<Self> {
        let mut map = MmapMut::map_anon(len.max(1))?;
        let base = map.as_mut_ptr();
        let region = Region { pin: OnceLock::new(), map, base, len };
        region.wish_for_huge_pages(true);
        Ok(region)
    }

    /// Whether memory that is touched from now on is to be on huge pages. A wish: where the system has none, ordinary ones serve.
    fn wish_for_huge_pages(&self, huge: bool) {
        let _ = self.map.advise(if huge { Advice::HugePage } else { Advice::NoHugePage });
    }

    /// The first byte, for hand-over to foreign code.
    pub fn as_ptr(&self) -> *mut u8 {
        self.base
    }

    /// Lets GPUs read this memory by themselves, until it is unmapped: `device` is the number of one that the process uses.
    /// Whether they may.
    pub fn pin(&self, device: i32) -> bool {
        // SAFETY: the region is one mapping, and its pin is dropped first.
        self.pin.get_or_init(|| unsafe { Pin::new(self.base, self.len.max(1), device) }.ok()).is_some()
    }

    /// Bytes `offset..offset + len`, to write.
    ///
    /// # Safety
    /// No one else may read or write these bytes while the slice lives.
    #[allow(clippy::mut_from_ref, reason = "exclusivity is the caller's promise")]
    pub(super) unsafe fn slice_mut(&self, offset: usize, len: usize) -> &mut [u8] {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "within the region");
        // SAFETY: in bounds by the assertion; exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(offset), len) }
    }

    /// Bytes `offset..offset + len`, to read.
    ///
    /// # Safety
    /// No one may write these bytes while the slice lives.
    pub(super) unsafe fn slice(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "within the region");
        // SAFETY: in bounds by the assertion; unwritten by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.base.add(offset), len) }
    }
}

const FREE: u8 = 0;
const BUSY: u8 = 1;
const FULL: u8 = 2;

/// Slots of one stride with an atomic state each.
#[derive(Debug)]
pub struct Arena {
    region: Region,
    stride: usize,
    states: Vec<AtomicU8>,
}

impl Arena {
    /// `slots` free slots of `stride` bytes. Errors: no memory.
    pub fn new(slots: usize, stride: usize) -> std::io::Result<Self> {
        let stride = stride.next_multiple_of(64);
        let len = slots.checked_mul(stride).ok_or(std::io::ErrorKind::OutOfMemory)?;
        // The large part first: it is refused where there is no room, which would be the end of the process here.
        let region = Region::new(len)?;
        let states = std::iter::repeat_with(|| AtomicU8::new(FREE)).take(slots).collect();
        Ok(Arena { region, stride, states })
    }

    /// Whether slots are filled here and there, and most of them not soon: then one must not take a huge page for itself.
    pub fn scatter(&self, here_and_there: bool) {
        self.region.wish_for_huge_pages(!here_and_there);
    }

    /// Bytes from one slot to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    fn change(&self, slot: u32, from: u8, to: u8) {
        let state = &self.states[slot as usize];
        let changed = state.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed);
        assert!(changed.is_ok(), "slot {slot}: expected state {from}, found {changed:?}");
    }

    /// Writes a free slot and makes it full.
    ///
    /// Panics when the slot is not free: two tasks were given the same one.
    pub fn fill(&self, slot: u32, write: impl FnOnce(&mut [u8])) {
        self.change(slot, FREE, BUSY);
        // SAFETY: the state was FREE and is now BUSY, so this call alone may touch the slot.
        write(unsafe { self.region.slice_mut(slot as usize * self.stride, self.stride) });
        self.states[slot as usize].store(FULL, Ordering::Release);
    }

    /// Claims full slots for reading, passes their bytes, and frees them.
    ///
    /// Panics when a slot is not full: it was not written yet, or is read twice.
    pub fn drain<R>(&self, slots: &[u32], read: impl FnOnce(&[&[u8]]) -> R) -> R {
        let mut views = Vec::with_capacity(slots.len());
        for &slot in slots {
            self.change(slot, FULL, BUSY);
            // SAFETY: the state was FULL and is now BUSY, so no one writes the slot until it is FREE again.
            views.push(unsafe { self.region.slice(slot as usize * self.stride, self.stride) });
        }
        let result = read(&views);
        for &slot in slots {
            self.states[slot as usize].store(FREE, Ordering::Release);
        }
        result
    }

    /// Gives back a full slot without reading it.
    pub fn discard(&self, slot: u32) {
        self.change(slot, FULL, FREE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_their_bytes_and_go_round() {
        let arena = Arena::new(3, 100).unwrap();
        assert_eq!(arena.stride(), 128);
        arena.fill(2, |bytes| bytes.fill(7));
        arena.fill(0, |bytes| bytes.fill(5));
        arena.drain(&[0, 2], |views| assert_eq!((views[0][99], views[1][0]), (5, 7)));
        arena.fill(2, |bytes| bytes.fill(9));
        arena.discard(2);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn slots_that_are_filled_here_and_there_take_no_huge_pages() {
        let arena = Arena::new(256 << 10, 1 << 10).unwrap();
        arena.scatter(true);
        (0..64).for_each(|slot| arena.fill(slot * 4096, |bytes| bytes.fill(1)));
        let Region { base, len, .. } = arena.region;
        // SAFETY: it takes a number alone.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let mut pages = vec![0_u8; len.div_ceil(page as usize)];
        // SAFETY: `pages` has a byte for each page of the region.
        let said = unsafe { libc::mincore(base.cast(), len, pages.as_mut_ptr()) };
        assert_eq!((said, pages.iter().filter(|page| **page & 1 == 1).count()), (0, 64), "a page each");
        arena.scatter(false);
        arena.drain(&[0, 63 * 4096], |views| assert_eq!((views[0][0], views[1][1023]), (1, 1)));
    }

    #[test]
    #[should_panic(expected = "slot 1: expected state 2")]
    fn reading_an_unwritten_slot_is_caught() {
        Arena::new(2, 64).unwrap().drain(&[1], |_| ());
    }

    #[test]
    #[should_panic(expected = "slot 1: expected state 0")]
    fn writing_a_full_slot_is_caught() {
        let arena = Arena::new(2, 64).unwrap();
        arena.fill(1, |_| ());
        arena.fill(1, |_| ());
    }
}
