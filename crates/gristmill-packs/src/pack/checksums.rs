//! A file of rows <-> `NAME.xxh3` beside it: a checksum for each block of rows, and one of the header (docs/format/pack.md).
//! Damaged sums make good rows look damaged, and never the other way round.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gristmill_format::source::{ReadAt, Span, read_span};
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::store::{HeldFile, Pool, Residence, open_file};
use gristmill_runtime::table::Guarding;
use serde::Deserialize;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::shards::Shard;
use crate::row_files::CHECKSUMS;

/// Rows in a block: three pages of 4 KiB.
pub const BLOCK_ROWS: u64 = 256;

/// Maximum number of rows in a block that is read.
const MOST_BLOCK_ROWS: u32 = 1 << 16;

const MAGIC: &[u8; 8] = b"GMXXH301";

/// Bytes before the first checksum.
const HEAD: usize = 40;

/// When rows are held against their checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// All of them, when the pack is opened.
    Open,
    /// A block when the first row of it is wanted, once.
    FirstTouch,
    /// Never.
    Off,
}

impl Verify {
    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        [("open", Verify::Open), ("first_touch", Verify::FirstTouch), ("off", Verify::Off)]
            .into_iter()
            .find_map(|(known, verify)| (known == name).then_some(verify))
    }
}

/// Where the checksums of the file at `path` are.
pub fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(CHECKSUMS);
    name.into()
}

/// Rows that come one after another -> the checksums of their blocks.
#[derive(Clone)]
pub(super) struct Summing {
    block_bytes: usize,
    done: Vec<u64>,
    /// Of the block that is not full yet, and its bytes so far.
    open: Xxh3,
    open_bytes: usize,
}

/// Where a [`Summing`] stood.
#[derive(Clone)]
pub(super) struct SumMark {
    blocks: usize,
    open: Xxh3,
    open_bytes: usize,
}

impl Summing {
    pub(crate) fn new(row_bytes: usize) -> Self {
        let block_bytes = BLOCK_ROWS as usize * row_bytes;
        Summing { block_bytes, done: Vec::new(), open: Xxh3::new(), open_bytes: 0 }
    }

    pub(super) fn update(&mut self, mut rows: &[u8]) {
        while !rows.is_empty() {
            let (now, later) = rows.split_at(rows.len().min(self.block_bytes - self.open_bytes));
            self.open.update(now);
            self.open_bytes += now.len();
            if self.open_bytes == self.block_bytes {
                self.close();
            }
            rows = later;
        }
    }

    fn close(&mut self) {
        self.done.push(self.open.digest());
        self.open.reset();
        self.open_bytes = 0;
    }

    pub(super) fn mark(&self) -> SumMark {
        SumMark { blocks: self.done.len(), open: self.open.clone(), open_bytes: self.open_bytes }
    }

    /// Goes back to a mark; of a file that was closed since, `done` are its blocks.
    pub(super) fn rewind(&mut self, mark: SumMark, done: Option<Vec<u64>>) {
        if let Some(done) = done {
            self.done = done;
        }
        self.done.truncate(mark.blocks);
        (self.open, self.open_bytes) = (mark.open, mark.open_bytes);
    }

    /// The bytes of the file of checksums, for rows after this header.
    pub(super) fn finish(mut self, rows: u64, row_bytes: usize, header: &[u8]) -> Vec<u8> {
        if self.open_bytes > 0 {
            self.close();
        }
        let mut out = Vec::with_capacity(HEAD + 8 * self.done.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&(BLOCK_ROWS as u32).to_le_bytes());
        out.extend_from_slice(&(row_bytes as u32).to_le_bytes());
        for number in [rows, header.len() as u64, xxh3_64(header)].iter().chain(&self.done) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out
    }
}

