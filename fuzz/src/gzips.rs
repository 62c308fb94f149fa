//! Body for gzip: libdeflate, the stream, salvage, and the members as the `flate2` crate reads them give the same bytes, within their bound.
//! Each input counts twice: as a file, and as deflated bytes to which the body adds header, checksum and length.

use std::io::Read;
use std::sync::Arc;

use flate2::bufread::{DeflateDecoder, GzDecoder};
use gristmill_format::Kind;
use gristmill_format::chess::source::GameFile;
use gristmill_format::container::gzip::{Inflater, MAGIC};
use gristmill_format::container::gzip_stream::GzipStream;
use gristmill_format::container::salvage::{inflate_prefix, salvage};
use gristmill_format::source::{Chunk, ChunkSource, Limits, ReadAt};

/// Small: an input that gives a megabyte takes the time of a hundred.
const LIMITS: Limits = Limits { max_chunk_bytes: 1 << 17 };

/// The fast path and the streaming one must agree, the bound must hold, refusals must say where.
pub fn gzip_chunk(data: &[u8]) {
    inflated(data);
    deflated(data);
}

fn inflated(data: &[u8]) {
    let max = LIMITS.max_chunk_bytes;
    let (mut fast, mut slow, mut prefix) = (Vec::new(), Vec::new(), Vec::new());
    let found = Inflater::default().inflate(data, max, &mut fast);
    salvage(data, max, &mut slow);
    assert!(fast.capacity() <= max && slow.len() <= max);
    let (pieces, members) = (in_pieces(data, max), by_crate(data, max));
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
                let want = fast.len() / 2;
                if Inflater::default().inflate_head(data, want, &mut prefix).expect("memory") {
                    assert_eq!(prefix[..want], fast[..want]);
                }
                if let Some(members) = members {
                    assert!(members.as_ref().ok() == Some(&fast), "another library, another answer: {members:?}");
                }
            }
        }
        Err(e) => {
            assert!(e.place().offset.is_some_and(|at| at <= data.len() as u64), "{e}");
            assert!(e.kind() == Kind::TooLarge || pieces.is_err(), "pieces of what is damaged");
            assert!(
                e.kind() == Kind::TooLarge || members.is_none_or(|members| members.is_err()),
                "another library reads it"
            );
            assert!(e.kind() != Kind::TooLarge || slow.len() == max || has_header_crc(data), "{e}");
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

/// The members one after another, by the crate's own reading of headers and trailers; `None` for bytes that are no gzip.
fn by_crate(data: &[u8], max: usize) -> Option<std::io::Result<Vec<u8>>> {
    let (mut whole, mut rest) = (Vec::new(), data);
    if !rest.starts_with(&MAGIC) {
        return None;
    }
    while rest.starts_with(&MAGIC) && whole.len() <= max {
        let mut member = GzDecoder::new(rest);
        if let Err(e) = member.by_ref().take((max + 1) as u64).read_to_end(&mut whole) {
            return Some(Err(e));
        }
        rest = member.into_inner();
    }
    Some(Ok(whole))
}

/// Deflated bytes that the `flate2` crate inflates are inflated to the same ones behind a header, with their checksum.
fn deflated(data: &[u8]) {
    let (max, mut raw) = (LIMITS.max_chunk_bytes, Vec::new());
    let mut decoder = DeflateDecoder::new(data);
    if decoder.by_ref().take((max + 1) as u64).read_to_end(&mut raw).is_err() || raw.len() > max {
        return;
    }
    let used = usize::try_from(decoder.total_in()).expect("bytes of the input");
    let mut sum = flate2::Crc::new();
    sum.update(&raw);
    let trailer = [sum.sum().to_le_bytes(), (raw.len() as u32).to_le_bytes()];
    inflated(&[b"\x1f\x8b\x08\0\0\0\0\0\0\xff", &data[..used], trailer.as_flattened()].concat());
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
