//! The counts of some stores at two moments -> what was asked of them between. Asks nothing itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Counts;

/// Names of what is counted, in order.
const NAMES: [&str; 5] = ["store_requests", "store_retries", "store_hedges", "store_failures", "store_bytes"];

/// What was asked of some stores since it was made, by whatever of this process.
#[derive(Debug, Default)]
pub struct Traffic(Vec<(Arc<Counts>, [u64; NAMES.len()])>);

impl Traffic {
    /// From now on, of these stores; of one that is named several times once.
    pub fn of(stores: impl IntoIterator<Item = Arc<Counts>>) -> Self {
        let mut traffic = Traffic::default();
        for counts in stores {
            if !traffic.0.iter().any(|(known, _)| Arc::ptr_eq(known, &counts)) {
                let now = counts.now();
                traffic.0.push((counts, now));
            }
        }
        traffic
    }

    /// Requests, tries after the first, second requests, requests that were given up, and bytes, by name. Nothing where nothing is
    /// elsewhere.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let mut sums = [0; NAMES.len()];
        for (counts, before) in &self.0 {
            let grown = counts.now().into_iter().zip(before).map(|(now, before)| now.saturating_sub(*before));
            sums.iter_mut().zip(grown).for_each(|(sum, grown)| *sum += grown);
        }
        if self.0.is_empty() { Vec::new() } else { NAMES.into_iter().zip(sums).collect() }
    }
}

impl Counts {
    /// In the order of the names.
    fn now(&self) -> [u64; NAMES.len()] {
        let all = [&self.requests, &self.retries, &self.hedges, &self.failures, &self.bytes];
        all.map(|count| count.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_counts_once_and_from_now_on() {
        let (one, two) = (Arc::new(Counts::default()), Arc::new(Counts::default()));
        one.retries.store(5, Ordering::Relaxed);
        let traffic = Traffic::of([Arc::clone(&one), Arc::clone(&two), Arc::clone(&one)]);
        one.retries.store(7, Ordering::Relaxed);
        two.retries.store(1, Ordering::Relaxed);
        two.bytes.store(9, Ordering::Relaxed);
        let counted: Vec<_> = traffic.counts().into_iter().filter(|(_, n)| *n > 0).collect();
        assert_eq!(counted, [("store_retries", 3), ("store_bytes", 9)]);
        assert!(Traffic::of([]).counts().is_empty());
    }
}
