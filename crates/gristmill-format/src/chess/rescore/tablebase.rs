//! What the passes ask of a tablebase, and how they take its silence.
//! Knows no file and no format of tables.

use std::fmt::Debug;

use cozy_chess::{Board, Color};
use gristmill_bytes::error::{Error, Kind, Result};

use super::tally::{Count, Tally};
use crate::chess::syzygy::{Coverage, Tables, Unprobed, Wdl};

/// A tablebase that knows what it covers.
pub trait Tablebase: Debug + Send + Sync {
    /// What the tables that are there cover.
    fn coverage(&self) -> &Coverage;

    /// The value of a position for the side to move, the fifty-move counter taken as 0.
    fn wdl(&self, board: &Board) -> Result<Wdl, Unprobed>;

    /// Plies to the next capture or pawn move by best play; the winner's are positive.
    fn dtz(&self, board: &Board) -> Result<i32, Unprobed>;
}

impl<B: AsRef<[u8]> + Debug + Send + Sync> Tablebase for Tables<B> {
    fn coverage(&self) -> &Coverage {
        Tables::coverage(self)
    }

    fn wdl(&self, board: &Board) -> Result<Wdl, Unprobed> {
        Tables::wdl(self, board)
    }

    fn dtz(&self, board: &Board) -> Result<i32, Unprobed> {
        Tables::dtz(self, board)
    }
}

/// The tablebase of a rescorer, if it has one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probes<'a> {
    pub(super) tables: Option<&'a dyn Tablebase>,
    pub(super) allow_missing: bool,
}

impl Probes<'_> {
    /// Whether there is anything to ask.
    pub(super) fn any(&self) -> bool {
        self.tables.is_some()
    }

    /// Whether the tables have positions of as many men, and no side may castle.
    pub(super) fn covers(&self, board: &Board) -> bool {
        let castles = |color| {
            let rights = board.castle_rights(color);
            rights.short.is_some() || rights.long.is_some()
        };
        let most = self.tables.map_or(0, |tables| tables.coverage().most_men);
        board.occupied().len() as usize <= most && !castles(Color::White) && !castles(Color::Black)
    }

    /// The value of a position that is covered; `None` where a table is missing or damaged and may be.
    pub(super) fn wdl(&self, board: &Board, tally: &mut Tally) -> Result<Option<Wdl>> {
        self.ask(tally, |tables| tables.wdl(board))
    }

    /// Plies to the next capture or pawn move.
    pub(super) fn dtz(&self, board: &Board, tally: &mut Tally) -> Result<Option<i32>> {
        self.ask(tally, |tables| tables.dtz(board))
    }

    fn ask<T>(
        &self,
        tally: &mut Tally,
        probe: impl FnOnce(&dyn Tablebase) -> Result<T, Unprobed>,
    ) -> Result<Option<T>> {
        let Some(tables) = self.tables else { return Ok(None) };
        let count = match probe(tables) {
            Ok(answer) => {
                tally.add(Count::Probes, 1);
                return Ok(Some(answer));
            }
            Err(unprobed) if !self.allow_missing => {
                let text = format!("{unprobed}; allow missing tables to leave such positions as they are");
                return Err(Error::new(Kind::Refused(unprobed.name()), text));
            }
            Err(Unprobed::Corrupt(_)) => Count::CorruptTables,
            Err(Unprobed::Missing(material, kind)) => {
                tally.miss(material, kind);
                Count::MissingTables
            }
            Err(_) => Count::MissingTables,
        };
        tally.add(count, 1);
        Ok(None)
    }
}
