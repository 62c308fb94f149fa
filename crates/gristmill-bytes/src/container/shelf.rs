//! Unpacked blocks -> the same blocks for later readers. Threads share them. Their memory is bounded, and the oldest go first.
//! A reader gets the same bytes whether or not a block is here.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of memory that a block takes beside its own bytes: its name in the map and in the order, and the counters of its `Arc`.
const BESIDE: usize = 192;

/// An unpacked block.
pub(super) struct Unpacked {
    /// Whether the bytes are in turned order: the first bytes of all elements, then their second bytes, and so on.
    pub(super) turned: bool,
    pub(super) bytes: Vec<u8>,
}

impl Unpacked {
    /// Returns the bytes of memory that the block takes on the shelf. It counts the capacity of `bytes`, not their length.
    fn taken(&self) -> usize {
        self.bytes.capacity() + BESIDE
    }
}

/// Name of a block: number of the chunk, start of the run in the chunk, and number of the block in the run.
pub(super) type Name = (u64, u32, u32);

/// Unpacked blocks of many chunks, in bounded memory.
pub struct Shelf {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    blocks: HashMap<Name, Arc<Unpacked>>,
    /// Names of the blocks, the oldest first.
    order: VecDeque<Name>,
    taken: usize,
}

impl Shelf {
    /// Creates an empty shelf. Its blocks take at most `most` bytes of memory.
    pub fn new(most: usize) -> Self {
        Shelf { most, kept: Mutex::default() }
    }

    /// Returns the bytes of memory that the blocks take.
    pub fn taken(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).taken
    }

    pub(super) fn find(&self, name: &Name) -> Option<Arc<Unpacked>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).blocks.get(name).cloned()
    }

    /// Puts `block` on the shelf, and removes the oldest blocks to make room. Returns the memory of the last block that it removes, for
    /// reuse. Returns `None` if a reader still uses that block, or if the shelf removes no block. Does not keep a block that it has
    /// already or that is larger than the shelf.
    pub(super) fn put(&self, name: Name, block: Arc<Unpacked>) -> Option<Vec<u8>> {
        let taken = block.taken();
        if taken > self.most {
            return None;
        }
        let mut gone = Vec::new();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.blocks.contains_key(&name) {
            return None;
        }
        while kept.taken + taken > self.most
            && let Some(oldest) = kept.order.pop_front()
            && let Some(block) = kept.blocks.remove(&oldest)
        {
            kept.taken -= block.taken();
            gone.push(block);
        }
        kept.taken += taken;
        kept.order.push_back(name);
        kept.blocks.insert(name, block);
        drop(kept);
        gone.pop().and_then(Arc::into_inner).map(|block| block.bytes)
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shelf({} of {} bytes)", self.taken(), self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_blocks_go_and_their_memory_is_used_again() {
        let one = 40 + BESIDE;
        let shelf = Shelf::new(2 * one + 20);
        let block = |byte: u8| Arc::new(Unpacked { turned: false, bytes: vec![byte; 40] });
        assert!(shelf.put((0, 0, 0), block(1)).is_none() && shelf.put((0, 0, 1), block(2)).is_none());
        assert_eq!(shelf.put((0, 0, 1), block(2)), None, "it is here");
        assert_eq!(shelf.put((1, 0, 0), block(3)), Some(vec![1; 40]));
        assert!(shelf.find(&(0, 0, 0)).is_none());
        let held = shelf.find(&(0, 0, 1)).unwrap();
        assert_eq!((held.bytes[0], shelf.taken()), (2, 2 * one));
        assert_eq!(shelf.put((1, 0, 1), block(4)), None, "somebody has it");
        let large = Arc::new(Unpacked { turned: false, bytes: vec![0; 3 * one] });
        assert!(shelf.put((2, 0, 0), large).is_none() && shelf.find(&(2, 0, 0)).is_none());
        assert_eq!(shelf.taken(), 2 * one);
    }

    #[test]
    fn memory_counts_that_a_block_has_and_does_not_fill_and_so_do_the_names_of_small_blocks() {
        let shelf = Shelf::new(100 << 10);
        for i in 0..100 {
            let mut bytes = Vec::with_capacity(40 << 10);
            bytes.push(i as u8);
            shelf.put((0, 0, i), Arc::new(Unpacked { turned: false, bytes }));
        }
        let there = |shelf: &Shelf, n: u32| (0..n).filter(|i| shelf.find(&(0, 0, *i)).is_some()).count();
        assert_eq!(there(&shelf, 100), 2);
        let shelf = Shelf::new(100 << 10);
        for i in 0..10_000 {
            shelf.put((0, 0, i), Arc::new(Unpacked { turned: false, bytes: vec![1] }));
        }
        assert!(there(&shelf, 10_000) < 600);
    }
}
