//! Many chunks in one file, with an index after them: where each lies, how many frames it has, its checksum and its name.
//! Bytes in, bytes out, for whatever the chunks hold; a file is written from its first byte to its last.
//! The layout is `docs/format/chunk-file.md`.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error::{Error, Kind, Result};
use crate::source::{ReadAt, Span, read_span};

/// What a file begins and ends with.
pub const MAGIC: [u8; 8] = *b"GMCHUNK1";

/// Bytes of an entry of the index, and of the footer.
const ENTRY: usize = 32;
const FOOTER: usize = 56;

/// Largest index that is read: eight million chunks with short names.
const MOST_INDEX: u64 = 512 << 20;

/// Tells what the chunks hold.
pub type Codec = [u8; 8];

/// One chunk, as the index has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    offset: u64,
    len: u32,
    frames: u32,
    checksum: u64,
    /// End of its name within the names.
    name_end: u64,
}

/// The index of a chunk file.
#[derive(Debug, Clone)]
pub struct ChunkFile {
    codec: Codec,
    entries: Vec<Entry>,
    names: String,
    /// Number of the first frame of each chunk, and of all frames.
    first: Vec<u64>,
    identity: u64,
}

impl ChunkFile {
    /// Reads the index of a file; no chunk is touched.
    ///
    /// Errors, with the byte: `UnknownFormat` for what is no chunk file; `Truncated` for one whose end is missing; `Corrupt`
    /// for an index that does not have its checksum or cannot be; `TooLarge`.
    pub fn open(from: &(impl ReadAt + ?Sized)) -> Result<Self> {
        let len = from.len()?;
        let mut bytes = Vec::new();
        read_span(from, Span { offset: 0, len: len.min(MAGIC.len() as u64) }, FOOTER as u64, &mut bytes)?;
        if bytes != MAGIC {
            return Err(Error::new(Kind::UnknownFormat, "this is no chunk file").at_byte(0));
        }
        let cut = |at: u64| {
            let detail = "the index at the end is missing; the file was cut, or is still being written";
            Error::new(Kind::Truncated, detail).at_byte(at)
        };
        let footer_at =
            len.checked_sub(FOOTER as u64).filter(|at| *at >= MAGIC.len() as u64).ok_or_else(|| cut(len))?;
        read_span(from, Span { offset: footer_at, len: FOOTER as u64 }, FOOTER as u64, &mut bytes)?;
        let footer = bytes.clone();
        if !footer.ends_with(&MAGIC) {
            return Err(cut(footer_at));
        }
        let number = |i: usize| word(&footer, 8 * i);
        let [index_at, count, names, frames] = [0, 1, 2, 3].map(number);
        let corrupt = |detail: String| Error::new(Kind::Corrupt, detail).at_byte(footer_at);
        let bytes_of_index = count.checked_mul(ENTRY as u64).and_then(|index| index.checked_add(names));
        if bytes_of_index.and_then(|index| index.checked_add(index_at)) != Some(footer_at) || index_at < 8 {
            return Err(corrupt(format!(
                "an index of {count} chunks from byte {index_at} on does not end at the footer"
            )));
        }
        let span = Span { offset: index_at, len: footer_at - index_at };
        read_span(from, span, MOST_INDEX, &mut bytes)?;
        let mut hash = Xxh3::new();
        hash.update(&bytes);
        hash.update(&footer[..40]);
        if hash.digest() != number(5) {
            return Err(corrupt("the index does not have its checksum".to_owned()));
        }
        let names = bytes.split_off(count as usize * ENTRY);
        let names = String::from_utf8(names).map_err(|_| corrupt("names that are not UTF-8".to_owned()))?;
        let entries: Vec<Entry> = bytes.as_chunks::<ENTRY>().0.iter().map(entry).collect();
        let mut first = Vec::with_capacity(entries.len() + 1);
        let (mut offset, mut end, mut total) = (MAGIC.len() as u64, 0, 0u64);
        for (i, entry) in entries.iter().enumerate() {
            let named =
                entry.name_end >= end && names.is_char_boundary(entry.name_end.min(u64::from(u32::MAX)) as usize);
            if entry.offset != offset || entry.frames == 0 || !named {
                return Err(corrupt(format!("chunk {i} does not follow the one before it")).in_chunk(i));
            }
            first.push(total);
            offset += u64::from(entry.len);
            total += u64::from(entry.frames);
            end = entry.name_end;
        }
        if offset != index_at || end != names.len() as u64 || total != frames {
            return Err(corrupt(format!(
                "chunks end at byte {offset} with {total} frames, expected {index_at}, {frames}"
            )));
        }
        first.push(total);
        let codec = footer[32..40].try_into().unwrap_or_default();
        Ok(ChunkFile { codec, entries, names, first, identity: number(5) })
    }

