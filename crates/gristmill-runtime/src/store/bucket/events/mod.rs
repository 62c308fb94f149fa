//! Events that a bucket sends to a queue -> hints at its objects: `queue` receives messages, `message` reads them. Hints only, late,
//! repeated and in any order; lists stay the truth. Never ends a search, and never holds one up.

mod message;
mod queue;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::future::{join, select};
use tokio::sync::{Notify, oneshot};

use self::message::{Event, events};
use self::queue::{Message, Queue, Refused};
use super::asking::innermost;
use super::{net, with_buckets};
use crate::store::{Hint, Watch};
use crate::{Error, Result};

/// The scheme of queues.
const SCHEME: &str = "sqs://";

/// Pauses after a request that failed: the first, and the longest. The first also follows an answer that came too early with
/// nothing to do.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Failures one after the other that say nothing of the service: one answer of a large service in many thousands fails, and the next is good.
const PASSING: u32 = 2;

/// How many messages that cannot be read are remembered, so that each is counted once.
const REMEMBERED: usize = 1024;

/// How many reports wait for the search; the counts have all.
const REPORTS: usize = 16;

/// Characters of a message that a report quotes.
const QUOTED: usize = 200;

/// The name that a search has for the object of a key. `None` if the search does not look for it.
pub(in crate::store) type Wanted = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What came from a queue since the start.
#[derive(Debug, Default)]
pub struct EventCounts {
    received: AtomicU64,
    ignored: AtomicU64,
    unreadable: AtomicU64,
}

impl EventCounts {
    /// By name: the events that came (a repeated event counts each time), the events that concern no file of the search, and the messages
    /// that cannot be read.
    pub fn now(&self) -> [(&'static str, u64); 3] {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("events_received", of(&self.received)),
            ("events_ignored", of(&self.ignored)),
            ("events_unreadable", of(&self.unreadable)),
        ]
    }
}

/// A queue with events of a bucket, for one search.
pub(in crate::store) struct Events {
    reading: Reading,
    session: Mutex<Weak<Session>>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Events").field(&self.reading.queue).finish()
    }
}

impl Events {
    /// Asks the service for the queue that a user names for a bucket. If the service does not answer, the reader asks again later.
    ///
    /// Errors: `Config` in `events` for a name that is none, and for a queue that is not there or may not be read.
    pub(in crate::store) fn open(text: &str, bucket: &str, wanted: Wanted) -> Result<Self> {
        let refuse = |detail: &str| Error::config("events", format!("{text}: {detail}"));
        let name = name_of(text).map_err(|detail| refuse(&detail))?;
        let options = with_buckets(|buckets| {
            let names = [format!("{SCHEME}{name}"), SCHEME.to_owned(), format!("s3://{bucket}"), "s3://".to_owned()];
            names.iter().find_map(|name| buckets.options.get(name)).cloned().unwrap_or_default()
        });
        let queue = Queue::new(name, bucket, &options).map_err(|e| refuse(&innermost(&e)))?;
        let queue = Arc::new(queue);
        let asked = Arc::clone(&queue);
        let found = net::wait(async move { asked.find().await.map(|_| ()) });
        if let Err(Refused::Wrong(said)) = found.map_err(|e| refuse(&e.to_string()))? {
            return Err(Error::config("events", said));
        }
        let reading =
            Reading { queue, bucket: bucket.to_owned(), wanted, counts: Arc::default(), shared: Arc::default() };
        Ok(Events { reading, session: Mutex::default() })
    }

    /// What came so far.
    pub(in crate::store) fn counts(&self) -> Arc<EventCounts> {
        Arc::clone(&self.reading.counts)
    }

    /// Begins to read the queue, or joins a reader that runs. The reader ends when nobody listens any more.
    ///
    /// Errors: those of starting a thread.
    pub(in crate::store) fn listen(&self) -> std::io::Result<Box<dyn Watch>> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = session.upgrade() {
            return Ok(Box::new(Listening(running)));
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let reading = self.reading.clone();
        net::start(async move {
            select(Box::pin(reading.run()), stopped).await;
        })?;
        let new = Arc::new(Session { shared: Arc::clone(&self.reading.shared), _stop: stop });
        *session = Arc::downgrade(&new);
        Ok(Box::new(Listening(new)))
    }
}

