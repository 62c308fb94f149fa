//! Vectors on the pages about ledger, journal and state against the code that writes and reads what they are of.

use gristmill_engine::pipeline::ledger::{Digests, Entry, read};
use gristmill_engine::runtime::intervals::Intervals;
use gristmill_engine::runtime::journal::Journal;
use gristmill_engine::runtime::{document, packed};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const LEDGER: &str = include_str!("../../../docs/format/ledger.md");
const JOURNAL: &str = include_str!("../../../docs/format/journal.md");
const STATE: &str = include_str!("../../../docs/format/state.md");
const SPLIT: &str = include_str!("../../../docs/format/split.md");

/// The first block of a page.
fn block(page: &'static str) -> &'static str {
    page.split("```\n").nth(1).unwrap()
}

#[test]
fn the_ledger_of_the_page_is_one_and_its_digest_that_of_the_rows_it_names() {
    for line in block(LEDGER).lines() {
        let (sum, json) = line.split_once(' ').unwrap();
        assert_eq!(sum, format!("{:016x}", xxh3_64(json.as_bytes())), "{json}");
    }
    let entries = read(&mut block(LEDGER).as_bytes()).unwrap();
    let [Entry::Begin(begin), Entry::Delivered(delivered)] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!((begin.version, delivered.first, delivered.end), (1, 0, 2));
    let mut digests = Digests::default();
    digests.rows(0, [3, 1, 4, 0, 2].into_iter());
    assert!(digests.iter().eq(&delivered.digests), "expected {}", serde_json::json!(digests.epoch(0)));
}

#[test]
fn the_journal_of_the_page_is_one() {
    let mut expected = String::new();
    for line in block(JOURNAL).lines() {
        let (_, json) = line.split_once(' ').unwrap();
        expected.push_str(&format!("{:016x} {json}\n", xxh3_64(format!("{expected}{json}").as_bytes())));
    }
    assert_eq!(block(JOURNAL), expected);
    let path = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(path.path(), expected).unwrap();
    assert_eq!(Journal::read::<serde_json::Value>(path.path()).unwrap().len(), 4);
}

#[test]
fn the_checksum_of_a_state_is_that_of_the_page() {
    let line = STATE.lines().find(|line| line.starts_with("`{\"config\"")).unwrap();
    let [document, checksum] = [1, 3].map(|part| line.split('`').nth(part).unwrap());
    assert_eq!(document::checksum(&serde_json::from_str(document).unwrap()), checksum);
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Packed(#[serde(with = "packed")] Vec<u64>);

#[test]
fn packed_numbers_and_hashes_of_rows_are_those_of_the_page() {
    let numbers = Packed(vec![0, 1, 127, 128, 300, 1 << 40]);
    let text = serde_json::to_string(&numbers).unwrap();
    assert!(STATE.contains(&format!("0, 1, 127, 128, 300 and 2^40 are `{}`", text.trim_matches('"'))), "{text}");
    assert_eq!(serde_json::from_str::<Packed>(&text).unwrap(), numbers);
    let mut rows = Intervals::default();
    rows.push(0, 10);
    rows.push(20, 30);
    let mut hash = Xxh3::new();
    hash.update(&1u64.to_le_bytes());
    rows.hash_into(&mut hash);
    let data = format!("{:016x}", hash.digest());
    assert!(STATE.contains(&format!("Rows 0 to 9 and 20 to 29 of identity 1 are `{data}`")), "{data}");
    let [loose, fifth] = [0, 5].map(|index| gristmill_engine::stage::split::identity_hash("training.1.gz", index));
    assert!(SPLIT.contains(&format!("0)` is {loose}, ")) && SPLIT.contains(&format!("5)` is {fifth}.")));
    let [loose, fifth] = [0, 5].map(|index| gristmill_engine::stage::split::fold_hash("training.1.gz", index));
    let said = format!(
        "is {loose}, so that it is in fold {} of 5; with index 5 it is\n{fifth}, fold {} of 5",
        loose % 5,
        fifth % 5
    );
    assert!(SPLIT.contains(&said), "{said}");
}
