//! Bad files: counted, reported or raised by policy; the rest continues, and nothing spins or hangs.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use gristmill_engine::config::BadChunks;
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error, Next};

use super::games::{generate, hashes, ids, loader, next, of_pool, options, preset};

/// Ten games, of which each of the numbers given is spoilt.
fn spoilt(spoil: impl Fn(&Path), numbers: &[u64]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 10));
    numbers.iter().for_each(|n| spoil(&folder.path().join(format!("training.{n}.gz"))));
    folder
}

fn truncate(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

fn packed(records: &[u8]) -> Vec<u8> {
    gristmill_format::container::gzip::compress(6, records).unwrap()
}

fn endless(folder: &Path) -> Lc0Preset {
    Lc0Preset { reservoir: Some(0), pool: 100, ..preset(folder) }
}

#[test]
fn bad_chunks_are_skipped_and_counted_once_each() {
    let folder = spoilt(truncate, &[2, 7]);
    let loader = loader(&endless(folder.path()));
    let drawn: BTreeSet<u64> = (0..80).flat_map(|_| ids(&next(&loader, "").unwrap())).map(|id| id.0).collect();
    assert_eq!(drawn, BTreeSet::from([0, 2, 3, 4, 5, 7, 8, 9]));
    let bad = loader.metrics().bad_chunks;
    assert_eq!((bad.chunks, bad.by_kind.get("truncated"), bad.quarantined), (2, Some(&2), 0));
    assert!(bad.latest[0].contains("training.") && bad.latest[0].contains("byte"), "{:?}", bad.latest);
    let window = ["sources", "chunk_sources", "chunks_current", "chunks_total"].map(|name| of_pool(&loader, name));
    assert_eq!(window, [10, 10, 8, 10], "bad chunks cannot be drawn");
}

#[test]
fn a_bad_chunk_stays_what_it_was_found_to_be_although_its_file_is_mended() {
    let folder = spoilt(|_| (), &[]);
    let (path, kept) = (folder.path().join("training.3.gz"), folder.path().join(".kept"));
    std::fs::copy(&path, &kept).unwrap();
    truncate(&path);
    let expected = hashes(&loader(&endless(folder.path())), "", 80);
    let loader = loader(&endless(folder.path()));
    let mut taken = Vec::new();
    while loader.metrics().bad_chunks.chunks == 0 {
        taken.extend(hashes(&loader, "", 1));
    }
    std::fs::rename(&kept, &path).unwrap();
    taken.extend(hashes(&loader, "", 80usize.saturating_sub(taken.len())));
    assert_eq!(taken[..80], expected, "what was found once is not found again");
}

type Damage = (&'static str, fn(&Path));

#[test]
fn every_kind_of_damage_has_its_name() {
    let kinds: [Damage; 5] = [
        ("corrupt", |path| {
            let mut bytes = std::fs::read(path).unwrap();
            let middle = bytes.len() - 6;
            bytes[middle] ^= 0x55;
            std::fs::write(path, bytes).unwrap();
        }),
        ("empty", |path| std::fs::write(path, packed(b"")).unwrap()),
        ("wrong_size", |path| {
            let records = [6u32.to_le_bytes(), 1u32.to_le_bytes()].concat();
            let odd = [records, vec![0; 8356]].concat();
            std::fs::write(path, packed(&odd)).unwrap();
        }),
        ("unknown_version", |path| {
            let records = [70u32.to_le_bytes().to_vec(), vec![0; 8352]].concat();
            std::fs::write(path, packed(&records)).unwrap();
        }),
        ("too_large", |path| {
            std::fs::write(path, packed(&vec![0; 40 << 20])).unwrap();
        }),
    ];
    for (kind, spoil) in kinds {
        let folder = spoilt(spoil, &[4]);
        let loader = loader(&endless(folder.path()));
        hashes(&loader, "", 40);
        let bad = loader.metrics().bad_chunks;
        assert_eq!(bad.by_kind.keys().collect::<Vec<_>>(), [kind], "{:?}", bad.latest);
    }
}

#[test]
fn a_file_that_vanishes_while_running_is_counted() {
    let folder = spoilt(|_| (), &[]);
    let loader = loader(&Lc0Preset { queue_capacity: Some(1), ..endless(folder.path()) });
    next(&loader, "");
    std::fs::remove_file(folder.path().join("training.5.gz")).unwrap();
    let start = Instant::now();
    while !loader.metrics().bad_chunks.by_kind.contains_key("not_found") {
        assert!(start.elapsed() < Duration::from_secs(60));
        next(&loader, "");
    }
}

#[test]
fn quarantine_writes_a_report_with_the_place() {
    let folder = spoilt(truncate, &[3]);
    let report = folder.path().join(".bad.jsonl");
    let quarantine =
        Lc0Preset { bad_chunks: BadChunks::Quarantine, quarantine: Some(report.clone()), ..endless(folder.path()) };
    let running = loader(&quarantine);
    hashes(&running, "", 60);
    assert_eq!(running.metrics().bad_chunks.quarantined, 1);
    let text = std::fs::read_to_string(&report).unwrap();
    assert_eq!(text.lines().count(), 1, "once, however often it is drawn: {text}");
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(line["source"].as_str().unwrap().ends_with("training.3.gz"));
    assert_eq!(line["kind"], "truncated");
    assert!(line["offset"].is_number());
    let unnamed = Lc0Preset { quarantine: None, ..quarantine };
    assert!(DataLoader::new(super::games::config(&unnamed)).unwrap().start().is_err());
}

#[test]
fn raise_gives_the_error_at_the_same_place_in_every_run() {
    let folder = spoilt(truncate, &[3]);
    let run = |threads| {
        let raise = Lc0Preset { bad_chunks: BadChunks::Raise, threads: Some(threads), ..endless(folder.path()) };
        let loader = loader(&raise);
        let mut before = 0;
        loop {
            match loader.next("", None) {
                Ok(Next::Batch(_)) => before += 1,
                Err(Error::Format(e)) => {
                    assert!(e.place().source.as_ref().unwrap().ends_with("training.3.gz"), "{e}");
                    assert!(matches!(loader.next("", None), Ok(Next::Batch(_))), "and the stream continues");
                    return before;
                }
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(run(1), run(8));
}

#[test]
fn all_chunks_bad_is_an_error_and_nothing_spins() {
    let folder = spoilt(truncate, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let loader = loader(&endless(folder.path()));
    let error = loader.next("", None).unwrap_err().to_string();
    assert!(error.contains("pool") && error.contains("all 10 chunks are bad"), "{error}");
    assert!(loader.stop().is_empty());
}

#[test]
fn no_games_at_all_is_an_error_with_the_stage() {
    let folder = tempfile::tempdir().unwrap();
    let error = loader(&preset(folder.path())).next("", None).unwrap_err();
    assert!(matches!(&error, Error::Stage { stage, .. } if stage == "pool"), "{error}");
    let missing = folder.path().join("not here");
    let error = loader(&preset(&missing)).next("", None).unwrap_err();
    assert!(matches!(&error, Error::Path { path, .. } if *path == missing), "{error}");
}

#[test]
fn a_damaged_tar_gives_its_good_games() {
    let folder = tempfile::tempdir().unwrap();
    let tar = super::games::options(folder.path(), 10);
    generate(gristmill_generate::ChessOptions { games_per_tar: Some(10), ..tar });
    let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() * 6 / 10]).unwrap();
    let pass = Lc0Preset { epochs: Some(1), sampling_rate: None, reservoir: None, ..preset(folder.path()) };
    let loader = loader(&pass);
    let games: BTreeSet<u64> = super::games::all_ids(&loader, "").iter().map(|id| id.1).collect();
    assert!(games.len() >= 4 && games.len() < 10, "{games:?}");
}

#[test]
fn a_slow_consumer_does_not_make_it_grow() {
    let loader = loader(&preset(super::games::mixed()));
    next(&loader, "");
    let settled = |loader: &DataLoader| {
        std::thread::sleep(Duration::from_millis(150));
        let metrics = loader.metrics();
        let rows = metrics.of_kind("tensor_generator").next().unwrap().count("rows").unwrap().total;
        let decoded = metrics.of_kind("chunk_unpacker").next().unwrap().count("chunks").unwrap().total;
        (rows, decoded)
    };
    let start = Instant::now();
    let mut last = settled(&loader);
    loop {
        let now = settled(&loader);
        if now == last {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "it never stops producing");
        last = now;
    }
    assert!(last.0 <= 16 * 6, "at most the queue, the open batch and the one taken: {last:?}");
}

#[test]
fn a_report_that_cannot_be_written_is_told_and_the_stream_goes_on() {
    let folder = spoilt(truncate, &[3]);
    let full =
        Lc0Preset { bad_chunks: BadChunks::Quarantine, quarantine: Some("/dev/full".into()), ..endless(folder.path()) };
    let loader = loader(&full);
    assert_eq!(hashes(&loader, "", 60).len(), 60);
    let fault = loader.metrics().bad_chunks.report_fault.expect("the disk is full");
    assert!(fault.contains("space"), "{fault}");
}