/// The name in `sqs://NAME`.
fn name_of(text: &str) -> std::result::Result<&str, String> {
    let expected =
        "expected sqs://NAME, with the name of a queue of the account and the region that the credentials are of";
    let name = match text.strip_prefix(SCHEME) {
        Some(name) => name,
        None if text.starts_with("https://") || text.starts_with("http://") => {
            let last = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            return Err(format!("a queue is not named by its URL; {expected}: sqs://{last}"));
        }
        None if text.starts_with("arn:") => {
            let last = text.rsplit(':').next().unwrap_or_default();
            return Err(format!("a queue is not named by its ARN; {expected}: sqs://{last}"));
        }
        None => return Err(expected.to_owned()),
    };
    if let Some((_, last)) = name.trim_end_matches('/').rsplit_once('/') {
        return Err(format!("no account and no host is part of the name; {expected}: sqs://{last}"));
    }
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let bare = name.strip_suffix(".fifo").unwrap_or(name);
    match !bare.is_empty() && name.len() <= 80 && bare.bytes().all(is_known) {
        true => Ok(name),
        false => Err(format!("{expected}: 1 to 80 letters, digits, - and _, and perhaps .fifo")),
    }
}

/// What the search takes of a reading.
#[derive(Default)]
struct Shared {
    hints: Mutex<Vec<Hint>>,
    taken: Notify,
}

impl Shared {
    fn give(&self, hints: impl IntoIterator<Item = Hint>) {
        self.hints.lock().unwrap_or_else(PoisonError::into_inner).extend(hints);
    }

    fn report(&self, message: String) {
        let mut hints = self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        if hints.iter().filter(|hint| matches!(hint, Hint::Blind(_))).count() < REPORTS {
            hints.push(Hint::Blind(message));
        }
    }
}

/// A reading that runs as long as somebody has this.
struct Session {
    shared: Arc<Shared>,
    /// Dropped with it, which stops the reading.
    _stop: oneshot::Sender<()>,
}

struct Listening(Arc<Session>);

impl Watch for Listening {
    fn poll(&mut self, hints: &mut Vec<Hint>) {
        let Shared { hints: waiting, taken } = &*self.0.shared;
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.is_empty() {
            hints.append(&mut waiting);
            taken.notify_one();
        }
    }

    fn sees_moves(&self) -> bool {
        false
    }
}

#[derive(Clone)]
struct Reading {
    queue: Arc<Queue>,
    bucket: String,
    wanted: Wanted,
    counts: Arc<EventCounts>,
    shared: Arc<Shared>,
}

impl Reading {
    /// Receives, gives hints, waits until they are taken, and deletes the messages while it receives the next ones.
    async fn run(self) {
        let (mut done, mut pause) = (Vec::new(), PAUSES.0);
        let mut failures = Failures::default();
        let mut unreadable = Unreadable::default();
        loop {
            let began = Instant::now();
            let (deleted, came) = join(self.queue.delete(&done), self.queue.receive()).await;
            // What was not deleted comes again, and hints at what is known then.
            done.clear();
            let failed = deleted.err();
            let messages = match came {
                Ok(messages) => messages,
                Err(refused) => {
                    self.failed(&refused, &mut failures);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                    continue;
                }
            };
            pause = PAUSES.0;
            match failed {
                Some(refused) => self.failed(&refused, &mut failures),
                None => failures = Failures::default(),
            }
            let mut hints = Vec::new();
            for message in messages {
                if self.took(&message, &mut unreadable, &mut hints) {
                    done.push(message.receipt);
                }
            }
            if !hints.is_empty() {
                self.shared.give(hints);
                self.shared.taken.notified().await;
            } else if done.is_empty() && began.elapsed() < PAUSES.0 {
                tokio::time::sleep(PAUSES.0).await;
            }
        }
    }

    fn failed(&self, refused: &Refused, failures: &mut Failures) {
        if failures.is_news(refused) {
            self.shared.report(format!(
                "{}; new files are found by listing only, and the stream asks the queue again",
                refused.said()
            ));
        }
    }

