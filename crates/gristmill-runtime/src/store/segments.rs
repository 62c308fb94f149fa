//! A growing file of this machine -> numbered objects below a URL, its segments. Another machine makes the file from them. They always
//! hold a beginning of the file. A writer that begins later takes the next number; the bucket then refuses the next segment of every
//! earlier writer. Knows nothing of what lines mean (docs/format/segments.md).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use super::cache::{self, SEGMENTS};
use super::outgoing::{Target, hold};
use super::place::{elsewhere, is_local, resolved};
use super::{Store, files};
use crate::runtime::seed::fresh_root;
use crate::{Error, Result};

/// Bytes before the lines: the writer as 32 hexadecimal digits, a space, the kind, a line feed.
const HEAD: usize = 35;

/// A segment that has the file from its beginning, and one that has what follows the segment before.
const WHOLE: u8 = b'=';
/// See `WHOLE`.
const MORE: u8 = b'+';

/// A segment whose number is a multiple of this has the whole file, so that a reader fetches few segments.
const EVERY: u64 = 256;

/// Bytes of the largest segment that is read.
const MOST: u64 = 1 << 32;

/// A file of one rank that is also written below a URL.
#[derive(Debug)]
pub struct Segments {
    target: Target,
    /// The folder of the rank there.
    folder: String,
    /// The file of this machine.
    local: PathBuf,
    writer: String,
    /// The number of the next segment.
    next: u64,
    /// Whether this writer has sent a segment.
    is_claimed: bool,
    /// Bytes of the file that were sent, where the last segment began, and the hash of what it has.
    sent: u64,
    last: (u64, u128),
}

/// Where a rank keeps its segments below the place.
fn of_rank(rank: u64, world: u64) -> String {
    format!("{rank}-of-{world}")
}

/// The name that the file of a rank has on this machine: the name of the place, and the rank if there are several.
fn local_name(place: &Path, rank: &str) -> String {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    if rank == of_rank(0, 1) { name.into_owned() } else { format!("{name}.{rank}") }
}

impl Segments {
    /// Fetches the files that all ranks wrote below `place` into a folder of this machine. The folder is of this rank alone, and locked
    /// against other processes of this machine. The option `field` names the place. The first segment that is sent claims it.
    ///
    /// Errors: `Config` in `field` for a place that cannot be written, and where another process of this machine writes there; `Path` and
    /// `Format` of reading; `Path` for segments that are not there or damaged.
    pub fn open(place: &Path, field: &str, (rank, world): (u64, u64)) -> Result<(Self, File)> {
        let target = Target::of(place, field)?;
        let target = target.ok_or_else(|| Error::config(field, format!("{} is no URL", place.display())))?;
        let (rank, text) = (of_rank(rank, world), target.place.display().to_string());
        let kept = cache::root()?.join(SEGMENTS).join(format!("{:032x}", xxh3_128(text.as_bytes()))).join(&rank);
        let lock = hold(&kept, &text, field)?;
        let files = kept.join("files");
        match fs::remove_dir_all(&files) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::path(&files, &e)),
            _ => fs::create_dir_all(&files).map_err(|e| Error::path(&files, &e))?,
        }
        let found = family(&target.place)?;
        make(&files, &target.place, &found)?;
        let segments = Segments {
            folder: format!("{}/{rank}", target.name),
            local: files.join(local_name(&target.place, &rank)),
            target,
            writer: format!("{:016x}{:016x}", fresh_root(), fresh_root()),
            next: found.get(&rank).map_or(0, |made| made.next),
            is_claimed: false,
            sent: 0,
            last: (0, xxh3_128(&[])),
        };
        Ok((segments, lock))
    }

    /// The path of the file on this machine, without the rank.
    pub fn path(&self) -> PathBuf {
        self.local.with_file_name(self.target.place.file_name().unwrap_or_default())
    }

    /// Sends the whole lines that were written since the last segment. The first call sends all lines, even if there are none.
    ///
    /// Errors: `Path` where another writer took the next segment, and where the file was written over; `Path` and `Format` of reading and
    /// writing.
    pub fn send(&mut self) -> Result<()> {
        let at = |e: std::io::Error| Error::path(&self.local, &e);
        let (from, hash) = self.last;
        let is_whole = !self.is_claimed || self.next.is_multiple_of(EVERY);
        let (mut bytes, begin) = (Vec::new(), if is_whole { 0 } else { from });
        match File::open(&self.local) {
            Err(e) if e.kind() == ErrorKind::NotFound && self.sent == 0 => {}
            file => {
                let mut file = file.map_err(at)?;
                file.seek(SeekFrom::Start(begin)).map_err(at)?;
                file.read_to_end(&mut bytes).map_err(at)?;
            }
        }
        let known = bytes.get((from - begin) as usize..(self.sent - begin) as usize);
        if known.is_none_or(|known| xxh3_128(known) != hash) {
            let text = "what was sent of it to its place in the bucket was written over here";
            return Err(Error::Path { path: self.local.clone(), kind: ErrorKind::InvalidData, message: text.into() });
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(whole);
        if self.is_claimed && begin + whole as u64 <= self.sent {
            return Ok(());
        }
        let known = (self.sent - begin) as usize;
        match is_whole {
            true => self.put(WHOLE, 0, &bytes),
            false => self.put(MORE, self.sent, &bytes[known..]),
        }
    }

    fn put(&mut self, kind: u8, begin: u64, lines: &[u8]) -> Result<()> {
        let name = format!("{}/{:08}", self.folder, self.next);
        let bytes = [self.writer.as_bytes(), b" ", &[kind], b"\n", lines].concat();
        if !self.target.writes()?.put(&name, bytes, true)? {
            let path = PathBuf::from(format!("{}/{name}", self.target.store.root()));
            let message =
                "another loader has written this segment; end one of both, and resume from the last state".to_owned();
            return Err(Error::Path { path, kind: ErrorKind::AlreadyExists, message });
        }
        self.next += 1;
        self.is_claimed = true;
        (self.sent, self.last) = (begin + lines.len() as u64, (begin, xxh3_128(lines)));
        Ok(())
    }
}

