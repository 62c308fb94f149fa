//! What the jobs do with the chunks of each kind: check, draw, count. One table, a file for each game; the engine's `kinds`
//! says what else a kind is. A kind that is not in the table is refused by its name when a file of it is opened.

mod bullet;
mod chess;
mod demo;
mod g2048;

use gristmill_engine::error::Result;
use gristmill_engine::sql::SqlValue;
use gristmill_format::layout::Layout;
use gristmill_format::source::Chunk;
use gristmill_format::{Error as FormatError, Kind as Cause, Result as FormatResult};

use crate::files::Opened;
use crate::inspect::{FramePlace, FrameView};
use crate::stats::Counting;
use crate::verify::Verification;

/// What each kind's chunks are for the jobs.
const WORKS: [&dyn Work; 4] = [&chess::Chess, &g2048::G2048, &demo::Demo, &bullet::Bullet];

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

    /// Checks a chunk by every rule.
    fn verify(&self, one: &Decoded<'_>, keep: usize, found: &mut Verification);

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

    /// Counts what is in a file.
    ///
    /// Errors: what is no fault of the data.
    fn count(&self, file: &Opened, counting: &mut Counting) -> Result<()>;
}

/// The jobs on chunks of the kind of this name.
///
/// Errors: `Unsupported` with the name.
pub(crate) fn of(name: &str) -> FormatResult<&'static dyn Work> {
    let unknown = || {
        let detail = format!("frames of `{}`, which no job knows; a newer gristmill does", name.escape_debug());
        FormatError::new(Cause::Unsupported, detail)
    };
    gristmill_engine::kinds::of(name)?;
    WORKS.into_iter().find(|work| work.name() == name).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_know_every_kind_and_refuse_others_by_name() {
        for name in gristmill_engine::kinds::names() {
            assert_eq!(of(name).map(Work::name).ok(), Some(name));
        }
        assert_eq!(gristmill_engine::kinds::names().count(), WORKS.len());
        let refused = of("checkers").map(Work::name).unwrap_err();
        assert!(refused.kind() == Cause::Unsupported && refused.detail().contains("`checkers`"), "{refused}");
    }
}
