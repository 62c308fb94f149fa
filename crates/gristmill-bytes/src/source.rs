//! The seam between stored bytes and chunks: `ReadAt` below, `ChunkSource` above.
//! A source says where each chunk lies and turns fetched bytes into records; it never opens or reads a file itself.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

use crate::error::{Error, Kind, Result};
use crate::head::Head;
use crate::layout::Layout;

/// What takes the bytes of spans: the number of a span, and its bytes in pieces that follow each other.
pub type Take<'t> = dyn FnMut(usize, &[&[u8]]) -> Result<()> + 't;

/// Named bytes that can be read at any offset, from many threads at once.
pub trait ReadAt: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> Result<u64>;

    /// Reads up to `buf.len()` bytes at `offset`; fewer only at the end.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;

    /// A number that other bytes under the same name do not have; none where the name itself must be trusted.
    fn version(&self) -> Option<u64> {
        None
    }

    /// Whether the bytes are on this machine: many small reads of them cost little more than one large one.
    fn is_local(&self) -> bool {
        false
    }

    /// Reads spans whole, as many at a time as the place of the bytes does best, and gives each with its number as it comes.
    ///
    /// Errors: the first of reading, `Truncated` among them; and those of `each`. Other spans may have come before.
    fn read_spans(&self, spans: &[Span], each: &mut Take<'_>) -> Result<()> {
        let mut bytes = Vec::new();
        for (i, span) in spans.iter().enumerate() {
            read_span(self, *span, span.len, &mut bytes)?;
            each(i, &[&bytes])?;
        }
        Ok(())
    }

    /// Whether there are no bytes at all.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
}

impl ReadAt for [u8] {
    fn len(&self) -> Result<u64> {
        Ok(<[u8]>::len(self) as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(<[u8]>::len(self));
        let n = buf.len().min(<[u8]>::len(self) - start);
        buf[..n].copy_from_slice(&self[start..start + n]);
        Ok(n)
    }
}

/// How the chunks of the files of a format can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Each chunk can be fetched and decoded by itself.
    Random,
    /// The file is one chunk, and is not read before that is fetched.
    OneChunk,
    /// All of the file is read before its chunks are known; then each of them can be reached in its plain bytes.
    Solid,
}

/// The stored bytes of one chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// Where they start in the file.
    pub offset: u64,
    /// How many there are; [`Span::REST`] means up to the end of the file.
    pub len: u64,
}

impl Span {
    /// The length that stands for "up to the end of the file".
    pub const REST: u64 = u64::MAX;

    /// The whole file.
    pub const WHOLE: Span = Span { offset: 0, len: Span::REST };
}

/// What a source is, known without decoding it.
#[derive(Debug, Clone)]
pub struct Description {
    /// File name without directory: the sort key, and the identity that splits hash.
    pub key: String,
    /// Short name of the container and format, such as `lc0.gz` or `lc0.tar`.
    pub format: &'static str,
    /// What its frames are of: the name that the folder of a game gives itself.
    pub kind: &'static str,
}

/// One decoded chunk: `frames` records of `layout`, back to back in `bytes`. Reused between chunks.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The records; only the first `frames * layout.size()` bytes are meaningful.
    pub bytes: Vec<u8>,
    /// The layout of the records, once something was decoded.
    pub layout: Option<Arc<Layout>>,
    /// How many records there are.
    pub frames: usize,
    /// Stored bytes after the end of the data that were ignored: padding or garbage, for reports.
    pub trailing: usize,
    /// Bytes of text that the records were made of, where a chunk is text: other decoders leave it as it is.
    pub text: u64,
    /// What the file says of the chunk beside its records: names and values. Decoders of files that say nothing leave it as it is.
    pub said: Vec<(String, String)>,
    /// What decoders keep from one chunk to the next.
    pub kept: Kept,
}

/// Tools of decoders (such as a decompressor) that live as long as the [`Chunk`] they fill: one of each type.
#[derive(Default)]
pub struct Kept(Vec<Box<dyn Any + Send + Sync>>);

impl Kept {
    /// The tool of type `T`, made on first use.
    pub fn tool<T: Any + Default + Send + Sync>(&mut self) -> &mut T {
        let i = self.0.iter().position(|tool| tool.is::<T>()).unwrap_or(self.0.len());
        if i == self.0.len() {
            self.0.push(Box::new(T::default()));
        }
        self.0[i].downcast_mut().expect("found by its type")
    }
}

impl Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({})", self.0.len())
    }
}

