//! The records of one game -> the same records with better targets: results, plies left, policies, format, version.
//! Pure passes over a trait for tablebases, in a fixed order; a game that cannot be trusted is refused.

mod convert;
mod deblunder;
mod fields;
mod game;
mod mapping;
mod narrow;
mod planes;
mod played;
mod plies;
mod rank;
mod replay;
mod reshape;
mod results;
mod settings;
mod substitute;
mod tablebase;
mod tally;
mod widen;

use std::sync::Arc;

pub use narrow::{LOSSY, narrow};
pub use played::{Played, replayed};
pub use settings::{Compat, Deblunder, HALF_TURN, Quirk, Settings};
pub use substitute::PolicyBook;
pub use tablebase::Tablebase;
pub use tally::{COUNTS, Tally};
pub use widen::widen;

use self::game::{FLAGGED, Game};
use self::replay::Replay;
use self::tablebase::Probes;
use self::tally::Count;
use super::frame::Frame;
use super::record::{layout_v6, layout_v7};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::Chunk;

/// Mends games. Nothing about a game is kept from one to the next.
#[derive(Debug, Clone)]
pub struct Rescorer {
    settings: Settings,
    tables: Option<Arc<dyn Tablebase>>,
}

impl Rescorer {
    /// A rescorer, with or without a tablebase.
    ///
    /// Errors: the name of the setting that is out of range, and what was expected.
    pub fn new(settings: Settings, tables: Option<Arc<dyn Tablebase>>) -> Result<Self, (&'static str, String)> {
        settings.check()?;
        if settings.boost != 0.0 && tables.is_none() {
            return Err(("dtz_boost", "needs a tablebase; name one, or leave the boost at 0".to_owned()));
        }
        Ok(Rescorer { settings, tables })
    }

    /// What it does.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The tablebase that it asks.
    pub fn tables(&self) -> Option<&dyn Tablebase> {
        self.tables.as_deref()
    }

    /// Rescores the game in `chunk`, in place; V6 records come out as V7 unless they are to stay.
    ///
    /// Errors, with frame and byte: `Empty`; `Unsupported` for other records than V6 and V7; `Refused` by the first
    /// rule that the game breaks (in the terms of [`super::check`]), or because a table is missing or damaged. The
    /// chunk is then left in any state.
    pub fn run(&self, chunk: &mut Chunk) -> Result<Tally> {
        let size = record_size(chunk)?;
        if chunk.frames == 0 {
            return Err(Error::new(Kind::Empty, "the game has no frames"));
        }
        chunk.bytes.truncate(chunk.frames * size);
        let mut replay = std::mem::take(chunk.kept.tool::<Replay>());
        let outcome = self.passes(chunk, size, &mut replay);
        *chunk.kept.tool() = replay;
        outcome
    }

    fn passes(&self, chunk: &mut Chunk, size: usize, replay: &mut Replay) -> Result<Tally> {
        let settings = &self.settings;
        let compat = settings.compat;
        replay.read(&chunk.bytes, size, compat)?;
        let mut tally = Tally::default();
        let tally = &mut tally;
        let probes = Probes { tables: self.tables(), allow_missing: settings.allow_missing_tables };
        let mut game = Game { records: &mut chunk.bytes, size, plies: &replay.plies };
        if let Some(book) = &settings.policies {
            substitute::run(&mut game, book, tally)?;
        }
        results::run(&mut game, &probes, tally)?;
        if settings.reshapes() {
            reshape::run(&mut game, settings, &probes, tally)?;
        }
        plies::fill(&mut game, tally);
        plies::by_tablebase(&mut game, &probes, tally)?;
        if let Some(by) = settings.deblunder {
            deblunder::run(&mut game, by, compat, &probes, tally);
        }
        if let Some(format) = settings.input_format {
            convert::run(&mut game, format, compat, tally)?;
        }
        if !settings.keep_v6 {
            tally.add(Count::Widened, widen(chunk, settings.theta)? as u64);
        }
        if settings.drop_flagged {
            drop_flagged(chunk, tally)?;
        }
        Ok(std::mem::take(tally))
    }
}

/// Leaves out the frames that are flagged for deletion.
fn drop_flagged(chunk: &mut Chunk, tally: &mut Tally) -> Result<()> {
    let size = record_size(chunk)?;
    let mut kept = 0;
    for i in 0..chunk.frames {
        let flagged = Frame::new(chunk.record(i))?.invariance_info() & FLAGGED != 0;
        if !flagged {
            chunk.bytes.copy_within(i * size..(i + 1) * size, kept * size);
            kept += 1;
        }
    }
    tally.add(Count::Dropped, (chunk.frames - kept) as u64);
    if kept == 0 {
        return Err(Error::new(Kind::Empty, "every frame of the game is flagged for deletion"));
    }
    chunk.frames = kept;
    chunk.bytes.truncate(kept * size);
    Ok(())
}

/// Bytes of a record of a chunk of chess records.
fn record_size(chunk: &Chunk) -> Result<usize> {
    let layout = chunk.layout.as_deref();
    match layout {
        Some(layout) if layout == layout_v6().as_ref() || layout == layout_v7().as_ref() => Ok(layout.size()),
        _ => Err(Error::new(Kind::Unsupported, "only chess records of V6 and V7 can be rescored")),
    }
}
