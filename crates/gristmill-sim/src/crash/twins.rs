//! Reads of a file that is elsewhere, through the cache of this machine, some by other processes meanwhile -> after every crash each byte
//! that is read is the file's, what the cache has is not fetched again, and a cache with a bound takes no more than that. By
//! docs/design/2026-11-23-buckets.md.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_engine::store::{Cache, HeldFile, Pool, Residence, set_cache};
use gristmill_format::Result as Read;
use gristmill_format::source::ReadAt;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::kept::{Keeps, Left};
use super::process::{Deed, Ended};
use super::tree::{Node, Tree};
use crate::chooser::Chooser;
use crate::less::Less;

/// Bytes of a block, and bytes that a cache has room for which keeps a part of the file.
const BLOCK: u64 = 256 << 10;
const ROOM: u64 = 4 * BLOCK;

/// Bytes of the name, the journal and the folder of a file, and of the end of its last page, at most.
const BESIDE: u64 = 16 << 10;

/// Bytes of a page of a disk.
const PAGE: u64 = 4096;

/// How often a world asks for a pool, every 10 ms.
const LOCKED: u32 = 500;

/// The version of each file.
const VERSION: u64 = 7;

/// The cache is one for the whole process: one world at a time has it.
static CACHE: Mutex<()> = Mutex::new(());

/// What the cache has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Room {
    /// A part of a file: each process has a part of its own.
    Part,
    /// One file.
    One,
    /// All that is read.
    All,
}

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Reader {
    This,
    /// Another process, which begins and ends while this one has the file open.
    Another,
    /// The same, of another file.
    AnotherFile,
}

/// Blocks that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Blocks {
    first: u64,
    many: u64,
    /// Whether they are fetched again though they are there.
    again: bool,
    reader: Reader,
}

/// What a process reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The name of the file.
    file: String,
    /// What tells the bytes of the file from others.
    content: u64,
    /// Bytes of the file.
    len: u64,
    room: Room,
    /// One after the other.
    reads: Vec<Blocks>,
}

/// The file where it is, which notes the blocks that are fetched.
struct Far {
    bytes: Arc<[u8]>,
    fetched: Mutex<BTreeSet<u64>>,
}

