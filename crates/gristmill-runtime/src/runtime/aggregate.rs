//! What happened between looks -> what happened in the last 1, 2, 4, ... ticks and since the start.
//! Holds one value per power of two; time comes in as an argument; knows nothing of what it adds up.

use std::time::Duration;

/// Something that adds up over time.
pub trait Merge: Clone + Default {
    /// Takes in what came after it.
    fn absorb(&mut self, newer: Self);
}

/// Bucket `i` holds the latest complete period of 2^i ticks.
#[derive(Debug, Clone)]
pub struct Aggregator<M> {
    tick: Duration,
    ticks: u64,
    last: Duration,
    buckets: Vec<M>,
    pending: M,
}

impl<M: Merge> Aggregator<M> {
    /// Starts at time 0; `tick` is the finest period.
    pub fn new(tick: Duration) -> Self {
        Aggregator { tick, ticks: 0, last: Duration::ZERO, buckets: Vec::new(), pending: M::default() }
    }

    /// Adds what happened since the last record.
    pub fn record(&mut self, happened: M) {
        self.pending.absorb(happened);
    }

    /// Completes the ticks that have passed by `now`; the first of them takes what is pending.
    /// Returns the longest period, in ticks, that was completed with them; 0 when none was.
    pub fn advance(&mut self, now: Duration) -> u64 {
        let passed = now.saturating_sub(self.last).as_nanos() / self.tick.as_nanos().max(1);
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        let mut longest = 0;
        for _ in 0..passed {
            longest = longest.max(self.complete());
        }
        self.last = self.last.saturating_add(self.tick.saturating_mul(u32::try_from(passed).unwrap_or(u32::MAX)));
        longest
    }

    /// Completes what is pending as one tick, however short: for the end.
    pub fn close(&mut self, now: Duration) {
        self.complete();
        self.last = now;
    }

    fn complete(&mut self) -> u64 {
        self.ticks += 1;
        let mut rising = std::mem::take(&mut self.pending);
        let completed = self.ticks.trailing_zeros() as usize;
        for i in 0..=completed {
            if i == self.buckets.len() {
                self.buckets.push(M::default());
            }
            // What stood here is older than what takes its place; together they are the next longer period.
            let newer = std::mem::replace(&mut self.buckets[i], rising);
            rising = newer;
            rising.absorb(self.buckets[i].clone());
        }
        1 << completed
    }

    /// The latest complete period of 2^`exponent` ticks, empty if there was none, and how long ago it ended; with
    /// `now` to the moment, else to the last tick.
    pub fn bucket(&self, exponent: u32, now: Option<Duration>) -> (M, Duration) {
        let since = self.ticks.checked_rem(1u64.checked_shl(exponent).unwrap_or(0)).unwrap_or(self.ticks);
        let found = self.buckets.get(exponent as usize).cloned().unwrap_or_default();
        (found, self.span(since) + self.unfinished(now))
    }

    /// What happened in the last `duration` (`None`: ever), ending at `now` with what is pending, or without it at
    /// the last tick; and the time that this really covers, which may be longer.
    pub fn ending_now(&self, duration: Option<Duration>, now: Option<Duration>) -> (M, Duration) {
        let unfinished = self.unfinished(now);
        let needed = duration.map_or(u64::MAX, |duration| {
            let ticks = duration.saturating_sub(unfinished).as_nanos().div_ceil(self.tick.as_nanos().max(1));
            u64::try_from(ticks).unwrap_or(u64::MAX)
        });
        let width = u64::BITS - needed.leading_zeros();
        let mut covered = self.ticks.checked_rem(1u64.checked_shl(width).unwrap_or(0)).unwrap_or(self.ticks);
        let mut found = M::default();
        let longer = 1u64.checked_shl(width).filter(|_| covered < needed);
        if let (Some(longer), Some(bucket)) = (longer, self.buckets.get(width as usize)) {
            // The whole period before the shorter ones.
            found.absorb(bucket.clone());
            covered += longer;
        }
        let shorter = self.buckets.iter().enumerate().take(width as usize).rev();
        shorter.filter(|(i, _)| self.ticks >> i & 1 == 1).for_each(|(_, bucket)| found.absorb(bucket.clone()));
        if now.is_some() {
            found.absorb(self.pending.clone());
        }
        (found, self.span(covered) + unfinished)
    }

