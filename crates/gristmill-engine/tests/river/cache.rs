//! The position cache through the public face: it saves inflation and changes no batch.

use std::path::Path;

use gristmill_engine::config::{CacheQuota, DataLoaderConfig, PositionSamplingConfig};
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error};

use super::games::{
    changed, config, decodes, generate, hashes, mixed, of_pool, options, preset, single, varied, with_cache,
};

fn games(folder: &Path) -> Lc0Preset {
    Lc0Preset { tensors: preset(folder).tensors, reservoir: Some(60), ..single(folder) }
}

fn hanse(options: &Lc0Preset) -> DataLoaderConfig {
    changed(options, |pool, _| pool.hanse_sampling_threshold = Some(1))
}

fn run(config: DataLoaderConfig) -> (Vec<u64>, DataLoader) {
    let loader = DataLoader::new(config).unwrap();
    let found = hashes(&loader, "", 60);
    // Its last counts are read one after another: they must stand still.
    assert!(loader.stop().is_empty());
    (found, loader)
}

#[test]
fn a_cache_saves_inflation_and_changes_no_batch() {
    for plain in [config(&games(mixed())), hanse(&games(varied()))] {
        let (expected, without) = run(plain.clone());
        let mut saved = Vec::new();
        for (size, prefetch) in [(0, 1), (40, 4), (400, 12)] {
            for threads in [1, 8] {
                let config = DataLoaderConfig { threads: Some(threads), ..with_cache(plain.clone(), size, prefetch) };
                let (found, loader) = run(config);
                assert_eq!(found, expected, "a cache of {size}, {threads} threads");
                let (hits, misses) = (of_pool(&loader, "cache_hits"), of_pool(&loader, "cache_misses"));
                assert_eq!(hits == 0, size == 0, "{hits} hits");
                assert!(decodes(&loader) <= misses + 40, "{} decodes for {misses} misses", decodes(&loader));
                assert!(of_pool(&loader, "cached_positions") <= size);
                let (kept, dropped) = (of_pool(&loader, "newly_cached"), of_pool(&loader, "dropped_cache_positions"));
                assert_eq!(kept + dropped, misses * u64::from(prefetch));
                saved.push(hits);
            }
        }
        assert!(saved[4] > saved[2] && saved[4] > 500, "{saved:?}");
        assert!(decodes(&without) > 900);
    }
}

#[test]
fn quotas_and_lookahead_change_no_batch_either() {
    let plain = hanse(&games(varied()));
    let (expected, _) = run(plain.clone());
    let with = |quota, lookahead| {
        let mut config = with_cache(plain.clone(), 100, 8);
        let pool = config.stage.iter_mut().find_map(|stage| stage.shuffling_chunk_pool.as_mut()).unwrap();
        (pool.cache_quota, pool.cache_lookahead) = (quota, lookahead);
        run(config)
    };
    assert_eq!(with(CacheQuota::Compat, 1).0, expected);
    let (found, near) = with(CacheQuota::Documented, 30);
    assert_eq!(found, expected);
    assert!(
        of_pool(&near, "mismatched_use_counts") > 0,
        "a chunk is drawn again within 30 draws at the turn of a pass"
    );
    let (found, far) = with(CacheQuota::Documented, 1000);
    assert_eq!((found, of_pool(&far, "cache_hits")), (expected, 0));
}

#[test]
fn weighed_positions_are_foreseen_too() {
    let weighed = changed(&games(mixed()), |_, unpacker| {
        let focus = PositionSamplingConfig { diff_focus_q_weight: Some(6.0), ..Default::default() };
        unpacker.position_sampling = Some(focus);
    });
    let (expected, _) = run(weighed.clone());
    let (found, loader) = run(with_cache(weighed, 200, 6));
    assert_eq!(found, expected);
    assert!(of_pool(&loader, "cache_hits") > 300);
}

#[test]
fn bad_games_keep_nothing() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 8));
    let path = folder.path().join("training.4.gz");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let plain = config(&games(folder.path()));
    let (expected, _) = run(plain.clone());
    let (found, loader) = run(with_cache(plain, 80, 6));
    assert_eq!(found, expected);
    assert_eq!(loader.metrics().bad_chunks.chunks, 1);
}

