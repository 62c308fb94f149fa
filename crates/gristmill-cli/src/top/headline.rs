//! A document and the rates of the last seconds -> how the loader does, in a line: positions a second, memory, who waits for
//! whom, and which stage limits. Draws nothing.

use gristmill_engine::pipeline::{RunState, StageStatus, Status};

use super::history::History;
use super::numbers;

/// A stage that is busy for less than this share of its threads limits nothing.
const BUSY: f64 = 0.25;

/// Who waits for whom.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Waits {
    /// A batch is wanted and not there: this stage limits, with its busy threads and all that may be; or nobody is busy.
    Trainer(Option<(String, f64, f64)>),
    /// All queues of batches are full.
    Loader,
    /// There are batches, and room for more.
    Nobody,
    /// Nothing runs.
    Over,
}

/// The line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Headline {
    /// Rows a second, of the outputs that are shown.
    pub(super) positions: Option<f64>,
    /// The same of the last seconds, the oldest first.
    pub(super) trail: Vec<f64>,
    /// Bytes that the process has resident.
    pub(super) memory: Option<u64>,
    pub(super) waits: Waits,
}

/// What is said of the outputs that are shown; all without an alias.
pub(super) fn headline(status: &Status, history: &History, alias: Option<&str>) -> Headline {
    let shown = |own: &str| alias.is_none_or(|alias| alias == own);
    let outputs: Vec<_> = status.outputs.iter().filter(|output| shown(&output.alias)).collect();
    let named = |name: &str| status.stages.iter().find(|stage| stage.name == name);
    let stages: Vec<&StageStatus> = outputs.iter().filter_map(|output| named(&output.stage)).collect();
    let rates: Vec<f64> = stages.iter().filter_map(|stage| history.rate(&stage.name, positions)).collect();
    let trails: Vec<Vec<f64>> = stages.iter().map(|stage| history.trail(&stage.name, positions)).collect();
    let longest = trails.iter().map(Vec::len).max().unwrap_or(0);
    let at = |i: usize| trails.iter().filter_map(|trail| trail.get(i)).sum();
    let running = status.state == RunState::Running && outputs.iter().any(|output| !output.ended);
    let queues = || stages.iter().filter_map(|stage| stage.queues.first()).filter(|queue| queue.capacity > 0);
    let waits = match () {
        () if !running => Waits::Over,
        () if queues().any(|queue| queue.waiting == 0) => Waits::Trainer(busiest(status, history, alias)),
        () if queues().next().is_some() && queues().all(|queue| queue.waiting >= queue.capacity) => Waits::Loader,
        () => Waits::Nobody,
    };
    Headline {
        positions: (!rates.is_empty()).then(|| rates.iter().sum()),
        trail: (0..longest).map(at).collect(),
        memory: status.memory_bytes,
        waits,
    }
}

/// Whether a stage is an output whose consumer waits for it: the one place where no flow is a fault.
pub(super) fn is_awaited(status: &Status, stage: &StageStatus) -> bool {
    let output = status.outputs.iter().any(|output| output.stage == stage.name && !output.ended);
    let empty = stage.queues.first().is_some_and(|queue| queue.capacity > 0 && queue.waiting == 0);
    status.state == RunState::Running && output && empty
}

/// Positions that a stage gave: its rows, where its items are batches of them.
pub(super) fn positions(stage: &StageStatus) -> Option<f64> {
    let of = |name: &str| stage.counts.iter().find(|count| count.name == name).map(|count| count.total as f64);
    of("rows").or_else(|| of(&stage.gives))
}

/// The stage whose threads are busiest, if any is busy.
fn busiest(status: &Status, history: &History, alias: Option<&str>) -> Option<(String, f64, f64)> {
    let shown = |stage: &&StageStatus| alias.is_none_or(|alias| stage.streams.iter().any(|own| own == alias));
    let loads = status.stages.iter().filter(shown).filter_map(|stage| {
        let of = |total: bool| {
            history.rate(&stage.name, |stage| {
                let main = stage.loads.iter().find(|load| load.name.is_empty())?;
                Some(if total { main.total_seconds } else { main.load_seconds })
            })
        };
        of(false).zip(of(true)).map(|(busy, all)| (stage.name.clone(), busy, all))
    });
    loads.filter(|(_, busy, all)| *busy >= BUSY * all).max_by(|a, b| a.1.total_cmp(&b.1))
}

impl Headline {
    /// It in words, without the trail.
    pub(super) fn text(&self) -> String {
        let rate = format!("{} positions/s", numbers::rate(self.positions));
        let memory = self.memory.map(|bytes| format!("  {}", crate::report::bytes(bytes))).unwrap_or_default();
        let waits = match &self.waits {
            Waits::Trainer(Some((stage, busy, all))) => format!("trainer waits, limit: {stage} {busy:.2}/{all:.1}"),
            Waits::Trainer(None) => "trainer waits, limit: storage, or few games".to_owned(),
            Waits::Loader => "loader waits, limit: the trainer".to_owned(),
            Waits::Nobody => "nobody waits".to_owned(),
            Waits::Over => "nothing runs".to_owned(),
        };
        format!("{rate}{memory}  {waits}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_engine::pipeline::{CountStatus, LoadStatus, OutputStatus, QueueStatus};

    /// A loader whose last stage gave 50 batches of 10 rows each second, with `waiting` of at most 4 in its queue.
    fn running(seconds: f64, waiting: u64, busy: f64) -> Status {
        let n = (seconds * 50.0) as u64;
        let count = |name: &str, total| CountStatus { name: name.into(), total };
        let load = LoadStatus { name: String::new(), load_seconds: seconds * busy, total_seconds: seconds * 2.0 };
        let unpack = StageStatus { name: "unpack".into(), loads: vec![load], ..StageStatus::default() };
        let tensors = StageStatus {
            name: "tensors".into(),
            gives: "batches".into(),
            counts: vec![count("batches", n), count("rows", 10 * n)],
            queues: vec![QueueStatus { waiting, capacity: 4, ..QueueStatus::default() }],
            ..StageStatus::default()
        };
        Status {
            uptime_seconds: seconds,
            memory_bytes: Some(3 << 20),
            outputs: vec![OutputStatus { stage: "tensors".into(), ..OutputStatus::default() }],
            stages: vec![unpack, tensors],
            ..Status::default()
        }
    }

    fn of(waiting: u64, busy: f64) -> Headline {
        let mut history = History::default();
        (1..=4).for_each(|second| history.add(&running(f64::from(second), waiting, busy)));
        headline(&running(4.0, waiting, busy), &history, None)
    }

    #[test]
    fn who_waits_is_said_and_what_limits() {
        let starving = of(0, 1.5);
        assert_eq!(starving.text(), "500.0 positions/s  3.00 MiB  trainer waits, limit: unpack 1.50/2.0");
        assert_eq!(starving.trail, [500.0; 3]);
        assert_eq!(of(0, 0.1).waits, Waits::Trainer(None));
        assert_eq!(of(4, 0.1).waits, Waits::Loader);
        assert_eq!(of(2, 2.0).waits, Waits::Nobody);
        let ended = Status { state: RunState::Ended, ..running(1.0, 0, 1.0) };
        assert_eq!(headline(&ended, &History::default(), None).waits, Waits::Over);
        assert!(!is_awaited(&ended, &ended.stages[1]));
        let running = running(1.0, 0, 1.0);
        assert!(is_awaited(&running, &running.stages[1]) && !is_awaited(&running, &running.stages[0]));
    }
}
