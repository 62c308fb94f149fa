//! What the logs found and how chains ended -> events for people. Looks at what is counted anyway, a few times a second;
//! never slows the river, and tells each fault once however often a listing meets it again.

use gristmill_runtime::error::Error;
use gristmill_runtime::runtime::events::{Event, Events, Level};

use crate::pipeline::draw::anchors::{ControlReply, ControlRequest};
use crate::pipeline::draw::barren;
use crate::pipeline::draw::roster::Roster;
use crate::pipeline::plan::Plan;
use crate::pipeline::resume::vanished::Vanished;
use crate::pipeline::watch::metrics::Observer;

/// What was reported of one log.
#[derive(Debug, Default)]
struct Told {
    scanned: bool,
    waits: bool,
    arrived: u64,
    faults: Vec<String>,
}

/// Reports what a run does without because it may be missing.
pub(in crate::pipeline) fn lacking(events: &Events, plan: &Plan) {
    for (stage, lack) in plan.lacks() {
        events.add(Event::new(Level::Warning, "missing_tables", lack).of(stage));
    }
}

/// Reports the files that a restored run does without.
pub(in crate::pipeline) fn vanished(events: &Events, files: &[Vanished]) {
    for Vanished { name, why, chunks, rows } in files {
        let message = format!("`{name}` {why}: going on without {chunks} chunks and {rows} rows of the reservoir");
        events.add(Event::new(Level::Warning, "vanished", message));
    }
}

/// What was reported so far, of each log and of the spill folder.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Notices {
    logs: Vec<Told>,
    full: bool,
}

impl Notices {
    /// Reports what is new since the last call.
    pub(in crate::pipeline) fn look(&mut self, observer: &Observer) {
        self.logs.resize_with(observer.rosters.len(), Told::default);
        for (roster, told) in observer.rosters.iter().zip(&mut self.logs) {
            told.look(roster, &observer.events);
        }
        let [refused, most] = observer.spill.as_ref().map_or([0; 2], |spill| spill.refused());
        if refused > 0 && !std::mem::replace(&mut self.full, true) {
            let message = format!(
                "the spill folder has its {most} bytes: files that come now are not held there. Save states, which lets go of \
                 what is not needed, or raise spill_limit"
            );
            observer.events.add(Event::new(Level::Warning, "spill_full", message));
        }
    }
}

impl Told {
    fn look(&mut self, roster: &Roster, events: &Events) {
        let stage = &roster.loader;
        let found = roster.log().faults();
        if let Some(files) = roster.log().initial().filter(|_| !self.scanned) {
            self.scanned = true;
            let message = format!("the first scan found {} files", files.len());
            events.add(Event::new(Level::Info, "scanned", message).of(stage).with("files", Some(files.len())));
        }
        if !self.waits && roster.starves() {
            self.waits = true;
            let message = format!("{}. Waiting for games to come, as was wished", barren::instead(roster.log()));
            events.add(Event::new(Level::Warning, "waiting", message).of(stage));
        }
        let arrived = roster.arrived_so_far();
        if arrived > self.arrived {
            let new = arrived - std::mem::replace(&mut self.arrived, arrived);
            let message = format!("{new} new files, {arrived} since the start");
            events.add(Event::new(Level::Info, "arrived", message).of(stage).with("files", Some(new)));
        }
        let faults: Vec<&str> = found.faults.messages().collect();
        for fault in faults.iter().filter(|fault| !self.faults.iter().any(|told| told == *fault)) {
            events.add(Event::new(Level::Warning, "file_fault", *fault).of(stage));
        }
        self.faults = faults.into_iter().map(str::to_owned).collect();
    }
}

/// The threads of a loader were set to work.
pub(in crate::pipeline) fn started(observer: &Observer, workers: usize, how: &str) {
    let (seed, readers) = (observer.root, observer.readers);
    let message = format!("{how}: seed {seed}, {workers} workers, {readers} readers");
    observer.events.add(Event::new(Level::Info, "started", message).with("seed", Some(seed)));
}

/// A pool's chunk anchor was changed.
pub(in crate::pipeline) fn anchored(events: &Events, reply: &ControlReply, request: &ControlRequest) {
    let key = &reply.chunk_anchor;
    let message = match request {
        ControlRequest::ResetChunkAnchor => {
            format!("the chunk anchor is {key} now, {} chunks after the last one", reply.chunks_since_anchor)
        }
        _ => format!("the chunk anchor is {key} now"),
    };
    events.add(Event::new(Level::Info, "anchor", message).of(&reply.stage).with("anchor", Some(key.as_str())));
}

/// An error that the consumer of a stream is given.
pub(in crate::pipeline) fn failed(events: &Events, error: &Error) {
    let event = |message: String| Event::new(Level::Error, "failed", message);
    events.add(match error {
        Error::Stage { stage, message } => event(message.clone()).of(stage),
        other => event(other.to_string()),
    });
}
