//! Many fixed-size records that can be reached by number: what index feeding gathers from, whatever game they are of.
//! Says what tables are; `files` has the plain form, arrays of records in files of one layout.

mod chained;
mod files;
mod joined;
mod parts;
mod pick;
mod recipe;
mod weighed;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use gristmill_format::encode::Encoder;
use gristmill_format::layout::Layout;
use gristmill_format::{Error, Kind, Result};

use xxhash_rust::xxh3::Xxh3;

use crate::runtime::intervals::Intervals;
use crate::store::bucket::Counts;
use crate::store::{Claims, HeldFile};

pub use chained::ChainedTable;
pub use files::{FileTable, Part};
pub use joined::JoinedTable;
pub use parts::{Parts, copy_part};
pub use pick::{Pick, add_picks, random_bits};
pub use recipe::{Param, Recipe, Step, ThreeWay};
pub use weighed::Weighed;

/// Takes a file, and ranges of its bytes that are needed.
pub type Needs<'s, 'a> = dyn FnMut(&'a HeldFile, &[(usize, usize)]) -> Result<()> + 's;

/// Records of one layout, numbered from 0. Read from many threads at once.
pub trait FrameTable: Send + Sync + Debug {
    /// The layout of every record.
    fn layout(&self) -> &Layout;

    /// How many records there are.
    fn len(&self) -> u64;

    /// Copies the records of these numbers into `out`, back to back.
    ///
    /// Errors: `WrongSize` unless `out` is as long as the records; `Missing` for a number out of range; and what
    /// reading gives.
    fn gather(&self, rows: &[u64], out: &mut [u8]) -> Result<()>;

    /// The records of these numbers, back to back.
    ///
    /// Errors: as [`FrameTable::gather`].
    fn gathered(&self, rows: &[u64]) -> Result<Vec<u8>> {
        let mut records = vec![0; rows.len() * self.layout().size()];
        self.gather(rows, &mut records)?;
        Ok(records)
    }

    /// Says that records `start..end` will be wanted soon.
    fn want(&self, start: u64, end: u64);

    /// The files that records are read from, where they are in files.
    fn files(&self) -> Vec<&HeldFile> {
        Vec::new()
    }

    /// Calls `each` with the files that these records are read from, and the bytes of each that they need.
    ///
    /// Errors: as [`FrameTable::gather`]; those of `each`.
    fn needs<'a>(&'a self, _rows: &[Range<u64>], _each: &mut Needs<'_, 'a>) -> Result<()> {
        Ok(())
    }

    /// Whether records are read without waiting for more than a disk: not where they are elsewhere.
    fn is_near(&self) -> bool {
        self.files().iter().all(|file| file.is_whole())
    }

    /// Claims what these records are read from, as far as it is elsewhere. Once it was brought, [`FrameTable::gather`] waits for no
    /// network.
    ///
    /// Errors: as [`FrameTable::gather`].
    fn claim(&self, rows: &[Range<u64>]) -> Result<Vec<Claims>> {
        let mut claims = Vec::new();
        self.needs(rows, &mut |file, ranges| {
            claims.extend(file.claim(ranges));
            Ok(())
        })?;
        Ok(claims)
    }

    /// What other threads bring of the files that these records are read from. Claims nothing. `None` if there is something to claim, or if
    /// the table has no files.
    ///
    /// Errors: as [`FrameTable::gather`].
    fn awaited(&self, rows: &[Range<u64>]) -> Result<Option<Vec<Claims>>> {
        let (mut claims, mut are_claimed) = (Vec::new(), !self.files().is_empty());
        self.needs(rows, &mut |file, ranges| {
            are_claimed = are_claimed && file.awaited(ranges, &mut claims);
            Ok(())
        })?;
        Ok(are_claimed.then_some(claims))
    }

    /// Counts of what this process asks of the stores that it fetches records from, those of one store perhaps several times.
    fn counts(&self) -> Vec<Arc<Counts>> {
        self.files().iter().filter_map(|file| file.counts()).collect()
    }

    /// The file that a record is in, and its number there.
    fn locate(&self, row: u64) -> (String, u64);

    /// The way past records, where the table has one.
    fn straight(&self) -> Option<&dyn Straight> {
        None
    }

    /// Returns what copies parts of records straight from this table, if the table can.
    fn parts(&self) -> Option<&dyn Parts> {
        None
    }

    /// The chunks that its rows come in, where these can be weighed.
    fn weighed(&self) -> Option<&dyn Weighed> {
        None
    }

    /// How the records are divided into games, runs or trajectories.
    ///
    /// Errors: `Unsupported` for a table that does not know, or in which the records of one do not lie together.
    fn chunks(&self) -> Result<&dyn Chunks> {
        Err(Error::new(Kind::Unsupported, "these rows are not known to be steps of games"))
    }

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A table that makes tensors of its rows without making records of them.
pub trait Straight {
    /// Encodes rows into `out`: one slice for each output, as long as the rows take. The encoder takes the table's layout.
    ///
    /// Errors: as [`FrameTable::gather`] and the encoder's.
    fn encode(&self, encoder: &dyn Encoder, picks: &[Pick], out: &mut [&mut [u8]]) -> Result<()>;
}

/// A table that knows which of its records follow each other in one chunk.
pub trait Chunks {
    /// The records of the chunk that record `row` is in, in order of time; empty beyond the last.
    fn bounds(&self, row: u64) -> Range<u64>;
}

/// Some rows of a table, as index feeding takes them.
#[derive(Debug, Clone)]
pub struct IndexInput {
    /// The table.
    pub table: Arc<dyn FrameTable>,
    /// Which of its rows are meant.
    pub rows: Arc<Intervals>,
    /// Hash of what the table holds and of which rows are meant; a saved state fits no other.
    pub identity: u64,
    /// What the ids of a category stand for, where the records have one: the names of valuations.
    pub valuations: Vec<String>,
    /// How they were selected.
    pub recipe: Arc<Recipe>,
}

impl IndexInput {
    /// The rows of several tables as those of one, and how many records each table has.
    ///
    /// Errors: `Unsupported` for records or names of valuations that differ; as [`ChainedTable::new`].
    pub fn chained(inputs: Vec<IndexInput>) -> Result<(IndexInput, Vec<u64>)> {
        let table = ChainedTable::new(inputs.iter().map(|input| Arc::clone(&input.table)).collect())?;
        let valuations = inputs.first().map(|input| input.valuations.clone()).unwrap_or_default();
        if let Some(i) = inputs.iter().position(|input| input.valuations != valuations) {
            let detail = format!(
                "source {i} names its valuations {:?}, source 0 {valuations:?}; `gristmill merge` makes one pack of both",
                inputs[i].valuations
            );
            return Err(Error::new(Kind::Unsupported, detail));
        }
        let (mut rows, mut hash) = (Intervals::default(), Xxh3::new());
        for (input, first) in inputs.iter().zip(table.bounds()) {
            input.rows.iter().for_each(|(start, end)| rows.push(first + start, first + end));
            hash.update(&input.identity.to_le_bytes());
        }
        let lens = inputs.iter().map(|input| input.table.len()).collect();
        let identity = hash.digest();
        let recipe = Arc::new(Recipe::mixed(inputs.iter().map(|input| (*input.recipe).clone()).collect(), identity));
        Ok((IndexInput { table: Arc::new(table), rows: Arc::new(rows), identity, valuations, recipe }, lens))
    }
}

/// Numbers in a table of the rows at `places`, counted among `rows`.
///
/// Errors: `Missing` for a place beyond the last.
pub fn rows_at(rows: &Intervals, places: &[u64]) -> Result<Vec<u64>> {
    match places.iter().find(|place| **place >= rows.len()) {
        None => Ok(places.iter().map(|place| rows.row(*place)).collect()),
        Some(place) => Err(Error::new(Kind::Missing, format!("row {place} of a selection of {}", rows.len()))),
    }
}

/// What sees to it that records are what they were when they were written.
pub trait Guarding: Send + Sync + Debug {
    /// Says whether record `row` of a file is; `records` has all of the file, and those of its [block](Guarding::block) are there.
    ///
    /// Errors: `Corrupt` with file and byte.
    fn touch(&self, row: u64, records: &HeldFile) -> Result<()>;

    /// Says whether records `rows`, counted from `first` on, of a file are; `records` as in [`Guarding::touch`].
    ///
    /// Errors: as [`Guarding::touch`], for the first that is not.
    fn touch_all(&self, first: u64, rows: &[u64], records: &HeldFile) -> Result<()> {
        rows.iter().try_for_each(|row| self.touch(row - first, records))
    }

    /// Says whether all are.
    ///
    /// Errors: `Corrupt` with file and byte, for the first that is not.
    fn check_all(&self, records: &[u8]) -> Result<()>;

    /// The file of the checksums, where that is elsewhere.
    fn far_sums(&self) -> Option<&HeldFile> {
        None
    }

    /// The bytes of that file with the checksums of some records.
    fn sums_of(&self, _rows: Range<u64>) -> (usize, usize) {
        (0, 0)
    }

    /// The records that must be there when record `row` is touched.
    fn block(&self, row: u64) -> Range<u64>;
}