impl Chunk {
    /// Record `i` as bytes. `i` must be below `frames`.
    pub fn record(&self, i: usize) -> &[u8] {
        let size = self.layout.as_ref().map_or(0, |l| l.size());
        &self.bytes[i * size..(i + 1) * size]
    }

    /// What the file says of it by this name.
    pub fn said(&self, name: &str) -> Option<&str> {
        self.said.iter().find(|(own, _)| own == name).map(|(_, value)| &**value)
    }

    /// All records, back to back.
    pub fn records(&self) -> &[u8] {
        let size = self.layout.as_ref().map_or(0, |l| l.size());
        &self.bytes[..self.frames * size]
    }
}

/// Bounds that a decoder must keep, whatever a file says about itself.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of bytes that one decoded chunk may take.
    pub max_chunk_bytes: usize,
}

impl Default for Limits {
    /// 8 MiB a chunk: 1 003 chess records, twice the longest game that lc0 plays.
    fn default() -> Self {
        Limits { max_chunk_bytes: 8 << 20 }
    }
}

/// One file (or pack) that holds chunks. Cheap to keep: an index, no bytes.
///
/// Contract, checked by the conformance suite: `len` is exact, `decode` of the same bytes is
/// repeatable, truncated or corrupt input is an error that says where, and no input panics or
/// allocates beyond [`Limits`].
pub trait ChunkSource: Send + Sync + Debug {
    /// Key, format and access.
    fn describe(&self) -> &Description;

    /// How many chunks it holds.
    fn len(&self) -> usize;

