//! The ledger of a run (docs/format/ledger.md) against the batches that came: each once in the training that survived, with the
//! digest of its frames. Checks every line's checksum by the page.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::oracle::{File, Row, named};
use crate::scenario::Scenario;

/// Batches of a record, and their digest.
type Delivered = (u64, u64, Value);

/// Checks that exactly `batches` batches are in the ledger, whatever crashed.
pub(super) fn check(
    path: &Path,
    s: &Scenario,
    (rows, files): (&[Row], &[Vec<File>]),
    batches: u64,
) -> Result<(), String> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && batches == 0 => return Ok(()),
        Err(e) => return Err(format!("the ledger: {e}")),
    };
    let mut kept: Vec<Delivered> = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else { break };
        let json = text.get(17..).ok_or("a line of the ledger is short")?;
        if text[..16] != *format!("{:016x}", xxh3_64(json)).as_bytes() {
            return Err("a line of the ledger has another checksum than the page says".to_owned());
        }
        let record: Value = serde_json::from_slice(json).map_err(|e| format!("the ledger: {e}"))?;
        if let Some(begin) = record.get("begin") {
            // What was delivered from there on is taken back.
            let from = begin["from"][""].as_u64().unwrap_or(0);
            kept.retain(|(first, _, _)| *first < from);
            if kept.iter().any(|(_, end, _)| *end > from) {
                return Err(format!("a record reaches beyond batch {from}, from which a state resumes"));
            }
        }
        if let Some(delivered) = record.get("delivered") {
            let number = |field: &str| delivered[field].as_u64().unwrap_or(u64::MAX);
            kept.push((number("first"), number("end"), delivered["digests"].clone()));
        }
    }
    let mut times = BTreeMap::new();
    for (first, end, digests) in &kept {
        (*first..*end).for_each(|batch| *times.entry(batch).or_insert(0) += 1);
        let of = |batch: u64| rows.iter().skip(batch as usize * s.share()).take(s.share());
        let (mut frames, mut sum, mut xor) = (0u64, 0u128, 0u128);
        for (directory, file, chunk, frame) in (*first..*end).flat_map(of) {
            let (loader, file) = (named("load", *directory), &files[*directory][*file]);
            let name = xxh3_64(&[loader.as_bytes(), &[0], file.name.as_bytes()].concat());
            let id = [&name.to_le_bytes()[..], &(*chunk as u32).to_le_bytes(), &(*frame as u32).to_le_bytes()].concat();
            (frames, sum, xor) = (frames + 1, sum.wrapping_add(xxh3_128(&id)), xor ^ xxh3_128(&id));
        }
        let own = &digests[0];
        let same =
            own["frames"] == frames && own["sum"] == format!("{sum:032x}") && own["xor"] == format!("{xor:032x}");
        if frames > 0 && !same {
            return Err(format!(
                "the digest of batches {first} to {end} is {own}, expected {frames} {sum:032x} {xor:032x}"
            ));
        }
    }
    match (0..batches).find(|batch| times.get(batch) != Some(&1)) {
        Some(batch) => Err(format!("batch {batch} is in the ledger {} times", times.get(&batch).unwrap_or(&0))),
        None => Ok(()),
    }
}