impl Far {
    /// The blocks that were fetched since the last call.
    fn fetched(&self) -> BTreeSet<u64> {
        std::mem::take(&mut self.fetched.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ReadAt for Far {
    fn len(&self) -> Read<u64> {
        ReadAt::len(&*self.bytes)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Read<usize> {
        let read = self.bytes.read_at(offset, buf)?;
        let blocks = offset / BLOCK..(offset + read as u64).div_ceil(BLOCK);
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner).extend(blocks);
        Ok(read)
    }

    fn version(&self) -> Option<u64> {
        Some(VERSION)
    }
}

/// The file as this process reads it.
struct Opened {
    far: Arc<Far>,
    file: HeldFile,
    _alone: MutexGuard<'static, ()>,
}

fn said(e: impl std::fmt::Display) -> Ended {
    Ended::Refused(e.to_string())
}

/// The pool of files. A program that another thread starts has a copy of all descriptors for a moment, that of the lock of the pool before among
/// them: so long the cache has no room.
fn pool(files: &[(&Path, &Arc<dyn ReadAt>)]) -> Result<Arc<Pool>, Ended> {
    for _ in 0..LOCKED {
        if let Some(pool) = Pool::for_files(files).map_err(said)? {
            return Ok(pool);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(Ended::Wrong("the cache keeps the whole file, or has no room".to_owned()))
}

impl Opened {
    fn new(reading: &Reading, bytes: &Arc<[u8]>, root: &Path) -> Result<Self, Ended> {
        let alone = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        set_cache(Cache { folder: Some(root.join("cache")), limit: Some(reading.limit()) });
        let far = Arc::new(Far { bytes: Arc::clone(bytes), fetched: Mutex::default() });
        let path = Path::new(&reading.file);
        let from: Arc<dyn ReadAt> = Arc::clone(&far) as _;
        let file = if reading.room == Room::Part {
            let pool = pool(&[(path, &from)])?;
            HeldFile::of_pool(path, from, 0, reading.len, &pool).map_err(said)?
        } else {
            HeldFile::of(path, from, 0, reading.len, Residence::Mapped).map_err(said)?
        };
        Ok(Opened { far, file, _alone: alone })
    }

    /// Reads blocks, and holds them against the file.
    fn read(&self, Blocks { first, many, again, .. }: Blocks) -> Result<(), Ended> {
        let len = self.far.bytes.len() as u64;
        let (start, end) = ((first * BLOCK).min(len) as usize, ((first + many) * BLOCK).min(len) as usize);
        let _held = self.file.hold(&[(start, end)]).map_err(said)?;
        if again {
            self.file.again(&[(start, end)]).map_err(said)?;
        }
        match self.file.bytes()[start..end] == self.far.bytes[start..end] {
            true => Ok(()),
            false => Err(Ended::Wrong(format!("blocks {first} to {} are not those of the file", first + many))),
        }
    }
}

impl Deed for Reading {
    const NAME: &'static str = "read";

    /// The process after a crash is alone.
    fn does(&self, root: &Path, again: bool) -> Result<(), Ended> {
        let opened = Opened::new(self, &self.bytes(), root)?;
        // Blocks that are there: this process or another one has read them.
        let mut there = BTreeSet::new();
        for blocks in self.reads.iter().copied() {
            if blocks.reader == Reader::This {
                opened.read(blocks)?;
                let fetched = opened.far.fetched();
                if self.room != Room::Part && !blocks.again && !fetched.is_disjoint(&there) {
                    return Err(Ended::Wrong(format!("{fetched:?} were fetched, and {there:?} were there")));
                }
                there.extend(self.inside(blocks));
            } else if !again {
                let could = self.by_another(root, blocks)?;
                match blocks.reader == Reader::Another {
                    true if could => there.extend(self.inside(blocks)),
                    // It may have been refused after it took the blocks out of the journal.
                    true if blocks.again => there.retain(|block| !self.inside(blocks).any(|own| own == *block)),
                    _ => {}
                }
            }
            self.fits(root).map_err(Ended::Wrong)?;
        }
        Ok(())
    }
}

/// What the cache has of the file.
#[derive(Default)]
struct There {
    /// The sparse file.
    path: Option<PathBuf>,
    /// Blocks that the journal has.
    noted: BTreeSet<u64>,
    /// Those of them that are as the journal says.
    sound: BTreeSet<u64>,
}

impl There {
    fn of(tree: &Tree, file: &str) -> Self {
        let mut there = There::default();
        let bytes = |name: &Path| match tree.names.get(name) {
            Some(Node::File(number)) => &*tree.files[*number],
            _ => &[],
        };
        let own = format!("{:016x}-{VERSION:016x}/blocks", xxh3_64(file.as_bytes()));
        let Some(journal) = tree.names.keys().find(|name| name.ends_with(&own)) else { return there };
        let path = journal.with_file_name("bytes");
        // A checksum that was torn at the end of the journal: the rest of it is zeros for the next process.
        for (block, sum) in bytes(journal).chunks(8).enumerate() {
            let start = (block as u64 * BLOCK) as usize;
            let own = bytes(&path);
            let own = own.get(start..own.len().min(start + BLOCK as usize)).unwrap_or_default();
            if sum.iter().any(|byte| *byte != 0) {
                there.noted.insert(block as u64);
                if sum == xxh3_64(own).max(1).to_le_bytes() {
                    there.sound.insert(block as u64);
                }
            }
        }
        there.path = Some(path).filter(|path| tree.names.contains_key(path));
        there
    }
}

impl Reading {
    fn blocks(&self) -> u64 {
        self.len.div_ceil(BLOCK)
    }

    /// Those of some blocks that the file has.
    fn inside(&self, Blocks { first, many, .. }: Blocks) -> impl Iterator<Item = u64> {
        first..(first + many).min(self.blocks())
    }

    /// Bytes that the cache may take.
    fn limit(&self) -> u64 {
        match self.room {
            Room::Part => ROOM,
            Room::One => self.len,
            Room::All => 1 << 30,
        }
    }

    /// Whether a cache with room for one file has no other one.
    fn fits(&self, root: &Path) -> Result<(), String> {
        let taken = size(&root.join("cache"));
        match self.room == Room::One && taken > self.limit() + BESIDE {
            true => Err(format!("{taken} bytes in a cache of {}", self.limit())),
            false => Ok(()),
        }
    }

    /// Another process reads blocks, and ends. Whether it could: in a cache with room for one file, others have none.
    fn by_another(&self, root: &Path, blocks: Blocks) -> Result<bool, Ended> {
        let mut reading = Reading { reads: vec![Blocks { reader: Reader::This, ..blocks }], ..self.clone() };
        if blocks.reader == Reader::AnotherFile {
            reading = Reading { file: format!("{}-others", self.file), content: !self.content, ..reading };
        }
        let words = serde_json::to_string(&reading).map_err(said)?;
        let mut command = Command::new(std::env::current_exe().map_err(said)?);
        command.args(["job", Reading::NAME, "fresh"]).arg(root).arg(words).stdin(Stdio::null());
        match command.status().map_err(said)?.code() {
            Some(0) => Ok(true),
            Some(code) if code == i32::from(Ended::CODES[0]) => Ok(false),
            code => Err(Ended::Wrong(format!("another process ended with {code:?}, and said above why"))),
        }
    }

    /// The bytes of the file, none of them zero: a hole is never right.
    fn bytes(&self) -> Arc<[u8]> {
        let mut chooser = Chooser::new(self.content);
        let words = (0..self.len.div_ceil(8)).flat_map(|_| (chooser.bits() | 0x0101_0101_0101_0101).to_le_bytes());
        words.take(self.len as usize).collect()
    }
}

impl Keeps for Reading {
    const PURPOSE: u64 = 0x7477_696e;

    /// The bytes of the file.
    type Known = Arc<[u8]>;

    fn drawn(c: &mut Chooser) -> Self {
        let room = [Room::Part, Room::Part, Room::All, Room::One][c.below(4) as usize];
        let blocks = if room == Room::Part { c.within(5, 7) } else { c.within(1, 3) };
        let reader = |c: &mut Chooser| match c.below(6) {
            0 | 1 if room != Room::Part => Reader::Another,
            2 if room != Room::Part => Reader::AnotherFile,
            _ => Reader::This,
        };
        let read = |c: &mut Chooser| {
            let (first, many, again) = (c.below(blocks), c.within(1, 2), c.once_in(8));
            Blocks { first, many, again, reader: reader(c) }
        };
        let reads = (0..c.within(3, 9)).map(|_| read(c)).collect();
        let len = (blocks - 1) * BLOCK + c.within(1, BLOCK);
        Reading { file: "s3://sim/rows".to_owned(), content: c.bits(), len, room, reads }
    }

    fn prepare(&self, root: &Path) -> Result<Arc<[u8]>, String> {
        std::fs::create_dir(root.join("cache")).map_err(|e| e.to_string())?;
        Ok(self.bytes())
    }

    fn judge(&self, root: &Path, bytes: &Arc<[u8]>, left: &Left<'_>) -> Result<(), String> {
        let there = There::of(left.tree, &self.file);
        let opened = Opened::new(self, bytes, root).map_err(|e| format!("the file is not opened: {e:?}"))?;
        let taken = || {
            there.path.as_ref().and_then(|path| root.join(path).metadata().ok()).map_or(0, |meta| meta.blocks() * 512)
        };
        let noted = there.noted.len() as u64 * BLOCK;
        let is_part = self.room == Room::Part;
        if is_part && taken() > noted {
            return Err(format!("{} bytes of the disk, and the journal has {noted}", taken()));
        }
        // What is there first: reading others may take its place.
        let missing = (0..self.blocks()).filter(|block| !there.sound.contains(block));
        let one = |first| Blocks { first, many: 1, again: false, reader: Reader::This };
        let read = |block: u64| opened.read(one(block)).map_err(|e| format!("{e:?}"));
        there.sound.iter().try_for_each(|block| read(*block))?;
        let again = opened.far.fetched();
        if noted <= ROOM && !again.is_empty() {
            return Err(format!("blocks {again:?} were fetched, and the cache had them"));
        }
        missing.clone().try_for_each(read)?;
        let fetched = opened.far.fetched();
        if noted <= ROOM && fetched != missing.collect() {
            return Err(format!("blocks {fetched:?} were fetched, and the cache had {:?}", there.sound));
        }
        self.fits(root)?;
        match is_part && taken() > ROOM + PAGE {
            true => Err(format!("{} bytes of the disk, and the cache has room for {ROOM}", taken())),
            false => Ok(()),
        }
    }

    fn less(&self) -> Vec<Self> {
        let mut less = Less::of(self);
        (0..self.reads.len()).for_each(|i| less.push(|s| _ = s.reads.remove(i)));
        (0..self.reads.len()).for_each(|i| less.push(|s| s.reads[i].again = false));
        (0..self.reads.len()).for_each(|i| less.push(|s| s.reads[i].reader = Reader::This));
        less.found()
    }
}

/// Bytes of the disk that a folder takes, with all that is in it.
fn size(folder: &Path) -> u64 {
    let of = |entry: std::fs::DirEntry| {
        let meta = entry.metadata().ok()?;
        Some(meta.blocks() * 512 + if meta.is_dir() { size(&entry.path()) } else { 0 })
    };
    std::fs::read_dir(folder).into_iter().flatten().flatten().filter_map(of).sum()
}