    /// The hints of a message, and whether the reader may delete the message. It leaves an unreadable message in the queue to the rules of
    /// the queue's owner.
    fn took(&self, message: &Message, known: &mut Unreadable, hints: &mut Vec<Hint>) -> bool {
        let (events, unreadable) = events(&message.body);
        for event in events {
            self.counts.received.fetch_add(1, Ordering::Relaxed);
            let name = |bucket: &str, key: &str| if bucket == self.bucket { (self.wanted)(key) } else { None };
            let hint = match &event {
                Event::Written { bucket, key } => name(bucket, key).map(Hint::Seen),
                Event::Deleted { bucket, key } => name(bucket, key).map(Hint::Left),
                Event::Other => None,
            };
            match hint {
                Some(hint) => hints.push(hint),
                None => _ = self.counts.ignored.fetch_add(1, Ordering::Relaxed),
            }
        }
        let Some(why) = unreadable else { return true };
        if known.is_new(&message.id) {
            self.counts.unreadable.fetch_add(1, Ordering::Relaxed);
            let quoted: String = message.body.chars().take(QUOTED).collect();
            let dots = if quoted.len() < message.body.len() { "…" } else { "" };
            self.shared.report(format!(
                "message {} of the queue cannot be read: {why}. It stays there: {quoted:?}{dots}",
                message.id
            ));
        }
        false
    }
}

/// Failures since the last good answer.
#[derive(Default)]
struct Failures {
    passing: u32,
    reported: Option<String>,
}

impl Failures {
    /// Whether a user hears of one more: not of the first passing ones, and once as long as the service says the same.
    fn is_news(&mut self, refused: &Refused) -> bool {
        if matches!(refused, Refused::Passing(_)) && self.passing < PASSING {
            self.passing += 1;
            return false;
        }
        let said = Some(refused.said().to_owned());
        self.reported != said && {
            self.reported = said;
            true
        }
    }
}

/// Messages that could not be read, by their numbers: the latest ones.
#[derive(Default)]
struct Unreadable {
    ids: HashSet<String>,
    order: VecDeque<String>,
}

impl Unreadable {
    fn is_new(&mut self, id: &str) -> bool {
        if !self.ids.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > REMEMBERED {
            self.order.pop_front().inspect(|oldest| _ = self.ids.remove(oldest));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_reported_when_it_lasts_and_a_refusal_at_once() {
        let (passing, wrong) = (Refused::Passing("status 500".to_owned()), Refused::Wrong("no queue".to_owned()));
        let mut failures = Failures::default();
        let news: Vec<bool> = (0..5).map(|_| failures.is_news(&passing)).collect();
        assert_eq!(news, [false, false, true, false, false]);
        assert!(failures.is_news(&wrong));
        assert!(!failures.is_news(&wrong));
        assert!(Failures::default().is_news(&wrong));
    }

    #[test]
    fn a_queue_has_one_spelling_and_others_are_refused_with_it() {
        for name in ["games", "Games_2-x", "games.fifo"] {
            assert_eq!(name_of(&format!("sqs://{name}")), Ok(name));
        }
        let refused = [
            ("games", "expected sqs://NAME"),
            ("sqs://", "1 to 80 letters"),
            ("sqs://a.b", "1 to 80 letters"),
            ("sqs://123456789012/games", "no account and no host is part of the name"),
            ("sqs://123456789012/games", "sqs://games"),
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/games", "not named by its URL"),
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/games", "sqs://games"),
            ("arn:aws:sqs:eu-west-1:123456789012:games", "not named by its ARN"),
        ];
        for (text, expected) in refused {
            let detail = name_of(text).unwrap_err();
            assert!(detail.contains(expected), "{text}: {detail}");
        }
        assert!(name_of(&format!("sqs://{}", "x".repeat(81))).is_err());
    }

    #[test]
    fn a_message_that_cannot_be_read_is_remembered_among_the_latest() {
        let mut known = Unreadable::default();
        assert!((0..=REMEMBERED).all(|n| known.is_new(&n.to_string())));
        assert!(!known.is_new("1") && known.is_new("0"), "the oldest is forgotten");
        assert_eq!((known.ids.len(), known.order.len()), (REMEMBERED, REMEMBERED));
    }
}
