//! A whole file as one slice of bytes: mapped, so that the system reads the pages that are touched, or read into memory. What is
//! elsewhere is mapped as its twin, whose bytes are there once they were asked for.
//! A mapped file must not be cut while it is held; cutting it ends the process, as with any mapping.
#![allow(unsafe_code)]

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::source::{ReadAt, read_full};
use gristmill_format::{Error, Kind, Result};
use memmap2::{Advice, Mmap, MmapMut};

use super::bucket::{Counts, counts_of};
use super::copied::here;
use super::open_file;
use super::pool::Pool;
use super::twin::{Claims, Hold, Twin};

/// Where the bytes of a held file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Residence {
    /// In the system's cache of files, as far as it has room.
    #[default]
    Mapped,
    /// In memory of this process, on huge pages where there are any.
    Memory,
    /// As `Mapped`; but a file that is elsewhere is kept in memory of this process, as far as its user wants it: for those who
    /// read a small part, and leave the cache as it is.
    Unkept,
}

/// The bytes of a file from an offset on.
#[derive(Debug)]
pub struct HeldFile {
    bytes: Bytes,
    offset: usize,
    len: usize,
    counts: Option<Arc<Counts>>,
    /// The pool that frees blocks of the file. `None` if nothing frees them.
    pool: Option<Arc<Pool>>,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Memory(MmapMut),
    Twin(Mmap, Arc<Twin>),
}

impl HeldFile {
    /// Holds `len` bytes of the file at `path` from `offset` on.
    ///
    /// Errors, with the path: `Io`; `Truncated` when the file ends before that; `TooLarge` when there is no such memory.
    pub fn open(path: &Path, offset: u64, len: u64, residence: Residence) -> Result<Self> {
        HeldFile::of(path, open_file(path)?, offset, len, residence)
    }

    /// The same of a file that is open.
    ///
    /// Errors: as [`HeldFile::open`].
    pub fn of(path: &Path, from: Arc<dyn ReadAt>, offset: u64, len: u64, residence: Residence) -> Result<Self> {
        let place = |e: Error| e.in_source(path.display().to_string());
        let there = from.len().map_err(place)?;
        if offset.checked_add(len).is_none_or(|end| end > there) {
            let detail = format!("expected {len} bytes from byte {offset} on, the file has {there}");
            return Err(place(Error::new(Kind::Truncated, detail).at_byte(there)));
        }
        let size = |n: u64| usize::try_from(n).map_err(|_| place(Error::new(Kind::TooLarge, format!("{n} bytes"))));
        let (offset, len) = (size(offset)?, size(len)?);
        let own = here(path);
        let (bytes, offset) = match residence {
            Residence::Mapped | Residence::Unkept if own.is_some() => {
                let path = own.as_deref().unwrap_or(path);
                (Bytes::Mapped(mapped(&File::open(path).map_err(|e| place(e.into()))?).map_err(place)?), offset)
            }
            Residence::Mapped | Residence::Unkept => {
                let is_kept = residence == Residence::Mapped;
                let twin = if is_kept { Twin::new(path, from) } else { Twin::unkept(path, from) }.map_err(place)?;
                (Bytes::Twin(mapped(twin.file()).map_err(place)?, Arc::new(twin)), offset)
            }
            Residence::Memory => {
                let none = |e: std::io::Error| Error::new(Kind::TooLarge, format!("{len} bytes of memory: {e}"));
                let mut map = MmapMut::map_anon(len.max(1)).map_err(|e| place(none(e)))?;
                let _ = map.advise(Advice::HugePage);
                fill(&*from, offset as u64, &mut map[..len]).map_err(place)?;
                (Bytes::Memory(map), 0)
            }
        };
        Ok(HeldFile { bytes, offset, len, counts: counts_of(path), pool: None })
    }

    /// Holds `len` bytes of the file at `path` from `offset` on; `from` reads the file. The cache keeps a part of the file, and `pool` frees
    /// blocks again. [`HeldFile::hold`] keeps bytes from being freed.
    ///
    /// Errors: as [`HeldFile::open`].
    pub fn of_pool(path: &Path, from: Arc<dyn ReadAt>, offset: u64, len: u64, pool: &Arc<Pool>) -> Result<Self> {
        let place = |e: Error| e.in_source(path.display().to_string());
        let whole = from.len().map_err(place)?;
        if offset.checked_add(len).is_none_or(|end| end > whole) {
            let detail = format!("expected {len} bytes from byte {offset} on, the file has {whole}");
            return Err(place(Error::new(Kind::Truncated, detail).at_byte(whole)));
        }
        let size = |n: u64| usize::try_from(n).map_err(|_| place(Error::new(Kind::TooLarge, format!("{n} bytes"))));
        let (offset, len) = (size(offset)?, size(len)?);
        let twin = pool.twin(path, from).map_err(place)?;
        let map = mapped(twin.file()).map_err(place)?;
        Ok(HeldFile {
            bytes: Bytes::Twin(map, twin),
            offset,
            len,
            counts: counts_of(path),
            pool: Some(Arc::clone(pool)),
        })
    }

