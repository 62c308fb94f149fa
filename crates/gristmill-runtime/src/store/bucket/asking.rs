//! One request to a store -> its answer: tried again within a stated time, with pauses that grow, and a second time beside the
//! first where it is among the slowest. What is refused for good is refused at once.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use object_store::Error as Refusal;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// How long a request is tried again, unless a user says otherwise.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// How long at most it is tried again while the store does not answer at all.
const AWAY: Duration = Duration::from_secs(2);

/// The first pause between two tries, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// How long one try may take, apart from its bytes, and how many bytes a second a try gives at least.
const TRY: (Duration, u64) = (Duration::from_secs(10), 1 << 20);

/// Of how many answers times are kept, and from how many on they say what is slow.
const TIMES: (usize, usize) = (256, 64);

/// A try.
pub(super) type Try<T> = Pin<Box<dyn Future<Output = object_store::Result<T>> + Send>>;

/// What was asked of one store, and how quickly it answered.
#[derive(Debug, Default)]
pub struct Counts {
    /// Requests, each counted once.
    pub requests: AtomicU64,
    /// Tries after the first.
    pub retries: AtomicU64,
    /// Second requests beside a slow first one.
    pub hedges: AtomicU64,
    /// Requests that were given up.
    pub failures: AtomicU64,
    /// Bytes of answers.
    pub bytes: AtomicU64,
    times: Mutex<Times>,
    /// Whether the last request was given up: then the next ones are not asked for long.
    is_away: AtomicBool,
}

/// Times of the latest answers to requests of one length, by the power of two.
#[derive(Debug, Default)]
struct Times {
    kept: std::collections::BTreeMap<u32, (Vec<Duration>, usize)>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failed {
    /// The store refuses, and will refuse again.
    Refused(Refusal),
    /// No good answer within the time: how many tries, how long, and what the last one said.
    GaveUp(u64, Duration, String),
}

impl Counts {
    /// Asks, and asks again. `len` is how many bytes the answer will have, about.
    pub(super) async fn ask<T>(&self, len: u64, patience: Duration, make: impl FnMut() -> Try<T>) -> Result<T, Failed> {
        self.tried(len, patience, true, make).await
    }

    /// Asks for a change, and asks again; never sends a second request beside the first. `len` is how many bytes it sends.
    pub(super) async fn order<T>(
        &self,
        len: u64,
        patience: Duration,
        make: impl FnMut() -> Try<T>,
    ) -> Result<T, Failed> {
        self.tried(len, patience, false, make).await
    }

    async fn tried<T>(
        &self,
        len: u64,
        patience: Duration,
        hedges: bool,
        mut make: impl FnMut() -> Try<T>,
    ) -> Result<T, Failed> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let patience = if self.is_away.load(Ordering::Relaxed) { patience.min(AWAY) } else { patience };
        let (began, mut pause, mut tries) = (Instant::now(), PAUSES.0, 0);
        loop {
            tries += 1;
            let left = patience.saturating_sub(began.elapsed());
            let most = left.min(TRY.0 + Duration::from_secs(len / TRY.1)).max(PAUSES.0);
            let answer = match hedges {
                true => tokio::time::timeout(most, self.hedged(len, &mut make)).await,
                false => tokio::time::timeout(most, make()).await,
            };
            let said = match answer {
                Ok(Ok(answer)) => {
                    self.is_away.store(false, Ordering::Relaxed);
                    return Ok(answer);
                }
                Ok(Err(refusal)) if is_final(&refusal) => {
                    self.is_away.store(false, Ordering::Relaxed);
                    self.failures.fetch_add(1, Ordering::Relaxed);
                    return Err(Failed::Refused(refusal));
                }
                Ok(Err(refusal)) => innermost(&refusal),
                Err(_) => format!("no answer within {:.1} s", most.as_secs_f64()),
            };
            // Between a half and all of the pause, so that those who were refused together do not come back together.
            let part = xxh3_64_with_seed(&number.to_le_bytes(), tries) % 512;
            let wait = pause * (512 + part as u32) / 1024;
            if began.elapsed() + wait >= patience {
                self.is_away.store(true, Ordering::Relaxed);
                self.failures.fetch_add(1, Ordering::Relaxed);
                return Err(Failed::GaveUp(tries, began.elapsed(), said));
            }
            tokio::time::sleep(wait).await;
            self.retries.fetch_add(1, Ordering::Relaxed);
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// One try; a second one beside it when it takes longer than nearly all did, and the first good answer of both.
    async fn hedged<T>(&self, len: u64, make: &mut impl FnMut() -> Try<T>) -> object_store::Result<T> {
        let began = Instant::now();
        let first = make();
        let answer = match self.slow(len) {
            None => first.await,
            Some(slow) => match select(first, Box::pin(tokio::time::sleep(slow))).await {
                Either::Left((answer, _)) => answer,
                Either::Right(((), first)) if self.may_hedge() => match select(first, make()).await {
                    Either::Left((Ok(answer), _)) | Either::Right((Ok(answer), _)) => Ok(answer),
                    Either::Left((Err(_), other)) | Either::Right((Err(_), other)) => other.await,
                },
                Either::Right(((), first)) => first.await,
            },
        };
        if answer.is_ok() {
            self.took(len, began.elapsed());
        }
        answer
    }

    /// At most one request in fifty has a second one, so that a store that is slow with all of them is not asked twice.
    fn may_hedge(&self) -> bool {
        let may = (self.hedges.load(Ordering::Relaxed) + 1) * 50 <= self.requests.load(Ordering::Relaxed) + 50;
        self.hedges.fetch_add(u64::from(may), Ordering::Relaxed);
        may
    }

    /// The time that one answer in a hundred takes longer than, once enough came.
    fn slow(&self, len: u64) -> Option<Duration> {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, _) = times.kept.get(&len.max(1).ilog2())?;
        if kept.len() < TIMES.1 {
            return None;
        }
        let mut sorted = kept.clone();
        sorted.sort_unstable();
        Some(sorted[sorted.len() * 99 / 100].max(sorted[sorted.len() / 2] * 2))
    }

