//! The contract as assertions, generic over any format: exact length, repeatable decoding, damage that says where,
//! and memory within the limits.

use std::sync::Arc;

use gristmill_format::detect::Format;
use gristmill_format::source::{Chunk, ChunkSource, Limits, ReadAt, read_span};
use gristmill_format::{Error, Kind, Result};

use super::Bytes;

type Open = fn(Format, &str, &dyn ReadAt) -> Result<Arc<dyn ChunkSource>>;

/// A good file of a format, and the records that each of its chunks holds.
pub(crate) struct Case {
    pub(crate) key: &'static str,
    pub(crate) format: Format,
    pub(crate) file: Vec<u8>,
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(crate) open: Open,
    /// Whether checksums guard data and index, so that no damage passes for data or loses a chunk unsaid.
    pub(crate) guarded: bool,
}

impl Case {
    pub(crate) fn new(key: &'static str, format: Format, file: Vec<u8>, chunks: Vec<Vec<u8>>, open: Open) -> Self {
        Case { key, format, file, chunks, open, guarded: true }
    }

    fn open(&self, file: &[u8]) -> Result<Arc<dyn ChunkSource>> {
        (self.open)(self.format, self.key, &Bytes(file))
    }

    fn limits(&self) -> Limits {
        Limits { max_chunk_bytes: self.chunks.iter().map(Vec::len).max().unwrap_or(0) }
    }

    fn decode(&self, source: &dyn ChunkSource, i: usize, file: &[u8], out: &mut Chunk) -> Result<()> {
        let (span, _) = source.locate(i).unwrap();
        let mut bytes = Vec::new();
        read_span(file, span, file.len() as u64, &mut bytes)?;
        let decoded = source.decode(i, &bytes, &self.limits(), out);
        let room = out.bytes.capacity();
        assert!(room <= self.limits().max_chunk_bytes, "{room} bytes taken");
        decoded
    }
}

/// Runs the whole suite.
pub(crate) fn conform(case: &Case) {
    length_is_exact(case);
    decoding_is_repeatable(case);
    a_head_is_the_beginning(case);
    what_is_judged_are_fields_of_the_records(case);
    frames_that_are_read_alone_are_those_of_the_chunk(case);
    limits_are_kept(case);
    foreign_bytes_are_survived(case);
    every_cut_says_where(case);
    every_flip_says_where_or_changes_nothing(case);
}

fn length_is_exact(case: &Case) {
    let source = case.open(&case.file).unwrap();
    let n = case.chunks.len();
    assert_eq!((source.len(), source.is_empty()), (n, n == 0));
    assert_eq!(source.describe().key, case.key);
    assert_eq!(source.faults(), []);
    assert!((0..n).all(|i| source.locate(i).is_some()));
    for i in [n, n + 1, usize::MAX] {
        assert!(source.locate(i).is_none());
        let e = source.decode(i, &case.file, &case.limits(), &mut Chunk::default()).unwrap_err();
        assert_eq!(e.kind(), Kind::Missing);
    }
}

fn decoding_is_repeatable(case: &Case) {
    let (first, second) = (case.open(&case.file).unwrap(), case.open(&case.file).unwrap());
    let mut reused = Chunk::default();
    for i in (0..case.chunks.len()).chain((0..case.chunks.len()).rev()) {
        assert_eq!(first.locate(i), second.locate(i));
        for source in [&first, &second] {
            case.decode(&**source, i, &case.file, &mut reused).unwrap();
            assert!(reused.records() == case.chunks[i], "chunk {i} is not what was stored");
            assert_eq!(reused.record(0), &reused.records()[..reused.layout.as_ref().unwrap().size()]);
        }
    }
}

fn a_head_is_the_beginning(case: &Case) {
    let source = case.open(&case.file).unwrap();
    let mut out = Chunk::default();
    for (i, chunk) in case.chunks.iter().enumerate() {
        let mut bytes = Vec::new();
        read_span(&case.file[..], source.locate(i).unwrap().0, u64::MAX, &mut bytes).unwrap();
        case.decode(&*source, i, &case.file, &mut out).unwrap();
        let Some(head) = source.head(i, &bytes, &out) else { continue };
        for frames in (0..=out.frames + 1).rev() {
            if source.decode_head(i, (frames, &head), &bytes, &case.limits(), &mut out).unwrap() {
                assert_eq!(out.frames, frames);
                assert!(chunk.starts_with(out.records()), "the first {frames} frames of chunk {i}");
            }
        }
        let beyond = source.decode_head(case.chunks.len(), (1, &head), &bytes, &case.limits(), &mut out);
        assert_eq!(beyond, Ok(false), "of a chunk that it does not have");
    }
}

fn what_is_judged_are_fields_of_the_records(case: &Case) {
    let source = case.open(&case.file).unwrap();
    let (mut whole, mut judged) = (Chunk::default(), Chunk::default());
    for i in 0..case.chunks.len() {
        let mut bytes = Vec::new();
        read_span(&case.file[..], source.locate(i).unwrap().0, u64::MAX, &mut bytes).unwrap();
        case.decode(&*source, i, &case.file, &mut whole).unwrap();
        source.decode_judged(i, &bytes, &case.limits(), &mut judged).unwrap();
        assert_eq!(judged.frames, whole.frames);
        let (layout, all) = (judged.layout.clone().unwrap(), whole.layout.clone().unwrap());
        for field in layout.fields() {
            let from = all.field(&field.name).unwrap();
            let size = field.bytes();
            for k in 0..whole.frames {
                let (short, long) =
                    (&judged.record(k)[field.offset..][..size], &whole.record(k)[from.offset..][..size]);
                assert_eq!(short, long, "{} of frame {k} of chunk {i}", field.name);
            }
        }
        let e = source.decode_judged(i, &bytes[..bytes.len() - 1], &case.limits(), &mut judged);
        assert!(e.is_err() || !case.guarded || judged.trailing > 0, "a cut chunk passed");
    }
    let beyond = source.decode_judged(case.chunks.len(), &case.file, &case.limits(), &mut judged);
    assert_eq!(beyond.unwrap_err().kind(), Kind::Missing);
}

