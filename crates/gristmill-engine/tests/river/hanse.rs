//! Hanse sampling through the public face: how often games come, what is inflated for it, and what changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gristmill_engine::config::{DataLoaderConfig, HanseForm, PositionSamplingConfig};
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error};

use super::games::{
    all_ids, changed, decodes, generate, hash, hashes, ids, loader, next, of_pool, options, preset, single, varied,
    with_cache,
};

fn hanse(options: &Lc0Preset, form: HanseForm, threshold: u64, gamma: f64) -> DataLoaderConfig {
    changed(options, |pool, _| {
        pool.hanse_sampling_threshold = Some(threshold);
        (pool.hanse_sampling_form, pool.hanse_sampling_gamma) = (form, gamma);
    })
}

fn focus() -> Option<PositionSamplingConfig> {
    Some(PositionSamplingConfig {
        diff_focus_q_weight: Some(6.0),
        diff_focus_pol_scale: Some(3.5),
        ..PositionSamplingConfig::default()
    })
}

fn new(config: DataLoaderConfig) -> DataLoader {
    DataLoader::new(config).unwrap()
}

/// The metrics of the interface: what each chunk weighs, once, what went through each queue, and the time that went into each
/// of a pool's works.
#[test]
fn weights_of_chunks_queues_and_the_works_of_a_pool_are_counted() {
    let lengths = lengths(varied());
    let loader = new(with_cache(hanse(&single(varied()), HanseForm::Weight, 1, 1.0), 100, 4));
    hashes(&loader, "", 60);
    assert!(loader.stop().is_empty());
    let (period, _) = loader.aggregate_metrics(f64::INFINITY, true).unwrap();
    let pool = period.stage_metrics.iter().find(|stage| stage.name == "pool").unwrap();
    let loads: Vec<_> = pool.load_metrics.iter().map(|load| load.name.as_str()).collect();
    assert_eq!(loads, ["source_ingestion", "chunk_loading", "caching"]);
    assert!(pool.load_metrics.iter().all(|load| 0.0 < load.load_seconds && load.load_seconds < load.total_seconds));
    let [weight] = pool.statistics_metrics.as_slice() else { panic!("{pool:?}") };
    assert!(of_pool(&loader, "hanse_cache_hits") > 100, "most were weighed before");
    assert_eq!((weight.name.as_str(), weight.samples.count as usize), ("chunk_weight", lengths.len()));
    let [chunks, hits] = pool.queue_metrics.as_slice() else { panic!("{pool:?}") };
    let (cached, missed) = (of_pool(&loader, "cache_hits"), of_pool(&loader, "cache_misses"));
    assert!(cached > 0 && missed > 0 && of_pool(&loader, "hanse_rejected") > 0);
    assert_eq!(
        (chunks.name.as_str(), chunks.put_count, hits.name.as_str(), hits.put_count),
        ("", missed, "hits", cached)
    );
    assert!(chunks.get_count <= chunks.put_count && hits.get_count == cached);
    let unpacker = period.stage_metrics.iter().find(|stage| stage.name == "unpack").unwrap();
    assert_eq!(unpacker.queue_metrics[1].put_count, missed, "one request a chunk");
    let [shortest, longest] = [lengths.values().min(), lengths.values().max()].map(|n| *n.unwrap() as f64);
    assert_eq!((weight.samples.min, weight.samples.max), (shortest, longest), "each position weighs 1");
}

type Game = (u64, u64);

/// Frames of every game of the folder.
fn lengths(folder: &Path) -> BTreeMap<Game, usize> {
    let pass = Lc0Preset { epochs: Some(1), sampling_rate: None, reservoir: None, ..preset(folder) };
    let mut lengths = BTreeMap::new();
    all_ids(&loader(&pass), "").iter().for_each(|id| *lengths.entry((id.0, id.1)).or_default() += 1);
    lengths
}

/// How often each game came in `batches` batches.
fn counts(loader: &DataLoader, batches: usize) -> BTreeMap<Game, f64> {
    let mut counts = BTreeMap::new();
    let rows = (0..batches).flat_map(|_| ids(&next(loader, "").unwrap()));
    rows.for_each(|id| *counts.entry((id.0, id.1)).or_default() += 1.0);
    counts
}

