//! Solid files -> their plain bytes: read whole once, kept while there is room, and read again after that, into the same memory.
//! One is read at a time, and what is kept has a bound. Which bytes a chunk has never depends on what is kept.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::detect::{self, Format};
use gristmill_format::plain::{Plain, Rooms, Scattered, Whole};
use gristmill_format::source::{ChunkSource, ReadAt, Span};
use gristmill_format::{Error, Kind, Result};

/// How many times its bound the reading of one file takes: stored, unpacked, parsed, and records that grow.
const READING: u64 = 6;

/// How many times the bound of one file is kept.
const KEPT: u64 = 4;

/// What is said of a file whose bytes are others than when it was first read.
const CHANGED: &str = "its bytes are others than when it was first read: it was written over in place; write a new file and rename \
                       it, and it is taken in as a new one";

/// The solid files of one loader.
#[derive(Debug)]
pub struct Solids {
    /// Most bytes of one file, stored and plain.
    most: u64,
    next: AtomicU64,
    /// Held while a file is read: memory of files that are kept no longer.
    reading: Mutex<Rooms>,
    kept: Mutex<Kept>,
    /// Bytes of memory that places in files take: at most `most`, a part of what is kept.
    places: AtomicU64,
}

/// Plain bytes, by the number of their file: those that were used last come last.
#[derive(Debug, Default)]
struct Kept {
    files: VecDeque<(u64, Box<dyn Plain>)>,
    /// Bytes of memory that they take.
    bytes: u64,
}

impl Kept {
    fn remove(&mut self, number: u64) -> Option<Box<dyn Plain>> {
        let at = self.files.iter().position(|(other, _)| *other == number)?;
        let (_, plain) = self.files.remove(at)?;
        self.bytes -= plain.takes() as u64;
        Some(plain)
    }

    /// Keeps plain bytes as those that were used last; the memory of what goes for them is given to `rooms`.
    fn keep(&mut self, number: u64, plain: Box<dyn Plain>, most: u64, rooms: &mut Rooms) {
        self.remove(number);
        let takes = plain.takes() as u64;
        while self.bytes.saturating_add(takes) > most
            && let Some((_, oldest)) = self.files.pop_front()
        {
            self.bytes -= oldest.takes() as u64;
            rooms.give(oldest.into_room());
        }
        self.put(number, plain);
    }

    fn put(&mut self, number: u64, plain: Box<dyn Plain>) {
        self.bytes += plain.takes() as u64;
        self.files.push_back((number, plain));
    }
}

impl Solids {
    /// Files of at most `most` bytes each, stored and plain.
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(Solids {
            most,
            next: AtomicU64::default(),
            reading: Mutex::default(),
            kept: Mutex::default(),
            places: AtomicU64::default(),
        })
    }

    /// Bytes of memory that files of at most `most` bytes can take, however many there are.
    pub const fn promised(most: u64) -> u64 {
        most.saturating_mul(READING + KEPT)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a file whole for the first time: what it is, where its chunks are, and the errors that left them whole.
    ///
    /// Errors: `TooLarge` beyond the bound, with what to do; as of [`detect::read_whole`].
    pub(super) fn open(self: &Arc<Self>, format: Format, key: &str, from: &dyn ReadAt) -> Result<(Solid, Opened)> {
        let rooms = &mut *self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let (whole, stored) = self.read(format, key, from, rooms)?;
        let Whole { chunks, plain, faults } = whole;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let sums = Sums { stored, plain: plain.digest() };
        let scattered = if from.is_local() { self.places_of(&*chunks, &*plain) } else { None };
        let solid = Solid { solids: Arc::clone(self), format, key: key.to_owned(), number, sums, scattered };
        self.keep(number, plain, rooms);
        Ok((solid, Opened { chunks, faults }))
    }

    fn keep(&self, number: u64, plain: Box<dyn Plain>, rooms: &mut Rooms) {
        let most = self.most.saturating_mul(KEPT).saturating_sub(self.places.load(Ordering::Relaxed));
        self.kept().keep(number, plain, most, rooms);
    }

    /// Where the chunks of a file lie in it, if there is room for that.
    fn places_of(&self, chunks: &dyn ChunkSource, plain: &dyn Plain) -> Option<Box<dyn Scattered>> {
        let mut spans = (0..chunks.len()).filter_map(|chunk| Some(chunks.locate(chunk)?.0));
        let scattered = plain.scattered(&mut spans)?;
        let takes = scattered.takes() as u64;
        let fits = |taken: u64| taken.checked_add(takes).filter(|all| *all <= self.most);
        self.places.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(scattered)
    }

    fn read(&self, format: Format, key: &str, from: &dyn ReadAt, rooms: &mut Rooms) -> Result<(Whole, u64)> {
        let most = usize::try_from(self.most).unwrap_or(usize::MAX);
        let whole = detect::read_whole(format, key, from, most, rooms)
            .and_then(|read| if read.0.plain.len() > most { Err(Error::new(Kind::TooLarge, "")) } else { Ok(read) });
        whole.map_err(|e| match e.kind() {
            Kind::TooLarge => Error::new(Kind::TooLarge, self.refusal(from.len().unwrap_or(0))),
            _ => e,
        })
    }

    fn refusal(&self, stored: u64) -> String {
        format!(
            "a file of {stored} bytes that is read whole, of which at most {} are taken, stored and unpacked (max_solid_bytes): raise \
             that, split the file, or write it in a form whose chunks are reached alone: {FORMS}",
            self.most
        )
    }
}

