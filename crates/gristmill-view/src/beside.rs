//! What is known beside the data of a view: tables of endgames, and where a run stands. Draws and opens nothing.

use gristmill_engine::tablebase::Syzygy;

/// What pages of games say beyond what lies in them.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// Tables that say who wins.
    pub tables: Option<Syzygy>,
    /// The text of a saved state of a run over the pack: pages of games say when each is fed.
    pub state: Option<String>,
}