#[test]
fn games_come_as_often_as_the_formulas_say() {
    let lengths = lengths(varied());
    let longest = *lengths.values().max().unwrap() as f64;
    let forms: [(HanseForm, u64, f64); 3] =
        [(HanseForm::Weight, 1, 1.0), (HanseForm::Weight, 1, 2.0), (HanseForm::Length, 30, 1.0)];
    for (form, threshold, gamma) in forms {
        let loader = new(hanse(&single(varied()), form, threshold, gamma));
        let counts = counts(&loader, 400);
        let most = if form == HanseForm::Weight { longest } else { threshold as f64 };
        let taken = |length: &usize| (*length as f64 / most).min(1.0).powf(gamma);
        // Told by what came: how far the draws are ahead of it is a matter of time.
        let passes = counts.values().sum::<f64>() / lengths.values().map(taken).sum::<f64>();
        let mut chi = 0.0;
        for (game, length) in &lengths {
            let p = taken(length);
            let (count, expected) = (counts.get(game).copied().unwrap_or(0.0), passes * p);
            // A game that is always taken comes once a pass, give or take what is on its way.
            chi += (count - expected).powi(2) / (expected * (1.0 - p)).max(4.0);
        }
        assert_eq!(lengths.len(), 40, "all games fit into the window");
        assert!(chi < 73.4, "{form:?}, gamma {gamma}: at most 40 degrees of freedom, p = 0.001: {chi}");
    }
}

#[test]
fn a_game_gives_another_position_each_time_it_is_handed_out() {
    let lengths = lengths(varied());
    let loader = new(hanse(&single(varied()), HanseForm::Weight, 1, 1.0));
    let mut seen: BTreeMap<Game, Vec<u64>> = BTreeMap::new();
    let rows = (0..150).flat_map(|_| ids(&next(&loader, "").unwrap()));
    rows.for_each(|id| seen.entry((id.0, id.1)).or_default().push(id.2));
    for (game, frames) in &seen {
        let pass = frames.len().min(lengths[game]);
        let unique: BTreeSet<_> = frames[..pass].iter().collect();
        assert_eq!(unique.len(), pass, "game {game:?}: rejections touch no use count: {frames:?}");
    }
    assert!(seen.iter().any(|(game, frames)| frames.len() > lengths[game]), "some were gone through");
    assert!(of_pool(&loader, "hanse_rejected") > 500);
}

#[test]
fn threads_queues_and_facts_never_change_a_batch() {
    let index = tempfile::tempdir().unwrap();
    for position_sampling in [None, focus()] {
        let run = |threads, index: &Path| {
            let options = Lc0Preset {
                threads: Some(threads),
                index: Some(index.to_owned()),
                tensors: preset(varied()).tensors,
                ..single(varied())
            };
            let mut config = hanse(&options, HanseForm::Weight, 1, 1.5);
            let pool = config.stage.iter_mut().find_map(|stage| stage.shuffling_chunk_pool.as_mut()).unwrap();
            pool.position_sampling = position_sampling;
            hashes(&new(config), "", 40)
        };
        let first = run(1, Path::new("off"));
        assert_eq!(first.len(), 40);
        for threads in [2, 8] {
            assert_eq!(run(threads, Path::new("off")), first, "{threads} threads");
        }
        for round in ["nothing known", "all known"] {
            assert_eq!(run(2, index.path()), first, "{round}");
        }
    }
}

/// The games of the window, their draws and decodes after `batches` batches.
fn work(config: DataLoaderConfig, batches: usize) -> (u64, u64, u64, u64) {
    let loader = new(config);
    hashes(&loader, "", batches);
    assert!(loader.stop().is_empty());
    let (weighed, known) = (of_pool(&loader, "hanse_cache_misses"), of_pool(&loader, "hanse_cache_hits"));
    (weighed, known + weighed, of_pool(&loader, "hanse_rejected"), decodes(&loader))
}

