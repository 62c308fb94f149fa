//! What the jobs do with the chunks of a kind, and what they do it with: an opened file, a drawn frame, findings, counts.
//! Names no kind; `kinds` has a file for each.

pub(crate) mod drawn;
pub(crate) mod findings;
mod opened;
pub(crate) mod signs;

use std::collections::BTreeMap;
use std::path::Path;

use gristmill_engine::error::Result;
use gristmill_engine::sql::SqlValue;
use gristmill_format::layout::Layout;
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, Result as FormatResult};
use serde::{Deserialize, Serialize};

use crate::word::{self, Word};

pub(crate) use drawn::{FramePlace, FrameView};
pub(crate) use findings::{Fault, Verification};
pub(crate) use opened::Opened;
pub use opened::is_unreadable;
pub(crate) use signs::{Met, Signs};

/// What the records of a chunk say for the columns of a pack.
pub(crate) type Facts = fn(&Chunk) -> FormatResult<Vec<SqlValue>>;

/// A chunk of a file: its number, its stored bytes, and its records.
pub(crate) struct Decoded<'a> {
    pub(crate) file: &'a Opened,
    pub(crate) i: usize,
    pub(crate) stored: &'a [u8],
    pub(crate) chunk: &'a Chunk,
}

/// The jobs on chunks of one kind.
pub(crate) trait Work: Sync {
    /// The name of the kind.
    fn name(&self) -> &'static str;

    /// Checks all of a file that was decoded when it was opened; `false`, and nothing done, where it was not.
    fn verify_whole(&self, file: &Opened, keep: usize, found: &mut Verification) -> bool {
        let _ = (file, keep, found);
        false
    }

    /// Checks a chunk by every rule. By default its frames count as checked: decoding holds records against all rules of most kinds.
    fn verify(&self, one: &Decoded<'_>, keep: usize, found: &mut Verification) {
        let _ = keep;
        found.checked += one.chunk.frames as u64;
    }

    /// Notes the signs of all of a file that was decoded when it was opened; `false`, and nothing done, where it was not.
    fn signs_whole(&self, file: &Opened, signs: &mut Signs) -> bool {
        let _ = (file, signs);
        false
    }

    /// Notes the signs of a chunk: what no rule forbids, and no sound data has. By default there are none: what repeats is a
    /// sign only in games whose rules are known.
    ///
    /// Errors: those of records that were decoded and cannot be.
    fn signs(&self, one: &Decoded<'_>, signs: &mut Signs) -> FormatResult<()> {
        let _ = (one, signs);
        Ok(())
    }

    /// Notes the signs of the games of a pack of rows, where the kind has such; `false`, and nothing done, where it has none.
    ///
    /// Errors: what of the pack cannot be read.
    fn signs_of_rows(&self, folder: &Path, signs: &mut Signs) -> Result<bool> {
        let _ = (folder, signs);
        Ok(false)
    }

    /// How many bytes of a file that was decoded when it was opened the first chunks are, and how many they are when packed: of
    /// at most `most` bytes of records; none where that is not tried.
    fn packed(&self, file: &Opened, most: usize) -> Option<(u64, u64)> {
        let _ = (file, most);
        None
    }

    /// The codecs among which a user chooses for packs of the kind; none where all of its packs have one.
    fn codecs(&self) -> &'static [Storing] {
        &[]
    }

    /// How many whole, readable records a chunk begins with that cannot be decoded; none where that cannot be told.
    fn salvageable(&self, file: &Opened, stored: &[u8], chunk: &mut Chunk) -> Option<u64> {
        let _ = (file, stored, chunk);
        None
    }

    /// What records alone say for the columns of a pack; such chunks are found again by the hash of their records.
    fn facts(&self) -> Option<Facts> {
        let codec = gristmill_engine::kinds::of(self.name()).ok()?.codec()?;
        codec.packing().map(|packing| packing.facts)
    }

    /// Draws a record.
    ///
    /// Errors: those of a record that cannot be.
    fn view(&self, place: FramePlace, layout: Option<&Layout>, record: &[u8]) -> FormatResult<FrameView>;

    /// What writes chunks in these words, one after another.
    ///
    /// Errors: `Unsupported` for words that the kind does not have.
    fn scribe(&self, words: Words) -> FormatResult<Box<dyn Scribe>> {
        Err(no_words(self.name(), words))
    }

    /// Counts what is in a file.
    ///
    /// Errors: what is no fault of the data.
    fn count(&self, file: &Opened, counting: &mut dyn Counting) -> Result<()>;
}

/// The layout of a record whose chunk says what it is.
///
/// Errors: `Missing` where there is none, or one of other records.
pub(crate) fn layout_of<'a>(layout: Option<&'a Layout>, record: &[u8]) -> FormatResult<&'a Layout> {
    let own = layout.filter(|layout| layout.size() == record.len());
    own.ok_or_else(|| Error::new(Kind::Missing, "a record without its layout"))
}