/// The bytes of the file of checksums for a file of rows, and the XXH3-128 of its rows: reads it once.
///
/// Errors, with the file: `Io`, `Truncated`.
pub fn of(shard: &Shard) -> Result<(Vec<u8>, u128)> {
    let place = |e: Error| e.in_source(shard.path.display().to_string());
    let file = open_file(&shard.path)?;
    let header = header_of(&*file, shard).map_err(place)?;
    let row_bytes = shard.layout.size();
    let (mut summing, mut whole) = (Summing::new(row_bytes), Xxh3::new());
    let (mut block, mut at, mut left) = (Vec::new(), shard.offset, shard.rows.saturating_mul(row_bytes as u64));
    while left > 0 {
        let len = left.min(1 << 20);
        read_span(&*file, Span { offset: at, len }, len, &mut block).map_err(place)?;
        summing.update(&block);
        whole.update(&block);
        (at, left) = (at + len, left - len);
    }
    Ok((summing.finish(shard.rows, row_bytes, &header), whole.digest128()))
}

fn header_of(file: &dyn ReadAt, shard: &Shard) -> Result<Vec<u8>> {
    let mut header = Vec::new();
    read_span(file, Span { offset: 0, len: shard.offset }, shard.offset, &mut header)?;
    Ok(header)
}

/// The checksums of a file of rows, and which of its blocks have theirs.
#[derive(Debug)]
pub struct Guard {
    sums: HeldFile,
    path: PathBuf,
    /// Where the rows start in their file, and bytes of a row.
    offset: u64,
    row_bytes: usize,
    shift: u32,
    /// A bit for each block that was held against its checksum.
    seen: Vec<AtomicU64>,
    /// Blocks that have no bit.
    unseen: AtomicU64,
    /// Of rows that may be freed and fetched again: for each block, one more than the [arrivals](HeldFile::arrivals) of its bytes when
    /// it was held against its checksum. Empty for other rows.
    checked: Vec<AtomicU32>,
}

/// What a file of checksums begins with.
#[derive(Debug, Clone, Copy)]
struct Head {
    block_rows: u32,
    /// XXH3-64 of the bytes before the rows.
    header: u64,
}

impl Head {
    /// The beginning of the checksums of these rows.
    ///
    /// Errors, with their file: `Corrupt`.
    fn read(head: &[u8], shard: &Shard) -> Result<Self> {
        let path = beside(&shard.path);
        let refuse = |detail: String| Error::new(Kind::Corrupt, detail).in_source(path.display().to_string());
        let (magic, rest) = head.split_at(head.len().min(MAGIC.len()));
        if magic != MAGIC || head.len() < HEAD {
            return Err(refuse(format!("these are no checksums of rows in a version that is known here; {REMEDY}")));
        }
        let words = rest.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect::<Vec<_>>();
        let numbers: Vec<u64> = rest[8..].as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let (block_rows, row_bytes, rows, offset) = (words[0], words[1], numbers[0], numbers[1]);
        if !block_rows.is_power_of_two() || block_rows > MOST_BLOCK_ROWS {
            return Err(refuse(format!(
                "blocks of {block_rows} rows; expected a power of two up to {MOST_BLOCK_ROWS}; {REMEDY}"
            )));
        }
        let here = (shard.layout.size() as u64, shard.rows, shard.offset);
        if (u64::from(row_bytes), rows, offset) != here {
            let detail = format!(
                "checksums of {rows} rows of {row_bytes} bytes from byte {offset} on; {} has {} of {} bytes from byte {} on: \
                 another program wrote it, or one of the two is damaged; {REMEDY}",
                shard.path.display(),
                shard.rows,
                here.0,
                shard.offset
            );
            return Err(refuse(detail));
        }
        Ok(Head { block_rows, header: numbers[2] })
    }

    fn blocks(&self, shard: &Shard) -> u64 {
        shard.rows.div_ceil(u64::from(self.block_rows))
    }