/// Forms whose chunks are reached alone, and how files become such.
const FORMS: &str = "games as a plain .tar or .pgn, all else as a pack (`gristmill pack`)";

/// The refusal of a solid file where none are taken.
pub(super) fn refused() -> Error {
    let detail = format!(
        "a file that is read whole: say how large one may be, such as max_solid_bytes = \"256MiB\", of which memory takes ten \
         times as much; or write it in a form whose chunks are reached alone: {FORMS}"
    );
    Error::new(Kind::Unsupported, detail)
}

/// What was found in a solid file.
pub(super) struct Opened {
    /// Where its chunks lie in its plain bytes.
    pub(super) chunks: Arc<dyn ChunkSource>,
    /// What was wrong with it and left its chunks whole.
    pub(super) faults: Vec<Error>,
}

/// Hashes of a file.
#[derive(Debug, Clone, Copy)]
struct Sums {
    /// Of its stored bytes.
    stored: u64,
    /// Of its plain bytes.
    plain: u64,
}

/// One solid file that was read, and can be read again.
#[derive(Debug)]
pub(super) struct Solid {
    solids: Arc<Solids>,
    format: Format,
    key: String,
    number: u64,
    /// When it was first read.
    sums: Sums,
    /// How its chunks are read without the rest of it.
    scattered: Option<Box<dyn Scattered>>,
}

impl Solid {
    /// What tells its bytes.
    pub(super) fn digest(&self) -> u64 {
        self.sums.plain
    }

    /// Reads a span of its plain bytes into `buf`; from the file, which is `from`, where they are not kept.
    ///
    /// Errors: `Corrupt` where the file is another one now; as of [`read_span`] and of its first reading.
    pub(super) fn read(&self, from: &dyn ReadAt, span: Span, most: u64, buf: &mut Vec<u8>) -> Result<()> {
        if let Some(read) = self.read_kept(span, most, buf) {
            return read;
        }
        if let Some(scattered) = &self.scattered
            && span.len <= most
            && scattered.read(from, span, buf)?
        {
            return Ok(());
        }
        let rooms = &mut *self.solids.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = self.read_kept(span, most, buf) {
            return read;
        }
        let again = self.solids.read(self.format, &self.key, from, rooms);
        let changed = |e: Error| if e.kind().is_of_reading() { e } else { e.and("; ").and(CHANGED) };
        let (Whole { plain, .. }, stored) = again.map_err(changed)?;
        // The same stored bytes mean the same plain ones, which are many more where they are packed.
        if stored != self.sums.stored && plain.digest() != self.sums.plain {
            return Err(Error::new(Kind::Corrupt, CHANGED));
        }
        let read = plain.read(span, most, buf);
        self.solids.keep(self.number, plain, rooms);
        read
    }