/// A codec: how a pack stores its games.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storing {
    /// Compressed by Zstandard.
    Zstd,
    /// As it is: larger, and read without unpacking.
    Raw,
}

impl Storing {
    /// Its name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Storing::Zstd => "zstd",
            Storing::Raw => "raw",
        }
    }
}

/// Words that a game can be told in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Words {
    /// Portable Game Notation: a game with its moves.
    Pgn,
    /// Forsyth-Edwards notation: a line for each frame.
    Fen,
    /// Boards of bulletformat, 32 bytes for each frame.
    Bulletformat,
    /// Stockfish's binpack: chains of positions that follow from each other.
    Binpack,
}

impl Words {
    /// Their name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Words::Pgn => "pgn",
            Words::Fen => "fen",
            Words::Bulletformat => "bulletformat",
            Words::Binpack => "binpack",
        }
    }
}

/// The error for words that a kind does not have.
pub(crate) fn no_words(kind: &str, words: Words) -> Error {
    let those = match words {
        Words::Pgn | Words::Fen => "games of chess have",
        Words::Bulletformat | Words::Binpack => "boards of bulletformat and positions of a binpack have",
    };
    Error::new(Kind::Unsupported, format!("frames of `{kind}` have no {}; {those}", words.name()))
}

/// Writes chunks of one kind, one after another.
pub(crate) trait Scribe {
    /// Appends a chunk, with what its file said of it; how many of its frames were written: the others have no score, which these
    /// words need. What is refused leaves nothing.
    ///
    /// Errors: those of records that no words can tell.
    fn add(&mut self, chunk: &Chunk, out: &mut Vec<u8>) -> FormatResult<u64>;

    /// Appends what was held back.
    fn end(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// What the words need and the chunks do not say.
    fn made_up(&self) -> Option<&'static str> {
        None
    }
}

/// What counts the chunks of opened files.
pub(crate) trait Counting {
    /// Counts games of chess, one after another.
    ///
    /// Errors: those of records that were decoded and cannot be.
    fn games(&mut self, file: &Opened) -> Result<()>;

    /// Counts chunks of a kind, one after another; `count` looks at each.
    ///
    /// Errors: those of `count`.
    fn chunks(&mut self, file: &Opened, count: &mut dyn FnMut(&Chunk, &mut Counts) -> FormatResult<()>) -> Result<()>;

    /// Counts logs of 2048, one after another.
    fn logs(&mut self, file: &Opened);

    /// Counts trajectories: of a file that is decoded already, or packed ones, one after another.
    fn demos(&mut self, file: &Opened);
}

/// What is counted of the frames of one kind.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Chunks.
    pub chunks: u64,
    /// Frames.
    pub frames: u64,
    /// Frames by numbers of theirs, by what each number is.
    #[serde(deserialize_with = "word::map")]
    pub numbers: BTreeMap<Word, BTreeMap<i64, u64>>,
}

impl Counts {
    /// Counts a frame whose number `name` is `number`: one of a few thousand different ones at most.
    pub(crate) fn add(&mut self, name: &'static str, number: i64) {
        *self.numbers.entry(name).or_default().entry(number).or_default() += 1;
    }

    /// Takes in what was counted elsewhere.
    pub(crate) fn join(&mut self, other: Counts) {
        self.chunks += other.chunks;
        self.frames += other.frames;
        for (name, numbers) in other.numbers {
            let known = self.numbers.entry(name).or_default();
            numbers.into_iter().for_each(|(number, frames)| *known.entry(number).or_default() += frames);
        }
    }
}

impl Decoded<'_> {
    /// Who the chunk is: the key of the game and of its images, and which of them it is.
    pub(crate) fn met(&self, key: u128, image: u8) -> Met {
        let records = xxhash_rust::xxh3::xxh3_64(self.chunk.records());
        Met { key, image, records, chunk: self.i as u64, member: self.file.member(self.i).map(Into::into) }
    }

    /// The fault of a frame that breaks a rule, `offset` bytes into the frame.
    pub(crate) fn broken(&self, rule: &'static str, (frame, offset): (usize, usize), reason: String) -> Fault {
        let size = self.chunk.layout.as_ref().map_or(0, |layout| layout.size());
        let e = Error::new(Kind::OutOfRange, reason).at_byte((frame * size + offset) as u64).in_frame(frame);
        let e = e.in_chunk(self.i).in_source(&self.file.path);
        let e = self.file.member(self.i).map(|name| e.clone().in_member(name)).unwrap_or(e);
        Fault { rule: Some(rule), ..Fault::new(&e) }
    }
}