/// What the segments of a rank say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// The number that the next segment has.
    next: u64,
}

/// Makes the files from the segments below `place`, by the rank that wrote them, such as `0-of-1`. Empty if there are no segments.
///
/// Errors: `Path` and `Format` of reading; `Path` for segments that are missing or damaged.
pub fn family(place: &Path) -> Result<BTreeMap<String, Made>> {
    let place = &*resolved(place)?;
    let Some(found) = elsewhere(place) else { return Ok(BTreeMap::new()) };
    let (store, name) = match found {
        Err(Error::Path { kind: ErrorKind::NotFound, .. }) => return Ok(BTreeMap::new()),
        found => found?,
    };
    let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (rank, number) in names(&*store, &name)? {
        numbers.entry(rank).or_default().push(number);
    }
    let one = |(rank, mut numbers): (String, Vec<u64>)| {
        numbers.sort_unstable();
        let made = read(&place.join(&rank), &numbers)?;
        Ok((rank, made))
    };
    numbers.into_iter().map(one).collect()
}

/// Ranks and numbers of the segments below a name of a store. Other objects are passed over.
fn names(store: &dyn Store, name: &str) -> Result<Vec<(String, u64)>> {
    let (folder, mut found) = (format!("{name}/"), Vec::new());
    let faults = store.list_below(name, &mut |stat| {
        if let Some((rank, number)) = stat.name.strip_prefix(&folder).and_then(|rest| rest.split_once('/'))
            && let Some((r, n)) = rank.split_once("-of-")
            && [r, n, number].iter().all(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
            && let Ok(number) = number.parse()
        {
            found.push((rank.to_owned(), number));
        }
        std::ops::ControlFlow::Continue(())
    });
    match faults.messages().last() {
        Some(why) => {
            let (path, message) = (format!("{}/{name}", store.root()).into(), why.to_owned());
            Err(Error::Path { path, kind: ErrorKind::Other, message })
        }
        None => Ok(found),
    }
}

/// Joins segments, from the last one that has the whole file.
fn read(folder: &Path, numbers: &[u64]) -> Result<Made> {
    let mut parts = Vec::new();
    let mut expected = numbers.last().copied();
    for number in numbers.iter().rev() {
        let path = folder.join(format!("{number:08}"));
        let refuse = |text: &str| {
            let message = format!("{text}; its writer cannot be resumed from here: name another place for a new run");
            Err(Error::Path { path: path.clone(), kind: ErrorKind::InvalidData, message })
        };
        if expected != Some(*number) {
            return refuse("the segment after this one is not there");
        }
        let bytes = files::read(&path, MOST)?.ok_or_else(|| Error::path(&path, &ErrorKind::NotFound.into()))?;
        let Some((head, lines)) =
            bytes.split_at_checked(HEAD).filter(|(_, lines)| lines.last().is_none_or(|b| *b == b'\n'))
        else {
            return refuse("no segment, or one that was cut");
        };
        parts.push(lines.to_vec());
        match &head[HEAD - 3..] {
            [b' ', WHOLE, b'\n'] => {
                let bytes = parts.into_iter().rev().flatten().collect();
                return Ok(Made { bytes, next: numbers.last().map_or(0, |last| last + 1) });
            }
            [b' ', MORE, b'\n'] => expected = number.checked_sub(1),
            _ => return refuse("no segment"),
        }
    }
    let (path, message) = (folder.to_owned(), "the first segments are not there".to_owned());
    Err(Error::Path { path, kind: ErrorKind::InvalidData, message })
}

fn make(folder: &Path, place: &Path, found: &BTreeMap<String, Made>) -> Result<()> {
    for (rank, Made { bytes, .. }) in found.iter().filter(|(_, made)| !made.bytes.is_empty()) {
        let path = folder.join(local_name(place, rank));
        fs::write(&path, bytes).map_err(|e| Error::path(&path, &e))?;
    }
    Ok(())
}

/// Copies on this machine of the files below a URL. Dropping the value removes them.
#[derive(Debug)]
pub struct Copied {
    folder: PathBuf,
    path: PathBuf,
}

impl Copied {
    /// Copies the files from the segments below `place`. `None` if `place` is on this machine.
    ///
    /// Errors: as [`family`].
    pub fn of(place: &Path) -> Result<Option<Self>> {
        let place = &*resolved(place)?;
        if is_local(place) {
            return Ok(None);
        }
        let folder = std::env::temp_dir().join(format!("gristmill-segments-{:016x}", fresh_root()));
        let copied = Copied { path: folder.join(place.file_name().unwrap_or_default()), folder };
        fs::create_dir_all(&copied.folder).map_err(|e| Error::path(&copied.folder, &e))?;
        make(&copied.folder, place, &family(place)?)?;
        Ok(Some(copied))
    }

    /// The path of the copies on this machine.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        // The system removes what stays: it is a temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
