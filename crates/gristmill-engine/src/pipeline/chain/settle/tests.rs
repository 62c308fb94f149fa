//! Folders, games, caches and ends -> what a chain folds, and the words with which it ends, without threads.

use std::time::Duration;

use gristmill_runtime::runtime::handoff::Taken;
use gristmill_runtime::runtime::scheduler::Tasks;
use gristmill_stages::config::{DataLoaderConfig, StageConfig};
use gristmill_stages::stage::kinds::dedup_window::DedupWindowConfig;

use super::*;
use crate::pipeline::loader::launch::tests::still::{Still, games, joined, options};
use crate::preset::{Lc0Preset, lc0};

fn still(options: &Lc0Preset) -> Still {
    let still = Still::new(&lc0(options).unwrap());
    still.search();
    still
}

#[test]
fn a_task_that_breaks_off_ends_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let still = still(&options(&[folder.path()]));
    still.chain().panicked("what it said");
    assert!(still.next().unwrap_err().contains("a task broke off, which is a fault of gristmill: what it said"));
    assert!(still.next().unwrap().is_none());
}

#[test]
fn a_folder_without_a_game_is_said_to_be_so_with_what_would_wait() {
    let folder = tempfile::tempdir().unwrap();
    let said = |watch| still(&Lc0Preset { watch, ..options(&[folder.path()]) }).next().unwrap_err();
    let none = |text: &str| text.contains("no games of chess in");
    for (watch, waits) in [(Some(false), false), (None, true)] {
        let text = said(watch);
        assert!(none(&text) && text.contains(WAIT) == waits, "{watch:?}: {text}");
    }
    assert_eq!(said(Some(true)), "no batch", "it waits");
}

/// A side of a split that no game is on.
fn nobodys(watch: Option<bool>, folder: &std::path::Path) -> Still {
    let split = vec![("all".to_owned(), 1), ("none".to_owned(), 0)];
    let mut config = lc0(&Lc0Preset { split, watch, ..options(&[folder]) }).unwrap();
    config.output.retain(|output| output.starts_with("none"));
    let still = Still::new(&config);
    still.search();
    still
}

#[test]
fn a_side_that_no_game_is_on_is_no_folder_without_a_game() {
    let folder = tempfile::tempdir().unwrap();
    let waits = nobodys(None, folder.path());
    games(folder.path(), 1, 2, None);
    waits.search();
    assert_eq!(waits.next().unwrap_err(), "no batch", "games came: others may");
    let text = nobodys(Some(false), folder.path()).next().unwrap_err();
    assert!(text.contains("there is no chunk to draw") && !text.contains("no games of chess"), "{text}");
}

/// What a stream gives: batches, and errors in their places.
fn given(still: &Still, most: usize) -> Vec<std::result::Result<Vec<u8>, String>> {
    let next = || still.next().transpose().map(|next| next.map(|batch| batch.columns[0].bytes().to_vec()));
    (0..most).map_while(|_| next()).collect()
}

#[test]
fn a_cache_gives_the_same_batches_and_errors() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    games(one.path(), 1, 3, None);
    games(two.path(), 50, 3, None);
    let bad = one.path().join("training.2.gz");
    let bytes = std::fs::read(&bad).unwrap();
    std::fs::write(&bad, &bytes[..bytes.len() / 2]).unwrap();
    for folders in [vec![one.path()], vec![two.path(), one.path()]] {
        let plain = Lc0Preset { bad_chunks: BadChunks::Raise, watch: Some(false), batch_size: 1, ..options(&folders) };
        let still = |options: &Lc0Preset| {
            let still = Still::new(&joined(options));
            still.search();
            still
        };
        let expected = given(&still(&plain), 40);
        let errors = expected.iter().filter(|given| given.is_err()).count();
        assert!(errors > 3 && errors < 40, "{errors} errors");
        assert_eq!(given(&still(&Lc0Preset { position_cache: Some(30), ..plain }), 40), expected);
    }
}

#[test]
fn a_batch_may_have_more_rows_than_there_are_slots() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 4, None);
    let whole = Lc0Preset { position_count: None, ..options(&[folder.path()]) };
    let small = still(&whole).batches(375).concat();
    let large = still(&Lc0Preset { batch_size: 3000, ..whole });
    // While no batch is encoded, its rows take all slots.
    large.chain().lock().encoding = usize::MAX;
    (0..1500).for_each(|_| _ = large.turn());
    assert!(large.chain().lock().fold.free.is_empty());
    large.chain().lock().encoding = 0;
    assert_eq!(large.batches(1).concat(), small);
}

#[test]
fn a_pass_whose_last_chunks_give_no_row_ends_with_the_row_before() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 2, None);
    let at = |name: &str| folder.path().join(format!("training.{name}.gz"));
    std::fs::copy(at("1"), at("3")).unwrap();
    for spoilt in [false, true] {
        if spoilt {
            std::fs::write(at("3"), b"\x1f\x8b\x08 nothing of the kind").unwrap();
        }
        let whole = Lc0Preset {
            position_count: None,
            epochs: Some(2),
            watch: Some(false),
            batch_size: 1,
            queue_capacity: Some(1000),
            ..options(&[folder.path()])
        };
        let mut config = lc0(&whole).unwrap();
        let reads = config.stage.iter_mut().find(|stage| stage.tensor_generator.is_some()).unwrap();
        let input = std::mem::replace(&mut reads.input, vec!["dedup".into()]);
        let dedup_window = Some(DedupWindowConfig { window: 1000, ..DedupWindowConfig::default() });
        config.stage.push(StageConfig { name: "dedup".into(), input, dedup_window, ..StageConfig::default() });
        let still = Still::new(&config);
        still.search();
        while still.turn() {}
        let rows = given(&still, 1000).into_iter().filter(std::result::Result::is_ok).count() as u64;
        assert!(rows > 4, "{rows} rows");
        assert_eq!(still.chain().passes_ended(), 2, "the second pass has no new row");
    }
}

