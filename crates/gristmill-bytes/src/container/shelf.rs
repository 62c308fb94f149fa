//! Unpacked blocks -> the same blocks, for those that want them again: within a bound on their memory, the oldest go first.
//! Shared by threads; what is read never depends on what is here.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Memory of a block beside its bytes: its names here, and what counts who has it.
const BESIDE: usize = 192;

/// A block that was unpacked.
pub(super) struct Unpacked {
    /// Whether its elements are taken apart: their first bytes, then their second ones, and so on.
    pub(super) turned: bool,
    pub(super) bytes: Vec<u8>,
}

impl Unpacked {
    /// Bytes of memory that it takes here. The memory of its bytes may be larger than they are.
    fn taken(&self) -> usize {
        self.bytes.capacity() + BESIDE
    }
}

/// Chunk, start of the run in it, and number of the block in the run.
pub(super) type Name = (u64, u32, u32);

/// Blocks of many chunks.
pub struct Shelf {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    blocks: HashMap<Name, Arc<Unpacked>>,
    /// The oldest first.
    order: VecDeque<Name>,
    taken: usize,
}

impl Shelf {
    /// An empty shelf whose blocks take at most `most` bytes of memory.
    pub fn new(most: usize) -> Self {
        Shelf { most, kept: Mutex::default() }
    }

    /// Bytes of memory of the blocks that are here.
    pub fn taken(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).taken
    }

    pub(super) fn find(&self, name: &Name) -> Option<Arc<Unpacked>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).blocks.get(name).cloned()
    }

    /// Puts a block here, and gives the memory of one that had to go and that nobody uses.
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
