//! One `.gz` file, or a tar of them -> chunks: each game is a chunk.
//! Neither ever opens a file; a single game is not even read before it is decoded.

use gristmill_bytes::container::gzip::{HEAD_ROOM, Inflater, MAGIC, told};
use gristmill_bytes::container::tar::{Entry, TarIndex, TarLimits, walk};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::head::Head;
use gristmill_bytes::source::{Chunk, ChunkSource, Description, Limits, ReadAt, Span};

use crate::chess::record::Version;
use crate::chess::{KIND, game};

/// A file that is one game: gzip, or plain records.
#[derive(Debug)]
pub struct GameFile(Description);

impl GameFile {
    /// The game in the file called `key` (without directory).
    pub fn new(key: impl Into<String>) -> Self {
        GameFile(Description { key: key.into(), format: "lc0.gz", kind: KIND })
    }
}

impl ChunkSource for GameFile {
    fn describe(&self) -> &Description {
        &self.0
    }

    fn len(&self) -> usize {
        1
    }

    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)> {
        (i == 0).then_some((Span::WHOLE, None))
    }

    fn decode(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        if i > 0 {
            return Err(missing(i, 1));
        }
        decode_game(bytes, limits, out).map_err(|e| e.in_chunk(i))
    }

    fn head(&self, _i: usize, bytes: &[u8], decoded: &Chunk) -> Option<Head> {
        head_of(bytes, decoded)
    }

    fn decode_head(
        &self,
        i: usize,
        head: (usize, &Head),
        bytes: &[u8],
        limits: &Limits,
        out: &mut Chunk,
    ) -> Result<bool> {
        if i < self.len() { decode_first(head, bytes, limits, out) } else { Ok(false) }
    }
}

/// A tar whose members are games. Kept in memory: one index entry for each.
#[derive(Debug)]
pub struct GameTar {
    description: Description,
    games: TarIndex,
    skipped: usize,
}

impl GameTar {
    /// Walks the headers of the tar called `key`.
    ///
    /// Errors: what reading gives, and the first fault when not a single member was found.
    pub fn open(key: impl Into<String>, from: &(impl ReadAt + ?Sized)) -> Result<Self> {
        let index = walk(from, &TarLimits::default())?;
        match index.faults().first() {
            Some(fault) if index.is_empty() => Err(fault.clone()),
            _ => Ok(GameTar::new(key, &index)),
        }
    }

    /// The games among the members of an index: those whose name ends in `.gz`, and plain ones that are whole
    /// records long; `LICENSE`, names that start with a dot (`._*` among them) and anything else are skipped.
    pub fn new(key: impl Into<String>, index: &TarIndex) -> Self {
        let games = index.filter(is_game);
        let skipped = index.len() - games.len();
        GameTar { description: Description { key: key.into(), format: "lc0.tar", kind: KIND }, games, skipped }
    }

    /// The index of the games alone, to be kept beside the data; [`GameTar::new`] takes it back.
    pub fn index(&self) -> &TarIndex {
        &self.games
    }

    /// Members that are not games.
    pub fn skipped(&self) -> usize {
        self.skipped
    }
}

impl ChunkSource for GameTar {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn len(&self) -> usize {
        self.games.len()
    }

    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)> {
        self.games.get(i).map(|e| (Span { offset: e.offset, len: e.len }, Some(e.name)))
    }

    fn decode(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        let game = self.games.get(i).ok_or_else(|| missing(i, self.games.len()))?;
        decode_game(bytes, limits, out).map_err(|e| e.in_chunk(i).in_member(game.name))
    }

    fn head(&self, _i: usize, bytes: &[u8], decoded: &Chunk) -> Option<Head> {
        head_of(bytes, decoded)
    }

    fn decode_head(
        &self,
        i: usize,
        head: (usize, &Head),
        bytes: &[u8],
        limits: &Limits,
        out: &mut Chunk,
    ) -> Result<bool> {
        if i < self.len() { decode_first(head, bytes, limits, out) } else { Ok(false) }
    }

    fn faults(&self) -> &[Error] {
        self.games.faults()
    }
}

/// Whether a member of a tar is a game by its name and length.
pub(crate) fn is_game(member: Entry<'_>) -> bool {
    let name = member.base_name();
    if name.is_empty() || name == "LICENSE" || name.starts_with('.') {
        return false;
    }
    let gz = name.len() >= 3 && name.as_bytes()[name.len() - 3..].eq_ignore_ascii_case(b".gz");
    gz || member.len > 0 && Version::ALL.iter().any(|v| member.len.is_multiple_of(v.bytes() as u64))
}

fn decode_game(bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
    out.frames = 0;
    out.trailing = 0;
    let inflated = out.kept.tool::<Inflater>().inflate(bytes, limits.max_chunk_bytes, &mut out.bytes)?;
    game::parse(out).map_err(|e| e.at_byte(0))?;
    out.trailing = inflated.trailing;
    Ok(())
}

/// The sums of a game that was decoded whole; none where it is not one gzip member of records as they were stored.
fn head_of(bytes: &[u8], decoded: &Chunk) -> Option<Head> {
    let inside = decoded.records();
    // Upgraded records are longer than the stored ones. Of several gzip members, the trailer counts the last one only.
    let alone = bytes.starts_with(&MAGIC) && told(bytes) == Some(inside.len());
    alone.then(|| Head::of(bytes, inside)).flatten()
}

/// The first frames of a game alone; `false` where only the whole of it can be had, or its head is not as it should be.
fn decode_first((frames, head): (usize, &Head), bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<bool> {
    out.trailing = 0;
    let wanted = frames.saturating_mul(Version::V7.bytes());
    let place = head.place(wanted).filter(|place| place.saturating_add(HEAD_ROOM) <= limits.max_chunk_bytes);
    let Some(place) = place.filter(|_| frames > 0) else { return Ok(false) };
    let inflated = out.kept.tool::<Inflater>().inflate_head(bytes, place, &mut out.bytes)?;
    let agrees = inflated && head.begins_with(&out.bytes[..place]);
    Ok(agrees && game::parse_head(out, frames).unwrap_or(false))
}

fn missing(i: usize, len: usize) -> Error {
    Error::new(Kind::Missing, format!("chunk {i} of a source of {len}")).in_chunk(i)
}
