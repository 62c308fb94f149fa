//! Rows that are elsewhere: which of them readers look for, and what a block that cannot be read fails.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gristmill_engine::config::{EncoderConfig, IndexConfig, Shuffle};
use gristmill_engine::store::{Claims, HeldFile, Residence};
use gristmill_engine::table::{FileTable, FrameTable, IndexInput, Needs, Part, Recipe};
use gristmill_engine::{IndexLoader, Next};
use gristmill_format::layout::{Layout, Scalar};
use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::runtime::intervals::Intervals;

/// Bytes of a block, in which files come that are elsewhere.
const BLOCK: u64 = 256 << 10;

/// Bytes that say where they are. One block comes late, and then not.
struct Far {
    blocks: u64,
    late: Option<u64>,
}

impl ReadAt for Far {
    fn len(&self) -> Result<u64> {
        Ok(self.blocks * BLOCK)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let read = offset / BLOCK..(offset + buf.len() as u64).div_ceil(BLOCK);
        if self.late.is_some_and(|late| read.contains(&late)) {
            std::thread::sleep(Duration::from_millis(100));
            return Err(Error::new(Kind::Corrupt, "a bad block"));
        }
        (offset..).zip(&mut *buf).for_each(|(at, byte)| *byte = (at / BLOCK * 31 + at % 251) as u8);
        Ok(buf.len())
    }
}

/// A table that counts the rows that readers look for.
#[derive(Debug)]
struct Counting {
    table: FileTable,
    looked_for: AtomicU64,
}

impl FrameTable for Counting {
    fn layout(&self) -> &Layout {
        self.table.layout()
    }

    fn len(&self) -> u64 {
        self.table.len()
    }

    fn gather(&self, rows: &[u64], out: &mut [u8]) -> Result<()> {
        self.table.gather(rows, out)
    }

    fn want(&self, start: u64, end: u64) {
        self.table.want(start, end);
    }

    fn files(&self) -> Vec<&HeldFile> {
        self.table.files()
    }

    fn needs<'a>(&'a self, rows: &[Range<u64>], each: &mut Needs<'_, 'a>) -> Result<()> {
        self.table.needs(rows, each)
    }

    fn claim(&self, rows: &[Range<u64>]) -> Result<Vec<Claims>> {
        self.looked_for.fetch_add(rows.len() as u64, Ordering::Relaxed);
        self.table.claim(rows)
    }

    fn locate(&self, row: u64) -> (String, u64) {
        self.table.locate(row)
    }
}

/// Rows of `size` bytes in `far`, of which the first `rows` are fed.
fn table(name: &str, far: Far, size: usize, rows: u64) -> (Arc<Counting>, IndexInput) {
    let layout = Layout::packed(&[("bytes", Scalar::U8, &[size])]).unwrap();
    let path = format!("memory://{name}/rows");
    let (bytes, all) = (far.blocks * BLOCK, far.blocks * BLOCK / size as u64);
    let held = HeldFile::of(Path::new(&path), Arc::new(far), 0, bytes, Residence::Mapped).unwrap();
    let part = Part { path: path.into(), offset: 0, rows: all };
    let table = FileTable::of(layout, vec![(part, held)]).unwrap();
    let table = Arc::new(Counting { table, looked_for: AtomicU64::new(0) });
    let mut fed = Intervals::default();
    fed.push(0, rows);
    let (valuations, recipe) = (Vec::new(), Recipe::all(1));
    let input = IndexInput { table: Arc::clone(&table) as _, rows: Arc::new(fed), identity: 1, valuations, recipe };
    (table, input)
}

fn config(batch_size: usize, shuffle: Shuffle) -> IndexConfig {
    let base = IndexConfig { encoder: EncoderConfig::Fields, batch_size, shuffle, ..IndexConfig::default() };
    IndexConfig { epochs: Some(1), seed: Some(9), threads: Some(2), ..base }
}

/// Rows that are counted while all batches are taken: those looked for, and those fed.
fn counted(table: &Counting, input: IndexInput, config: IndexConfig) -> (u64, u64) {
    let loader = IndexLoader::new(input, config).unwrap();
    let mut fed = 0;
    while let Next::Batch(batch) = loader.next("", Some(Duration::from_secs(60))).unwrap() {
        fed += batch.rows as u64;
    }
    (table.looked_for.load(Ordering::Relaxed), fed)
}

#[test]
fn readers_look_for_no_rows_whose_blocks_are_all_claimed() {
    // Sixteen blocks are never fed: a reader never finds all of the file there.
    let (table, input) = table("groups", Far { blocks: 32, late: None }, 1, 16 * BLOCK);
    let (looked_for, fed) = counted(&table, input, config(100, Shuffle::Blocks { rows: BLOCK, blocks: 4 }));
    assert_eq!(fed, 16 * BLOCK);
    assert!(looked_for < fed / 2, "{looked_for} of {fed}");
}

#[test]
fn batches_that_need_no_bad_block_come_although_earlier_ones_claimed_it() {
    // Batches of two blocks, in order; eight are fetched at once. The last block of the first pass is bad.
    let (_table, input) = table("bad", Far { blocks: 40, late: Some(39) }, 1 << 16, 160);
    let config = IndexConfig { epochs: Some(2), ..config(8, Shuffle::Off) };
    let loader = IndexLoader::new(input, config).unwrap();
    let came: Vec<bool> = (0..40).map(|_| loader.next("", Some(Duration::from_secs(60))).is_ok()).collect();
    let bad: Vec<usize> = (0..40).filter(|batch| !came[*batch]).collect();
    assert_eq!(bad, Vec::from_iter((16..24).chain(32..40)));
}
