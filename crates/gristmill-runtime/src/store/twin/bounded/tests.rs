//! Files of a few blocks in a cache that holds a part of them: which blocks it frees, which stay, and what the disk has afterwards.

use super::*;
use crate::store::cache::tests::Own;
use crate::store::keeping::Keeper;
use crate::store::{Claims, HeldFile};

/// A file whose bytes have a version.
struct Far {
    bytes: Vec<u8>,
    version: u64,
}

impl ReadAt for Far {
    fn len(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.bytes.read_at(offset, buf)
    }

    fn version(&self) -> Option<u64> {
        Some(self.version)
    }
}

/// A file of `len` bytes; no block of it is all zeros.
fn far(len: u64, version: u64) -> Arc<dyn ReadAt> {
    Arc::new(Far { bytes: (0..len).map(|at| (at >> 10) as u8 | 1).collect(), version })
}

const ROWS: &str = "memory://x/rows";

/// Blocks that the cache of these tests keeps.
const KEPT: u64 = 4;

fn cache() -> Own {
    Own::new(Some(KEPT * BLOCK))
}

/// A file of which the cache holds a part.
fn bounded(from: &Arc<dyn ReadAt>) -> (HeldFile, Arc<Pool>) {
    let pool = Pool::for_files(&[(Path::new(ROWS), from)]).unwrap().expect("the cache does not hold it");
    (held(ROWS, from, &pool), pool)
}

fn held(path: &str, from: &Arc<dyn ReadAt>, pool: &Arc<Pool>) -> HeldFile {
    HeldFile::of_pool(Path::new(path), Arc::clone(from), 0, from.len().unwrap(), pool).unwrap()
}

/// The bytes of blocks `first..behind`.
fn range(first: u64, behind: u64) -> (usize, usize) {
    ((first * BLOCK) as usize, (behind * BLOCK) as usize)
}

/// Reads a block as a table reads rows: the block is held meanwhile.
fn reads(file: &HeldFile, from: &Arc<dyn ReadAt>, block: u64) {
    let (start, end) = range(block, block + 1);
    let end = end.min(file.bytes().len());
    let _hold = file.hold(&[(start, end)]).unwrap().expect("the cache frees blocks");
    let mut expected = vec![0; end - start];
    from.read_at(start as u64, &mut expected).unwrap();
    assert!(file.bytes()[start..end] == expected, "block {block}");
}

fn there(file: &HeldFile) -> u64 {
    file.twin().unwrap().there().unwrap()[0]
}

/// For each block, whether the disk has its first byte: where it got the block back, a reader finds 0.
fn on_disk(twin: &Twin) -> Vec<bool> {
    let first = |block: u64| {
        let mut byte = [7];
        std::os::unix::fs::FileExt::read_exact_at(&twin.file, &mut byte, block * BLOCK).unwrap();
        byte[0] != 0
    };
    (0..twin.blocks()).map(first).collect()
}

/// Blocks that came and stay claimed by nobody.
fn brought(twin: &Arc<Twin>, first: u64, behind: u64) {
    drop(Claims::bring(twin.claim(&[(first * BLOCK, behind * BLOCK)]).into_iter().collect()).unwrap());
}

/// A twin in `folder` that no pool frees blocks of: the test does.
fn alone(folder: &Path, from: &Arc<dyn ReadAt>) -> (Arc<Twin>, u64) {
    let (twin, kept) = Twin::of_pool(folder, Path::new(ROWS), Arc::clone(from), Weak::new()).unwrap();
    (Arc::new(twin), kept)
}

