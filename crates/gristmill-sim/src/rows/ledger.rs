//! The ledgers of the ranks of a run (docs/format/ledger.md) against the batches that came: each once in the training that survived,
//! by every rank of one start, with the digest of its rows.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::scenario::Scenario;
use crate::oracle::rows::Rows;

/// What a start delivered: its ranks, the batch that it began with, and how often each rank gave each batch.
#[derive(Default)]
struct Start {
    ranks: u64,
    from: u64,
    gave: BTreeMap<(u64, u64), u64>,
}

/// Checks that the batches below `stands` are in the ledgers as the page says.
pub(super) fn check(folder: &Path, s: &Scenario, rows: &Rows, stands: u64) -> Result<(), String> {
    let mut starts: BTreeMap<u64, Start> = BTreeMap::new();
    let entries = std::fs::read_dir(folder).map_err(|e| e.to_string())?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let bytes = std::fs::read(&path).map_err(|e| e.to_string())?;
        let (mut order, mut rank, mut ranks) = (0, 0, 1);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(text) = line.strip_suffix(b"\n") else { break };
            let json = text.get(17..).ok_or("a line of the ledger is short")?;
            if text[..16] != *format!("{:016x}", xxh3_64(json)).as_bytes() {
                return Err("a line of the ledger has another checksum than the page says".to_owned());
            }
            let record: Value = serde_json::from_slice(json).map_err(|e| format!("the ledger: {e}"))?;
            let number = |of: &Value, field: &str| of[field].as_u64().unwrap_or(u64::MAX);
            if let Some(begin) = record.get("begin") {
                (order, rank, ranks) = (number(begin, "order"), number(begin, "rank"), number(begin, "world_size"));
                let start = starts.entry(order).or_default();
                (start.ranks, start.from) = (ranks, begin["from"][""].as_u64().unwrap_or(0));
            }
            if let Some(delivered) = record.get("delivered") {
                let (first, end) = (number(delivered, "first"), number(delivered, "end"));
                if let Some(gap) = (first..end).find(|batch| s.skips(*batch)) {
                    return Err(format!("a record of batches {first} to {end} has batch {gap}, which is left out"));
                }
                digested(&delivered["digests"], (first, end), rows, (rank, ranks))?;
                let start = starts.entry(order).or_default();
                (first..end).for_each(|batch| *start.gave.entry((batch, rank)).or_insert(0) += 1);
            }
        }
    }
    for batch in (s.seek..stands.min(rows.batches())).filter(|batch| !s.skips(*batch)) {
        // What a later start began with or before, it took back.
        let survived = starts.iter().rev().find(|(_, start)| start.from <= batch).map(|(_, start)| start);
        let start = survived.ok_or_else(|| format!("no start gave batch {batch}"))?;
        if let Some(rank) = (0..start.ranks).find(|rank| start.gave.get(&(batch, *rank)) != Some(&1)) {
            let times = start.gave.get(&(batch, rank)).unwrap_or(&0);
            return Err(format!("batch {batch} is in the ledger of rank {rank} of {} {times} times", start.ranks));
        }
    }
    Ok(())
}

/// Whether a record has the digests of its batches, of each epoch.
fn digested(own: &Value, (first, end): (u64, u64), rows: &Rows, rank: (u64, u64)) -> Result<(), String> {
    let mut sums: BTreeMap<u64, (u64, u128, u128)> = BTreeMap::new();
    for batch in first..end {
        for (row, epoch) in rows.of(batch, rank.0, rank.1).0 {
            let id = xxh3_128(&[row.to_le_bytes(), epoch.to_le_bytes()].concat());
            let (frames, sum, xor) = sums.entry(epoch).or_default();
            (*frames, *sum, *xor) = (*frames + 1, sum.wrapping_add(id), *xor ^ id);
        }
    }
    let expected: Vec<Value> = sums
        .iter()
        .map(|(epoch, (frames, sum, xor))| {
            serde_json::json!({"epoch": epoch, "frames": frames, "sum": format!("{sum:032x}"), "xor": format!("{xor:032x}")})
        })
        .collect();
    if own.as_array() == Some(&expected) {
        return Ok(());
    }
    Err(format!("the digests of batches {first} to {end} are {own}, expected {}", Value::from(expected)))
}
