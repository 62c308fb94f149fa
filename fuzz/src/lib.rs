//! Bodies of the fuzz targets: arbitrary bytes in; panics when a decoder breaks a promise, not only when it crashes.
//! Shared, as source, with the replay of the corpora on stable Rust; uses public functions of the format crate only.

use gristmill_format::Kind;
use gristmill_format::chess::game;
use gristmill_format::chess::record::Version;
use gristmill_format::chess::source::{GameFile, GameTar};
use gristmill_format::container::gzip::Inflater;
use gristmill_format::container::salvage::{inflate_prefix, salvage};
use gristmill_format::container::tar::{TarIndex, TarLimits, walk};
use gristmill_format::g2048::log::{Game, RowDefaults, Sidecar, parse_fixed, parse_json, parse_piece, pieces};
use gristmill_format::g2048::source::LogFile;
use gristmill_format::layout::Layout;
use gristmill_format::source::{Chunk, ChunkSource, Limits, read_span};

const LIMITS: Limits = Limits { max_chunk_bytes: 1 << 20 };

/// The fast path and the streaming one must agree, the bound must hold, refusals must say where.
pub fn gzip_chunk(data: &[u8]) {
    let max = LIMITS.max_chunk_bytes;
    let (mut fast, mut slow, mut prefix) = (Vec::new(), Vec::new(), Vec::new());
    let found = Inflater::default().inflate(data, max, &mut fast);
    salvage(data, max, &mut slow);
    assert!(fast.capacity() <= max && slow.len() <= max);
    match found {
        Ok(found) => {
            assert!(found.trailing <= data.len());
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
            assert!(e.kind() != Kind::TooLarge || slow.len() == max, "{e}");
        }
    }
    let mut chunk = Chunk::default();
    match GameFile::new("fuzz.gz").decode(0, data, &LIMITS, &mut chunk) {
        Ok(()) => assert!(chunk.frames > 0 && chunk.records().len() <= chunk.bytes.len()),
        Err(e) => assert!(e.place().chunk == Some(0) && chunk.frames == 0, "{e}"),
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

/// The parser of the producer's form and the JSON one give the same step wherever the first takes a line; a text gives
/// the same rows, or the same refusal, in one piece and in many; refusals say where.
pub fn log_line(data: &[u8]) {
    if let Some((step, used)) = parse_fixed(data) {
        let line = data[..used].strip_suffix(b"\n").unwrap_or(&data[..used]);
        let other = parse_json(line).expect("the producer's form is JSON").expect("and not blank");
        assert_eq!(step.evs.map(f32::to_bits), other.evs.map(f32::to_bits));
        assert_eq!(step, other);
    }
    let whole = in_pieces(data, usize::MAX);
    if let Err(e) = &whole {
        let (line, column) = e.place().line.expect("a refusal says its line");
        assert!(line > 0 && column > 0 && e.place().offset.is_some_and(|at| at <= data.len() as u64), "{e}");
    }
    assert_eq!(in_pieces(data, 1), whole);
    assert_eq!(in_pieces(data, data.len() / 3), whole);
    let mut chunk = Chunk::default();
    match LogFile::new("fuzz.jsonl.gz").decode(0, data, &LIMITS, &mut chunk) {
        Ok(()) => assert!(chunk.frames > 0 && chunk.records().len() <= LIMITS.max_chunk_bytes),
        Err(e) => assert!(e.place().offset.is_some() && chunk.frames == 0, "{e}"),
    }
}

/// Rows of a text that is parsed in pieces of at least so many bytes, and how many names of valuations it has.
fn in_pieces(text: &[u8], wanted: usize) -> gristmill_format::Result<(Vec<u8>, usize)> {
    let (mut game, mut rows) = (Game::default(), Vec::new());
    for piece in pieces(text, wanted) {
        let mut own = Vec::new();
        let defaults = RowDefaults { seed: 7, max_rank: 3 };
        let parsed = parse_piece(piece, &defaults, LIMITS.max_chunk_bytes, &mut own).map_err(|e| game.place(e))?;
        game.join(&parsed, &mut own)?;
        rows.extend(own);
    }
    Ok((rows, game.valuations().names().len()))
}

/// What is taken has facts within their ranges and extras that are JSON; refusals say line and column.
pub fn sidecar(data: &[u8]) {
    match Sidecar::parse(data) {
        Ok(sidecar) => {
            let mut text = format!(
                "{{\"seed\":{},\"num_moves\":{},\"score\":{},\"max_tile\":{}",
                sidecar.seed, sidecar.num_moves, sidecar.score, sidecar.max_tile
            );
            if let Some(rank) = sidecar.max_rank {
                text += &format!(",\"max_rank\":{rank}");
            }
            for (i, (_, value)) in sidecar.extras.iter().enumerate() {
                text += &format!(",\"extra{i}\":{value}");
            }
            let again = Sidecar::parse((text + "}").as_bytes()).expect("facts and extras are JSON");
            let values = |sidecar: &Sidecar| sidecar.extras.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>();
            assert_eq!(values(&again), values(&sidecar));
            assert_eq!(Sidecar { extras: Vec::new(), ..again }, Sidecar { extras: Vec::new(), ..sidecar });
        }
        Err(e) => assert!(e.kind() == Kind::Corrupt && e.place().line.is_some(), "{e}"),
    }
}
