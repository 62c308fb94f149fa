//! Documents of a loader, or why there are none -> what is known of its run: the last document, rates, events. Keeps the last
//! numbers when the loader has gone, and starts again with another loader.

use std::collections::{BTreeSet, VecDeque};

use gristmill_engine::pipeline::{LedgerStatus, RunState, Status};
use gristmill_engine::runtime::events::Event;
use gristmill_engine::runtime::metrics::Clock;
use serde_json::{Map, Value};

use crate::watch::client::{Document, is_another_run};
use crate::watch::history::History;

/// Events that are kept.
const EVENTS: usize = 1000;

/// What is known of a run.
#[derive(Default)]
pub(crate) struct Seen {
    /// The last document; its events are among those below.
    pub(super) latest: Status,
    /// The same as it came, without its events.
    pub(super) all: Map<String, Value>,
    pub(super) history: History,
    /// Oldest first.
    pub(super) events: VecDeque<Event>,
    /// Since when nothing was heard, and why.
    lost: Option<(f64, String)>,
    /// Whether this is not the first loader that was heard at the address.
    pub(super) is_another: bool,
    clock: Clock,
}

impl Seen {
    /// Takes what was heard.
    pub(super) fn hear(&mut self, heard: Result<Document, String>) {
        let Document { mut status, mut all } = match heard {
            Ok(document) => document,
            Err(why) => {
                let since = self.lost.take().map_or_else(|| self.clock.seconds(), |(since, _)| since);
                self.lost = Some((since, why));
                return;
            }
        };
        self.lost = None;
        if self.latest.gristmill_status != 0 && is_another_run(&self.latest, &status) {
            *self = Seen { is_another: true, clock: self.clock, ..Seen::default() };
        }
        let newest = self.events.back().map_or(0, |event| event.number);
        self.events.extend(std::mem::take(&mut status.events).into_iter().filter(|event| event.number > newest));
        while self.events.len() > EVENTS {
            self.events.pop_front();
        }
        self.history.add(&status);
        self.latest = status;
        let all = all.as_object_mut().map(std::mem::take).unwrap_or_default();
        self.all = all.into_iter().filter(|(name, _)| name != "events").collect();
    }

    /// Why nothing is heard, where that is so.
    pub(super) fn fault(&self) -> Option<&str> {
        self.lost.as_ref().map(|(_, why)| why.as_str())
    }

    /// Seconds since the loader was heard for the last time, where it does not answer.
    pub(super) fn silent_for(&self) -> Option<f64> {
        self.lost.as_ref().map(|(since, _)| (self.clock.seconds() - since).max(0.0))
    }

    /// Whether the numbers are those of now.
    pub(super) fn is_live(&self) -> bool {
        self.lost.is_none() && self.latest.state == RunState::Running
    }

    /// Fields of the status document that this version does not know.
    pub(super) fn beyond(&self) -> impl Iterator<Item = (&str, &Value)> {
        let known = Status { memory_bytes: Some(0), ledger: Some(LedgerStatus::default()), ..Status::default() };
        let known = match serde_json::to_value(known) {
            Ok(Value::Object(known)) => known.into_iter().map(|(name, _)| name).collect(),
            _ => BTreeSet::new(),
        };
        self.all.iter().filter(move |(name, _)| !known.contains(*name)).map(|(name, value)| (name.as_str(), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_engine::runtime::events::Level;
    use serde_json::json;

    fn document(started: u64, seconds: f64, events: &[u64]) -> Document {
        let event = |number: &u64| Event { number: *number, ..Event::new(Level::Info, "x", "y") };
        let status = Status {
            gristmill_status: 1,
            started_unix_ms: started,
            uptime_seconds: seconds,
            events: events.iter().map(event).collect(),
            ..Status::default()
        };
        let mut all = serde_json::to_value(&status).unwrap();
        all["weather"] = json!({ "rows": 7 });
        Document { status, all }
    }

    #[test]
    fn the_last_numbers_stay_when_the_loader_has_gone_and_go_with_another() {
        let mut seen = Seen::default();
        seen.hear(Err("refused".into()));
        assert_eq!((seen.fault(), seen.is_live()), (Some("refused"), false));
        seen.hear(Ok(document(5, 1.0, &[1, 2])));
        seen.hear(Ok(document(5, 2.0, &[2, 3])));
        let numbers = |seen: &Seen| seen.events.iter().map(|event| event.number).collect::<Vec<_>>();
        assert_eq!((numbers(&seen), seen.is_live(), seen.is_another), (vec![1, 2, 3], true, false));
        seen.hear(Err("gone".into()));
        seen.hear(Err("still gone".into()));
        assert_eq!((seen.fault(), seen.latest.uptime_seconds), (Some("still gone"), 2.0));
        assert!(seen.silent_for().is_some());
        seen.hear(Ok(document(6, 1.0, &[1])));
        assert_eq!((numbers(&seen), seen.fault(), seen.is_another), (vec![1], None, true));
    }

    #[test]
    fn what_this_version_does_not_know_is_kept() {
        let mut seen = Seen::default();
        seen.hear(Ok(document(5, 1.0, &[1])));
        assert_eq!(seen.beyond().collect::<Vec<_>>(), [("weather", &json!({ "rows": 7 }))]);
        assert!(!seen.all.contains_key("events"));
    }
}