#[test]
fn blocks_count_how_often_they_came() {
    let folder = tempfile::tempdir().unwrap();
    let from = far(3 * BLOCK, 7);
    let (twin, _) = alone(folder.path(), &from);
    let bring = |from: u64, to: u64| Claims::bring(twin.claim(&[(from, to)]).into_iter().collect()).unwrap();
    let all = (0, 3 * BLOCK);
    assert_eq!(twin.arrivals(all), 0);
    drop(bring(0, 2 * BLOCK));
    let pins = bring(BLOCK - 1, BLOCK);
    assert_eq!([twin.arrivals((0, 1)), twin.arrivals(all)], [1, 2], "what is there does not come again");
    assert_eq!(twin.free(0).unwrap(), 0, "a pinned block stays");
    drop(pins);
    assert_eq!([twin.free(0).unwrap(), twin.arrivals((0, 1))], [BLOCK, 1]);
    drop(bring(0, 1));
    twin.again(&[(BLOCK, BLOCK + 1)]).unwrap();
    assert_eq!([twin.arrivals((0, 1)), twin.arrivals((BLOCK, 2 * BLOCK)), twin.arrivals(all)], [2, 2, 4]);
    let (later, _) = alone(folder.path(), &from);
    brought(&later, 0, 3);
    assert_eq!(later.arrivals(all), 3, "each process counts for itself");
    assert!(later.has(&[all, (3 * BLOCK, 4 * BLOCK)]), "nothing is beyond the end");
    later.free(1).unwrap();
    assert!(!later.has(&[all]) && later.has(&[(0, BLOCK), (2 * BLOCK, 3 * BLOCK)]));
}

/// A thread checked the bytes while another fetched them again, and found the old ones wrong once more.
#[test]
fn who_asks_for_a_block_that_comes_again_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let (twin, _) = alone(folder.path(), &far(3 * BLOCK, 7));
    brought(&twin, 0, 3);
    // The other thread has claimed it.
    let wrong = 1 << 1;
    twin.there[0].fetch_and(!wrong, Ordering::SeqCst);
    twin.missing.fetch_add(1, Ordering::SeqCst);
    twin.fetching().insert(1);
    std::thread::scope(|threads| {
        let asks = threads.spawn(|| twin.again(&[(BLOCK, BLOCK + 9)]));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!asks.is_finished(), "the block is on its way");
        twin.fetch(&[1]).unwrap();
        twin.fetching().remove(&1);
        twin.arrived.notify_all();
        asks.join().unwrap().unwrap();
    });
    assert_eq!(twin.arrivals((BLOCK, BLOCK + 9)), 2, "it came again once");
}

#[test]
fn a_pool_frees_one_block_after_another_until_the_rest_fits() {
    let _cache = cache();
    let from = far(6 * BLOCK + 10, 7);
    let (file, _pool) = bounded(&from);
    (0..4).for_each(|block| reads(&file, &from, block));
    reads(&file, &from, 2);
    assert_eq!(there(&file), 0b1111, "these fit");
    reads(&file, &from, 4);
    assert_eq!(there(&file), 0b1_1110);
    reads(&file, &from, 5);
    assert_eq!(there(&file), 0b11_1100);
    assert_eq!(on_disk(file.twin().unwrap()), [false, false, true, true, true, true, false]);
    reads(&file, &from, 6);
    assert_eq!(there(&file), 0b111_1000, "a block of 10 bytes needs room, too");
    assert!(!file.has_all(), "blocks are freed");
    reads(&file, &from, 0);
    assert_eq!(there(&file), 0b111_0001, "a block that comes again is counted again");
    reads(&file, &from, 3);
    assert_eq!(there(&file), 0b110_1001);
}

#[test]
fn blocks_that_are_held_stay_although_the_cache_has_no_room() {
    let _cache = cache();
    let from = far(7 * BLOCK, 7);
    let (file, _pool) = bounded(&from);
    let hold = file.hold(&[range(0, 2), range(5, 6)]).unwrap();
    (2..5).for_each(|block| reads(&file, &from, block));
    assert_eq!(there(&file), 0b11_0011, "of the others the cache has room for one");
    let more = file.hold(&[range(0, 6)]).unwrap();
    assert_eq!(there(&file), 0b11_1111, "six are held at once");
    drop((hold, more));
    reads(&file, &from, 6);
    assert_eq!(there(&file).count_ones(), 4);
    reads(&file, &from, 0);
}