    fn unfinished(&self, now: Option<Duration>) -> Duration {
        now.map_or(Duration::ZERO, |now| now.saturating_sub(self.last))
    }

    fn span(&self, ticks: u64) -> Duration {
        self.tick.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Merge for Vec<u32> {
        fn absorb(&mut self, newer: Self) {
            self.extend(newer);
        }
    }

    const TICK: Duration = Duration::from_millis(250);

    fn ticks(n: f64) -> Duration {
        TICK.mul_f64(n)
    }

    /// 37 ticks, the i-th of which holds 200 + i.
    fn published() -> Aggregator<Vec<u32>> {
        let mut all = Aggregator::new(TICK);
        for i in 0..37 {
            all.record(vec![200 + i]);
            all.advance(TICK * (i + 1));
        }
        all
    }

    #[test]
    fn buckets_hold_the_published_values() {
        let all = published();
        let expected: [(Vec<u32>, f64); 7] = [
            (vec![236], 0.0),
            (vec![234, 235], 1.0),
            ((232..236).collect(), 1.0),
            ((224..232).collect(), 5.0),
            ((216..232).collect(), 5.0),
            ((200..232).collect(), 5.0),
            (vec![], 37.0),
        ];
        for (exponent, (values, age)) in (0..).zip(expected) {
            assert_eq!(all.bucket(exponent, None), (values, ticks(age)), "2^{exponent}");
        }
        assert_eq!(all.bucket(1, Some(ticks(37.5))).1, ticks(1.5));
        assert_eq!(all.bucket(200, None), (vec![], ticks(37.0)));
    }

    #[test]
    fn what_ends_now_covers_what_was_asked_or_more() {
        let all = published();
        for (asked, first, covered) in
            [(0.0, 237, 0.0), (1.0, 236, 1.0), (4.5, 232, 5.0), (5.5, 224, 13.0), (37.0, 200, 37.0)]
        {
            let expected = ((first..237).collect::<Vec<u32>>(), ticks(covered));
            assert_eq!(all.ending_now(Some(ticks(asked)), None), expected, "{asked} ticks");
        }
        for asked in [Some(Duration::MAX), Some(ticks(64.0)), None] {
            assert_eq!(all.ending_now(asked, None), ((200..237).collect(), ticks(37.0)));
        }
    }

    #[test]
    fn pending_values_count_where_the_moment_is_given() {
        let mut all = published();
        all.record(vec![900]);
        let now = Some(ticks(37.5));
        assert_eq!(all.ending_now(Some(ticks(1.5)), now), (vec![236, 900], ticks(1.5)));
        assert_eq!(all.ending_now(Some(ticks(0.25)), now), (vec![900], ticks(0.5)));
        assert_eq!(all.ending_now(None, None).0.last(), Some(&236));
        all.close(ticks(37.5));
        assert_eq!(all.ending_now(None, None).0.last(), Some(&900));
        assert_eq!(all.bucket(0, None).0, [900]);
    }

    #[test]
    fn single_and_triple_steps_complete_the_published_periods() {
        let mut all = Aggregator::<Vec<u32>>::new(TICK);
        let singles: Vec<u64> = (1..=8).map(|i| all.advance(TICK * i)).collect();
        assert_eq!(singles, [1, 2, 1, 4, 1, 2, 1, 8]);
        let mut all = Aggregator::<Vec<u32>>::new(TICK);
        let triples: Vec<u64> = (1..=4).map(|i| all.advance(TICK * 3 * i)).collect();
        assert_eq!(triples, [2, 4, 8, 4]);
        assert_eq!(all.advance(TICK * 12), 0);
    }

    #[test]
    fn the_first_of_several_ticks_takes_what_is_pending() {
        let mut all = Aggregator::new(TICK);
        all.record(vec![1]);
        all.advance(TICK * 3);
        assert_eq!(all.bucket(0, None).0, Vec::<u32>::new());
        assert_eq!(all.bucket(1, None), (vec![1], TICK));
    }
}
