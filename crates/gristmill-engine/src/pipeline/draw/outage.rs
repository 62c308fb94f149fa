//! Files that cannot be read now -> when each is tried again, and whether its stream waits for it or ends.
//! No batch depends on any of this: a stream that waits reads later what it would have read now. Nothing outlasts its
//! cause.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::events::{Event, Events, Level};
use gristmill_runtime::runtime::scheduler::Time;
use gristmill_stages::config::IoErrors;
use serde::Serialize;

/// Pause before the second try; each that follows is twice as long, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Tries before a stream that does not wait ends: some two seconds.
const TRIES: u32 = 7;

/// Files that are named.
const NAMED: usize = 16;

/// Errors of reading so far, and what cannot be read now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IoErrorCounts {
    /// Files that cannot be read now: what needs them waits.
    pub waiting: u64,
    /// Errors since the start, each try counted, by kind such as `permission`, `away` or `io`.
    pub by_kind: BTreeMap<String, u64>,
    /// Why files cannot be read now, some of them.
    pub latest: Vec<String>,
}

/// What cannot be read now.
#[derive(Debug)]
struct Outage {
    why: String,
    tries: u32,
    pause: Duration,
    due: Duration,
}

#[derive(Debug, Default)]
struct Known {
    out: BTreeMap<u64, Outage>,
    by_kind: BTreeMap<&'static str, u64>,
}

/// What one loader cannot read, by lasting id.
#[derive(Debug)]
pub(in crate::pipeline) struct Outages {
    policy: IoErrors,
    events: Arc<Events>,
    time: Time,
    /// How many, for those who only want to know that there are none.
    count: AtomicUsize,
    known: Mutex<Known>,
}

/// The error of a file that could not be read, if that is what it is: not one of its bytes, and not of one that was deleted.
pub(in crate::pipeline) fn of_reading(error: &Error) -> Option<&gristmill_format::Error> {
    match error {
        Error::Format(error) if error.kind().is_of_reading() => Some(error),
        _ => None,
    }
}

impl Outages {
    pub(in crate::pipeline) fn new(policy: IoErrors, events: Arc<Events>, time: Time) -> Self {
        Outages { policy, events, time, count: AtomicUsize::new(0), known: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a file could not be read a moment ago, and must not be tried again yet.
    pub(in crate::pipeline) fn rests(&self, id: u64) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.lock().out.get(&id).is_some_and(|out| self.time.now() < out.due)
    }

    /// A file that may have been moved just now is tried again in a moment; that is no error.
    pub(in crate::pipeline) fn rest(&self, id: u64) {
        let mut known = self.lock();
        let due = self.time.now() + FIRST_PAUSE;
        let new = || Outage { why: "it may have been moved".to_owned(), tries: 0, pause: FIRST_PAUSE, due };
        known.out.entry(id).or_insert_with(new).due = due;
        self.count.store(known.out.len(), Ordering::Release);
    }

    /// Notes that a file could not be read, and must be tried again.
    ///
    /// Errors: the same error, where the stream is to end with it.
    pub(in crate::pipeline) fn failed(&self, id: u64, error: &gristmill_format::Error) -> Result<()> {
        let mut known = self.lock();
        *known.by_kind.entry(error.kind().name()).or_default() += 1;
        let fresh = known.out.get(&id).is_none_or(|out| out.tries == 0);
        let now = self.time.now();
        let new = || Outage { why: String::new(), tries: 0, pause: FIRST_PAUSE, due: now };
        let out = known.out.entry(id).or_insert_with(new);
        (out.why, out.tries, out.due) = (error.to_string(), out.tries + 1, now + out.pause);
        out.pause = (out.pause * 2).min(LONGEST_PAUSE);
        let tries = out.tries;
        self.count.store(known.out.len(), Ordering::Release);
        drop(known);
        if fresh {
            let then = match self.policy {
                IoErrors::Wait => "what needs it waits until it can be read",
                IoErrors::Raise => "it is tried again before the stream ends",
            };
            let event = Event::new(Level::Warning, "unreadable", format!("{error}; {then}"));
            let source = error.place().source.as_deref();
            self.events.add(event.with("kind", Some(error.kind().name())).with("source", source));
        }
        match self.policy {
            IoErrors::Raise if tries >= TRIES => Err(Error::Format(error.clone())),
            _ => Ok(()),
        }
    }

    /// Notes that there was an answer, whatever it was: the wait for this file is over.
    pub(in crate::pipeline) fn over(&self, id: u64, readable: bool) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut known = self.lock();
        let Some(out) = known.out.remove(&id) else { return };
        self.count.store(known.out.len(), Ordering::Release);
        drop(known);
        if readable && out.tries > 0 {
            let message = format!("a file can be read again after {} tries; it was: {}", out.tries, out.why);
            self.events.add(Event::new(Level::Info, "readable", message));
        }
    }