    /// The bytes. Of a file that is elsewhere those that [`HeldFile::have`] was asked for.
    pub fn bytes(&self) -> &[u8] {
        let all: &[u8] = match &self.bytes {
            Bytes::Mapped(map) | Bytes::Twin(map, _) => map,
            Bytes::Memory(map) => map,
        };
        &all[self.offset..self.offset + self.len]
    }

    /// Counts of what this process asks of the store that the file is in; none of this machine.
    pub fn counts(&self) -> Option<Arc<Counts>> {
        self.counts.clone()
    }

    /// Bytes of the whole file, where it is elsewhere.
    pub fn far_bytes(&self) -> Option<u64> {
        self.twin().map(|twin| twin.len())
    }

    /// Whether all bytes are there without being asked for.
    pub fn is_whole(&self) -> bool {
        !matches!(self.bytes, Bytes::Twin(..))
    }

    /// Whether all bytes are there now, and stay: also of a file that is elsewhere, once all of it came.
    pub fn has_all(&self) -> bool {
        self.twin().is_none_or(|twin| twin.has_all())
    }

    /// Sees to it that bytes `start..end` are there: fetches them from where the file is, once.
    ///
    /// Errors, with the path: those of reading; `Truncated` where the file became shorter.
    pub fn have(&self, start: usize, end: usize) -> Result<()> {
        match &self.bytes {
            Bytes::Twin(..) => self.have_all(&[(start, end)]),
            Bytes::Mapped(_) | Bytes::Memory(_) => Ok(()),
        }
    }

    /// The same of several ranges at once.
    ///
    /// Errors: as [`HeldFile::have`].
    pub fn have_all(&self, ranges: &[(usize, usize)]) -> Result<()> {
        let Some(twin) = self.twin() else { return Ok(()) };
        twin.have(&self.within(ranges))
    }

    /// Whether bytes `start..end` are there and stay there: nobody has to ask for them.
    pub fn keeps(&self, start: usize, end: usize) -> bool {
        let Some(twin) = self.twin() else { return true };
        !self.is_bounded() && twin.has(&[((self.offset + start) as u64, (self.offset + end.min(self.len)) as u64)])
    }

    /// Fetches the bytes of `ranges` if they are missing. They stay while this thread has the returned value. `None` if nothing frees bytes
    /// of this file.
    ///
    /// Errors: as [`HeldFile::have`].
    pub fn hold(&self, ranges: &[(usize, usize)]) -> Result<Option<Hold>> {
        let Some(claims) = self.claim(ranges) else { return Ok(None) };
        Ok(Claims::bring(vec![claims])?.pop().map(Hold::of))
    }

    /// How often the blocks of bytes `start..end` came to this machine, all together: another number after any of them was fetched
    /// again. 0 if nothing frees bytes of this file.
    pub fn arrivals(&self, start: usize, end: usize) -> u64 {
        let range = ((self.offset + start) as u64, (self.offset + end.min(self.len)) as u64);
        self.twin().map_or(0, |twin| twin.arrivals(range))
    }

    /// Whether fetched bytes may be freed later, unless a thread holds them.
    pub fn is_bounded(&self) -> bool {
        self.pool.is_some()
    }

    /// Claims what has to be fetched of these ranges, where the file is elsewhere: [`Claims::bring`] fetches it.
    pub fn claim(&self, ranges: &[(usize, usize)]) -> Option<Claims> {
        self.twin()?.claim(&self.within(ranges))
    }

    /// Adds to `claims` what other threads bring of these ranges, where the file is elsewhere. Returns `false` if there is something to claim.
    pub fn awaited(&self, ranges: &[(usize, usize)], claims: &mut Vec<Claims>) -> bool {
        let Some(twin) = self.twin() else { return true };
        let awaited = twin.awaited(&self.within(ranges));
        let are_claimed = awaited.is_some();
        claims.extend(awaited);
        are_claimed
    }

    /// Fetches these ranges again, once, where their bytes turned out to be wrong: `false` of a file that is all here, whose
    /// bytes stay what they are.
    ///
    /// Errors: as [`HeldFile::have`].
    pub fn again(&self, ranges: &[(usize, usize)]) -> Result<bool> {
        let Some(twin) = self.twin() else { return Ok(false) };
        twin.again(&self.within(ranges)).map(|()| true)
    }

    /// What stands for it on this machine, where it is elsewhere.
    pub(super) fn twin(&self) -> Option<&Arc<Twin>> {
        match &self.bytes {
            Bytes::Twin(_, twin) => Some(twin),
            Bytes::Mapped(_) | Bytes::Memory(_) => None,
        }
    }

