//! Pools over the chunk files of a pack: frames are read alone, and the batches are those of games that are decoded whole.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use gristmill_engine::DataLoader;
use gristmill_engine::config::{
    ChunkValidatorConfig, DataLoaderConfig, FrameFormat, HanseForm, PositionSamplingConfig, StageConfig,
};
use gristmill_engine::open::open;
use gristmill_engine::preset::Lc0Preset;
use gristmill_generate::ChessOptions;
use gristmill_jobs::pack::{Existing, PackOptions, pack};

use super::buckets::bucket;
use super::games::{
    all_ids, changed, config, generate, hashes, ids, next, of_pool, options, preset, single, varied, with_cache,
};
use super::resume::check_every_batch_of;

/// Another rule than the pack's own.
const SHARP: PositionSamplingConfig = PositionSamplingConfig {
    diff_focus_q_weight: Some(6.0),
    diff_focus_pol_scale: Some(3.5),
    diff_focus_alpha: 1.0,
    diff_focus_beta: 0.0,
    diff_focus_gamma: 2.0,
    diff_focus_tau: 1.0,
    default_weight: 0.25,
};

fn packed() -> tempfile::TempDir {
    packed_by(&[])
}

fn packed_by(weigh: &[PositionSamplingConfig]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let options = PackOptions { shard_rows: Some(200), ..PackOptions::new(varied(), folder.path()) };
    pack(&PackOptions { weigh: weigh.to_vec(), ..options }, &mut |_| {}).unwrap();
    folder
}

/// Files of a folder whose names end so, sorted.
fn ending(folder: &Path, end: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = paths.filter(|path| path.to_str().unwrap().ends_with(end)).collect();
    found.sort();
    found
}

/// A stream by [`SHARP`] in which few games are taken.
fn sharp(folder: &Path) -> DataLoaderConfig {
    let options = Lc0Preset { tensors: preset(folder).tensors, ..single(folder) };
    changed(&options, |pool, unpacker| {
        (pool.hanse_sampling_threshold, pool.hanse_sampling_form) = (Some(1), HanseForm::Weight);
        pool.hanse_sampling_gamma = 6.0;
        (pool.position_sampling, unpacker.position_sampling) = (Some(SHARP), Some(SHARP));
    })
}

/// Hashes of batches, and how many games were weighed for them.
fn weighing(config: DataLoaderConfig, batches: usize) -> (Vec<u64>, u64) {
    let loader = DataLoader::new(config).unwrap();
    let found = hashes(&loader, "", batches);
    assert!(loader.stop().is_empty());
    (found, of_pool(&loader, "hanse_cache_misses"))
}

/// One position of each game, by what positions weigh.
fn weighed(folder: &Path, is_weighed: bool) -> DataLoaderConfig {
    let focus = is_weighed.then(|| PositionSamplingConfig {
        diff_focus_q_weight: Some(6.0),
        diff_focus_pol_scale: Some(3.5),
        ..PositionSamplingConfig::default()
    });
    let options = Lc0Preset { tensors: preset(folder).tensors, ..single(folder) };
    changed(&options, |pool, unpacker| {
        pool.hanse_sampling_threshold = Some(1);
        pool.hanse_sampling_form = HanseForm::Weight;
        (pool.position_sampling, unpacker.position_sampling) = (focus, focus);
    })
}

/// The same with every chunk decoded whole: a stage looks at it, and its version is insisted on.
fn whole(mut config: DataLoaderConfig) -> DataLoaderConfig {
    for stage in &mut config.stage {
        if let Some(loader) = &mut stage.chunk_source_loader {
            loader.frame_format = FrameFormat::V6TrainingData;
        }
    }
    let name = "look".to_owned();
    let unpacker = config.stage.iter_mut().find(|stage| stage.chunk_unpacker.is_some()).unwrap();
    let input = std::mem::replace(&mut unpacker.input, vec![name.clone()]);
    let chunk_validator = Some(ChunkValidatorConfig { rules: vec!["men".to_owned()], ..Default::default() });
    config.stage.push(StageConfig { name, input, chunk_validator, ..StageConfig::default() });
    config
}

