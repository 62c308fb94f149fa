//! Many chunks in one file, with an index after them: where each lies, how many frames it has, its checksum and its name.
//! Bytes in, bytes out, for whatever the chunks hold; a file is written from its first byte to its last.
//! The layout is `docs/format/chunk-file.md`.

use std::sync::OnceLock;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::starts::Starts;
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

/// The index of a chunk file. An outline says only where chunks lie and how many frames they have.
#[derive(Debug, Clone)]
pub struct ChunkFile {
    codec: Codec,
    /// Where each chunk starts, and where the index does.
    offsets: Vec<u64>,
    first: Starts,
    identity: u64,
    /// Bytes of the file.
    len: u64,
    rest: OnceLock<Rest>,
}

/// What an outline lacks.
#[derive(Debug, Clone)]
struct Rest {
    checksums: Vec<u64>,
    /// End of the name of each chunk within the names.
    ends: Vec<u64>,
    names: String,
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
        let index_at = word(&footer, 0);
        let corrupt = |detail: String| Error::new(Kind::Corrupt, detail).at_byte(footer_at);
        let length = index_length(&footer);
        if length.and_then(|index| index.checked_add(index_at)) != Some(footer_at) || index_at < 8 {
            return Err(corrupt(format!(
                "an index of {} chunks from byte {index_at} on does not end at the footer",
                word(&footer, 8)
            )));
        }
        let span = Span { offset: index_at, len: footer_at - index_at };
        read_span(from, span, MOST_INDEX, &mut bytes)?;
        ChunkFile::parsed(bytes, &footer, len)
    }

    /// The index in the bytes before the footer of a file of `len` bytes.
    fn parsed(mut bytes: Vec<u8>, footer: &[u8], len: u64) -> Result<Self> {
        let corrupt = |detail: String| Error::new(Kind::Corrupt, detail).at_byte(len - FOOTER as u64);
        let number = |i: usize| word(footer, 8 * i);
        let [index_at, count, _, frames] = [0, 1, 2, 3].map(number);
        let mut hash = Xxh3::new();
        hash.update(&bytes);
        hash.update(&footer[..40]);
        if hash.digest() != number(5) {
            return Err(corrupt("the index does not have its checksum".to_owned()));
        }
        let names = bytes.split_off(count as usize * ENTRY);
        let names = String::from_utf8(names).map_err(|_| corrupt("names that are not UTF-8".to_owned()))?;
        let entries = bytes.as_chunks::<ENTRY>().0;
        let (mut offsets, mut first) = (Vec::with_capacity(entries.len() + 1), Vec::with_capacity(entries.len() + 1));
        let (mut checksums, mut ends) = (Vec::with_capacity(entries.len()), Vec::with_capacity(entries.len()));
        let (mut offset, mut end, mut total) = (MAGIC.len() as u64, 0, 0u64);
        for (i, entry) in entries.iter().enumerate() {
            let pair = word(entry, 8);
            let (at, len, frames, name_end) = (word(entry, 0), pair as u32, (pair >> 32) as u32, word(entry, 24));
            let named = name_end >= end && names.is_char_boundary(name_end.min(u64::from(u32::MAX)) as usize);
            if at != offset || frames == 0 || !named {
                return Err(corrupt(format!("chunk {i} does not follow the one before it")).in_chunk(i));
            }
            first.push(total);
            offsets.push(offset);
            checksums.push(word(entry, 16));
            ends.push(name_end);
            offset += u64::from(len);
            total += u64::from(frames);
            end = name_end;
        }
        if offset != index_at || end != names.len() as u64 || total != frames {
            return Err(corrupt(format!(
                "chunks end at byte {offset} with {total} frames, expected {index_at}, {frames}"
            )));
        }
        first.push(total);
        offsets.push(offset);
        let codec = footer[32..40].try_into().unwrap_or_default();
        let rest = OnceLock::from(Rest { checksums, ends, names });
        Ok(ChunkFile { codec, offsets, first: Starts::new(first), identity: number(5), len, rest })
    }

    /// An outline of a file of `len` bytes whose index has the checksum `identity`: `chunks` are the bytes and the frames of each
    /// chunk, in order.
    ///
    /// Errors: `Corrupt` for chunks without frames, or that such a file cannot have.
    pub fn outlined(
        codec: Codec,
        identity: u64,
        len: u64,
        chunks: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Self> {
        let (mut offsets, mut first) = (vec![MAGIC.len() as u64], vec![0u64]);
        let (mut offset, mut total) = (MAGIC.len() as u64, 0);
        for (i, (bytes, frames)) in chunks.into_iter().enumerate() {
            if frames == 0 {
                return Err(Error::new(Kind::Corrupt, "a chunk without frames").in_chunk(i));
            }
            offset += u64::from(bytes);
            total += u64::from(frames);
            offsets.push(offset);
            first.push(total);
        }
        let index = (offsets.len() as u64 - 1).checked_mul(ENTRY as u64);
        if index.and_then(|index| index.checked_add(offset + FOOTER as u64)).is_none_or(|least| least > len) {
            let detail = format!("{} chunks up to byte {offset} in a file of {len}", offsets.len() - 1);
            return Err(Error::new(Kind::Corrupt, detail));
        }
        Ok(ChunkFile { codec, offsets, first: Starts::new(first), identity, len, rest: OnceLock::new() })
    }

    /// Where the index lies, with the footer.
    pub fn index_span(&self) -> Span {
        let offset = self.offsets.last().copied().unwrap_or(0);
        Span { offset, len: self.len - offset }
    }

    /// Reads the names and checksums that an outline lacks, and compares the rest with the outline. Later calls read nothing.
    ///
    /// Errors, with the byte: `Corrupt` for an index that is not the one that was outlined; those of reading.
    pub fn complete(&self, from: &(impl ReadAt + ?Sized)) -> Result<()> {
        if self.rest.get().is_some() {
            return Ok(());
        }
        let (span, mut bytes) = (self.index_span(), Vec::new());
        read_span(from, span, MOST_INDEX, &mut bytes)?;
        let corrupt = || {
            let detail = "the index is not the one that the file of what opening needs was made of; delete that one";
            Error::new(Kind::Corrupt, detail).at_byte(span.offset)
        };
        let footer = bytes.split_off(bytes.len().checked_sub(FOOTER).ok_or_else(corrupt)?);
        if word(&footer, 40) != self.identity || index_length(&footer) != Some(bytes.len() as u64) {
            return Err(corrupt());
        }
        let found = ChunkFile::parsed(bytes, &footer, self.len)?;
        if (found.codec, &found.offsets, &found.first) != (self.codec, &self.offsets, &self.first) {
            return Err(corrupt());
        }
        // If two threads read at once, both get the same.
        found.rest.into_inner().into_iter().for_each(|rest| _ = self.rest.set(rest));
        Ok(())
    }

    /// What the chunks hold.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// How many chunks there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Frames of all chunks.
    pub fn total_frames(&self) -> u64 {
        self.first.total()
    }

    /// A hash of the index, and so of the checksums of all chunks.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Where chunk `i` lies.
    pub fn span(&self, i: usize) -> Option<Span> {
        let (offset, end) = (*self.offsets.get(i)?, *self.offsets.get(i + 1)?);
        Some(Span { offset, len: end - offset })
    }

    /// Frames of chunk `i`, 0 where there is none.
    pub fn frames(&self, i: usize) -> u32 {
        let ends = [i, i + 1].map(|i| self.first.get(i));
        if let [Some(first), Some(behind)] = ends { (behind - first) as u32 } else { 0 }
    }

    /// Number of the first frame of chunk `i`, counted over the file.
    pub fn first_frame(&self, i: usize) -> u64 {
        self.first.get(i).unwrap_or_else(|| self.total_frames())
    }

    /// Name of chunk `i`, empty where there is none, and of an outline.
    pub fn name(&self, i: usize) -> &str {
        let Some((rest, end)) = self.rest.get().and_then(|rest| Some((rest, *rest.ends.get(i)?))) else { return "" };
        let start = i.checked_sub(1).map_or(0, |before| rest.ends[before]);
        &rest.names[start as usize..end as usize]
    }

    /// The chunk that frame `frame` of the file is in, and its number there.
    pub fn locate(&self, frame: u64) -> Option<(usize, u32)> {
        self.first.locate(frame)
    }

    /// Returns the chunk of frame `frame`, the number of frames from this one to the end of the chunk, and the byte of the file at which
    /// the chunk ends. `None` beyond the last frame.
    pub fn locate_end(&self, frame: u64) -> Option<(usize, u64, u64)> {
        let chunk = self.first.locate(frame)?.0;
        Some((chunk, self.first.get(chunk + 1)? - frame, *self.offsets.get(chunk + 1)?))
    }

    /// Holds the stored bytes of chunk `i` against their checksum.
    ///
    /// Errors: `Missing`, also of an outline; `Corrupt` with the byte of the file where the chunk begins.
    pub fn check(&self, i: usize, bytes: &[u8]) -> Result<()> {
        let said = self.rest.get().and_then(|rest| rest.checksums.get(i)).copied();
        let (Some(span), Some(said)) = (self.span(i), said) else {
            return Err(Error::new(Kind::Missing, format!("the checksum of chunk {i} of a file of {}", self.len())));
        };
        if bytes.len() as u64 == span.len && xxh3_64(bytes) == said {
            return Ok(());
        }
        Err(Error::new(Kind::Corrupt, "the stored bytes do not have their checksum").at_byte(span.offset))
    }
}