    /// What the chunks hold.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// How many chunks there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Frames of all chunks.
    pub fn total_frames(&self) -> u64 {
        self.first.last().copied().unwrap_or(0)
    }

    /// A hash of the index, and so of the checksums of all chunks.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Where chunk `i` lies.
    pub fn span(&self, i: usize) -> Option<Span> {
        self.entries.get(i).map(|entry| Span { offset: entry.offset, len: u64::from(entry.len) })
    }

    /// Frames of chunk `i`, 0 where there is none.
    pub fn frames(&self, i: usize) -> u32 {
        self.entries.get(i).map_or(0, |entry| entry.frames)
    }

    /// Number of the first frame of chunk `i`, counted over the file.
    pub fn first_frame(&self, i: usize) -> u64 {
        self.first.get(i).copied().unwrap_or_else(|| self.total_frames())
    }

    /// Name of chunk `i`, empty where there is none.
    pub fn name(&self, i: usize) -> &str {
        let Some(entry) = self.entries.get(i) else { return "" };
        let start = i.checked_sub(1).map_or(0, |before| self.entries[before].name_end);
        &self.names[start as usize..entry.name_end as usize]
    }

    /// The chunk that frame `frame` of the file is in, and its number there.
    pub fn locate(&self, frame: u64) -> Option<(usize, u32)> {
        if frame >= self.total_frames() {
            return None;
        }
        let chunk = self.first.partition_point(|first| *first <= frame) - 1;
        Some((chunk, (frame - self.first[chunk]) as u32))
    }

