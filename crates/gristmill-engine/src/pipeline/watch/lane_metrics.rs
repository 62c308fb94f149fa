//! Rows of the same stages lane by lane -> one row per stage, all lanes together.
//! Sums what can be summed, and asks each step what it says of itself.

use gristmill_stages::stage::RowStep;

use crate::pipeline::chain::Chain;
use crate::pipeline::chain::line::LaneFold;
use crate::pipeline::watch::metrics::{StageMetrics, busy, gauge, row, tally};

/// The rows of a chain's join and of its steps, in flow order.
pub(in crate::pipeline) fn of_steps(chain: &Chain, lanes: &[LaneFold], stages: &mut Vec<StageMetrics>) {
    let of_step = |name: &str, kind, step: &dyn RowStep| {
        let gauges = step.gauges().into_iter().map(|(name, value, capacity)| gauge(name, value, capacity));
        let counts = step.counts().into_iter().map(|(name, total)| tally(name, total));
        row(name, kind, gauges.collect(), counts.collect())
    };
    let join = &chain.plan.join.stage;
    if !join.is_empty() {
        let rows = lanes.iter().map(|lane| of_step(join, "join_positions", &lane.join)).collect();
        stages.extend(together(rows, lanes.len()));
    }
    for (at, plan) in chain.plan.steps.iter().enumerate() {
        let rows = lanes.iter().map(|lane| of_step(&plan.stage, plan.kind, &*lane.steps[at])).collect();
        for mut row in together(rows, lanes.len()) {
            if plan.of.slots(plan.shared.size) > 0 {
                row.counts.insert(0, busy(&chain.totals.filling));
                row.threads = chain.shared.workers as u64;
            }
            stages.push(row);
        }
    }
}

/// Rows of each lane in the same order, one lane after the other -> rows of all lanes together.
pub(in crate::pipeline) fn together(rows: Vec<StageMetrics>, lanes: usize) -> Vec<StageMetrics> {
    let each = rows.len() / lanes.max(1);
    let mut rows = rows.into_iter();
    let mut all: Vec<StageMetrics> = rows.by_ref().take(each).collect();
    for (i, row) in rows.enumerate() {
        add(&mut all[i % each], &row);
    }
    all.iter_mut().for_each(shares);
    all
}

fn add(all: &mut StageMetrics, row: &StageMetrics) {
    // One lane counts for the anchor of all.
    for (own, other) in all.gauges.iter_mut().zip(&row.gauges).filter(|(own, _)| own.name != "chunks_since_anchor") {
        own.value += other.value;
        own.capacity = own.capacity.zip(other.capacity).map(|(a, b)| a + b);
    }
    for (own, other) in all.counts.iter_mut().zip(&row.counts) {
        own.total += other.total;
    }
    if let (Some(own), Some(other)) = (&mut all.queue, &row.queue) {
        own.put += other.put;
        own.got += other.got;
        own.dropped += other.dropped;
        own.waiting += other.waiting;
        own.capacity += other.capacity;
    }
}

/// A share is no sum: it is computed again from the two counts.
fn shares(row: &mut StageMetrics) {
    let count = |name| row.count(name).map_or(0, |count| count.total);
    let decided = count("hanse_cache_hits") + count("hanse_cache_misses");
    let taken = decided.saturating_sub(count("hanse_rejected"));
    if let Some(gauge) = row.gauges.iter_mut().find(|gauge| gauge.name == "hanse_accepted_permille") {
        (gauge.value, gauge.capacity) = (1000 * taken / decided.max(1), Some(1000));
    }
    let gauge = |name| row.gauge(name).map_or(0, |gauge| gauge.value);
    let reuse = 1000 * gauge("draws_total") / gauge("chunks_total").max(1);
    if let Some(gauge) = row.gauges.iter_mut().find(|gauge| gauge.name == "reuse_permille") {
        gauge.value = reuse;
    }
}
