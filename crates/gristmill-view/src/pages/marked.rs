//! A game of a pack -> which of its frames each mark marks. Reads marks that fit the pack; says nothing of others.

use gristmill_engine::marks;
use gristmill_jobs::inspect::Game;

use super::{Result, Room};
use crate::draw::bands::Band;

/// Marks that are shown, and ranges of each.
const MARKS: usize = 12;
const RANGES: usize = 2000;

/// The marks with a frame of the game, and their ranges in it.
///
/// Errors: those of frames that are not where the database says.
pub(super) fn bands(room: &Room<'_>, game: &Game) -> Result<Vec<Band>> {
    let Some(all) = room.shelf.pack() else { return Ok(Vec::new()) };
    let pack = &**all.pack();
    let mut found = Vec::new();
    let own = pack.frames_of(&[game.id])?;
    for name in marks::names(pack.folder())?.into_iter().take(MARKS) {
        let Ok(rows) = marks::rows(pack, &name) else { continue };
        let both = own.intersect(&rows);
        let ranges = both.iter().take(RANGES).map(|(first, end)| (own.rank(first), own.rank(end)));
        if !both.is_empty() {
            found.push((name, ranges.collect()));
        }
    }
    Ok(found)
}
