//! Rows of the same stages lane by lane -> one row per stage, all lanes together.
//! Sums what can be summed; looks at no chain.

use super::metrics::StageMetrics;

/// Rows of each lane in the same order, one lane after the other -> rows of all lanes together.
pub(super) fn together(rows: Vec<StageMetrics>, lanes: usize) -> Vec<StageMetrics> {
    let each = rows.len() / lanes.max(1);
    let mut rows = rows.into_iter();
    let mut all: Vec<StageMetrics> = rows.by_ref().take(each).collect();
    for (i, row) in rows.enumerate() {
        add(&mut all[i % each], &row);
    }
    all.iter_mut().for_each(accepted);
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

/// A share is not a sum: it is found again from the counts.
fn accepted(row: &mut StageMetrics) {
    let count = |name| row.count(name).map_or(0, |count| count.total);
    let decided = count("hanse_cache_hits") + count("hanse_cache_misses");
    let taken = decided.saturating_sub(count("hanse_rejected"));
    if let Some(gauge) = row.gauges.iter_mut().find(|gauge| gauge.name == "hanse_accepted_permille") {
        (gauge.value, gauge.capacity) = (1000 * taken / decided.max(1), Some(1000));
    }
}
