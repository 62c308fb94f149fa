//! A name and the first bytes -> which format this is, and the source that reads it.
//! The one table of formats: a new format is one row. Never reads more than it is given.

use std::sync::Arc;

use gristmill_bytes::container::chunks::{self, ChunkFile};
use gristmill_bytes::container::gzip;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::plain::{Rooms, Whole};
use gristmill_bytes::source::{Access, ChunkSource, ReadAt, Span, read_span, read_span_in_pieces};
use xxhash_rust::xxh3::Xxh3Default;

use crate::binpack::pack::{self as packed_chains, PackedChains};
use crate::binpack::source::{self as binpacks, Binpack};
use crate::bullet::pack::{self as packed_boards, PackedBoards};
use crate::bullet::source::BoardFile;
use crate::chess::pack::{self as packed_chess, PackedGames};
use crate::chess::pgn::source::{self as pgn, PackedPgn, PgnFile};
use crate::chess::source::{GameFile, GameTar, is_game};
use crate::demo::form::DemoFile;
use crate::demo::form::whole::{Opened, opened, whole};
use crate::demo::form::{EXTENSIONS as DEMONSTRATIONS, is_tar};
use crate::demo::pack::{self as packed_demo, PackedDemos};
use crate::demo::shard::is_shard;
use crate::g2048::log::{STEPS_SUFFIX, is_sidecar};
use crate::g2048::source::LogFile;
use crate::katago::pack::{self as packed_shards, PackedShards};
use crate::katago::shard::{self, Shard, is_shard as is_rows};
use crate::records::RecordFile;
use crate::records::pack::{self as packed_records, PackedRecords};
use crate::{binpack, bullet, chess, demo, g2048, katago, records};

/// How many bytes of a file [`detect`] can make use of.
pub const HEAD: usize = 1536;

/// A format that can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// One Leela Chess Zero game: `.gz`, or plain records.
    ChessGame,
    /// A tar of such games.
    ChessTar,
    /// Games in PGN, plain: `.pgn`.
    Pgn,
    /// The same, compressed: `.pgn.gz`, `.pgn.zst`.
    PackedPgn,
    /// A chunk file of packed games or trajectories: `.chunks`.
    Chunks,
    /// The raw log of one 2048 game: `.jsonl.gz`.
    G2048Log,
    /// Demonstrations: a shard or a native form.
    Demonstrations,
    /// Boards of bulletformat.
    Bullet,
    /// Chains of Stockfish's binpack: `.binpack`.
    Binpack,
    /// Records of any game: `.records`.
    Records,
    /// Training rows of KataGo: an `.npz`, told by its members.
    KataGo,
}

struct Row {
    format: Format,
    /// What its frames are of; none where the file says it.
    kind: Option<&'static str>,
    access: Access,
    extensions: &'static [&'static str],
    magic: fn(&[u8]) -> bool,
    open: fn(&str, &dyn ReadAt) -> Result<Arc<dyn ChunkSource>>,
}

const ROWS: [Row; 11] = [
    Row {
        format: Format::G2048Log,
        kind: Some(g2048::KIND),
        access: Access::Random,
        extensions: &[STEPS_SUFFIX],
        magic: |_| false,
        open: |key, _| Ok(Arc::new(LogFile::new(key))),
    },
    Row {
        format: Format::ChessTar,
        kind: Some(chess::KIND),
        access: Access::Random,
        extensions: &[".tar"],
        magic: |head| head.get(257..262) == Some(b"ustar"),
        open: |key, from| Ok(Arc::new(GameTar::open(key, from)?)),
    },
    Row {
        format: Format::Chunks,
        kind: None,
        access: Access::Random,
        extensions: &[".chunks"],
        magic: |head| head.starts_with(&chunks::MAGIC),
        open: |key, from| packed(key, ChunkFile::open(from)?),
    },
    Row {
        format: Format::Demonstrations,
        kind: Some(demo::KIND),
        access: Access::Solid,
        extensions: &DEMONSTRATIONS,
        magic: |_| false,
        open: |key, from| Ok(Arc::new(DemoFile::open(key, from)?)),
    },
    Row {
        format: Format::PackedPgn,
        kind: Some(chess::KIND),
        access: Access::Solid,
        extensions: &pgn::PACKED,
        magic: |_| false,
        open: |key, from| Ok(Arc::new(PackedPgn::open(key, from)?)),
    },
    Row {
        format: Format::Pgn,
        kind: Some(chess::KIND),
        access: Access::Random,
        extensions: &pgn::PLAIN,
        magic: pgn::begins,
        open: |key, from| Ok(Arc::new(PgnFile::open(key, from)?)),
    },
    Row {
        format: Format::Records,
        kind: Some(records::KIND),
        access: Access::Random,
        extensions: &[records::log::ENDING],
        magic: |head| head.starts_with(&records::log::MAGIC),
        open: |key, from| Ok(Arc::new(RecordFile::open(key, from)?)),
    },
    Row {
        format: Format::ChessGame,
        kind: Some(chess::KIND),
        access: Access::OneChunk,
        extensions: &[".gz"],
        magic: |head| head.starts_with(&gzip::MAGIC) || matches!(head, [3..=7, 0, 0, 0, ..]),
        open: |key, _| Ok(Arc::new(GameFile::new(key))),
    },
    Row {
        format: Format::Binpack,
        kind: Some(binpack::KIND),
        access: Access::Random,
        extensions: &[".binpack"],
        magic: binpacks::begins,
        open: |key, from| Ok(Arc::new(Binpack::open(key, from)?)),
    },
    Row {
        format: Format::Bullet,
        kind: Some(bullet::KIND),
        access: Access::Random,
        extensions: &[".bf", ".bullet", ".bulletformat"],
        magic: bullet::board::begins,
        open: |key, from| Ok(Arc::new(BoardFile::open(key, from)?)),
    },
    Row {
        format: Format::KataGo,
        kind: Some(katago::KIND),
        access: Access::Solid,
        extensions: &[],
        magic: |_| false,
        open: |key, from| Ok(Arc::new(Shard::open(key, from)?)),
    },
];