/// Hashes of batches, and how many frames were decoded for them.
fn run(config: DataLoaderConfig, batches: usize) -> (Vec<u64>, u64) {
    let loader = DataLoader::new(config).unwrap();
    let found = hashes(&loader, "", batches);
    assert!(loader.stop().is_empty());
    let metrics = loader.metrics();
    let stage = metrics.of_kind("chunk_unpacker").next().unwrap();
    (found, stage.count("frames_decoded").unwrap().total)
}

#[test]
fn frames_read_alone_are_those_of_whole_games() {
    let pack = packed();
    let sampled = || changed(&preset(pack.path()), |_, _| {});
    for config in [sampled(), weighed(pack.path(), false), weighed(pack.path(), true)] {
        let (alone, few) = run(config.clone(), 40);
        let (expected, many) = run(whole(config), 40);
        assert_eq!(alone.len(), 40);
        assert!(alone == expected);
        assert!(few * 2 < many, "{few} frames in place of {many}");
    }
    let cached = with_cache(weighed(pack.path(), false), 60, 4);
    assert!(run(cached.clone(), 40).0 == run(whole(cached), 40).0, "with rows for a cache");
}

#[test]
fn games_of_a_pack_are_weighed_without_a_decode() {
    let pack = packed();
    for is_weighed in [false, true] {
        let loader = DataLoader::new(weighed(pack.path(), is_weighed)).unwrap();
        hashes(&loader, "", 30);
        assert!(loader.stop().is_empty());
        let (weighed, rejected) = (of_pool(&loader, "hanse_cache_misses"), of_pool(&loader, "hanse_rejected"));
        assert_eq!(weighed, 0, "lengths are in the index, weights beside the games");
        let metrics = loader.metrics();
        let unpacker = metrics.of_kind("chunk_unpacker").next().unwrap();
        let [chunks, frames] = ["chunks", "frames_decoded"].map(|name| unpacker.count(name).unwrap().total);
        assert_eq!(chunks, frames, "one frame of each game that is taken, and none to weigh or reject one");
        assert!(rejected > 100, "{rejected}");
    }
}

