//! A document and the rates of the last seconds -> how the loader does, in a line: positions a second, memory, who waits for
//! whom, and what limits, as the loader measured it. Draws nothing.

use gristmill_engine::pipeline::{RunState, StageStatus, Status};

use super::history::History;
use super::numbers;

/// Who waits for whom.
#[derive(Debug, Clone, PartialEq)]
pub enum Waits {
    /// Batches are wanted and not there for this share of time: what they lacked.
    Trainer(f64, String),
    /// Batches are there before they are wanted.
    Loader,
    /// Nobody wanted a batch.
    Nobody,
    /// Nothing runs.
    Over,
}

/// The line.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    /// Rows a second, of the outputs that are shown.
    pub positions: Option<f64>,
    /// The same of the last seconds, the oldest first.
    pub trail: Vec<f64>,
    /// Bytes that the process has resident.
    pub memory: Option<u64>,
    /// Who waits for whom.
    pub waits: Waits,
}

/// What is said of the outputs that are shown; all without an alias.
pub fn headline(status: &Status, history: &History, alias: Option<&str>) -> Headline {
    let shown = |own: &str| alias.is_none_or(|alias| alias == own);
    let outputs: Vec<_> = status.outputs.iter().filter(|output| shown(&output.alias)).collect();
    let named = |name: &str| status.stages.iter().find(|stage| stage.name == name);
    let stages: Vec<&StageStatus> = outputs.iter().filter_map(|output| named(&output.stage)).collect();
    let rates: Vec<f64> = stages.iter().filter_map(|stage| history.rate(&stage.name, positions)).collect();
    let trails: Vec<Vec<f64>> = stages.iter().map(|stage| history.trail(&stage.name, positions)).collect();
    let longest = trails.iter().map(Vec::len).max().unwrap_or(0);
    let at = |i: usize| trails.iter().filter_map(|trail| trail.get(i)).sum();
    let running = status.state == RunState::Running && outputs.iter().any(|output| !output.ended);
    let worst = outputs.iter().map(|output| &output.waits).filter(|waits| !waits.limited_by.is_empty());
    let worst = worst.max_by(|a, b| a.stall.total_cmp(&b.stall));
    let waits = match worst {
        _ if !running => Waits::Over,
        Some(waits) if waits.limited_by == "trainer" => Waits::Loader,
        Some(waits) => Waits::Trainer(waits.stall, waits.limited_by.clone()),
        None => Waits::Nobody,
    };
    Headline {
        positions: (!rates.is_empty()).then(|| rates.iter().sum()),
        trail: (0..longest).map(at).collect(),
        memory: status.memory_bytes,
        waits,
    }
}

/// Whether a stage is an output whose consumer waits for it: the one place where no flow is a fault.
pub fn is_awaited(status: &Status, stage: &StageStatus) -> bool {
    let output = status.outputs.iter().any(|output| output.stage == stage.name && !output.ended);
    let empty = stage.queues.first().is_some_and(|queue| queue.capacity > 0 && queue.waiting == 0);
    status.state == RunState::Running && output && empty
}

/// Positions that a stage gave: its rows, where its items are batches of them.
pub fn positions(stage: &StageStatus) -> Option<f64> {
    let of = |name: &str| stage.counts.iter().find(|count| count.name == name).map(|count| count.total as f64);
    of("rows").or_else(|| of(&stage.gives))
}

impl Headline {
    /// It in words, without the trail; `bytes` says numbers of bytes.
    pub fn text(&self, bytes: impl Fn(u64) -> String) -> String {
        let rate = format!("{} positions/s", numbers::rate(self.positions));
        let memory = self.memory.map(|memory| format!("  {}", bytes(memory))).unwrap_or_default();
        let waits = match &self.waits {
            Waits::Trainer(stall, cause) => format!("trainer waits {:.0} %, limit: {cause}", 100.0 * stall),
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
    use gristmill_engine::pipeline::{CountStatus, OutputStatus, QueueStatus, Waits as Measured};

    /// A loader whose last stage gave 50 batches of 10 rows each second, and what limited it.
    fn running(seconds: f64, stall: f64, limited_by: &str) -> Status {
        let n = (seconds * 50.0) as u64;
        let count = |name: &str, total| CountStatus { name: name.into(), total };
        let unpack = StageStatus { name: "unpack".into(), ..StageStatus::default() };
        let waits = Measured { stall, limited_by: limited_by.into(), ..Measured::default() };
        let tensors = StageStatus {
            name: "tensors".into(),
            gives: "batches".into(),
            counts: vec![count("batches", n), count("rows", 10 * n)],
            queues: vec![QueueStatus { waiting: 0, capacity: 4, ..QueueStatus::default() }],
            ..StageStatus::default()
        };
        Status {
            uptime_seconds: seconds,
            memory_bytes: Some(3 << 20),
            outputs: vec![OutputStatus { stage: "tensors".into(), waits, ..OutputStatus::default() }],
            stages: vec![unpack, tensors],
            ..Status::default()
        }
    }

    fn mebibytes(bytes: u64) -> String {
        format!("{} MiB", bytes >> 20)
    }

    fn of(stall: f64, limited_by: &str) -> Headline {
        let mut history = History::default();
        (1..=4).for_each(|second| history.add(&running(f64::from(second), stall, limited_by)));
        headline(&running(4.0, stall, limited_by), &history, None)
    }

    #[test]
    fn who_waits_is_said_and_what_limits() {
        let starving = of(0.834, "decode");
        assert_eq!(starving.text(mebibytes), "500.0 positions/s  3 MiB  trainer waits 83 %, limit: decode");
        assert_eq!(starving.trail, [500.0; 3]);
        assert_eq!(of(0.01, "trainer").text(mebibytes), "500.0 positions/s  3 MiB  loader waits, limit: the trainer");
        assert_eq!(of(0.0, "").waits, Waits::Nobody);
        let ended = Status { state: RunState::Ended, ..running(1.0, 0.5, "core") };
        assert_eq!(headline(&ended, &History::default(), None).waits, Waits::Over);
        assert!(!is_awaited(&ended, &ended.stages[1]));
        let running = running(1.0, 0.5, "core");
        assert!(is_awaited(&running, &running.stages[1]) && !is_awaited(&running, &running.stages[0]));
    }
}