/// The row of a format.
fn row(format: Format) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.format == format)
}

/// Reads the stored bytes of a solid file to plain ones, of which there may be at most a given number.
type ReadWhole = fn(&str, Vec<u8>, usize, &mut Rooms) -> Result<Whole>;

/// How the formats are read whose rows say that they are solid.
const WHOLE: [(Format, ReadWhole); 3] = [
    (Format::Demonstrations, demonstrations_or_games),
    (Format::PackedPgn, |key, stored, max, _| pgn::whole(key, stored, max)),
    (Format::KataGo, |key, stored, max, _| shard::whole(key, stored, max)),
];

/// A file of these names is demonstrations, or a tar that was compressed as a whole: then of what its members are.
fn demonstrations_or_games(key: &str, stored: Vec<u8>, max: usize, rooms: &mut Rooms) -> Result<Whole> {
    match opened(stored, max, rooms)? {
        Opened::Plain { plain, faults, .. } if is_tar(&plain) && !is_shard(plain.as_slice(), is_game)? => {
            Ok(Whole { chunks: Arc::new(GameTar::open(key, plain.as_slice())?), plain: Box::new(plain), faults })
        }
        of => whole(key, of, max, rooms),
    }
}

/// Opens the chunks of one kind.
type OpenPacked = fn(&str, ChunkFile) -> Result<Arc<dyn ChunkSource>>;

/// What chunk files may say that they hold, and how that is opened.
const PACKINGS: [(chunks::Codec, OpenPacked); 6] = [
    (packed_chess::CODEC, |key, index| Ok(Arc::new(PackedGames::new(key, index)?))),
    (packed_demo::CODEC, |key, index| Ok(Arc::new(PackedDemos::new(key, index)?))),
    (packed_boards::CODEC, |key, index| Ok(Arc::new(PackedBoards::new(key, index)?))),
    (packed_chains::CODEC, |key, index| Ok(Arc::new(PackedChains::new(key, index)?))),
    (packed_records::CODEC, |key, index| Ok(Arc::new(PackedRecords::new(key, index)?))),
    (packed_shards::CODEC, |key, index| Ok(Arc::new(PackedShards::new(key, index)?))),
];

/// The chunks of a chunk file, by what they are.
fn packed(key: &str, index: ChunkFile) -> Result<Arc<dyn ChunkSource>> {
    match PACKINGS.iter().find(|(codec, _)| *codec == index.codec()) {
        Some((_, open)) => open(key, index),
        None => Err(unknown_codec(index.codec()).at_byte(0)),
    }
}

/// The error for chunks of a kind that is not known here.
pub fn unknown_codec(codec: chunks::Codec) -> Error {
    let name = codec.trim_ascii_end().strip_suffix(b"\x01").unwrap_or(&codec);
    let end = name.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let detail = format!(
        "chunks of `{}`, a kind that is not known here; the gristmill that wrote them, or a newer one, reads them",
        name[..end].escape_ascii()
    );
    Error::new(Kind::Unsupported, detail)
}

/// Names that are known and refused, with advice.
const REFUSED: [(&[&str], &str); 2] = [
    (&[".tar.bz2", ".tbz2"], "packed by bzip2, which is not read here; unpack it, or pack it again, as a .tar.zst"),
    (&[".tar.xz", ".txz"], "packed by xz, which is not read here; unpack it, or pack it again, as a .tar.zst"),
];

