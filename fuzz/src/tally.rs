//! Body for tallies. The reader refuses damage with its byte, gives at most one pair for two bytes, and reads written counts back.

use std::collections::BTreeMap;

use gristmill_format::container::tally::{MAGIC, Tally, read};
use xxhash_rust::xxh3::xxh3_64;

/// Largest sum of counts that the body writes again. It adds the numbers one by one.
const FEW: u64 = 1000;

/// Reads `data` twice: unchanged, and as the head and pairs of one block, to which it adds a valid checksum.
pub fn tally(data: &[u8]) {
    counted(data);
    let mut block = data.to_vec();
    if let Some(pairs) = block.len().checked_sub(20) {
        block[..4].copy_from_slice(&MAGIC);
        block[12..16].copy_from_slice(&(pairs as u32).to_le_bytes());
        block.extend_from_slice(&xxh3_64(&block).to_le_bytes());
        counted(&block);
    }
}

fn counted(data: &[u8]) {
    let (mut counts, mut pairs) = (BTreeMap::new(), 0);
    let mut each = |group: u32, number: u64, count: u64| {
        let sum: &mut u64 = counts.entry((group, number)).or_default();
        *sum = sum.saturating_add(count);
        pairs += 1;
        Ok(())
    };
    let whole = read(&mut &data[..], &mut each);
    assert!(pairs <= data.len() / 2 && !counts.values().any(|count| *count == 0));
    if let Err(e) = whole {
        return assert!(e.place().offset.is_some_and(|at| at <= data.len() as u64), "{e}");
    }
    if counts.values().fold(0, |sum: u64, count| sum.saturating_add(*count)) > FEW {
        return;
    }
    let mut written = Vec::new();
    for group in counts.keys().map(|(group, _)| *group).collect::<std::collections::BTreeSet<u32>>() {
        let mut tally = Tally::default();
        for ((_, number), count) in counts.range((group, 0)..=(group, u64::MAX)) {
            (0..*count).for_each(|_| _ = tally.add(*number));
        }
        tally.write(group, &mut written);
    }
    let mut again = BTreeMap::new();
    read(&mut &written[..], &mut |group, number, count| {
        assert!(again.insert((group, number), count).is_none(), "a number comes once");
        Ok(())
    })
    .expect("what was written is read");
    assert_eq!(again, counts);
}
