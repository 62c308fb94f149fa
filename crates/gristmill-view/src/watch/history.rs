//! Documents of the last moments -> how fast a total grew in the last second, by the loader's own clock.
//! Never compares documents of two runs.

use std::collections::VecDeque;

use gristmill_engine::pipeline::{StageStatus, Status};

/// Seconds that rates are taken over, where that long was watched.
const SPAN: f64 = 1.0;

/// Seconds that are remembered.
const SECONDS: usize = 61;

/// The documents that rates come from, oldest first; events are left out.
#[derive(Debug, Default)]
pub struct History {
    /// Those of the last second.
    recent: VecDeque<Status>,
    /// One for each second or so, for what is drawn over time.
    past: VecDeque<Status>,
}

impl History {
    /// Takes the next document of the same run.
    pub fn add(&mut self, status: &Status) {
        let back = |kept: &VecDeque<Status>| kept.back().map(|last| last.uptime_seconds);
        if back(&self.recent).is_some_and(|last| last >= status.uptime_seconds) {
            return;
        }
        let kept = Status { events: Vec::new(), ..status.clone() };
        if back(&self.past).is_none_or(|last| last + SPAN <= status.uptime_seconds) {
            self.past.push_back(kept.clone());
            if self.past.len() > SECONDS {
                self.past.pop_front();
            }
        }
        self.recent.push_back(kept);
        while self.recent.get(1).is_some_and(|second| second.uptime_seconds <= status.uptime_seconds - SPAN) {
            self.recent.pop_front();
        }
    }

    /// Growth per second of a total of a stage; `None` before there are two documents with it.
    pub fn rate(&self, stage: &str, total: impl Fn(&StageStatus) -> Option<f64>) -> Option<f64> {
        let (first, last) = (self.recent.front()?, self.recent.back()?);
        growth(first, last, stage, &total)
    }

    /// The same for each second that is remembered, the oldest first.
    pub fn trail(&self, stage: &str, total: impl Fn(&StageStatus) -> Option<f64>) -> Vec<f64> {
        let pairs = self.past.iter().zip(self.past.iter().skip(1));
        pairs.filter_map(|(first, last)| growth(first, last, stage, &total)).collect()
    }
}

/// Growth per second of a total of a stage between two documents.
fn growth(first: &Status, last: &Status, stage: &str, total: &impl Fn(&StageStatus) -> Option<f64>) -> Option<f64> {
    let of = |status: &Status| status.stages.iter().find(|found| found.name == stage).and_then(total);
    let seconds = last.uptime_seconds - first.uptime_seconds;
    (seconds > 0.0).then_some((of(last)? - of(first)?).max(0.0) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_engine::pipeline::CountStatus;

    fn status(seconds: f64, frames: u64) -> Status {
        let counts = vec![CountStatus { name: "frames".into(), total: frames }];
        let stage = StageStatus { name: "unpack".into(), counts, ..StageStatus::default() };
        Status { uptime_seconds: seconds, stages: vec![stage], ..Status::default() }
    }

    #[test]
    fn rates_are_of_the_last_second() {
        let mut history = History::default();
        let rate = |history: &History| history.rate("unpack", |stage| Some(stage.counts[0].total as f64));
        assert_eq!(rate(&history), None);
        history.add(&status(10.0, 100));
        assert_eq!(rate(&history), None);
        history.add(&status(10.5, 150));
        assert_eq!(rate(&history), Some(100.0));
        for (seconds, frames) in [(11.0, 150), (11.5, 150), (12.0, 150)] {
            history.add(&status(seconds, frames));
        }
        assert_eq!(rate(&history), Some(0.0), "what was before the last second is forgotten");
        history.add(&status(12.0, 999));
        assert_eq!(rate(&history), Some(0.0), "time has to pass");
        assert_eq!(history.rate("other", |_| Some(1.0)), None);
        assert!(history.recent.len() <= 3);
        let frames = |stage: &StageStatus| Some(stage.counts[0].total as f64);
        assert_eq!(history.trail("unpack", frames), [50.0, 0.0]);
        (0..200).for_each(|second| history.add(&status(f64::from(second) + 20.0, 0)));
        assert_eq!(history.trail("unpack", frames).len(), SECONDS - 1);
    }
}