    /// Reads a span of what is kept, and keeps it as what was used last.
    fn read_kept(&self, span: Span, most: u64, buf: &mut Vec<u8>) -> Option<Result<()>> {
        let mut kept = self.solids.kept();
        let plain = kept.remove(self.number)?;
        let read = plain.read(span, most, buf);
        kept.put(self.number, plain);
        Some(read)
    }
}

impl Drop for Solid {
    fn drop(&mut self) {
        self.solids.kept().remove(self.number);
        let takes = self.scattered.as_ref().map_or(0, |scattered| scattered.takes() as u64);
        self.solids.places.fetch_sub(takes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use gristmill_format::container::gzip::compress;
    use gristmill_format::container::npy::{Header, Spelling};
    use gristmill_format::container::tar::TarWriter;
    use gristmill_format::layout::{DType, Order, Scalar};
    use gristmill_runtime::store::{DirStore, MemoryStore, Store};

    use super::*;

    /// A file in memory.
    struct File(Vec<u8>);

    impl ReadAt for File {
        fn len(&self) -> Result<u64> {
            ReadAt::len(&*self.0)
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
            self.0.as_slice().read_at(offset, buf)
        }
    }

    #[test]
    fn a_file_that_is_packed_again_is_the_same_and_one_of_other_bytes_is_not() {
        let game = |move_text: &str| format!("[Event \"a\"]\n\n{move_text} *\n").repeat(40);
        let packed = |level, text: &str| File(compress(level, text.as_bytes()).unwrap());
        let text = game("1. e4");
        let solids = Solids::new(1 << 20);
        let (solid, opened) = solids.open(Format::PackedPgn, "a.pgn.gz", &packed(1, &text)).unwrap();
        let (span, _) = opened.chunks.locate(3).unwrap();
        let mut bytes = Vec::new();
        for file in [packed(1, &text), packed(9, &text)] {
            solids.kept().remove(solid.number);
            solid.read(&file, span, 1 << 20, &mut bytes).unwrap();
            assert_eq!(bytes, text.as_bytes()[span.offset as usize..][..span.len as usize]);
        }
        solids.kept().remove(solid.number);
        let other = solid.read(&packed(1, &game("1. d4")), span, 1 << 20, &mut bytes).unwrap_err();
        assert!(other.kind() == Kind::Corrupt && other.detail().contains("written over in place"), "{other}");
    }

    /// A shard on a disk, whose reads are counted: bytes, and how many there were at once at most.
    struct Disk(Vec<u8>, Mutex<(usize, usize)>);

    impl Disk {
        fn new(bytes: Vec<u8>) -> Disk {
            Disk(bytes, Mutex::default())
        }

        fn read(&self) -> (usize, usize) {
            std::mem::take(&mut *self.1.lock().unwrap())
        }
    }

    impl ReadAt for Disk {
        fn len(&self) -> Result<u64> {
            ReadAt::len(&*self.0)
        }

        fn is_local(&self) -> bool {
            true
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
            let (all, most) = &mut *self.1.lock().unwrap();
            (*all, *most) = (*all + buf.len(), buf.len().max(*most));
            self.0.as_slice().read_at(offset, buf)
        }
    }

    const PICTURE: usize = 1 << 12;

    /// A shard of pictures, an episode for each two, and a member of `before` bytes before them that is no data.
    fn pictures(before: usize, pictures: &[u8]) -> Vec<u8> {
        let mut tar = TarWriter::new(Vec::new());
        tar.append("__README", &vec![7; before]).unwrap();
        for (step, picture) in pictures.iter().enumerate() {
            let mut member = |field: &str, scalar, shape: &[u64], bytes: &[u8]| {
                let header = Header::write(&DType::Scalar(scalar, Order::Little), shape, Spelling::NumPy).unwrap();
                tar.append(&format!("{step:03}.{field}.npy"), &[&header, bytes].concat()).unwrap();
            };
            member("obs", Scalar::U8, &[PICTURE as u64], &[*picture; PICTURE]);
            member("dones", Scalar::Bool, &[], &[(step % 2) as u8]);
        }
        tar.finish().unwrap()
    }

    #[test]
    fn a_plain_shard_that_is_kept_no_longer_is_read_where_it_lies() {
        let solids = Solids::new(1 << 20);
        let disk = Disk::new(pictures(9000, &[1, 2, 3, 4, 5, 6]));
        let (solid, opened) = solids.open(Format::Demonstrations, "a.tar", &disk).unwrap();
        let spans: Vec<Span> = (0..3).map(|chunk| opened.chunks.locate(chunk).unwrap().0).collect();
        let size = spans[0].len as usize / 2;
        let mut bytes = Vec::new();
        let mut read = |disk: &Disk, chunk: usize| {
            solid
                .read(disk, spans[chunk], 1 << 20, &mut bytes)
                .map(|()| bytes.chunks(size).map(|record| record[9]).collect::<Vec<_>>())
        };
        disk.read();
        assert_eq!((read(&disk, 1).unwrap(), disk.read()), (vec![3, 4], (0, 0)), "it is kept");
        solids.kept().remove(solid.number);
        assert_eq!((read(&disk, 2).unwrap(), disk.read()), (vec![5, 6], (2 * PICTURE, PICTURE)), "pictures alone");
        assert_eq!((read(&disk, 0).unwrap(), disk.read()), (vec![1, 2], (2 * PICTURE, PICTURE)));
        // The same frames at other places are read whole, and others are refused.
        let moved = Disk::new(pictures(20_000, &[1, 2, 3, 4, 5, 6]));
        assert_eq!(read(&moved, 1).unwrap(), [3, 4]);
        assert!(moved.read().0 > moved.0.len());
        solids.kept().remove(solid.number);
        let other = read(&Disk::new(pictures(9000, &[1, 2, 3, 9, 5, 6])), 1).unwrap_err();
        assert!(other.kind() == Kind::Corrupt && other.detail().contains("written over in place"), "{other}");
        let cut = read(&Disk::new(disk.0[..disk.0.len() / 2].to_vec()), 2).unwrap_err();
        assert!(cut.detail().contains("written over in place"), "{cut}");
    }

    #[test]
    fn shards_of_a_folder_and_of_memory_are_read_where_they_lie() {
        let (folder, shard) = (tempfile::tempdir().unwrap(), pictures(0, &[1, 2]));
        std::fs::write(folder.path().join("a.tar"), &shard).unwrap();
        let memory = MemoryStore::new();
        memory.write("a.tar", shard);
        let stores: [Arc<dyn Store>; 2] = [Arc::new(DirStore::new(folder.path()).unwrap()), Arc::new(memory)];
        for store in stores {
            let file = store.open("a.tar").unwrap();
            let (solid, _) = Solids::new(1 << 20).open(Format::Demonstrations, "a.tar", &*file).unwrap();
            assert!(solid.scattered.is_some(), "{store:?}");
        }
    }

    #[test]
    fn places_take_no_more_than_their_bound_and_go_with_their_file() {
        let shard = pictures(0, &[1; 20]);
        let solids = Solids::new(shard.len() as u64);
        let open = || solids.open(Format::Demonstrations, "a.tar", &Disk::new(shard.clone())).unwrap().0;
        let first = open();
        let takes = solids.places.load(Ordering::Relaxed);
        assert!(takes > 0 && takes * 32 < shard.len() as u64, "{takes} bytes for {}", shard.len());
        let all: Vec<Solid> = (0..shard.len() as u64 / takes).map(|_| open()).collect();
        assert!(solids.places.load(Ordering::Relaxed) <= solids.most);
        assert!(first.scattered.is_some() && all.last().unwrap().scattered.is_none(), "no room");
        drop((first, all));
        assert_eq!(solids.places.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_is_kept_stays_within_its_bound_and_the_last_used_stays_longest() {
        let (mut kept, mut rooms) = (Kept::default(), Rooms::default());
        let mut keep = |kept: &mut Kept, number, len| kept.keep(number, Box::new(vec![0; len]), 41, &mut rooms);
        for number in 0..4 {
            keep(&mut kept, number, 10);
        }
        let first = kept.remove(0).unwrap();
        kept.put(0, first);
        keep(&mut kept, 9, 15);
        assert_eq!(kept.files.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3, 0, 9]);
        assert_eq!(kept.bytes, 35);
        keep(&mut kept, 9, 41);
        assert_eq!((kept.files.len(), kept.bytes), (1, 41));
        assert_eq!(rooms.take(10).capacity(), 10, "the memory of what went");
    }
}
