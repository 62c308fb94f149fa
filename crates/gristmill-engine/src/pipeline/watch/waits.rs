//! What consumers and loader waited for, per output -> the share of time that a trainer waits, and the name of what limits.
//! Since the start and in the last second. Names what was measured; changes nothing.

use serde::{Deserialize, Serialize};

use crate::pipeline::watch::stall::{CAUSES, Totals};

/// A trainer that waits for less than this share of its time is the limit itself.
const NOISE: f64 = 0.05;

/// The name where the trainer is the limit.
pub(in crate::pipeline) const TRAINER: &str = "trainer";

/// Seconds for which a cause was waited for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Waited {
    /// What was waited for: the `trainer`, or what a batch lacked.
    pub cause: String,
    /// Since the first batch was wanted.
    pub seconds: f64,
    /// In the last second.
    pub per_second: f64,
}

/// Who waits for whom, of one output.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Waits {
    /// Share of the last second in which the trainer waited for the loader.
    pub stall: f64,
    /// What limited in the last second: `trainer`, or what batches lacked the longest. Empty where nobody wanted one.
    pub limited_by: String,
    /// The same since the first batch was wanted.
    pub stall_since_start: f64,
    /// The same since the first batch was wanted.
    pub limited_by_since_start: String,
    /// Where the time went: all seconds together are those since the first batch was wanted.
    pub waits: Vec<Waited>,
}

/// Who waits for whom, of one output of several.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputWaits {
    /// Its name in calls; empty for the only one.
    pub alias: String,
    /// The stage that gives it.
    pub stage: String,
    /// Who waits for whom.
    #[serde(flatten)]
    pub waits: Waits,
}

impl Waits {
    /// Of totals and their growth per second, in nanoseconds.
    pub(in crate::pipeline) fn of(totals: &Totals, per_second: &[f64]) -> Self {
        let names = std::iter::once(TRAINER).chain(CAUSES.iter().map(|(_, name)| *name));
        let rates = per_second.iter().copied().chain(std::iter::repeat(0.0));
        let waits = names.zip(totals).zip(rates).map(|((cause, total), rate)| Waited {
            cause: cause.to_owned(),
            seconds: *total as f64 / 1e9,
            per_second: (rate / 1e9).min(1.0),
        });
        Waits::from_parts(waits.collect())
    }

    /// Of batches that are made while the consumer waits for them: seconds of the trainer, and of the making.
    pub(in crate::pipeline) fn made_when_wanted(trainer: f64, made: f64) -> Self {
        let parts = [(TRAINER, trainer), ("gather", made)];
        let waits = parts.map(|(cause, seconds)| Waited { cause: cause.to_owned(), seconds, per_second: 0.0 });
        Waits::from_parts(waits.to_vec())
    }

    fn from_parts(waits: Vec<Waited>) -> Self {
        let (stall, limited_by) = limit(&waits, |waited| waited.per_second);
        let (stall_since_start, limited_by_since_start) = limit(&waits, |waited| waited.seconds);
        Waits { stall, limited_by, stall_since_start, limited_by_since_start, waits }
    }

    /// What was waited for between an earlier moment and this one, since the start.
    pub fn since(&self, earlier: &Waits) -> Self {
        let before = |cause: &str| earlier.waits.iter().find(|waited| waited.cause == cause).map_or(0.0, |w| w.seconds);
        let waits = self
            .waits
            .iter()
            .map(|waited| Waited { seconds: (waited.seconds - before(&waited.cause)).max(0.0), ..waited.clone() });
        Waits::from_parts(waits.collect())
    }

    /// Seconds since the start for which this was waited for.
    pub fn seconds(&self, cause: &str) -> f64 {
        self.waits.iter().filter(|waited| waited.cause == cause).map(|waited| waited.seconds).sum()
    }

    /// Of several outputs the one that was waited for the longest, in the last second and since the start.
    pub(in crate::pipeline) fn of_all<'a>(outputs: impl Iterator<Item = &'a Waits>) -> Self {
        let lost = |waits: &Waits, of: fn(&Waited) -> f64| -> f64 {
            waits.waits.iter().filter(|waited| waited.cause != TRAINER).map(of).sum()
        };
        let mut whole: Option<Waits> = None;
        for waits in outputs {
            let Some(known) = &mut whole else {
                whole = Some(waits.clone());
                continue;
            };
            if lost(waits, |waited| waited.per_second) > lost(known, |waited| waited.per_second) {
                (known.stall, known.limited_by) = (waits.stall, waits.limited_by.clone());
            }
            if lost(waits, |waited| waited.seconds) > lost(known, |waited| waited.seconds) {
                let Waits { stall, limited_by, .. } = std::mem::take(known);
                *known = Waits { stall, limited_by, ..waits.clone() };
            }
        }
        whole.unwrap_or_default()
    }
}

/// The share of time that was not the trainer's, and what it was waited for the longest.
fn limit(waits: &[Waited], of: impl Fn(&Waited) -> f64) -> (f64, String) {
    let all: f64 = waits.iter().map(&of).sum();
    if all <= 0.0 {
        return (0.0, String::new());
    }
    let loader = waits.iter().filter(|waited| waited.cause != TRAINER);
    let stall = loader.clone().map(&of).sum::<f64>() / all;
    let longest = loader.max_by(|a, b| of(a).total_cmp(&of(b))).filter(|_| stall >= NOISE);
    (stall, longest.map_or_else(|| TRAINER.to_owned(), |waited| waited.cause.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(trainer: u64, storage: u64, decode: u64) -> Waits {
        let mut totals = Totals::default();
        (totals[0], totals[1], totals[3]) = (trainer * 1_000_000_000, storage * 1_000_000_000, decode * 1_000_000_000);
        Waits::of(&totals, &totals.map(|total| total as f64 / 10.0))
    }

    #[test]
    fn the_longest_wait_is_the_limit_unless_it_is_noise() {
        let found = of(2, 7, 1);
        assert_eq!((found.stall_since_start, found.limited_by_since_start.as_str()), (0.8, "storage"));
        assert_eq!((found.stall, found.limited_by.as_str()), (0.8, "storage"), "{found:?}");
        assert_eq!(of(97, 2, 1).limited_by_since_start, "trainer");
        assert_eq!(of(0, 0, 0).limited_by_since_start, "");
        assert_eq!(of(3, 7, 4).since(&of(2, 7, 1)).limited_by_since_start, "decode");
    }

    #[test]
    fn of_several_outputs_the_hungriest_speaks() {
        let (train, test) = (of(2, 1, 7), of(10, 0, 0));
        let whole = Waits::of_all([&test, &train].into_iter());
        assert_eq!((whole.stall_since_start, whole.limited_by.as_str()), (0.8, "decode"));
        assert_eq!(Waits::of_all([&train, &test].into_iter()).limited_by_since_start, "decode");
        assert_eq!(Waits::of_all(std::iter::empty()), Waits::default());
    }
}