#[test]
fn sums_beside_a_pack_change_no_batch_and_only_those_that_fit_are_used() {
    let (with, without) = (packed_by(&[SHARP]), packed());
    assert_eq!(ending(with.path(), ".sums").len(), 2 * ending(with.path(), ".chunks").len());
    ending(without.path(), ".sums").iter().for_each(|path| fs::remove_file(path).unwrap());
    let (expected, weighed) = weighing(sharp(without.path()), 30);
    assert!(expected.len() == 30 && weighed == 40, "each is weighed once where nothing is stored: {weighed}");
    assert_eq!(weighing(sharp(with.path()), 30), (expected.clone(), 0));
    // A version is checked on whole records.
    let strict = |folder: &Path| whole(sharp(folder));
    let (found, weighed) = weighing(strict(with.path()), 30);
    assert_eq!((found, weighed), weighing(strict(without.path()), 30));
    assert_eq!(weighed, 40);
    // Damaged, of another file, cut, gone: weighed again, and nothing else changes.
    let chunks = ending(with.path(), ".chunks");
    let sums: Vec<PathBuf> = chunks
        .iter()
        .flat_map(|path| {
            let of = path.file_stem().unwrap().to_str().unwrap().to_owned();
            ending(with.path(), ".sums")
                .into_iter()
                .filter(move |sums| sums.file_name().unwrap().to_str().unwrap().starts_with(&of))
        })
        .collect();
    assert_eq!(sums.len(), 2 * chunks.len());
    let other = fs::read(&sums[2]).unwrap();
    for path in &sums[..2] {
        fs::write(path, &other).unwrap();
    }
    for path in &sums[2..4] {
        let mut bytes = fs::read(path).unwrap();
        bytes[33] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    for path in &sums[4..6] {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
    }
    let few: usize = chunks[..3].iter().map(|path| open(path).unwrap().len()).sum();
    assert_eq!(weighing(sharp(with.path()), 30), (expected.clone(), few as u64));
    sums.iter().for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(weighing(sharp(with.path()), 30), (expected, 40));
}

#[test]
fn a_game_that_is_rejected_is_not_read() {
    let pack = packed_by(&[SHARP]);
    let rows = |folder: &Path| {
        let loader = DataLoader::new(sharp(folder)).unwrap();
        let rows: Vec<Vec<(u64, u64, u64)>> = (0..90).map(|_| ids(&next(&loader, "").unwrap())).collect();
        assert!(loader.stop().is_empty());
        rows
    };
    let expected = rows(pack.path());
    let taken: BTreeSet<(u64, u64)> = expected.iter().flatten().map(|(source, chunk, _)| (*source, *chunk)).collect();
    let mut spoilt = 0;
    for (source, path) in ending(pack.path(), ".chunks").iter().enumerate() {
        let (file, mut bytes) = (open(path).unwrap(), fs::read(path).unwrap());
        for chunk in (0..file.len()).filter(|chunk| !taken.contains(&(source as u64, *chunk as u64))) {
            let (span, _) = file.chunks().locate(chunk).unwrap();
            bytes[span.offset as usize..(span.offset + span.len) as usize].fill(0xEE);
            spoilt += 1;
        }
        fs::write(path, bytes).unwrap();
    }
    assert!(spoilt > 5, "{spoilt} of 40 games are never taken");
    let loader = DataLoader::new(sharp(pack.path())).unwrap();
    let found: Vec<_> = (0..30).map(|_| ids(&next(&loader, "").unwrap())).collect();
    assert!(found == expected[..30]);
    assert!(of_pool(&loader, "hanse_rejected") > 500 && loader.stop().is_empty());
    assert_eq!(of_pool(&loader, "dropped"), 0);
}

#[test]
fn a_state_goes_on_with_and_without_the_sums() {
    let pack = packed_by(&[SHARP]);
    let sums: Vec<(PathBuf, Vec<u8>)> =
        ending(pack.path(), ".sums").into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    let original = DataLoader::new(sharp(pack.path())).unwrap();
    let (mut states, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..12 {
        states.push(original.state().unwrap());
        whole.extend(hashes(&original, "", 1));
    }
    for (after, state) in states.iter().enumerate() {
        for (path, bytes) in &sums {
            if after % 2 == 0 { fs::remove_file(path).unwrap() } else { fs::write(path, bytes).unwrap() }
        }
        let restored = DataLoader::new(sharp(pack.path())).unwrap();
        restored.restore(state).unwrap();
        assert_eq!(hashes(&restored, "", whole.len() - after), whole[after..], "after batch {after}");
        assert_eq!(of_pool(&restored, "hanse_cache_misses") == 0, after % 2 == 1);
    }
}

#[test]
fn streams_of_packs_go_on_after_every_batch() {
    let pack = packed();
    let pool = config(&preset(pack.path()));
    let hanse = [false, true].map(|is_weighed| weighed(pack.path(), is_weighed));
    let cached = DataLoaderConfig { lanes: Some(4), ..with_cache(hanse[1].clone(), 60, 4) };
    for config in [pool.clone(), whole(pool), cached].iter().chain(&hanse) {
        check_every_batch_of(config, "", 12, 8);
    }
}

#[test]
fn a_pack_whose_first_file_is_damaged_gives_the_games_of_the_others() {
    let pack = packed();
    let files = ending(pack.path(), ".chunks");
    assert!(files.len() > 1, "{files:?}");
    let length = fs::metadata(&files[0]).unwrap().len() as usize;
    fs::write(&files[0], vec![0xEE; length]).unwrap();
    let loader = DataLoader::new(config(&preset(pack.path()))).unwrap();
    assert!(ids(&next(&loader, "").unwrap()).iter().all(|(source, ..)| *source > 0));
}

#[test]
fn a_stream_of_a_pack_in_a_bucket_has_the_games_that_were_added() {
    let place = &bucket("packs-that-grow").join("pack");
    let games = || {
        let stream = Lc0Preset { epochs: Some(1), ..single(place) };
        all_ids(&DataLoader::new(config(&stream)).unwrap(), "").len()
    };
    let add = |first: u64, count: u64, existing: Existing| {
        let folder = tempfile::tempdir().unwrap();
        generate(ChessOptions { first, ..options(folder.path(), count) });
        let delivery = existing.delivery(place, false).unwrap();
        let grows = delivery.grows();
        pack(&PackOptions { existing, grows, ..PackOptions::new(folder.path(), delivery.folder()) }, &mut |_| {})
            .unwrap();
        delivery.deliver(&AtomicBool::new(false), &mut |_, _| {}).unwrap();
    };
    add(1, 6, Existing::Refuse);
    assert_eq!(games(), 6);
    add(101, 4, Existing::Append);
    assert_eq!(games(), 10);
}
