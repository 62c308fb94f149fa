//! Body of the `ledger` fuzz target: arbitrary bytes as the ledger of a run; panics when a promise breaks.
//! Included, as source, by the target and by the replay of its corpus in the engine's tests.

use gristmill_engine::pipeline::ledger::{Account, Entry, read};
use xxhash_rust::xxh3::xxh3_64;

/// The bytes as they are, and as lines to which the body adds valid checksums.
pub fn ledger(data: &[u8]) {
    kept(data);
    let mut sealed = Vec::new();
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = if text.get(16) == Some(&b' ') { &text[17..] } else { text };
        sealed.extend_from_slice(format!("{:016x} ", xxh3_64(text)).as_bytes());
        sealed.extend_from_slice(text);
        sealed.push(b'\n');
    }
    kept(&sealed);
}

/// What reads as a ledger writes and reads back the same, and gives no more than it holds; whatever survived or was taken
/// back was delivered.
fn kept(data: &[u8]) {
    let Ok(entries) = read(&mut &data[..]) else { return };
    assert!(entries.len() <= data.len() / 18);
    for entry in &entries {
        let text = serde_json::to_string(entry).expect("what was read can be written");
        assert_eq!(serde_json::from_str::<Entry>(&text).expect("and read again"), *entry);
    }
    let mut account = Account::default();
    account.take("fuzzed".into(), entries);
    for output in account.outputs() {
        let (kept, discarded) = account.kept(&output);
        for stretch in kept.iter().chain(&discarded) {
            let delivered = &account.processes[stretch.process].delivered;
            assert!(stretch.first < stretch.end);
            assert!(delivered.iter().any(|record| record.first <= stretch.first && stretch.first < record.end));
        }
    }
}