#[test]
fn what_is_read_for_good_stays_and_takes_at_most_half_of_the_cache() {
    let _cache = cache();
    let from = far(9 * BLOCK, 7);
    let (file, _pool) = bounded(&from);
    let (start, end) = range(0, 2);
    file.have(start, end).unwrap();
    file.have(start, end).unwrap();
    file.have(start + 5, end - 5).unwrap();
    (2..9).for_each(|block| reads(&file, &from, block));
    assert_eq!(there(&file) & 0b11, 0b11, "the blocks that `have` was asked for");
    let (start, end) = range(2, 3);
    let e = file.have(start, end).unwrap_err();
    assert!(e.kind() == Kind::TooLarge && e.to_string().contains("more than half"), "{e}");
    let hold = file.hold(&[(start, end)]).unwrap();
    file.have(start, end).unwrap();
    drop(hold);
    (3..9).for_each(|block| reads(&file, &from, block));
    assert_eq!(there(&file) & 0b111, 0b11, "what a thread held stayed as long as that");
}

#[test]
fn a_thread_that_holds_a_block_twice_holds_it_until_it_drops_both() {
    let _cache = cache();
    let from = far(9 * BLOCK, 7);
    let (file, _pool) = bounded(&from);
    let twin = file.twin().unwrap();
    let (start, end) = range(0, 1);
    let [first, second] = [(); 2].map(|()| file.hold(&[(start, end)]).unwrap());
    drop(first);
    file.have(start, end).unwrap();
    assert_eq!(twin.free(0).unwrap(), 0, "it is held");
    drop(second);
    assert_eq!(twin.free(0).unwrap(), BLOCK, "no `have` asked for it but of one who held it");
    file.have(start, end).unwrap();
    assert_eq!(twin.free(0).unwrap(), 0, "now one has");
}

#[test]
fn who_holds_a_block_of_one_file_may_want_the_same_block_of_another_for_good() {
    let _cache = cache();
    let (from, beside) = (far(9 * BLOCK, 7), far(9 * BLOCK, 8));
    let (file, pool) = bounded(&from);
    let other = held("memory://x/beside", &beside, &pool);
    let _hold = file.hold(&[range(3, 4)]).unwrap();
    let (start, end) = range(3, 4);
    other.have(start, end).unwrap();
    assert_eq!(other.twin().unwrap().free(3).unwrap(), 0);
    (0..9).for_each(|block| reads(&file, &from, block));
    assert_eq!(there(&other), 0b1000);
}

#[test]
fn a_freed_block_leaves_the_disk_and_its_neighbours_stay() {
    let folder = tempfile::tempdir().unwrap();
    let from = far(4 * BLOCK + 9, 7);
    let (twin, _) = alone(folder.path(), &from);
    assert_eq!(twin.free(1).unwrap(), 0, "it never came");
    brought(&twin, 1, 5);
    assert_eq!(twin.free(0).unwrap(), 0, "it never came");
    assert_eq!(on_disk(&twin), [false, true, true, true, true]);
    assert_eq!([2, 4, 2].map(|block| twin.free(block).unwrap()), [BLOCK, 9, 0], "each once");
    assert_eq!(on_disk(&twin), [false, true, false, true, false]);
    assert_eq!((twin.file.metadata().unwrap().len(), twin.there().unwrap()), (4 * BLOCK + 9, vec![0b1010]));
    assert_eq!([1, 3].map(|block| twin.free(block).unwrap()), [BLOCK; 2]);
}