fn frames_that_are_read_alone_are_those_of_the_chunk(case: &Case) {
    let source = case.open(&case.file).unwrap();
    let (mut whole, mut alone) = (Chunk::default(), Chunk::default());
    for i in 0..case.chunks.len() {
        let mut bytes = Vec::new();
        read_span(&case.file[..], source.locate(i).unwrap().0, u64::MAX, &mut bytes).unwrap();
        case.decode(&*source, i, &case.file, &mut whole).unwrap();
        assert!(source.frames(i).is_none_or(|frames| frames == whole.frames));
        let last = u32::try_from(whole.frames).unwrap() - 1;
        for rows in [vec![last], vec![0], vec![last, 0, last / 2, last / 2], (0..=last).collect(), Vec::new()] {
            let limits = Limits { max_chunk_bytes: case.limits().max_chunk_bytes.max(4 * whole.record(0).len()) };
            if !source.decode_rows(i, &rows, &bytes, &limits, &mut alone).unwrap() {
                continue;
            }
            assert_eq!((alone.frames, alone.layout.as_ref()), (rows.len(), whole.layout.as_ref()));
            let expected: Vec<u8> = rows.iter().flat_map(|row| whole.record(*row as usize).to_vec()).collect();
            assert!(alone.records() == expected, "frames {rows:?} of chunk {i}");
            let small = Limits { max_chunk_bytes: (rows.len() * whole.record(0).len()).saturating_sub(1) };
            let refused = source.decode_rows(i, &rows, &bytes, &small, &mut alone);
            assert!(rows.is_empty() || refused.unwrap_err().kind() == Kind::TooLarge);
            says_where(&source.decode_rows(i, &rows, &bytes[1..], &limits, &mut alone).unwrap_err());
            let beyond = source.decode_rows(i, &[last + 1], &bytes, &limits, &mut alone).unwrap_err();
            assert_eq!(beyond.kind(), Kind::Missing);
        }
    }
    assert_eq!(source.frames(case.chunks.len()), None);
}

fn limits_are_kept(case: &Case) {
    let source = case.open(&case.file).unwrap();
    for (i, chunk) in case.chunks.iter().enumerate() {
        let limits = Limits { max_chunk_bytes: chunk.len() - 1 };
        let (mut bytes, mut out) = (Vec::new(), Chunk::default());
        read_span(&case.file[..], source.locate(i).unwrap().0, u64::MAX, &mut bytes).unwrap();
        let e = source.decode(i, &bytes, &limits, &mut out).unwrap_err();
        assert_eq!(e.kind(), Kind::TooLarge);
        says_where(&e);
        assert!(out.bytes.capacity() < chunk.len());
        assert_eq!(out.frames, 0);
    }
}

fn foreign_bytes_are_survived(case: &Case) {
    let source = case.open(&case.file).unwrap();
    let mut out = Chunk::default();
    for bytes in [&b""[..], b"\x1f", b"\x1f\x8b", b"garbage", &[0; 1000], &[0xff; 1000]] {
        says_where(&source.decode(0, bytes, &case.limits(), &mut out).unwrap_err());
        assert_eq!(out.frames, 0);
        case.decode(&*source, 0, &case.file, &mut out).unwrap();
    }
}

fn every_cut_says_where(case: &Case) {
    let mut out = Chunk::default();
    for cut in 0..case.file.len() {
        let found = damaged(case, &case.file[..cut], &mut out, false);
        assert!(found.len() <= case.chunks.len());
        for (chunk, whole) in found.iter().zip(&case.chunks) {
            assert!(chunk.as_ref().is_none_or(|(data, _)| whole.starts_with(data)), "cut at {cut}");
        }
    }
}

fn every_flip_says_where_or_changes_nothing(case: &Case) {
    let mut out = Chunk::default();
    let mut file = case.file.clone();
    for at in 0..file.len() {
        for mask in [1 << (at % 8), 0xff] {
            file[at] ^= mask;
            for (data, trailing) in damaged(case, &file, &mut out, true).iter().flatten() {
                let cut = *trailing > 0 && case.chunks.iter().any(|whole| whole.starts_with(data));
                let same = cut || case.chunks.contains(data);
                assert!(!case.guarded || same, "byte {at} ^ {mask:#x} passed for data");
            }
            file[at] ^= mask;
        }
    }
}

/// Opens and decodes whatever a damaged file still offers: records, and how many trailing bytes were reported.
/// Every refusal must say where.
fn damaged(case: &Case, file: &[u8], out: &mut Chunk, whole: bool) -> Vec<Option<(Vec<u8>, usize)>> {
    let source = match case.open(file) {
        Ok(source) => source,
        Err(e) => {
            says_where(&e);
            return Vec::new();
        }
    };
    source.faults().iter().for_each(says_where);
    let lost = whole && case.guarded && source.len() < case.chunks.len();
    assert!(!lost || !source.faults().is_empty(), "a chunk went missing without a word");
    (0..source.len())
        .map(|i| match case.decode(&*source, i, file, out) {
            Ok(()) => Some((out.records().to_vec(), out.trailing)),
            Err(e) => {
                says_where(&e);
                None
            }
        })
        .collect()
}

fn says_where(e: &Error) {
    assert!(e.place().offset.is_some(), "says no offset: {e}");
    assert!(!e.detail().is_empty(), "says nothing: {e}");
}