    /// Errors so far, and what waits now.
    pub(in crate::pipeline) fn counts(&self) -> IoErrorCounts {
        let known = self.lock();
        IoErrorCounts {
            waiting: known.out.len() as u64,
            by_kind: known.by_kind.iter().map(|(kind, n)| ((*kind).to_owned(), *n)).collect(),
            latest: known.out.values().take(NAMED).map(|out| out.why.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use gristmill_format::Kind;
    use gristmill_runtime::runtime::scheduler::{Crew, Lane, Rounds, Scheduler, Signal, Tasks};

    use super::*;

    /// What time it is, as a test says.
    #[derive(Debug, Default)]
    struct Said(Mutex<Duration>);

    impl Crew for Said {
        fn staff(&self, _: Lane, _: usize, _: &Arc<[Arc<dyn Tasks>]>, _: Arc<Signal>) {}

        fn rounds(&self, _: &str, _: Rounds) {}

        fn now(&self) -> Duration {
            *self.0.lock().unwrap()
        }
    }

    /// Milliseconds until a file is tried again.
    fn pause(outages: &Outages, said: &Said, id: u64) -> u128 {
        let began = said.now();
        while outages.rests(id) {
            *said.0.lock().unwrap() += Duration::from_millis(1);
        }
        (said.now() - began).as_millis()
    }

    #[test]
    fn pauses_grow_up_to_a_second_and_what_was_only_looked_for_is_no_news() {
        let said = Arc::new(Said::default());
        let time = Scheduler::of(Some(Arc::clone(&said) as Arc<dyn Crew>)).time();
        let outages = Outages::new(IoErrors::Wait, Arc::default(), time);
        let error = gristmill_format::Error::new(Kind::Away, "its folder is away");
        let pauses = [(); 7].map(|()| {
            outages.failed(7, &error).unwrap();
            pause(&outages, &said, 7)
        });
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        outages.rest(8);
        assert_eq!((pause(&outages, &said, 8), outages.counts().waiting), (50, 2));
        outages.rest(7);
        assert_eq!(pause(&outages, &said, 7), 50, "it may be there in a moment");
        outages.over(8, true);
        let told = |kind: &str| outages.events.since(0).iter().filter(|event| event.kind == kind).count();
        assert_eq!((told("unreadable"), told("readable")), (1, 0), "nobody knew of the second");
        outages.failed(9, &error).unwrap();
        outages.over(9, false);
        assert_eq!(told("readable"), 0, "it was deleted");
        outages.over(7, true);
        let event = outages.events.since(0).pop().unwrap();
        assert!(event.kind == "readable" && event.message.contains("after 7 tries"), "{event:?}");
        assert_eq!(outages.counts().waiting, 0);
    }

    #[test]
    fn errors_of_bytes_and_files_that_were_deleted_are_none_of_reading() {
        let of = |kind| Error::Format(gristmill_format::Error::new(kind, "what it is"));
        assert_eq!(of_reading(&of(Kind::Away)).map(gristmill_format::Error::kind), Some(Kind::Away));
        assert!(of_reading(&of(Kind::Corrupt)).is_none() && of_reading(&Error::Stopped).is_none());
        assert!(of_reading(&of(Kind::Io(std::io::ErrorKind::NotFound))).is_none());
    }

    #[test]
    fn a_stream_that_does_not_wait_ends_after_some_tries_of_one_file() {
        let error = gristmill_format::Error::new(Kind::Away, "its folder is away").in_source("games/a.gz");
        for (policy, ends) in [(IoErrors::Wait, false), (IoErrors::Raise, true)] {
            let outages = Outages::new(policy, Arc::default(), Scheduler::new().time());
            assert!(!outages.rests(7));
            for _ in 1..TRIES {
                outages.failed(7, &error).unwrap();
                outages.failed(8, &error).unwrap();
                outages.over(8, true);
            }
            assert!(outages.rests(7) && !outages.rests(8));
            assert_eq!(outages.failed(7, &error).is_err(), ends);
            let counts = outages.counts();
            assert_eq!((counts.waiting, counts.by_kind["away"]), (1, u64::from(2 * TRIES - 1)));
            assert_eq!(counts.latest, ["games/a.gz: away: its folder is away"]);
            outages.over(7, false);
            assert_eq!(outages.counts().latest, Vec::<String>::new());
            let told = outages.events.since(0);
            assert_eq!(told.iter().filter(|event| event.kind == "unreadable").count(), TRIES as usize);
        }
    }
}
