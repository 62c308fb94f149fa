//! The games of a pack -> who each of them is: one key for a game, however it was recorded, and for its images under the
//! symmetries of what is played (docs/format/content.md). Reads games; says nothing of which of them should stay.

use std::collections::HashMap;

use gristmill_format::Result as FormatResult;
use gristmill_runtime::error::Result;
use gristmill_runtime::runtime::intervals::Intervals;

use crate::marks::Markable;

/// One game of a pack, as its content has it.
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

/// A pack whose games can be compared by their content.
pub trait Contents: Markable {
    /// How many games there are.
    fn count(&self) -> usize;

    /// The identities of games `from..to`, in order of id.
    ///
    /// Errors: those of a game that cannot be read.
    fn contents(&self, from: usize, to: usize) -> FormatResult<Vec<Content>>;

    /// Who all games are, in order of id, where the database says it.
    ///
    /// Errors: `Format` for the database.
    fn known(&self) -> Result<Option<Vec<Content>>>;

    /// Where games came from, by id, as far as the pack knows.
    ///
    /// Errors: `Format` for the database.
    fn sources(&self) -> Result<HashMap<u64, String>>;

    /// The frames of some games, given by ascending id.
    ///
    /// Errors: `Format` for frames that are not where the database says.
    fn frames_of(&self, games: &[u64]) -> Result<Intervals>;
}