    /// Refuses checksums of rows whose header had another hash.
    fn fits(&self, header: u64, shard: &Shard) -> Result<()> {
        if header == self.header {
            return Ok(());
        }
        let detail = format!("the header is not what it was when the checksums beside it were made; {REMEDY}");
        Err(Error::new(Kind::Corrupt, detail).in_source(shard.path.display().to_string()))
    }
}

/// The first bytes of the checksums beside a file of rows. Empty if there are no checksums.
///
/// Errors, with the file: `Io`.
pub(super) fn head_of(shard: &Shard) -> Result<Vec<u8>> {
    let path = beside(&shard.path);
    let file = match open_file(&path) {
        Err(e) if e.kind() == Kind::Io(std::io::ErrorKind::NotFound) => return Ok(Vec::new()),
        file => file?,
    };
    let mut head = Vec::new();
    let read = read_span(&*file, Span { offset: 0, len: HEAD as u64 }, HEAD as u64, &mut head);
    read.map(|()| head).map_err(|e| e.in_source(path.display().to_string()))
}

impl Guard {
    /// Opens the checksums beside a file of rows, and compares the header with its own checksum. `None` if there are no checksums.
    ///
    /// Errors, with a file: `Corrupt` for what are no checksums, checksums of other rows, and another header; `Io`.
    pub fn open(shard: &Shard) -> Result<Option<Self>> {
        let path = beside(&shard.path);
        let refuse = |detail: String| Error::new(Kind::Corrupt, detail).in_source(path.display().to_string());
        let file = match open_file(&path) {
            Err(e) if e.kind() == Kind::Io(std::io::ErrorKind::NotFound) => return Ok(None),
            file => file?,
        };
        let mut head = Vec::new();
        read_span(&*file, Span { offset: 0, len: HEAD as u64 }, HEAD as u64, &mut head).map_err(|e| {
            match e.kind() {
                Kind::Truncated => refuse(format!("shorter than the {HEAD} bytes that it begins with; {REMEDY}")),
                _ => e.in_source(path.display().to_string()),
            }
        })?;
        let head = Head::read(&head, shard)?;
        let blocks = head.blocks(shard);
        let sums = HeldFile::open(&path, HEAD as u64, blocks.saturating_mul(8), Residence::Memory)?;
        let place = |e: Error| e.in_source(shard.path.display().to_string());
        let header = open_file(&shard.path).and_then(|file| header_of(&*file, shard)).map_err(place)?;
        head.fits(xxh3_64(&header), shard)?;
        Ok(Some(Guard::with(sums, head, shard)))
    }

    /// Takes open checksums of rows in a bucket. It reads a checksum together with the first row of its block.
    /// `head` is what they begin with, `header` the XXH3-64 of the bytes before the rows.
    ///
    /// Errors, with a file: as [`Guard::open`].
    pub(super) fn outlined(
        shard: &Shard,
        head: &[u8],
        header: u64,
        from: Arc<dyn ReadAt>,
        (residence, pool): (Residence, Option<&Arc<Pool>>),
    ) -> Result<Self> {
        let head = Head::read(head, shard)?;
        head.fits(header, shard)?;
        let bytes = head.blocks(shard).saturating_mul(8);
        let sums = match pool {
            Some(pool) => HeldFile::of_pool(&beside(&shard.path), from, HEAD as u64, bytes, pool)?,
            None => HeldFile::of(&beside(&shard.path), from, HEAD as u64, bytes, residence)?,
        };
        Ok(Guard::with(sums, head, shard))
    }

    fn with(sums: HeldFile, head: Head, shard: &Shard) -> Self {
        let blocks = head.blocks(shard);
        let seen = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let checked = (0..blocks).take_while(|_| sums.is_bounded()).map(|_| AtomicU32::new(0)).collect();
        Guard {
            sums,
            path: shard.path.clone(),
            offset: shard.offset,
            row_bytes: shard.layout.size(),
            shift: head.block_rows.trailing_zeros(),
            seen,
            unseen: AtomicU64::new(blocks),
            checked,
        }
    }