type Case = (&'static str, &'static str, &'static str, fn(&mut DataLoaderConfig));

fn at<'a>(config: &'a mut DataLoaderConfig, name: &str) -> &'a mut gristmill_engine::config::StageConfig {
    config.stage.iter_mut().find(|stage| stage.name == name).unwrap()
}

#[test]
fn a_cache_that_is_wired_otherwise_is_refused_by_name() {
    let cases: [Case; 15] = [
        ("both", "input", "no output `hits`", |c| {
            at(c, "pool").shuffling_chunk_pool.as_mut().unwrap().cachehit_output = None
        }),
        ("pool", "input", "second input", |c| _ = at(c, "pool").input.pop()),
        ("pool", "input", "expected cache requests", |c| at(c, "pool").input[1] = "load".into()),
        ("pool", "input", "expected chunk sources", |c| at(c, "pool").input.reverse()),
        ("both", "input", "expected frames", |c| at(c, "both").input[1] = "unpack.ahead".into()),
        ("pool", "cachehit_output", "joined", |c| at(c, "both").input.truncate(1)),
        ("unpack", "prefetch_count", "position_count = 1", |c| {
            at(c, "unpack").chunk_unpacker.as_mut().unwrap().position_count = Some(2);
        }),
        ("unpack", "prefetch_output", "both", |c| {
            at(c, "unpack").chunk_unpacker.as_mut().unwrap().prefetch_count = None
        }),
        ("unpack", "prefetch_count", "at least 1", |c| {
            at(c, "unpack").chunk_unpacker.as_mut().unwrap().prefetch_count = Some(0);
        }),
        ("unpack", "output.name", "two outputs", |c| {
            at(c, "unpack").chunk_unpacker.as_mut().unwrap().prefetch_output = Some(Default::default());
            at(c, "pool").input[1] = "unpack".into();
        }),
        ("pool", "cache_lookahead", "at least 1", |c| {
            at(c, "pool").shuffling_chunk_pool.as_mut().unwrap().cache_lookahead = 0;
        }),
        ("pool", "position_cache_size", "at most", |c| {
            at(c, "pool").shuffling_chunk_pool.as_mut().unwrap().position_cache_size = Some(1 << 40);
        }),
        ("pool", "hanse_sampling_gamma", "at least 0", |c| {
            at(c, "pool").shuffling_chunk_pool.as_mut().unwrap().hanse_sampling_gamma = f64::NAN;
        }),
        ("pool", "position_sampling", "divided", |c| {
            let nothing = PositionSamplingConfig { diff_focus_pol_scale: Some(0.0), ..Default::default() };
            at(c, "pool").shuffling_chunk_pool.as_mut().unwrap().position_sampling = Some(nothing);
        }),
        ("unpack", "prefetch_output", "no cache keeps", |c| {
            let pool = at(c, "pool");
            pool.shuffling_chunk_pool.as_mut().unwrap().cachehit_output = None;
            pool.input.truncate(1);
            at(c, "both").input.truncate(1);
        }),
    ];
    for (stage, field, words, change) in cases {
        let mut config = with_cache(hanse(&games(mixed())), 100, 4);
        change(&mut config);
        match DataLoader::new(config) {
            Err(Error::Config { stage: Some(found), field: Some(of), message, .. }) => {
                assert_eq!((found.as_str(), of.as_str()), (stage, field), "{message}");
                assert!(message.contains(words), "{stage}.{field}: {message}");
            }
            other => panic!("{stage}.{field}: {:?}", other.err()),
        }
    }
}

#[test]
fn cycles_other_than_the_caches_are_refused() {
    let mut config = config(&games(mixed()));
    for (name, input) in [("a", "b"), ("b", "a")] {
        let mut stage = at(&mut config, "sample").clone();
        (stage.name, stage.input) = (name.into(), vec![input.into()]);
        config.stage.push(stage);
    }
    let error = DataLoader::new(config).unwrap_err().to_string();
    assert!(error.contains("what it gives itself"), "{error}");
}