/// Bytes of the entries and names that a footer says; none for more than can be.
fn index_length(footer: &[u8]) -> Option<u64> {
    word(footer, 8).checked_mul(ENTRY as u64)?.checked_add(word(footer, 16))
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
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
                prop_assert_eq!(index.locate_end(frame), Some((i, u64::from(*frames), span.offset + span.len)));
                frame += u64::from(*frames);
            }
            prop_assert_eq!((index.total_frames(), index.locate(frame)), (frame, None));
            prop_assert_eq!(index.locate_end(frame), None);
            let outline = || chunks.iter().map(|(_, frames, chunk)| (chunk.len() as u32, *frames));
            let outlined = |identity| ChunkFile::outlined(*b"anything", identity, bytes.len() as u64, outline()).unwrap();
            let outline = outlined(index.identity());
            prop_assert_eq!((outline.name(0), outline.locate(0)), ("", index.locate(0)));
            prop_assert!(outline.check(0, b"").is_err());
            outline.complete(&bytes[..]).unwrap();
            for (i, (name, _, chunk)) in chunks.iter().enumerate() {
                prop_assert_eq!((outline.name(i), outline.span(i)), (&name[..], index.span(i)));
                outline.check(i, chunk).unwrap();
            }
            prop_assert_eq!(outlined(index.identity() ^ 1).complete(&bytes[..]).unwrap_err().kind(), Kind::Corrupt);
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
        let others = [(9, 2), (5, 2)];
        let other = ChunkFile::outlined(*b"anything", index.identity(), bytes.len() as u64, others).unwrap();
        assert_eq!(other.complete(&bytes[..]).unwrap_err().kind(), Kind::Corrupt, "frames lie otherwise");
        assert_eq!(ChunkFile::outlined(*b"anything", 0, 100, [(9, 0)]).unwrap_err().kind(), Kind::Corrupt);
        assert_eq!(ChunkFile::outlined(*b"anything", 0, 100, [(9, 1)]).unwrap_err().kind(), Kind::Corrupt);
        assert_eq!(index.check(2, &[]).unwrap_err().kind(), Kind::Missing);
        assert_eq!(ChunkFileWriter::new([0; 8]).add("none", 0, &[]).unwrap_err().kind(), Kind::Empty);
    }
}
