//! Pools over the chunk files of a pack: frames are read alone, and the batches are those of games that are decoded whole.

use std::path::Path;

use gristmill_engine::DataLoader;
use gristmill_engine::config::{
    ChunkValidatorConfig, DataLoaderConfig, FrameFormat, HanseForm, Lc0Preset, PositionSamplingConfig, StageConfig,
};
use gristmill_engine::job::pack::{PackOptions, pack};

use super::games::{changed, hashes, of_pool, preset, single, varied, with_cache};

fn packed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let options = PackOptions { shard_rows: Some(200), ..PackOptions::new(varied(), folder.path()) };
    pack(&options, &mut |_| {}).unwrap();
    folder
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
        assert_eq!(weighed, if is_weighed { 40 } else { 0 }, "lengths are in the index");
        let metrics = loader.metrics();
        let unpacker = metrics.of_kind("chunk_unpacker").next().unwrap();
        let [chunks, frames] = ["chunks", "frames_decoded"].map(|name| unpacker.count(name).unwrap().total);
        assert_eq!(chunks, frames, "one frame of each game that is taken, and none to weigh or reject one");
        assert!(rejected > 100, "{rejected}");
    }
}