/// A chain whose window is begun, of this number of games.
fn begun(folder: &std::path::Path, many: u64) -> Still {
    games(folder, 1, many, None);
    Still::new(&lc0(&Lc0Preset { watch: Some(false), ..options(&[folder]) }).unwrap()).begun()
}

/// A chunk that has this fault.
fn spoilt(kind: Kind) -> Block {
    Block { fault: Some(gristmill_format::Error::new(kind, "what it is")), ..Block::default() }
}

#[test]
fn a_chunk_that_does_not_fit_is_told_from_a_damaged_one() {
    let folder = tempfile::tempdir().unwrap();
    let still = begun(folder.path(), 1);
    let branch = &mut still.chain().lock().branches[0];
    for (kind, fits) in [(Kind::Unfit, false), (Kind::Corrupt, true)] {
        let block = spoilt(kind);
        (branch.bad_run, branch.head) = (0, 1);
        let Verdict::Raise(raised) = judge(branch, &block, BadChunks::Raise) else { panic!("no error") };
        let Verdict::AllBad(ends) = ({
            branch.bad_run = 0;
            judge(branch, &block, BadChunks::Skip)
        }) else {
            panic!("no end")
        };
        assert_eq!([&raised, &ends].map(|e| !matches!(e, Error::Unfit(_))), [fits; 2], "{raised} {ends}");
    }
}

#[test]
fn a_whole_pass_of_bad_chunks_ends_the_stream_wherever_it_began() {
    let folder = tempfile::tempdir().unwrap();
    let still = begun(folder.path(), 3);
    let branch = &mut still.chain().lock().branches[0];
    let block = spoilt(Kind::Corrupt);
    for file in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    for (before, most, tells) in [(0, 3, true), (40, 5, false)] {
        (branch.bad_run, branch.head) = (0, before);
        let ends = (1..9).find_map(|draws| {
            branch.head += 1;
            match judge(branch, &block, BadChunks::Skip) {
                Verdict::AllBad(error) => Some((draws, error.to_string())),
                _ => None,
            }
        });
        let (draws, text) = ends.unwrap();
        assert_eq!(draws, most, "three chunks, from draw {before} on");
        let lies_there = text.contains(folder.path().to_str().unwrap());
        assert_eq!(lies_there, tells, "what lies there is said once: {text}");
    }
}

/// Takes at most `most` batches while a thread of each lane sleeps until it is signalled; how many came. Panics where both sleep and the
/// consumer waits.
fn awake(config: &DataLoaderConfig, most: usize) -> usize {
    let still = Still::new(config);
    still.search();
    let (chain, signal) = (still.chain(), &still.chain().shared.signal);
    let (mut asleep, mut turn, mut came) = ([None, None], 0_usize, 0);
    while came < most {
        match chain.next(Some(Duration::ZERO), true) {
            Taken::Item(batch) => _ = batch.unwrap(),
            Taken::Closed => break,
            Taken::Nothing => {
                let lanes = [Lane::Read, Lane::Work].into_iter().enumerate();
                let awake: Vec<_> = lanes.filter(|(i, lane)| asleep[*i] != Some(signal.seen(*lane))).collect();
                assert!(!awake.is_empty(), "after {came} batches nobody is woken; there is a task: {}", still.turn());
                turn = turn.wrapping_mul(5).wrapping_add(3);
                let (i, lane) = awake[(turn >> 3) % awake.len()];
                let seen = signal.seen(lane);
                asleep[i] = (!chain.run(lane)).then_some(seen);
                continue;
            }
        }
        came += 1;
    }
    came
}

#[test]
fn whoever_can_make_a_batch_is_woken_for_it() {
    let (folder, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    games(folder.path(), 1, 2, None);
    games(second.path(), 22, 9, Some(3));
    (10..16).for_each(|n| std::fs::write(folder.path().join(format!("training.{n}.gz")), b"\x1f\x8bno").unwrap());
    let both = [folder.path(), second.path()];
    let hanse = |options: &Lc0Preset, threshold| {
        let mut config = lc0(options).unwrap();
        for pool in config.stage.iter_mut().filter_map(|stage| stage.shuffling_chunk_pool.as_mut()) {
            pool.hanse_sampling_threshold = Some(threshold);
        }
        config
    };
    let all = |config: &DataLoaderConfig| assert_eq!(awake(config, 20), 20);
    for (directories, watch) in [&both[..1], &both[1..], &both].into_iter().flat_map(|of| [(of, true), (of, false)]) {
        let plain = Lc0Preset { watch: Some(watch), ..options(directories) };
        let many = Lc0Preset { position_count: Some(5), reservoir: Some(40), ..plain.clone() };
        let cached = Lc0Preset { position_cache: Some(12), ..plain.clone() };
        for options in [&plain, &many] {
            all(&lc0(options).unwrap());
            all(&hanse(options, 40));
            all(&hanse(options, 9));
            all(&DataLoaderConfig { lanes: Some(2), ..lc0(options).unwrap() });
            all(&DataLoaderConfig { lanes: Some(2), ..hanse(options, 20) });
        }
        all(&joined(&cached));
        let passes = Lc0Preset { epochs: Some(2), watch: Some(false), ..many };
        assert!(awake(&lc0(&passes).unwrap(), usize::MAX) > 1, "to its end");
    }
}