#[test]
fn a_block_that_a_thread_brings_is_not_freed() {
    let folder = tempfile::tempdir().unwrap();
    let (twin, _) = alone(folder.path(), &far(2 * BLOCK, 7));
    brought(&twin, 0, 2);
    let claim = twin.claimed(twin.fetching(), &[1]).ok().unwrap();
    assert_eq!([0, 1].map(|block| twin.free(block).unwrap()), [BLOCK, 0]);
    drop(claim);
    assert_eq!(twin.free(1).unwrap(), BLOCK);
}

#[test]
fn the_next_process_keeps_what_the_journal_has_and_gives_back_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let from = far(5 * BLOCK + 10, 7);
    let (twin, kept) = alone(folder.path(), &from);
    assert_eq!(kept, 0);
    brought(&twin, 1, 2);
    brought(&twin, 3, 4);
    brought(&twin, 5, 6);
    // As a kill leaves them between the bytes and the checksum.
    for block in [0, 2] {
        std::os::unix::fs::FileExt::write_all_at(&twin.file, &vec![9; BLOCK as usize], block * BLOCK).unwrap();
    }
    drop(twin);
    let (twin, kept) = alone(folder.path(), &from);
    assert_eq!((kept, twin.there().unwrap()), (2 * BLOCK + 10, vec![0b10_1010]));
    assert_eq!(on_disk(&twin), [false, true, false, true, false, true]);
    assert_eq!([0, 1, 2].map(|block| twin.free(block).unwrap()), [0, BLOCK, 0], "a block that nobody compared yet");
    assert_eq!(twin.missing.load(Ordering::Relaxed), 6, "it did not count as there");
    brought(&twin, 0, 6);
    assert_eq!(twin.missing.load(Ordering::Relaxed), 0);
    assert_eq!([1, 1].map(|block| twin.free(block).unwrap()), [BLOCK, 0]);
}

#[test]
fn a_pool_has_one_twin_for_each_version_of_a_file() {
    let _cache = cache();
    let from = far(9 * BLOCK, 7);
    let (file, pool) = bounded(&from);
    reads(&file, &from, 5);
    assert!(Arc::ptr_eq(held(ROWS, &from, &pool).twin().unwrap(), file.twin().unwrap()));
    let newer = held(ROWS, &far(9 * BLOCK, 8), &pool);
    assert_eq!(there(&newer), 0, "other bytes");
    assert_eq!(there(&held("memory://x/beside", &from, &pool)), 0);
}

#[test]
fn a_keeper_decides_only_where_a_pool_frees_blocks() {
    let _cache = cache();
    let (small, large) = (far(BLOCK, 7), far(9 * BLOCK, 7));
    let open = |path: &str, from: &Arc<dyn ReadAt>, residence| {
        HeldFile::of(Path::new(path), Arc::clone(from), 0, from.len().unwrap(), residence).unwrap()
    };
    let unkept = open(ROWS, &large, crate::store::Residence::Unkept);
    let budget = |file: &HeldFile| Keeper::rehearsed(&[file]).unwrap().map(|keeper| keeper.budget());
    assert_eq!(budget(&unkept), Some(KEPT * BLOCK), "a command plans as a loader would");
    assert!(Keeper::leased(&[&unkept]).unwrap().is_none());
    {
        let whole = open("memory://x/small", &small, crate::store::Residence::Mapped);
        assert!(budget(&whole).is_none() && Keeper::leased(&[&whole]).unwrap().is_none(), "the cache holds it");
        let beside = Keeper::rehearsed(&[&whole, &unkept]).unwrap();
        assert!(beside.is_none(), "a loader has opened it already, and without a pool");
    }
    let (file, _pool) = bounded(&large);
    assert_eq!(budget(&file), Some(KEPT * BLOCK));
    let mut leased = Keeper::leased(&[&file]).unwrap().unwrap();
    assert_eq!(leased.budget(), KEPT * BLOCK);
    assert_eq!(Keeper::leased(&[&file]).unwrap_err().kind(), Kind::TooLarge);
    leased.end();
    assert!(Keeper::leased(&[&file]).unwrap().is_some());
}
