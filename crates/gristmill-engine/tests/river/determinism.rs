//! Same seed, same files: the same bytes of every batch, whatever the threads, queues and windows.

use gristmill_engine::DataLoader;
use gristmill_engine::preset::{Lc0Preset, Weighted};

use super::games::{config, hashes, loader, mixed, next, options, preset};

/// Pool, sampler, splits and tensors on: every output's batches as hashes.
fn all_hashes(options: &Lc0Preset, batches: usize) -> Vec<Vec<u64>> {
    let loader = loader(options);
    let aliases: Vec<String> = loader.outputs().iter().map(|output| output.alias.clone()).collect();
    let found = aliases.iter().map(|alias| hashes(&loader, alias, batches)).collect();
    assert!(loader.stop().is_empty());
    found
}

#[test]
fn threads_never_change_a_batch() {
    let split = vec![("train".to_string(), 3), ("test".to_string(), 1)];
    let base = Lc0Preset { split, ..preset(mixed()) };
    let one = all_hashes(&Lc0Preset { threads: Some(1), ..base.clone() }, 40);
    assert_eq!(one.iter().map(Vec::len).collect::<Vec<_>>(), [40, 40]);
    assert_ne!(one[0], one[1]);
    for threads in [2, 8] {
        assert_eq!(all_hashes(&Lc0Preset { threads: Some(threads), ..base.clone() }, 40), one, "{threads} threads");
    }
    assert_ne!(all_hashes(&Lc0Preset { seed: Some(12), ..base }, 40), one, "another seed, another stream");
}

#[test]
fn queues_readers_and_consumers_never_change_a_batch() {
    let base = preset(mixed());
    let first = all_hashes(&base, 30);
    assert_eq!(all_hashes(&Lc0Preset { queue_capacity: Some(1), ..base.clone() }, 30), first);
    let mut config = config(&Lc0Preset { queue_capacity: Some(9), ..base });
    config.io_threads = Some(5);
    let loader = DataLoader::new(config).unwrap();
    let slow: Vec<u64> = (0..30)
        .map(|i| {
            std::thread::sleep(std::time::Duration::from_millis(i % 4));
            super::games::hash(&next(&loader, "").unwrap())
        })
        .collect();
    assert_eq!(slow, first[0]);
}

#[test]
fn joins_and_counts_are_deterministic_too() {
    let other = tempfile::tempdir().unwrap();
    super::games::generate(options(other.path(), 9));
    let base = Lc0Preset {
        directories: vec![
            Weighted { directory: mixed().to_owned(), weight: 0.7 },
            Weighted { directory: other.path().to_owned(), weight: 0.3 },
        ],
        sampling_rate: None,
        position_count: Some(3),
        ..preset(mixed())
    };
    let one = all_hashes(&Lc0Preset { threads: Some(1), ..base.clone() }, 30);
    assert_eq!(all_hashes(&Lc0Preset { threads: Some(8), ..base.clone() }, 30), one);
    let loader = loader(&base);
    let rows: Vec<u64> =
        (0..60).flat_map(|_| super::games::ids(&next(&loader, "").unwrap())).map(|id| id.0 >> 40).collect();
    let second = rows.iter().filter(|provider| **provider == 1).count() as f64 / rows.len() as f64;
    assert!((0.24..0.36).contains(&second), "weights 0.7 and 0.3, share of the second {second}");
}