#[test]
fn a_rejected_game_is_never_inflated_twice_nor_at_all_after_a_restart() {
    let index = tempfile::tempdir().unwrap();
    for position_sampling in [None, focus()] {
        let config = |index: &Path| {
            let options = Lc0Preset { index: Some(index.to_owned()), ..single(varied()) };
            let mut config = hanse(&options, HanseForm::Weight, 1, 8.0);
            let pool = config.stage.iter_mut().find_map(|stage| stage.shuffling_chunk_pool.as_mut()).unwrap();
            pool.position_sampling = position_sampling;
            config
        };
        for index in [Path::new("off"), index.path()] {
            let (weighed, draws, rejected, decoded) = work(config(index), 20);
            assert_eq!(weighed, 40, "each game of the window once");
            assert!(rejected > 500, "{rejected} of {draws}");
            assert!(decoded <= weighed + (draws - rejected), "{decoded} decodes for {rejected} rejected of {draws}");
        }
        let (weighed, draws, rejected, decoded) = work(config(index.path()), 20);
        assert_eq!(weighed, 0, "after a restart the side index knows them all");
        assert!(decoded <= draws - rejected, "{decoded} decodes for {} that were taken", draws - rejected);
    }
}

#[test]
fn a_single_game_is_weighed_once_and_never_rejected() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 1));
    let loader = new(hanse(&single(folder.path()), HanseForm::Weight, 1, 1.0));
    hashes(&loader, "", 5);
    assert_eq!((of_pool(&loader, "hanse_cache_misses"), of_pool(&loader, "hanse_rejected")), (1, 0));
    assert!(of_pool(&loader, "hanse_cache_hits") > 0 && of_pool(&loader, "reshuffles") > 0);
}

#[test]
fn bad_games_have_no_weight_and_stop_nothing() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 8));
    for n in [2, 5] {
        let path = folder.path().join(format!("training.{n}.gz"));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    }
    let run = |threads| {
        let options = Lc0Preset { threads: Some(threads), ..single(folder.path()) };
        let loader = new(hanse(&options, HanseForm::Weight, 1, 1.0));
        let found: Vec<_> = (0..30).map(|_| next(&loader, "").unwrap()).collect();
        assert_eq!((loader.metrics().bad_chunks.chunks, of_pool(&loader, "hanse_cache_misses")), (2, 6));
        let games: BTreeSet<u64> = found.iter().flat_map(ids).map(|id| id.0).collect();
        assert_eq!(games, BTreeSet::from([0, 2, 3, 5, 6, 7]));
        found.iter().map(hash).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(4));
}

#[test]
fn one_sound_game_that_is_hardly_ever_taken_is_enough_among_bad_ones() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 1));
    (10..16).for_each(|n| std::fs::write(folder.path().join(format!("training.{n}.gz")), b"\x1f\x8bno").unwrap());
    let loader = new(hanse(&single(folder.path()), HanseForm::Length, 1000, 1.0));
    assert_eq!(hashes(&loader, "", 8).len(), 8, "its rejections show that not all is bad");
    assert!(of_pool(&loader, "hanse_rejected") > 1000);
}

#[test]
fn where_no_game_has_a_chance_that_is_said() {
    let loader = new(hanse(&single(varied()), HanseForm::Length, u64::MAX, 4.0));
    match loader.next("", None) {
        Err(Error::Stage { stage, message }) => {
            assert_eq!(stage, "pool");
            assert!(message.contains("hanse_sampling_threshold"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(decodes(&loader), 40, "and none was inflated more than once for it");
}

#[test]
fn positions_can_be_weighed_by_the_unpacker_too() {
    let weighed = |options: &Lc0Preset| changed(options, |_, unpacker| unpacker.position_sampling = focus());
    let run = |threads| hashes(&new(weighed(&Lc0Preset { threads: Some(threads), ..single(varied()) })), "", 40);
    assert_eq!(run(1), run(8));
    let plain = hashes(&loader(&single(varied())), "", 40);
    assert_ne!(run(1), plain);
    let uniform = changed(&single(varied()), |_, unpacker| {
        unpacker.position_sampling = Some(PositionSamplingConfig { default_weight: 0.3, ..Default::default() });
    });
    assert_eq!(hashes(&new(uniform), "", 40), plain, "equal weights are none");
}
