//! What every pack is, however its frames lie on disk: a table of frames that belong to games, with a database of these.
//! Selections, marks and jobs know packs by this trait alone; the layouts implement it.

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::Result as FormatResult;
use gristmill_runtime::error::Result;
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::table::{FileTable, FrameTable};

/// Frames whose game is the same one.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Id of the game in the database.
    pub game: u64,
    /// Its first frame here, and the one after its last.
    pub first: u64,
    /// See `first`.
    pub end: u64,
}

/// One game of a pack, as its content has it: one key for a game, however it was recorded, and for its images under the
/// symmetries of what is played (docs/format/content.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Id in the database.
    pub game: u64,
    /// The key of the game and of its images.
    pub key: u128,
    /// Which image of the key's game it is; games of one key and one image are the same.
    pub image: u8,
    /// XXH3-128 of its records, but for what numbers them in this pack.
    pub records: u128,
}

/// Rewards and returns of the frames of a pack.
#[derive(Debug)]
pub struct Values {
    /// A record for each frame.
    pub table: Arc<FileTable>,
    /// A hash of some of them.
    pub identity: u64,
}

/// A pack. Shared freely between threads.
pub trait PackTable: Any + Send + Sync + Debug {
    /// Its folder.
    fn folder(&self) -> &Path;

    /// What its frames are: the form of rows, the codec of chunks.
    fn form(&self) -> &'static str;

    /// A hash of what it holds. The same wherever it lies.
    fn identity(&self) -> u64;

    /// Hash of its first `frames` frames: the same before and after others were added. None where it never had that
    /// many.
    fn identity_of(&self, frames: u64) -> Option<u64>;

    /// The records of its frames, by number.
    fn table(self: Arc<Self>) -> Arc<dyn FrameTable>;

    /// How many frames there are.
    fn total(&self) -> u64;

    /// The table of its database that has a row for each game.
    fn games_table(&self) -> &'static str;

    /// The column of that table whose values are the classes of games that batches should balance: how they ended. None where
    /// no column is.
    fn class_column(&self) -> Option<&'static str> {
        None
    }

    /// Ids of the games, ascending.
    fn game_ids(&self) -> Vec<u64>;

    /// How many games there are.
    fn game_count(&self) -> usize {
        self.game_ids().len()
    }

    /// The game of a frame that there is.
    ///
    /// Errors: `Missing`.
    fn place(&self, frame: u64) -> FormatResult<Place>;

    /// Where the frames of a game lie, in order: the first and the one after the last of each stretch.
    fn stretches(&self, game: u64) -> Vec<(u64, u64)>;

    /// The frames of some games, given by ascending id.
    ///
    /// Errors: `Format` for frames that are not where the database says.
    fn frames_of(&self, games: &[u64]) -> Result<Intervals>;

    /// What stands for each of some games in the hash of a split, with its id.
    ///
    /// Errors: `Format` for the database.
    fn split_keys(&self, games: &[u64]) -> Result<Vec<(u64, u64)>>;

    /// Where a game came from, as far as the pack knows.
    fn source(&self, game: u64) -> Option<String>;

    /// Where games came from, by id, as far as the pack knows.
    ///
    /// Errors: `Format` for the database.
    fn sources(&self) -> Result<HashMap<u64, String>>;

    /// The identities of games `from..to`, in order of id.
    ///
    /// Errors: those of a game that cannot be read.
    fn contents(&self, from: usize, to: usize) -> FormatResult<Vec<Content>>;

    /// Who games `from..to` are, in order of id, where the database says it.
    ///
    /// Errors: `Format` for the database.
    fn known(&self, from: usize, to: usize) -> Result<Option<Vec<Content>>> {
        let _ = (from, to);
        Ok(None)
    }

    /// The records that rules ask, by number of the frame.
    ///
    /// Errors: those of what lies beside the frames.
    fn records(self: Arc<Self>) -> FormatResult<Arc<dyn FrameTable>> {
        Ok(self.table())
    }

    /// What rules may ask beside the fields of records.
    fn derived(&self) -> &'static [&'static str];

    /// Number `i` of [`PackTable::derived`] for a record.
    ///
    /// Errors: `OutOfRange` for a record that cannot be.
    fn derive(&self, i: usize, record: &[u8]) -> FormatResult<i64>;

    /// Whether a step called `slice` in a recipe counts games, and not frames.
    fn slices_games(&self) -> bool;

    /// What the ids of a category stand for, where records have one: the names of valuations.
    fn names_of_valuations(&self) -> &[String] {
        &[]
    }

    /// Rewards and returns beside the frames.
    ///
    /// Errors: `Format` for those of other frames.
    fn values(&self) -> Result<Option<&Values>> {
        Ok(None)
    }

    /// Vectors beside the frames, by the same numbers.
    fn embeddings(&self) -> Option<&FileTable> {
        None
    }
}

impl dyn PackTable {
    /// The pack in the layout `P`, where it has that.
    pub fn as_a<P: PackTable>(&self) -> Option<&P> {
        (self as &dyn Any).downcast_ref()
    }
}