    /// Where the bytes of chunk `i` lie, and its member name if it has one.
    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)>;

    /// Decodes chunk `i` from the bytes of its span into `out`, replacing what was there.
    fn decode(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()>;

    /// Decodes chunk `i` from the bytes of its span, as [`ChunkSource::decode`]. A source that says how many frames its chunks have may
    /// take the memory of `bytes` instead of copying; then any bytes are left there.
    ///
    /// Errors: as [`ChunkSource::decode`].
    fn decode_taking(&self, i: usize, bytes: &mut Vec<u8>, limits: &Limits, out: &mut Chunk) -> Result<()> {
        self.decode(i, bytes, limits, out)
    }

    /// What [`ChunkSource::decode_head`] needs, once chunk `i` was `decoded` from `bytes`; none where its head alone cannot be
    /// had, or is no cheaper.
    fn head(&self, i: usize, bytes: &[u8], decoded: &Chunk) -> Option<Head> {
        let _ = (i, bytes, decoded);
        None
    }

    /// Replaces `out` by the first `frames` frames of chunk `i`, whose bytes agree with the sums of `head`: no more of it is
    /// inflated than they need. `false`, with anything in `out`, where that cannot be had or does not agree: then
    /// [`ChunkSource::decode`] says why, or does it.
    ///
    /// Errors: `Io` where there is no memory for a decompressor.
    fn decode_head(
        &self,
        i: usize,
        (frames, head): (usize, &Head),
        bytes: &[u8],
        limits: &Limits,
        out: &mut Chunk,
    ) -> Result<bool> {
        let _ = (i, frames, head, bytes, limits, out);
        Ok(false)
    }

    /// How many frames chunk `i` has, where that is known without decoding it.
    fn frames(&self, i: usize) -> Option<usize> {
        let _ = i;
        None
    }

    /// Replaces `out` by the frames `rows` of chunk `i` alone, in this order; `false`, and nothing done, where frames cannot be
    /// read by themselves.
    ///
    /// Errors: as [`ChunkSource::decode`]; `Missing` for a frame that does not exist.
    fn decode_rows(&self, i: usize, rows: &[u32], bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<bool> {
        let _ = (i, rows, bytes, limits, out);
        Ok(false)
    }

    /// Decodes of chunk `i` what weighers read: its records, or as many shorter ones with just those fields, to the bit, where
    /// they are stored apart; then the rest may go unread and unverified.
    ///
    /// Errors: as [`ChunkSource::decode`].
    fn decode_judged(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        self.decode(i, bytes, limits, out)
    }

    /// A hash of what the file says of all its chunks, their checksums among it, where it has one: what is kept beside the
    /// file is of these very chunks.
    fn identity(&self) -> Option<u64> {
        None
    }

    /// A hash of some bytes of the file, where it has no [`ChunkSource::identity`] and its chunks lie where those of any file of its
    /// length lie: it tells the file from nearly every other one.
    fn sample(&self) -> Option<u64> {
        None
    }

    /// What was wrong with the container when it was opened; the chunks that it lists can still be tried.
    fn faults(&self) -> &[Error] {
        &[]
    }

    /// Bounds for looking at one of its chunks by itself.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// What the file says about itself as a whole: names and values, for people.
    fn about(&self) -> &[(&'static str, String)] {
        &[]
    }

    /// Whether it holds no chunks.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Replaces `buf` by the bytes of `span`, refusing more than `max` bytes. What `buf` holds after an error is unspecified.
///
/// Errors: `Truncated` when the file ends inside the span, `TooLarge` beyond `max`.
pub fn read_span(from: &(impl ReadAt + ?Sized), span: Span, max: u64, buf: &mut Vec<u8>) -> Result<()> {
    read_span_in_pieces(from, span, max, usize::MAX, buf, |_| {})
}

/// As [`read_span`], in pieces of at most `piece` bytes. Calls `each` with each of them as it comes.
///
/// Errors: as [`read_span`].
pub fn read_span_in_pieces(
    from: &(impl ReadAt + ?Sized),
    span: Span,
    max: u64,
    piece: usize,
    buf: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]),
) -> Result<()> {
    let len = span_len(from.len()?, span, max)?;
    set_len(buf, len);
    let mut at = span.offset;
    for piece in buf.chunks_mut(piece) {
        let done = read_full(from, at, piece)?;
        at += done as u64;
        if done < piece.len() {
            let detail = format!("expected {len} bytes, found {}", at - span.offset);
            return Err(Error::new(Kind::Truncated, detail).at_byte(at));
        }
        each(piece);
    }
    Ok(())
}

/// Makes `buf` hold `len` bytes, any: it takes no more memory than they need, and moves nothing of what was there.
pub fn set_len(buf: &mut Vec<u8>, len: usize) {
    if buf.capacity() < len {
        buf.clear();
        buf.reserve_exact(len);
    }
    buf.resize(len, 0);
}

/// Reads until `to` is full or the bytes end; how many were read.
///
/// Errors: those of reading.
pub fn read_full(from: &(impl ReadAt + ?Sized), at: u64, to: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while done < to.len() {
        match from.read_at(at + done as u64, &mut to[done..])? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

/// How many bytes `span` has of `end` bytes, refusing more than `max` of them.
///
/// Errors: as [`read_span`].
pub fn span_len(end: u64, span: Span, max: u64) -> Result<usize> {
    let len = if span.len == Span::REST { end.saturating_sub(span.offset) } else { span.len };
    let within = span.offset.checked_add(len).is_some_and(|last| last <= end);
    if !within {
        return Err(Error::new(
            Kind::Truncated,
            format!("expected {len} bytes here but the file ends at {end}; it may still be growing"),
        )
        .at_byte(span.offset));
    }
    if len > max {
        return Err(Error::new(
            Kind::TooLarge,
            format!("{len} stored bytes for one chunk, the bound is {max}; raise max_chunk_bytes if it is real"),
        )
        .at_byte(span.offset));
    }
    usize::try_from(len).map_err(|_| Error::new(Kind::TooLarge, format!("{len} bytes do not fit in memory")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_beyond_the_end_or_the_bound_are_refused_before_allocation() {
        let file: &[u8] = &[7; 100];
        let mut buf = Vec::new();
        read_span(file, Span { offset: 90, len: 10 }, 50, &mut buf).unwrap();
        assert_eq!(buf, [7; 10]);
        read_span(file, Span { offset: 60, len: Span::REST }, 50, &mut buf).unwrap();
        assert_eq!(buf.len(), 40);
        for (span, kind) in [
            (Span { offset: 95, len: 10 }, Kind::Truncated),
            (Span { offset: u64::MAX, len: 2 }, Kind::Truncated),
            (Span { offset: 0, len: u64::MAX - 1 }, Kind::Truncated),
            (Span::WHOLE, Kind::TooLarge),
        ] {
            assert_eq!(read_span(file, span, 50, &mut buf).unwrap_err().kind(), kind);
        }
    }

    /// A file that is read a few bytes at a time, and is shorter than it says.
    struct Slow(&'static [u8], u64);

    impl ReadAt for Slow {
        fn len(&self) -> Result<u64> {
            Ok(self.1)
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
            let most = buf.len().min(3);
            self.0.read_at(offset, &mut buf[..most])
        }
    }

    #[test]
    fn spans_are_read_whole_however_few_bytes_come_at_a_time() {
        let file = Slow(b"0123456789abcdef", 16);
        let mut buf = Vec::with_capacity(8);
        read_span(&file, Span { offset: 4, len: 10 }, 50, &mut buf).unwrap();
        assert_eq!(buf, b"456789abcd");
        assert!(buf.capacity() < 16, "no more memory than is needed: {}", buf.capacity());
        let spans = [Span { offset: 9, len: 7 }, Span { offset: 0, len: 2 }, Span { offset: 14, len: Span::REST }];
        let mut found = Vec::new();
        let mut each = |i: usize, pieces: &[&[u8]]| {
            found.push((i, pieces.concat()));
            Ok(())
        };
        file.read_spans(&spans[..2], &mut each).unwrap();
        assert!(file.read_spans(&[Span { offset: 9, len: 8 }], &mut each).is_err());
        assert_eq!(found, [(0, b"9abcdef".to_vec()), (1, b"01".to_vec())]);
        let e = read_span(&Slow(b"0123456789", 16), Span { offset: 4, len: 10 }, 50, &mut buf).unwrap_err();
        assert_eq!((e.kind(), e.place().offset), (Kind::Truncated, Some(10)));
    }

    #[test]
    fn bytes_in_memory_are_a_file_without_a_version() {
        let (file, none): (&[u8], &[u8]) = (b"0123", b"");
        let mut buf = [0; 3];
        assert_eq!((file.read_at(2, &mut buf).unwrap(), &buf), (2, b"23\0"));
        assert_eq!((file.read_at(9, &mut buf).unwrap(), file.version()), (0, None));
        assert_eq!((ReadAt::is_empty(file).unwrap(), ReadAt::is_empty(none).unwrap()), (false, true));
    }

    #[test]
    fn a_chunk_gives_its_records_what_is_said_of_it_and_the_tools_that_it_keeps() {
        let mut chunk = Chunk { bytes: b"aabbccdd".to_vec(), frames: 3, ..Chunk::default() };
        assert_eq!((chunk.records(), chunk.record(1)), (&b""[..], &b""[..]), "nothing was decoded");
        chunk.layout = Some(Layout::new(Vec::new(), 2).unwrap().into());
        assert_eq!((chunk.records(), chunk.record(0), chunk.record(2)), (&b"aabbcc"[..], &b"aa"[..], &b"cc"[..]));
        chunk.said = vec![("white".into(), "A".into()), ("black".into(), "B".into())];
        assert_eq!((chunk.said("black"), chunk.said("date")), (Some("B"), None));
        chunk.kept.tool::<Vec<u8>>().push(7);
        chunk.kept.tool::<String>().push('x');
        assert_eq!(chunk.kept.tool::<Vec<u8>>(), &[7]);
        assert_eq!(chunk.kept.tool::<String>(), "x");
    }

    /// A source of `.1` chunks that has what every source must have, and no more.
    #[derive(Debug)]
    struct Plain(Description, usize);

    impl ChunkSource for Plain {
        fn describe(&self) -> &Description {
            &self.0
        }

        fn len(&self) -> usize {
            self.1
        }

        fn locate(&self, _: usize) -> Option<(Span, Option<&str>)> {
            Some((Span::WHOLE, None))
        }

        fn decode(&self, i: usize, bytes: &[u8], _: &Limits, out: &mut Chunk) -> Result<()> {
            (out.frames, out.bytes) = (i, bytes.to_vec());
            Ok(())
        }
    }

    #[test]
    fn a_source_decodes_whole_chunks_and_says_nothing_else_unless_it_can() {
        let plain = |chunks| Plain(Description { key: "a".into(), format: "plain", kind: "random" }, chunks);
        let (source, limits, mut out) = (plain(2), Limits::default(), Chunk::default());
        source.decode_taking(5, &mut b"taken".to_vec(), &limits, &mut out).unwrap();
        assert_eq!((out.frames, &*out.bytes), (5, &b"taken"[..]));
        source.decode_judged(6, b"judged", &limits, &mut out).unwrap();
        assert_eq!((out.frames, &*out.bytes), (6, &b"judged"[..]));
        assert!(!source.decode_rows(1, &[0], b"", &limits, &mut out).unwrap());
        assert!(source.head(0, b"", &out).is_none());
        let head = Head::of(b"stored", &[7; 64]).unwrap();
        assert!(!source.decode_head(0, (1, &head), b"stored", &limits, &mut out).unwrap());
        assert_eq!((source.frames(1), source.identity(), source.sample()), (None, None, None));
        assert!(source.faults().is_empty() && source.about().is_empty());
        assert_eq!((source.is_empty(), plain(0).is_empty()), (false, true));
    }
}
