//! What happens -> a bounded log of structured events that people and other processes read.
//! Adding never waits for a reader of the log; it never grows beyond its bounds, and nothing is ever decided by it. What
//! subscribes to `tracing` gets each event, too, on the thread where it happens.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::metrics::Clock;

/// Events of one kind that are kept: a flood of one kind drives out only its own.
const KEPT: usize = 200;

/// Characters of a message or of a text among the details that are kept.
const LONGEST: usize = 1000;

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// It is as it should be.
    #[default]
    Info,
    /// Something was lost or put aside, and the river continues.
    Warning,
    /// A stage cannot continue.
    Error,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// Its number since the start, from 1 without gaps.
    pub number: u64,
    /// Seconds since the start.
    pub seconds: f64,
    /// How much it matters.
    pub level: Level,
    /// A short stable word, such as `bad_chunk`.
    pub kind: Cow<'static, str>,
    /// The stage that it happened in, if it happened in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// What happened, for people.
    pub message: String,
    /// The same in parts, such as `source` and `offset`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<Cow<'static, str>, Value>,
}

impl Event {
    /// An event that has not been added to a log. There is a bounded number of kinds, so that the log is bounded.
    pub fn new(level: Level, kind: &'static str, message: impl Into<String>) -> Self {
        Event { level, kind: kind.into(), message: bounded(message.into()), ..Event::default() }
    }

    /// The same, in a stage.
    pub fn of(self, stage: &str) -> Self {
        Event { stage: Some(stage.to_owned()), ..self }
    }

    /// The same with a detail, where there is one.
    pub fn with(mut self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        let value = value.map(|value| match value.into() {
            Value::String(text) => Value::String(bounded(text)),
            other => other,
        });
        self.details.extend(value.map(|value| (name.into(), value)));
        self
    }
}

/// One event of `tracing`: its level has to be known where the program is compiled.
macro_rules! traced {
    ($level:ident, $event:expr) => {{
        let Event { number, seconds, kind, stage, message, details, .. } = $event;
        let details = if details.is_empty() { None } else { serde_json::to_string(details).ok() };
        let (kind, stage, details) = (&**kind, stage.as_deref(), details.as_deref());
        tracing::$level!(target: "gristmill", number, seconds, kind, stage, details, "{message}");
    }};
}

impl Event {
    /// Whether a subscriber of `tracing` wants an event of this level.
    fn is_wanted(&self) -> bool {
        match self.level {
            Level::Info => tracing::enabled!(target: "gristmill", tracing::Level::INFO),
            Level::Warning => tracing::enabled!(target: "gristmill", tracing::Level::WARN),
            Level::Error => tracing::enabled!(target: "gristmill", tracing::Level::ERROR),
        }
    }

    fn trace(&self) {
        match self.level {
            Level::Info => traced!(info, self),
            Level::Warning => traced!(warn, self),
            Level::Error => traced!(error, self),
        }
    }
}

fn bounded(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(at);
        text.push('…');
    }
    text
}

#[derive(Debug, Default)]
struct Kept {
    added: u64,
    by_kind: BTreeMap<Cow<'static, str>, VecDeque<Event>>,
}

/// The events of one loader: all are numbered, the newest of each kind are kept.
#[derive(Debug, Default)]
pub struct Events {
    clock: Clock,
    kept: Mutex<Kept>,
}

impl Events {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The clock that says when events happened.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Adds an event; its number and time are set here.
    pub fn add(&self, event: Event) {
        let mut kept = self.lock();
        kept.added += 1;
        let event = Event { number: kept.added, seconds: self.clock.seconds(), ..event };
        let like = kept.by_kind.entry(event.kind.clone()).or_default();
        if like.len() == KEPT {
            like.pop_front();
        }
        let traced = event.is_wanted().then(|| event.clone());
        like.push_back(event);
        // A subscriber may read the log.
        drop(kept);
        if let Some(event) = traced {
            event.trace();
        }
    }

    /// Number of the newest event; 0 before the first.
    pub fn newest(&self) -> u64 {
        self.lock().added
    }

    /// The events that are kept and have a number above `after`, oldest first.
    pub fn since(&self, after: u64) -> Vec<Event> {
        let kept = self.lock();
        let newer = kept.by_kind.values().flat_map(|like| like.iter().rev().take_while(|event| event.number > after));
        let mut found: Vec<Event> = newer.cloned().collect();
        drop(kept);
        found.sort_unstable_by_key(|event| event.number);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(events: &Events, after: u64) -> Vec<u64> {
        events.since(after).iter().map(|event| event.number).collect()
    }

    #[test]
    fn events_are_numbered_and_read_from_any_place() {
        let events = Events::default();
        assert_eq!((events.newest(), events.since(0)), (0, Vec::new()));
        for kind in ["a", "b", "a"] {
            events.add(Event::new(Level::Info, kind, "x"));
        }
        assert_eq!((numbers(&events, 0), numbers(&events, 1)), (vec![1, 2, 3], vec![2, 3]));
        assert_eq!((numbers(&events, 3), numbers(&events, u64::MAX)), (vec![], vec![]));
        assert_eq!(events.newest(), 3);
    }

    #[test]
    fn a_flood_drives_out_only_its_own_kind() {
        let events = Events::default();
        events.add(Event::new(Level::Info, "started", "here"));
        (0..10 * KEPT).for_each(|i| events.add(Event::new(Level::Warning, "bad", i.to_string())));
        let kept = events.since(0);
        assert_eq!(kept.len(), 1 + KEPT);
        assert_eq!((&*kept[0].kind, kept[0].number), ("started", 1));
        assert_eq!(kept.last().unwrap().message, (10 * KEPT - 1).to_string());
    }

    #[test]
    fn texts_are_bounded_and_survive_json() {
        let long = "é".repeat(5 * LONGEST);
        let events = Events::default();
        let event = Event::new(Level::Warning, "bad", long.clone()).of("pool").with("source", Some(long));
        events.add(event.with("offset", Some(7u64)).with("member", None::<String>));
        let event = events.since(0).remove(0);
        assert_eq!(event.message.chars().count(), LONGEST + 1);
        assert_eq!(event.details["source"].as_str().unwrap().chars().count(), LONGEST + 1);
        assert_eq!(event.details.len(), 2);
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
    }
}
