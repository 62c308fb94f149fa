//! What a kind has to say of its chunks so that packs of them can be: columns, rules, identity, records and tensors by number.
//! A trait; `kinds` has an implementation for each game. Nothing here reads or writes.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use gristmill_format::container::chunks;
use gristmill_format::container::packed;
use gristmill_format::encode::Encoder;
use gristmill_format::layout::Layout;
use gristmill_format::source::{Chunk, Kept};
use gristmill_format::weigh::Weigher;
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::sql::SqlValue;
use gristmill_runtime::table::Pick;

use super::metadata::Games;
use super::open::ChunkPack;
use super::plain;
use crate::pack_table::Content;

/// How packs have chunks of one kind.
pub trait Codec: Debug + Send + Sync {
    /// The names of its packs and of their files.
    fn called(&self) -> Called;

    /// What `codec` says in the manifest.
    fn name(&self) -> &'static str {
        self.called().name
    }

    /// What the footers of its chunk files say.
    fn tag(&self) -> chunks::Codec {
        self.called().tag
    }

    /// How sources call its chunk files.
    fn format(&self) -> &'static str {
        self.called().format
    }

    /// Names and SQL types of the columns that its facts fill, in order: after those of every pack.
    fn columns(&self) -> Vec<(&'static str, &'static str)>;

    /// Whether packs of its chunks differ by what the chunks say: by [`Codec::own_columns`] and [`Codec::agree`].
    fn varies(&self) -> bool {
        false
    }

    /// Names and SQL types of the columns that a pack has after these, as one of its packed chunks says.
    ///
    /// Errors: those of a chunk that cannot be read.
    fn own_columns(&self, packed: &[u8]) -> Result<Vec<(String, &'static str)>> {
        let _ = packed;
        Ok(Vec::new())
    }

    /// That two packed chunks can be of one pack.
    ///
    /// Errors: `WrongSize`, saying how they differ.
    fn agree(&self, first: &[u8], other: &[u8]) -> Result<()> {
        let _ = (first, other);
        Ok(())
    }

    /// How many of the columns, the last ones, are of what the packed file said beside its records: NULL where it did not, and
    /// where a pack of before has no such column.
    fn beside(&self) -> usize {
        0
    }

    /// What the packed file said of a game, from the values of all columns: names and values.
    fn said(&self, facts: &[SqlValue]) -> Vec<(String, String)> {
        let _ = facts;
        Vec::new()
    }

    /// The column whose values are the classes of its games that batches should balance; none where no column is.
    fn class_column(&self) -> Option<&'static str> {
        None
    }

    /// The class of one game in that column, from its records; none for a kind without such a column.
    ///
    /// Errors: `Corrupt`, `Truncated` for bytes that are no records.
    fn class(&self, game: &Chunk) -> Result<Option<SqlValue>> {
        let _ = game;
        Ok(None)
    }

    /// The layout of the records of a pack; `first` reads the stored bytes of its first chunk, where that says it.
    ///
    /// Errors: those of `first`; `Corrupt`, `Truncated`.
    fn layout(&self, first: &dyn Fn() -> Result<Vec<u8>>) -> Result<Arc<Layout>>;

    /// What rules may use beside the fields of records.
    fn derived(&self) -> &'static [&'static str] {
        &[]
    }

    /// Number `i` of [`Codec::derived`] for a record of this layout.
    ///
    /// Errors: `OutOfRange` for a record that cannot be.
    fn derive(&self, i: usize, layout: &Layout, record: &[u8]) -> Result<i64> {
        let _ = (layout, record);
        Err(Error::new(Kind::Missing, format!("number {i} of what rules may use of {}", self.name())))
    }

    /// Who games of a pack are, in order.
    ///
    /// Errors: those of a game that cannot be read.
    fn contents(&self, pack: &ChunkPack, games: Range<u64>) -> Result<Vec<Content>>;

    /// The identities of games of a pack, in order. `None` if its database does not have them.
    ///
    /// Errors: `Format` for the database.
    fn known(&self, database: &Games, games: Range<u64>) -> gristmill_runtime::Result<Option<Vec<Content>>> {
        let _ = (database, games);
        Ok(None)
    }

    /// The records of a chunk, which lie back to back in its stored bytes. Checks the whole chunk if `frames` is given, the number of
    /// frames that the index says.
    ///
    /// Errors: `Unsupported` for a kind that unpacks its records, and so has its own `gather` and `encode`; `Corrupt`; those of a
    /// record.
    fn records<'a>(&self, pack: &ChunkPack, bytes: &'a [u8], frames: Option<usize>) -> Result<&'a [u8]> {
        let _ = (pack, bytes, frames);
        Err(Error::new(Kind::Unsupported, format!("chunks of `{}` have to be unpacked", self.name())))
    }

    /// Whether a table may copy parts of the records that [`Codec::records`] finds. They are then the table's records as they are.
    fn is_plain(&self) -> bool {
        false
    }

    /// Copies the records of frames of a pack into `out`, which is as long as they are.
    ///
    /// Errors: `Missing` for a number out of range; what reading gives, with the place.
    fn gather(&self, pack: &ChunkPack, rows: &[u64], out: &mut [u8]) -> Result<()> {
        plain::gather(pack, rows, out)
    }

    /// Tensors of frames of a pack: one slice of `out` for each, as long as the rows take.
    ///
    /// Errors: as [`Codec::gather`] and the encoder's.
    fn encode(&self, pack: &ChunkPack, encoder: &dyn Encoder, picks: &[Pick], out: &mut [&mut [u8]]) -> Result<()> {
        plain::encode(pack, encoder, picks, out)
    }

    /// How its chunks are packed one by one; none where their records alone do not decide it.
    fn packing(&self) -> Option<Packing> {
        None
    }

    /// By what games are weighed when they are packed; none for what is not weighed at all.
    fn weigher(&self) -> Option<Arc<dyn Weigher>> {
        None
    }

    /// Replaces the records of `out`, which has none, by what weighers read of the chunk in `bytes`, frame by frame.
    ///
    /// Errors: `Unsupported` for what is not weighed; `Corrupt`.
    fn judged(&self, bytes: &[u8], out: &mut Chunk) -> Result<()> {
        let _ = (bytes, out);
        Err(Error::new(Kind::Unsupported, format!("chunks of `{}` are not weighed", self.name())))
    }
}

