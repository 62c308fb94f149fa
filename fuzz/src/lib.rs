//! Bodies of the fuzz targets: arbitrary bytes in; panics when a decoder breaks a promise, not only when it crashes.
//! Shared, as source, with the replay of the corpora on stable Rust; uses public functions of the format crate only.

use std::sync::Arc;

use gristmill_format::Kind;
use gristmill_format::chess::game;
use gristmill_format::chess::record::Version;
use gristmill_format::chess::source::{GameFile, GameTar};
use gristmill_format::container::gzip::Inflater;
use gristmill_format::container::gzip_stream::GzipStream;
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::container::salvage::{inflate_prefix, salvage};
use gristmill_format::container::tar::{TarIndex, TarLimits, walk};
use gristmill_format::layout::Layout;
use gristmill_format::source::{Chunk, ChunkSource, Limits, ReadAt, read_span};

const LIMITS: Limits = Limits { max_chunk_bytes: 1 << 20 };

/// The fast path and the streaming one must agree, the bound must hold, refusals must say where.
pub fn gzip_chunk(data: &[u8]) {
    let max = LIMITS.max_chunk_bytes;
    let (mut fast, mut slow, mut prefix) = (Vec::new(), Vec::new(), Vec::new());
    let found = Inflater::default().inflate(data, max, &mut fast);
    salvage(data, max, &mut slow);
    assert!(fast.capacity() <= max && slow.len() <= max);
    let pieces = in_pieces(data, max);
    match found {
        Ok(found) => {
            assert!(found.trailing <= data.len());
            assert!(has_header_crc(data) || pieces.as_ref() == Ok(&fast), "pieces make another whole");
            if has_header_crc(data) {
                assert!(fast.starts_with(&slow));
            } else {
                assert_eq!(fast, slow, "two decoders, two answers");
                inflate_prefix(data, 100, &mut prefix).expect("a prefix of what is whole");
                assert_eq!(prefix, fast[..fast.len().min(100)]);
            }
        }
        Err(e) => {
            assert!(e.place().offset.is_some_and(|at| at <= data.len() as u64), "{e}");
            assert!(e.kind() == Kind::TooLarge || pieces.is_err(), "pieces of what is damaged");
            assert!(e.kind() != Kind::TooLarge || slow.len() == max, "{e}");
        }
    }
    let mut chunk = Chunk::default();
    match GameFile::new("fuzz.gz").decode(0, data, &LIMITS, &mut chunk) {
        Ok(()) => assert!(chunk.frames > 0 && chunk.records().len() <= chunk.bytes.len()),
        Err(e) => assert!(e.place().chunk == Some(0) && chunk.frames == 0, "{e}"),
    }
}

/// Everything in `data`, at most `max` bytes and one, inflated some bytes at a time.
fn in_pieces(data: &[u8], max: usize) -> gristmill_format::Result<Vec<u8>> {
    let mut stream = GzipStream::new(Arc::new(Held(data.to_vec())));
    let (mut whole, mut piece) = (Vec::new(), Vec::with_capacity(1000));
    let mut more = true;
    while more && whole.len() <= max {
        piece.clear();
        more = stream.fill(&mut piece)?;
        assert!(stream.position() <= data.len() as u64 && piece.capacity() == 1000);
        whole.extend_from_slice(&piece);
    }
    Ok(whole)
}

struct Held(Vec<u8>);

impl ReadAt for Held {
    fn len(&self) -> gristmill_format::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> gristmill_format::Result<usize> {
        self.0[..].read_at(offset, buf)
    }
}

/// Whether a header may carry a checksum of its own, which the streaming decoder verifies and libdeflate does not.
fn has_header_crc(data: &[u8]) -> bool {
    data.windows(4).any(|w| w.starts_with(&[0x1f, 0x8b, 8]) && w[3] & 2 != 0)
}

/// The walk ends, offsets grow, names stay bounded, the index survives being stored, and every game decodes or says where.
pub fn tar(data: &[u8]) {
    let limits = TarLimits { max_faults: 50, ..TarLimits::default() };
    let index = walk(data, &limits).expect("reading memory does not fail");
    assert!(index.slots().is_sorted_by(|a, b| a.offset < b.offset));
    assert!(index.iter().all(|e| e.offset <= data.len() as u64));
    assert!(index.faults().len() <= limits.max_faults + 1);
    assert!(index.faults().iter().all(|e| e.place().offset.is_some()));
    let stored = TarIndex::from_parts(index.names().to_owned(), index.slots().to_vec(), index.faults().to_vec());
    assert_eq!(stored.as_ref(), Ok(&index));
    let games = GameTar::new("fuzz.tar", &index);
    let (mut bytes, mut chunk) = (Vec::new(), Chunk::default());
    for i in 0..games.len().min(4) {
        let (span, _) = games.locate(i).expect("within its length");
        let decoded = read_span(data, span, data.len() as u64, &mut bytes)
            .and_then(|()| games.decode(i, &bytes, &LIMITS, &mut chunk));
        if let Err(e) = decoded {
            assert!(e.place().offset.is_some(), "{e}");
        }
    }
}

/// The bytes as they are, and padded to one whole record so that short inputs get past the size check.
/// What parses has whole frames, and parses again to the same bytes.
pub fn record(data: &[u8]) {
    parse(data.to_vec());
    let Some(version) = data.first().and_then(|&number| Version::from_number(number.into())) else { return };
    let mut padded = data.to_vec();
    padded.resize(data.len().next_multiple_of(version.bytes()), 0);
    parse(padded);
}

fn parse(bytes: Vec<u8>) {
    let mut chunk = Chunk { bytes, ..Chunk::default() };
    if let Err(e) = game::parse(&mut chunk) {
        assert!(e.place().offset.is_some() || e.kind() == Kind::Empty, "{e}");
        return;
    }
    assert!(chunk.frames > 0);
    let mut again = Chunk { bytes: chunk.records().to_vec(), ..Chunk::default() };
    game::parse(&mut again).expect("what was parsed parses");
    assert_eq!((again.frames, &again.layout), (chunk.frames, &chunk.layout));
    assert_eq!(again.records(), chunk.records());
}

/// What parses is written as text that parses to the same layout.
pub fn descr(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(layout) = Layout::parse_descr(&text) {
        let written = layout.to_descr();
        assert_eq!(Layout::parse_descr(&written).as_ref(), Ok(&layout), "{written}");
    }
}

/// A header that parses says no more bytes than there are, and written anew it parses to the same.
pub fn npy(data: &[u8]) {
    let parsed = Header::parse(data);
    assert_eq!(Header::read(data).is_ok(), parsed.as_ref().is_ok_and(|header| fits(header, data)));
    let header = match parsed {
        Ok(header) => header,
        Err(e) => return assert!(e.place().offset.is_some_and(|at| at <= data.len() as u64), "{e}"),
    };
    for spelling in [Spelling::NumPy, Spelling::Reserved, Spelling::Spaced] {
        match Header::write(header.dtype(), header.shape(), spelling) {
            Ok(written) => {
                let again = Header::parse(&written).expect("what was written parses");
                assert_eq!((again.dtype(), again.shape()), (header.dtype(), header.shape()));
                assert_eq!((again.data_offset(), written.len() % 64), (written.len() as u64, 0));
            }
            Err(e) => assert!(spelling == Spelling::Reserved, "{e}"),
        }
    }
}

fn fits(header: &Header, data: &[u8]) -> bool {
    header.data_offset().checked_add(header.data_bytes()).is_some_and(|end| end <= data.len() as u64)
}