/// Tells the format of the file called `name` (with or without directory) by its extension, else by `head`, its
/// first bytes (up to [`HEAD`]; none to go by the name alone). `None`: not a format known here, or a file that never
/// holds data (`LICENSE`, names that start with a dot, the sidecars of logs).
///
/// Errors: `Unsupported` with advice for what is recognised and cannot be read.
pub fn detect(name: &str, head: &[u8]) -> Result<Option<Format>> {
    let base = name.rsplit('/').next().unwrap_or(name);
    if base == "LICENSE" || base.starts_with('.') || is_sidecar(base) {
        return Ok(None);
    }
    let base = base.to_ascii_lowercase();
    let ends = |extensions: &[&str]| extensions.iter().any(|e| base.ends_with(e));
    if let Some((_, advice)) = REFUSED.iter().find(|(extensions, _)| ends(extensions)) {
        return Err(Error::new(Kind::Unsupported, *advice));
    }
    let row = ROWS.iter().find(|row| ends(row.extensions)).or_else(|| ROWS.iter().find(|row| (row.magic)(head)));
    Ok(row.map(|r| r.format))
}

/// Tells the format of a single file: as [`detect`], and what is in it has a say. Members decide what a tar or an `.npz` is, and
/// reading what the packing of a solid file is.
///
/// Errors: as [`detect`]; `Io`.
pub fn detect_alone(name: &str, from: &dyn ReadAt) -> Result<Option<Format>> {
    let base = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let named = |row: &&Row| row.access == Access::Solid && row.extensions.iter().any(|e| base.ends_with(e));
    if let Some(row) = ROWS.iter().find(named).filter(|_| !base.starts_with('.')) {
        let rows = base.ends_with(shard::ENDING) && is_rows(from)?;
        return Ok(Some(if rows { Format::KataGo } else { row.format }));
    }
    let mut head = Vec::new();
    let len = from.len()?.min(HEAD as u64);
    read_span(from, Span { offset: 0, len }, HEAD as u64, &mut head)?;
    match detect(name, &head)? {
        Some(Format::ChessTar) if is_shard(from, is_game)? => Ok(Some(Format::Demonstrations)),
        found => Ok(found),
    }
}

/// Opens a source of a known format; `key` is its file name without directory.
///
/// A single game is not touched; a tar has its headers walked.
///
/// Errors: what the format's own opening gives.
pub fn open(format: Format, key: &str, from: &dyn ReadAt) -> Result<Arc<dyn ChunkSource>> {
    match row(format) {
        Some(row) => (row.open)(key, from),
        None => Err(Error::new(Kind::UnknownFormat, format!("{format:?}"))),
    }
}

/// Bytes of a file of this machine that are read and hashed together: the cache of a processor holds them.
const PIECE: usize = 256 << 10;

/// Reads a solid file, of at most `max` bytes, stored and plain; `key` is its file name without directory. Gives the XXH3-64 of its
/// stored bytes, too. Takes memory from `rooms`, and leaves there what it needs no more.
///
/// Takes six times `max` of memory at most, and keeps what it gives.
///
/// Errors: `TooLarge` beyond `max`; `Io`; what the format's own reading gives; `Unsupported` for a format that is not solid.
pub fn read_whole(format: Format, key: &str, from: &dyn ReadAt, max: usize, rooms: &mut Rooms) -> Result<(Whole, u64)> {
    let Some((_, read)) = WHOLE.iter().find(|(solid, _)| *solid == format) else {
        return Err(Error::new(Kind::Unsupported, "its chunks are reached in the file; it is not read whole"));
    };
    let mut stored = rooms.take(usize::try_from(from.len()?).unwrap_or(usize::MAX));
    let (mut hash, piece) = (Xxh3Default::new(), if from.is_local() { PIECE } else { usize::MAX });
    read_span_in_pieces(from, Span::WHOLE, max as u64, piece, &mut stored, |piece| hash.update(piece))?;
    Ok((read(key, stored, max, rooms)?, hash.digest()))
}

/// How the chunks of files of a format can be reached.
pub fn access(format: Format) -> Access {
    row(format).map_or(Access::Solid, |row| row.access)
}

/// What the frames of files of a format are of; none where each file says it.
pub fn kind(format: Format) -> Option<&'static str> {
    row(format).and_then(|row| row.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file without a byte.
    struct Nothing;

    impl ReadAt for Nothing {
        fn len(&self) -> Result<u64> {
            Ok(0)
        }

        fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
            Ok(0)
        }
    }

    #[test]
    fn each_format_is_one_row_and_is_known_by_its_names() {
        for (i, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..i].iter().all(|before| before.format != row.format));
            assert_eq!(WHOLE.iter().any(|(solid, _)| *solid == row.format), row.access == Access::Solid);
            for ending in row.extensions {
                let name = format!("any{ending}");
                let refused = REFUSED.iter().any(|(endings, _)| endings.contains(ending));
                assert_eq!(detect(&name, &[]).ok(), (!refused).then_some(Some(row.format)), "{name}");
                assert_eq!(detect_alone(&name, &Nothing).unwrap(), Some(row.format), "{name}");
            }
        }
    }
}