    /// What is wrong with each block that does not have its checksum; `rows` are the rows of the file.
    pub fn damaged<'a>(&'a self, rows: &'a [u8]) -> impl Iterator<Item = Error> + 'a {
        (0..self.blocks(rows)).filter_map(|block| self.check(block, rows).err())
    }

    fn blocks(&self, rows: &[u8]) -> u64 {
        rows.len().div_ceil(self.row_bytes << self.shift) as u64
    }

    /// The bytes of a block of rows, of `len` bytes in all.
    fn span(&self, block: u64, len: usize) -> Range<usize> {
        let bytes = self.row_bytes << self.shift;
        let start = block as usize * bytes;
        start..len.min(start + bytes)
    }

    #[cold]
    fn check(&self, block: u64, rows: &[u8]) -> Result<()> {
        let Range { start, end } = self.span(block, rows.len());
        self.sums.have(8 * block as usize, 8 * block as usize + 8)?;
        let said = self.sums.bytes().as_chunks().0.get(block as usize).map(|sum| u64::from_le_bytes(*sum));
        if Some(xxh3_64(&rows[start..end])) != said {
            let first = block << self.shift;
            let last = first + ((end - start) / self.row_bytes) as u64 - 1;
            let detail = format!(
                "rows {first} to {last} do not have their checksum: they, or the checksums beside them, changed since they \
                 were written; `gristmill verify` says what is damaged, and verify=\"off\" takes the rows as they are"
            );
            let e = Error::new(Kind::Corrupt, detail).at_byte(self.offset + start as u64);
            return Err(e.in_source(self.path.display().to_string()));
        }
        let bit = if self.sums.is_bounded() { 0 } else { 1 << (block % 64) };
        if bit != 0 && self.seen[(block / 64) as usize].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.unseen.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Guarding for Guard {
    fn touch(&self, row: u64, records: &HeldFile) -> Result<()> {
        let block = row >> self.shift;
        let seen = self.seen[(block / 64) as usize].load(Ordering::Relaxed);
        if seen >> (block % 64) & 1 == 1 {
            return Ok(());
        }
        let Some(checked) = self.checked.get(block as usize) else { return self.check(block, records.bytes()) };
        // Bytes that arrive while they are checked are checked once more.
        let Range { start, end } = self.span(block, records.bytes().len());
        let now = (records.arrivals(start, end) as u32).wrapping_add(1);
        if checked.load(Ordering::Relaxed) != now {
            self.check(block, records.bytes())?;
            checked.store(now, Ordering::Relaxed);
        }
        Ok(())
    }

    fn touch_all(&self, first: u64, rows: &[u64], records: &HeldFile) -> Result<()> {
        if self.unseen.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        rows.iter().try_for_each(|row| self.touch(row - first, records))
    }

    fn check_all(&self, records: &[u8]) -> Result<()> {
        (0..self.blocks(records)).try_for_each(|block| self.check(block, records))
    }

    fn far_sums(&self) -> Option<&HeldFile> {
        (!self.sums.is_whole()).then_some(&self.sums)
    }

    fn sums_of(&self, rows: Range<u64>) -> (usize, usize) {
        (8 * (rows.start >> self.shift) as usize, 8 * (rows.end.saturating_sub(1) >> self.shift) as usize + 8)
    }

    fn block(&self, row: u64) -> Range<u64> {
        let first = row >> self.shift << self.shift;
        first..first + (1 << self.shift)
    }
}

/// The checksums of the blocks of a file that this program wrote just now.
pub(super) fn written(path: &Path) -> std::io::Result<Vec<u64>> {
    let bytes = std::fs::read(beside(path))?;
    Ok(bytes.get(HEAD..).unwrap_or_default().as_chunks().0.iter().map(|sum| u64::from_le_bytes(*sum)).collect())
}

const REMEDY: &str =
    "where the rows are as they should be, `gristmill checksum PACK --overwrite` makes checksums again";