/// The names of packs of one kind and of their files.
#[derive(Debug, Clone, Copy)]
pub struct Called {
    /// See [`Codec::name`].
    pub name: &'static str,
    /// See [`Codec::tag`].
    pub tag: chunks::Codec,
    /// See [`Codec::format`].
    pub format: &'static str,
}

impl Called {
    /// The names, from the format of its chunk files.
    pub const fn of<P: packed::Packing>() -> Called {
        Called { name: P::KIND, tag: P::CODEC, format: P::FORMAT }
    }
}

/// How chunks of one kind are packed.
#[derive(Debug, Clone, Copy)]
pub struct Packing {
    /// What a report calls the rows of such a pack.
    pub label: &'static str,
    /// Adds a chunk, packed; the second argument keeps what packers use again.
    pub pack: fn(&Chunk, &mut Kept, &mut Vec<u8>) -> Result<()>,
    /// A value for each of [`Codec::columns`] and [`Codec::own_columns`], from the records of a chunk.
    pub facts: fn(&Chunk) -> Result<Vec<SqlValue>>,
}

impl Packing {
    /// Chunks whose records are stored as they are.
    pub fn as_it_is(label: &'static str, facts: fn(&Chunk) -> Result<Vec<SqlValue>>) -> Self {
        let pack = |chunk: &Chunk, _: &mut Kept, out: &mut Vec<u8>| {
            out.extend_from_slice(chunk.records());
            Ok(())
        };
        Packing { label, pack, facts }
    }
}

/// A column, and how its value follows from the facts of one game.
#[derive(Debug)]
pub struct Column<F> {
    /// Its name.
    pub name: &'static str,
    /// Its type and constraint.
    pub sql: &'static str,
    /// The value of one game.
    pub value: fn(&F) -> SqlValue,
}

/// Names and types of `columns`.
pub(crate) fn names<F>(columns: &[Column<F>]) -> Vec<(&'static str, &'static str)> {
    columns.iter().map(|column| (column.name, column.sql)).collect()
}

/// What `columns` have of one game.
pub(crate) fn values<F>(columns: &[Column<F>], facts: &F) -> Vec<SqlValue> {
    columns.iter().map(|column| (column.value)(facts)).collect()
}