    /// Holds the stored bytes of chunk `i` against their checksum.
    ///
    /// Errors: `Missing`; `Corrupt` with the byte of the file where the chunk begins.
    pub fn check(&self, i: usize, bytes: &[u8]) -> Result<()> {
        let Some(entry) = self.entries.get(i) else {
            return Err(Error::new(Kind::Missing, format!("chunk {i} of a file of {}", self.len())));
        };
        if bytes.len() == entry.len as usize && xxh3_64(bytes) == entry.checksum {
            return Ok(());
        }
        Err(Error::new(Kind::Corrupt, "the stored bytes do not have their checksum").at_byte(entry.offset))
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn entry(bytes: &[u8; ENTRY]) -> Entry {
    let pair = word(bytes, 8);
    let (offset, checksum, name_end) = (word(bytes, 0), word(bytes, 16), word(bytes, 24));
    Entry { offset, len: pair as u32, frames: (pair >> 32) as u32, checksum, name_end }
}

/// Writes a chunk file: what it gives back goes to the file, in order.
#[derive(Debug)]
pub struct ChunkFileWriter {
    codec: Codec,
    index: Vec<u8>,
    names: String,
    chunks: u64,
    frames: u64,
    end: u64,
}

impl ChunkFileWriter {
    /// A file of chunks of `codec`; it begins with [`MAGIC`].
    pub fn new(codec: Codec) -> Self {
        let end = MAGIC.len() as u64;
        ChunkFileWriter { codec, index: Vec::new(), names: String::new(), chunks: 0, frames: 0, end }
    }

    /// Notes the next chunk: its name, its frames, and its bytes, which go to the file as they are.
    ///
    /// Errors: `Empty` without frames; `TooLarge` for 4 GiB.
    pub fn add(&mut self, name: &str, frames: u32, bytes: &[u8]) -> Result<()> {
        if frames == 0 {
            return Err(Error::new(Kind::Empty, "a chunk without frames"));
        }
        let len = u32::try_from(bytes.len());
        let len = len.map_err(|_| Error::new(Kind::TooLarge, format!("a chunk of {} bytes", bytes.len())))?;
        self.names.push_str(name);
        self.index.extend_from_slice(&self.end.to_le_bytes());
        self.index.extend_from_slice(&len.to_le_bytes());
        self.index.extend_from_slice(&frames.to_le_bytes());
        self.index.extend_from_slice(&xxh3_64(bytes).to_le_bytes());
        self.index.extend_from_slice(&(self.names.len() as u64).to_le_bytes());
        self.end += u64::from(len);
        self.chunks += 1;
        self.frames += u64::from(frames);
        Ok(())
    }

    /// Chunks so far.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Frames so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The index, which goes after the last chunk.
    pub fn finish(self) -> Vec<u8> {
        let mut out = self.index;
        out.extend_from_slice(self.names.as_bytes());
        let index = out.len();
        for number in [self.end, self.chunks, self.names.len() as u64, self.frames] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.codec);
        let mut hash = Xxh3::new();
        hash.update(&out[..index + 40]);
        out.extend_from_slice(&hash.digest().to_le_bytes());
        out.extend_from_slice(&MAGIC);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/format/chunk-file.md");

    #[test]
    fn the_page_says_what_files_are() {
        let magic = std::str::from_utf8(&MAGIC).unwrap();
        assert!(PAGE.contains(&format!("| {} | `{magic}` |", MAGIC.len())), "magic");
        assert!(PAGE.contains(&format!("| {ENTRY} each | index: u64 offset, u32 length, u32 frames")), "entry");
        assert!(PAGE.contains(&format!("| {FOOTER} | footer: u64 where the index starts")), "footer");
    }
    use proptest::prelude::*;

    fn file(chunks: &[(String, u32, Vec<u8>)]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let mut writer = ChunkFileWriter::new(*b"anything");
        for (name, frames, bytes) in chunks {
            writer.add(name, *frames, bytes).unwrap();
            out.extend_from_slice(bytes);
        }
        out.extend(writer.finish());
        out
    }

    proptest! {
        #[test]
        fn chunks_are_found_by_number_and_by_frame(
            chunks in prop::collection::vec(("[a-zä/.]{0,9}", 1u32..50, prop::collection::vec(any::<u8>(), 0..40)), 0..12),
        ) {
            let bytes = file(&chunks);
            let index = ChunkFile::open(&bytes[..]).unwrap();
            prop_assert_eq!((index.len(), index.codec()), (chunks.len(), *b"anything"));
            let mut frame = 0;
            for (i, (name, frames, chunk)) in chunks.iter().enumerate() {
                let span = index.span(i).unwrap();
                let stored = &bytes[span.offset as usize..][..span.len as usize];
                prop_assert_eq!((index.name(i), index.frames(i), stored), (&name[..], *frames, &chunk[..]));
                index.check(i, stored).unwrap();
                prop_assert_eq!(index.check(i, &[stored, &[0]].concat()).unwrap_err().kind(), Kind::Corrupt);
                prop_assert_eq!(index.first_frame(i), frame);
                prop_assert_eq!(index.locate(frame + u64::from(*frames) - 1), Some((i, frames - 1)));
                frame += u64::from(*frames);
            }
            prop_assert_eq!((index.total_frames(), index.locate(frame)), (frame, None));
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_of_the_index_is_noticed() {
        let chunks = [("a".to_owned(), 3, vec![1; 9]), ("bé".to_owned(), 1, vec![2; 5])];
        let bytes = file(&chunks);
        for end in 0..bytes.len() {
            let kind = ChunkFile::open(&bytes[..end]).unwrap_err().kind();
            assert!(matches!(kind, Kind::Truncated | Kind::UnknownFormat), "{end}: {kind:?}");
        }
        let index = ChunkFile::open(&bytes[..]).unwrap();
        for at in (0..8).chain(22..bytes.len()) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert!(ChunkFile::open(&damaged[..]).is_err(), "byte {at}");
        }
        assert_eq!(index.check(2, &[]).unwrap_err().kind(), Kind::Missing);
        assert_eq!(ChunkFileWriter::new([0; 8]).add("none", 0, &[]).unwrap_err().kind(), Kind::Empty);
    }
}