    /// These ranges as the whole file counts bytes.
    pub(super) fn within(&self, ranges: &[(usize, usize)]) -> Vec<(u64, u64)> {
        let of =
            |(start, end): &(usize, usize)| ((self.offset + start) as u64, (self.offset + end.min(&self.len)) as u64);
        ranges.iter().map(of).collect()
    }

    /// Says that bytes `start..end` will be wanted soon. Costs nothing where they are in memory; never fails.
    pub fn want(&self, start: usize, end: usize) {
        let end = end.min(self.len);
        if let (Bytes::Mapped(map), true) = (&self.bytes, start < end) {
            let _ = map.advise_range(Advice::WillNeed, self.offset + start, end - start);
        }
    }
}

fn mapped(file: &File) -> Result<Mmap> {
    // SAFETY: the mapping is read-only and private to this module. A file that is cut meanwhile raises a signal, which is
    // documented above; bytes that change are read as other bytes, which every reader checks.
    let map = unsafe { Mmap::map(file) }?;
    // Rows are wanted from anywhere: pages around them are not. A wish, which may be refused.
    let _ = map.advise(Advice::Random);
    Ok(map)
}

/// Fills `out` with bytes from `offset` on.
fn fill(from: &dyn ReadAt, offset: u64, out: &mut [u8]) -> Result<()> {
    match read_full(from, offset, out)? {
        done if done == out.len() => Ok(()),
        done => {
            let error = Error::new(Kind::Truncated, "the file became shorter while it was read");
            Err(error.at_byte(offset + done as u64))
        }
    }
}

impl ReadAt for HeldFile {
    fn len(&self) -> Result<u64> {
        Ok(self.len as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len);
        let end = self.len.min(start.saturating_add(buf.len()));
        let _pins = self.hold(&[(start, end)])?;
        buf[..end - start].copy_from_slice(&self.bytes()[start..end]);
        Ok(end - start)
    }
}

/// Zero bytes of this process's own, on huge pages where there are any: touching them for the first time costs a small part of
/// what it costs elsewhere. Only what is touched is taken.
#[derive(Debug)]
pub struct Room(MmapMut);

impl Room {
    /// Room for `len` bytes.
    ///
    /// Errors: `TooLarge` when there is no such memory.
    pub fn new(len: usize) -> Result<Room> {
        let none = |e: std::io::Error| Error::new(Kind::TooLarge, format!("{len} bytes of memory: {e}"));
        let map = MmapMut::map_anon(len.max(1)).map_err(none)?;
        let _ = map.advise(Advice::HugePage);
        Ok(Room(map))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    #[test]
    fn what_is_elsewhere_holds_what_was_asked_for() {
        let rows: Vec<u8> = (0..1 << 20).map(|i| (i >> 8) as u8).collect();
        MemoryStore::named("held").write("a/rows", rows.clone());
        let path = Path::new("memory://held/a/rows");
        let whole = HeldFile::open(path, 100, 1000, Residence::Memory).unwrap();
        assert!(whole.is_whole() && whole.bytes() == &rows[100..1100]);
        let twin = HeldFile::open(path, 100, (1 << 20) - 100, Residence::Mapped).unwrap();
        assert!(!twin.is_whole());
        twin.have(600_000, 600_010).unwrap();
        assert_eq!(twin.bytes()[600_000..600_010], rows[600_100..600_110]);
        let mut read = [0; 16];
        assert_eq!(twin.read_at((1 << 20) - 110, &mut read).unwrap(), 10);
        assert_eq!(read[..10], rows[(1 << 20) - 10..]);
        twin.want(0, 10);
        let e = HeldFile::open(path, 0, 2 << 20, Residence::Mapped).unwrap_err();
        assert!(e.kind() == Kind::Truncated && e.to_string().contains("memory://held/a/rows"), "{e}");
    }

    #[test]
    fn both_residences_hold_the_same_bytes_and_short_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        std::fs::write(&path, (0..200).collect::<Vec<u8>>()).unwrap();
        for residence in [Residence::Mapped, Residence::Memory] {
            let held = HeldFile::open(&path, 10, 100, residence).unwrap();
            assert_eq!(held.bytes(), (10..110).collect::<Vec<u8>>());
            held.want(0, 1000);
            let error = HeldFile::open(&path, 150, 51, residence).unwrap_err();
            assert_eq!(error.kind(), Kind::Truncated);
            assert!(error.to_string().contains("rows"), "{error}");
            assert!(HeldFile::open(&path, u64::MAX, 1, residence).is_err());
            assert!(HeldFile::open(&path, 200, 0, residence).unwrap().bytes().is_empty());
        }
        assert!(HeldFile::open(&folder.path().join("none"), 0, 0, Residence::Mapped).is_err());
    }
}
