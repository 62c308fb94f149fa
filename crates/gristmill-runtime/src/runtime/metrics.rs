//! Numbers that only grow, sampled into rates: what each stage did since the start and in the last second.
//! The one place that reads the clock for measurement; nothing here can change what the river delivers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// A counter that many threads add to.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether every [`Load`] counts processor time.
static PROFILED: AtomicBool = AtomicBool::new(false);

/// While one lives, every [`Load`] of this process counts processor time and not the clock's, so that waits for a core or a disk
/// are left out. Each measurement then costs two calls of the system: for benchmarks only.
#[derive(Debug)]
pub struct Profile(());

impl Profile {
    /// Switches the loads to processor time.
    pub fn begin() -> Self {
        PROFILED.store(true, Ordering::Relaxed);
        Profile(())
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        PROFILED.store(false, Ordering::Relaxed);
    }
}

/// Processor time of the calling thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
}

/// Time that threads spent busy in a stage, in nanoseconds.
#[derive(Debug, Default)]
pub struct Load(Counter);

impl Load {
    /// Runs `work` and counts the time it took; only its processor time while a [`Profile`] lives.
    pub fn during<R>(&self, work: impl FnOnce() -> R) -> R {
        if !PROFILED.load(Ordering::Relaxed) {
            return self.lasting(work);
        }
        let start = thread_time();
        let result = work();
        self.add(thread_time().saturating_sub(start));
        result
    }

    /// Runs `work` and counts the clock's time, also while a [`Profile`] lives.
    pub fn lasting<R>(&self, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        self.add(start.elapsed());
        result
    }

    fn add(&self, time: Duration) {
        self.0.add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Busy nanoseconds so far.
    pub fn nanos(&self) -> u64 {
        self.0.get()
    }
}

/// Seconds since it was made, and when that was.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
    unix_ms: u64,
}

impl Default for Clock {
    fn default() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { started: Instant::now(), unix_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX) }
    }
}

impl Clock {
    /// Seconds since it was made.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// When it was made, in milliseconds since 1970, as the system's clock said then.
    pub fn unix_ms(&self) -> u64 {
        self.unix_ms
    }
}

/// Totals at moments of the recent past.
#[derive(Debug)]
pub struct Rates {
    started: Instant,
    samples: VecDeque<(Instant, Vec<u64>)>,
}

/// How long samples are kept: a little over the second that rates are measured over.
const KEPT: Duration = Duration::from_millis(1500);

impl Default for Rates {
    fn default() -> Self {
        Rates { started: Instant::now(), samples: VecDeque::new() }
    }
}

impl Rates {
    /// Time since this was made.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Records the totals of this moment.
    pub fn sample(&mut self, totals: Vec<u64>) {
        let now = Instant::now();
        self.samples.push_back((now, totals));
        while self.samples.len() > 2 && self.samples[1].0 + KEPT < now {
            self.samples.pop_front();
        }
    }

    /// Records the totals of this moment if the last ones are older than `every`.
    pub fn sample_after(&mut self, every: Duration, totals: impl FnOnce() -> Vec<u64>) {
        if self.samples.back().is_none_or(|(at, _)| at.elapsed() >= every) {
            self.sample(totals());
        }
    }

    /// Growth per second of each total since about a second ago; zero where nothing was sampled yet.
    pub fn per_second(&self, totals: &[u64]) -> Vec<f64> {
        let now = Instant::now();
        let old = self.samples.iter().rev().find(|(at, _)| now.duration_since(*at) >= Duration::from_secs(1));
        let Some((at, before)) = old.or(self.samples.front()) else { return vec![0.0; totals.len()] };
        let seconds = now.duration_since(*at).as_secs_f64().max(1e-3);
        totals.iter().zip(before).map(|(now, before)| now.saturating_sub(*before) as f64 / seconds).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_come_from_samples_and_old_samples_go() {
        let mut rates = Rates::default();
        assert_eq!(rates.per_second(&[5]), [0.0]);
        rates.sample(vec![0, 100]);
        std::thread::sleep(Duration::from_millis(20));
        let now = rates.per_second(&[10, 100]);
        assert!(now[0] > 0.0 && now[0] <= 500.0, "{now:?}");
        assert_eq!(now[1], 0.0);
        rates.sample_after(Duration::from_secs(60), || unreachable!("the last sample is young"));
        (0..1000).for_each(|i| rates.sample(vec![i, i]));
        assert!(rates.samples.len() <= 1001);
    }

    #[test]
    fn loads_count_busy_time_and_a_profile_no_sleep() {
        let load = Load::default();
        assert_eq!(load.during(|| std::thread::sleep(Duration::from_millis(3))), ());
        assert!(load.nanos() >= 3_000_000);
        let (slept, worked, waited) = (Load::default(), Load::default(), Load::default());
        let nap = || std::thread::sleep(Duration::from_millis(30));
        let profile = Profile::begin();
        slept.during(nap);
        waited.lasting(nap);
        worked.during(|| {
            let start = thread_time();
            while thread_time() - start < Duration::from_millis(2) {}
        });
        drop(profile);
        assert!(slept.nanos() < 30_000_000 && waited.nanos() >= 30_000_000, "{slept:?} {waited:?}");
        assert!(worked.nanos() >= 2_000_000, "{worked:?}");
    }
}
