//! A directory that gave no game of chess -> what lies there instead, and what takes it, in words.
//! Decides nothing about a stream.

use std::path::Path;
use std::sync::atomic::Ordering;

use gristmill_packs::holdings::Holdings;
use gristmill_stages::stage::load::SourceLog;

use crate::pipeline::draw::roster::Roster;

impl Roster {
    /// Notes that a stream waits for a chunk although every file was tried.
    pub(in crate::pipeline) fn starve(&self) {
        self.starved.store(true, Ordering::Relaxed);
    }

    /// Whether no file had a game, once every one was tried. A large tar takes a while to open: until then nothing is known.
    pub(in crate::pipeline) fn starves(&self) -> bool {
        self.starved.load(Ordering::Relaxed) && self.log().is_barren()
    }
}

/// Whether one file is streamed, in which no other games will come.
pub(in crate::pipeline) fn is_file(log: &SourceLog) -> bool {
    Path::new(&log.place()).is_file()
}

/// What lies where no game was found, and what takes it.
pub(in crate::pipeline) fn instead(log: &SourceLog) -> String {
    let (place, faults) = (log.place(), log.faults().faults);
    let place = Path::new(&place);
    let holds = Holdings::of(place);
    let latest = faults.messages().last().map(|fault| format!("; the latest fault: {fault}"));
    // A stream that takes what is read whole wants something else than games of chess.
    let (wanted, tried) = match log.takes_solids() {
        true => ("nothing to stream", latest.is_some()),
        false => ("no games of chess", false),
    };
    let told = match holds.has_games() || tried {
        true if place.is_file() => "it could not be opened".to_owned(),
        true => "none of its files could be opened".to_owned(),
        false => format!("it {}", holds.told(place)),
    };
    format!("{wanted} in {}: {told}{}", place.display(), latest.unwrap_or_default())
}

/// What lies there, where it is something else than games of chess, and which encoder is its own: what is added to an error about chunks that are all bad.
pub(in crate::pipeline) fn else_here(log: &SourceLog) -> Option<String> {
    let place = log.place();
    let holds = Holdings::of(Path::new(&place));
    if !holds.has_games() {
        return Some(format!("{place} {}", holds.told(Path::new(&place))));
    }
    let own = holds.kinds().find(|kind| kind.encoding().is_some())?;
    Some(format!("{place} holds {}, of which the encoder `{}` makes tensors", own.games(), own.name()))
}