    fn took(&self, len: u64, time: Duration) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, next) = times.kept.entry(len.max(1).ilog2()).or_default();
        match kept.get_mut(*next) {
            Some(old) => *old = time,
            None => kept.push(time),
        }
        *next = (*next + 1) % TIMES.0;
    }
}

/// Whether asking again would be in vain.
fn is_final(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Generic { .. } => {
            let said = innermost(refusal);
            let status = said.split_once("status code: ").and_then(|(_, rest)| rest.get(..3));
            is_untrusted(&said)
                || said.contains("redirect without LOCATION")
                || status.is_some_and(|status| {
                    status == "501" || status.starts_with('4') && !["408", "425", "429"].contains(&status)
                })
        }
        Refusal::JoinError { .. } => false,
        _ => true,
    }
}

/// Whether a server could not prove who it is.
pub(super) fn is_untrusted(said: &str) -> bool {
    said.contains("invalid peer certificate")
}

/// Whether a store says that credentials, which were good, have run out.
pub(super) fn is_expired(said: &str) -> bool {
    ["ExpiredToken", "TokenRefreshRequired", "RequestExpired"].iter().any(|code| said.contains(code))
}

/// What the store itself said, without what asked it; at most about two lines.
pub(super) fn innermost(refusal: &dyn std::error::Error) -> String {
    let mut at = refusal;
    while let Some(source) = at.source() {
        at = source;
    }
    let said = at.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    // An answer without a body leaves a colon.
    let mut said = said.trim_end_matches([':', ' ']).to_owned();
    if said.len() > 300 {
        let end = (0..=300).rev().find(|end| said.is_char_boundary(*end)).unwrap_or(0);
        said.truncate(end);
        said.push('…');
    }
    said
}

#[cfg(test)]
mod tests {
    use super::super::net;
    use super::*;
    use std::sync::Arc;

    fn busy() -> Refusal {
        Refusal::Generic { store: "S3", source: "Server returned non-2xx status code: 503 Slow Down".into() }
    }

    fn asked(patience: u64, answers: Vec<object_store::Result<u32>>) -> (Result<u32, Failed>, Arc<Counts>) {
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        let mut answers = answers.into_iter();
        let answer = net::wait(async move {
            let next = || -> Try<u32> {
                let answer = answers.next().unwrap_or_else(|| Err(busy()));
                Box::pin(async { answer })
            };
            shared.ask(10, Duration::from_millis(patience), next).await
        });
        (answer.unwrap(), counts)
    }

    #[test]
    fn what_passes_is_asked_again_and_counted_and_what_does_not_is_not() {
        let (answer, counts) = asked(5000, vec![Err(busy()), Err(busy()), Ok(7)]);
        assert_eq!(answer.unwrap(), 7);
        assert_eq!((counts.requests.load(Ordering::Relaxed), counts.retries.load(Ordering::Relaxed)), (1, 2));
        let refused = |text: &'static str| Refusal::Generic { store: "S3", source: text.into() };
        let denied = || Refusal::PermissionDenied { path: "x".into(), source: "status 403".into() };
        for refusal in [
            denied(),
            refused("non-2xx status code: 400 Bad"),
            refused("status code: 501"),
            refused("redirect without LOCATION"),
        ] {
            let (answer, counts) = asked(5000, vec![Err(refusal), Ok(7)]);
            assert!(matches!(answer.unwrap_err(), Failed::Refused(_)));
            assert_eq!((counts.retries.load(Ordering::Relaxed), counts.failures.load(Ordering::Relaxed)), (0, 1));
        }
        let (answer, _) = asked(5000, vec![Err(refused("status code: 429")), Ok(7)]);
        assert_eq!(answer.unwrap(), 7);
    }

    #[test]
    fn an_end_comes_within_the_time() {
        let (answer, counts) = asked(200, vec![]);
        let Failed::GaveUp(tries, time, said) = answer.unwrap_err() else { panic!("it was not refused for good") };
        assert!(
            tries >= 2 && time < Duration::from_secs(2) && said.contains("503 Slow Down"),
            "{tries} {time:?} {said}"
        );
        assert_eq!(counts.failures.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_slowest_are_asked_twice() {
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        let answer = net::wait(async move {
            for n in 0..100u32 {
                shared.ask(10, PATIENCE, || Box::pin(async move { Ok(n) })).await.unwrap();
            }
            let mut tries = 0;
            let slow_at_first = || -> Try<u32> {
                tries += 1;
                let time = Duration::from_secs(if tries == 1 { 60 } else { 0 });
                Box::pin(async move {
                    tokio::time::sleep(time).await;
                    Ok(7)
                })
            };
            shared.ask(10, PATIENCE, slow_at_first).await
        });
        assert_eq!(answer.unwrap().unwrap(), 7);
        assert_eq!(counts.hedges.load(Ordering::Relaxed), 1);
        assert_eq!(counts.retries.load(Ordering::Relaxed), 0);
    }
}
