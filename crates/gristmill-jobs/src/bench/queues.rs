//! A running loader -> how full its queues are over time: looks at them now and then, from the first batch to the last.
//! Looks only; what it sees changes nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pipeline::Engine;
use gristmill_engine::runtime::scheduler::Scheduler;
use serde::Serialize;

/// Pause between two looks.
const EVERY: Duration = Duration::from_millis(3);

/// Most bars of a histogram.
const BARS: u64 = 16;

/// How full the queue after a stage was.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Depth {
    /// The stage.
    pub stage: String,
    /// Its kind.
    pub kind: &'static str,
    /// Items that may wait there.
    pub capacity: u64,
    /// How often the number of items was counted.
    pub looks: u64,
    /// Items that waited, on average.
    pub mean: f64,
    /// Share of the time in which none waited.
    pub empty: f64,
    /// Share of the time in which no more could wait.
    pub full: f64,
    /// Share of the time by how many waited: from 0 to `capacity`, or as many equal ranges as there are numbers here.
    pub depths: Vec<f64>,
}

#[derive(Debug, Default)]
struct Board {
    on: AtomicBool,
    over: AtomicBool,
    seen: Mutex<Vec<(Depth, Vec<u64>)>>,
}

/// The thread that looks at the queues of a loader.
pub(super) struct Watch {
    board: Arc<Board>,
    scheduler: Scheduler,
}

impl Watch {
    /// Starts the thread; it counts from [`Watch::on`] on.
    ///
    /// Errors: the system has no more threads.
    pub(super) fn begin(engine: &Arc<dyn Engine>) -> Result<Self> {
        let (board, scheduler, engine) = (Arc::new(Board::default()), Scheduler::new(), Arc::clone(engine));
        let seen = Arc::clone(&board);
        let round = move || {
            if seen.over.load(Ordering::Relaxed) {
                return None;
            }
            if seen.on.load(Ordering::Relaxed) {
                seen.look(&*engine);
            }
            Some(EVERY)
        };
        let failed = |e| Error::Stage { stage: "bench".into(), message: format!("no thread to look with: {e}") };
        scheduler.rounds("bench", Box::new(round)).map_err(failed)?;
        Ok(Watch { board, scheduler })
    }

    /// Starts to count.
    pub(super) fn on(&self) {
        self.board.on.store(true, Ordering::Relaxed);
    }

    /// Ends the thread, and gives what it counted.
    pub(super) fn end(self) -> Vec<Depth> {
        self.board.over.store(true, Ordering::Relaxed);
        self.scheduler.stop();
        let seen = std::mem::take(&mut *self.board.seen.lock().unwrap_or_else(PoisonError::into_inner));
        seen.into_iter().map(|(depth, counts)| summed(depth, &counts)).collect()
    }
}

impl Board {
    fn look(&self, engine: &dyn Engine) {
        let stages = engine.metrics().stages;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (stage, queue) in stages.iter().filter_map(|stage| Some((stage, stage.queue.as_ref()?))) {
            if queue.capacity == 0 {
                continue;
            }
            let at = seen.iter().position(|(depth, _)| depth.stage == stage.name).unwrap_or_else(|| {
                let depth = Depth {
                    stage: stage.name.clone(),
                    kind: stage.kind,
                    capacity: queue.capacity,
                    looks: 0,
                    mean: 0.0,
                    empty: 0.0,
                    full: 0.0,
                    depths: Vec::new(),
                };
                seen.push((depth, vec![0; usize::try_from(queue.capacity).unwrap_or(0) + 1]));
                seen.len() - 1
            });
            let counts = &mut seen[at].1;
            let last = counts.len() - 1;
            counts[usize::try_from(queue.waiting).unwrap_or(last).min(last)] += 1;
        }
    }
}

/// Counts by the number of items that waited -> shares.
fn summed(mut depth: Depth, counts: &[u64]) -> Depth {
    depth.looks = counts.iter().sum();
    let all = depth.looks.max(1) as f64;
    depth.mean = counts.iter().zip(0u64..).map(|(count, waiting)| (count * waiting) as f64).sum::<f64>() / all;
    depth.empty = counts.first().copied().unwrap_or(0) as f64 / all;
    depth.full = counts.last().copied().unwrap_or(0) as f64 / all;
    let each = (counts.len() as u64).div_ceil(BARS).max(1);
    let bars = counts.chunks(usize::try_from(each).unwrap_or(1));
    depth.depths = bars.map(|bar| bar.iter().sum::<u64>() as f64 / all).collect();
    depth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_shares() {
        let depth = || Depth {
            stage: "tensors".into(),
            kind: "tensor_generator",
            capacity: 4,
            looks: 0,
            mean: 0.0,
            empty: 0.0,
            full: 0.0,
            depths: Vec::new(),
        };
        let found = summed(depth(), &[6, 0, 2, 0, 2]);
        assert_eq!((found.looks, found.mean, found.empty, found.full), (10, 1.2, 0.6, 0.2));
        assert_eq!(found.depths, [0.6, 0.0, 0.2, 0.0, 0.2]);
        let many = summed(depth(), &[1; 100]);
        assert!(many.depths.len() <= 16 && (many.depths.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{many:?}");
        let never = summed(depth(), &[0; 5]);
        assert_eq!((never.looks, never.empty, never.full), (0, 0.0, 0.0));
    }
}
