//! Wrong graphs are refused before anything runs, with the stage and the field.

use gristmill_engine::config::{DataLoaderConfig, MemorySize};
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error};

use super::games::{config, mixed, preset};

fn refused(change: impl FnOnce(&mut DataLoaderConfig)) -> (String, String, String) {
    let mut config = config(&Lc0Preset { split: vec![("a".into(), 1), ("b".into(), 1)], ..preset(mixed()) });
    change(&mut config);
    match DataLoader::new(config) {
        Err(Error::Config { stage, field, message, .. }) => {
            (stage.unwrap_or_default(), field.unwrap_or_default(), message)
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("accepted"),
    }
}

fn at<'a>(config: &'a mut DataLoaderConfig, name: &str) -> &'a mut gristmill_engine::config::StageConfig {
    config.stage.iter_mut().find(|stage| stage.name == name).unwrap()
}

type Case = (&'static str, &'static str, &'static str, fn(&mut DataLoaderConfig));

#[test]
fn every_refusal_names_stage_and_field() {
    let cases: [Case; 17] = [
        ("pool_a", "input", "did you mean `split`", |c| at(c, "pool_a").input = vec!["spilt.a".into()]),
        ("pool_a", "input", "no output `c`", |c| at(c, "pool_a").input = vec!["split.c".into()]),
        ("pool_a", "input", "expected chunk sources", |c| at(c, "pool_a").input = vec!["files".into()]),
        ("unpack_a", "input", "found 2", |c| at(c, "unpack_a").input.push("pool_b".into())),
        ("files", "input", "no input", |c| at(c, "files").input.push("load".into())),
        ("pool_a", "output", "read by both", |c| at(c, "unpack_b").input = vec!["pool_a".into()]),
        ("load", "", "two stages", |c| {
            let again = at(c, "load").clone();
            c.stage.push(again);
        }),
        ("load", "", "no kind", |c| at(c, "load").chunk_source_loader = None),
        ("load", "", "several kinds", |c| at(c, "load").file_path_provider = Some(Default::default())),
        ("", "output", "alias `a`", |c| c.output.push("a:tensors_b".into())),
        ("", "output", "no batches", |c| c.output = vec!["unpack_a".into()]),
        ("unpack_a", "position_sampling_rate", "0 < rate", |c| {
            at(c, "unpack_a").chunk_unpacker.as_mut().unwrap().position_sampling_rate = Some(1.5);
        }),
        ("unpack_a", "", "both are", |c| at(c, "unpack_a").chunk_unpacker.as_mut().unwrap().position_count = Some(3)),
        ("split", "weight", "3 weights", |c| {
            at(c, "split").chunk_source_splitter.as_mut().unwrap().weight = vec![1, 2, 3];
        }),
        ("tensors_a", "tensors", "plains", |c| {
            at(c, "tensors_a").tensor_generator.as_mut().unwrap().tensors = vec!["plains".into()];
        }),
        ("tensors_a", "batch_size", "1 to", |c| at(c, "tensors_a").tensor_generator.as_mut().unwrap().batch_size = 0),
        ("pool_a", "output.overflow_behavior", "whole batches", |c| {
            let pool = at(c, "pool_a").shuffling_chunk_pool.as_mut().unwrap();
            pool.output.overflow_behavior = gristmill_engine::config::Overflow::DropNew;
        }),
    ];
    for (stage, field, words, change) in cases {
        let (found_stage, found_field, message) = refused(change);
        assert_eq!((found_stage.as_str(), found_field.as_str()), (stage, field), "{message}");
        assert!(message.contains(words), "{stage}.{field}: {message}");
    }
}

#[test]
fn a_memory_bound_sizes_the_reservoir_or_refuses() {
    let bounded = |mib: u64, reservoir| Lc0Preset { memory: Some(MemorySize(mib << 20)), reservoir, ..preset(mixed()) };
    let sized = config(&bounded(400, None));
    let frames = sized.stage.iter().find_map(|s| s.shuffling_frame_sampler.as_ref()).unwrap().reservoir_size_per_thread;
    assert!(frames > 10_000 && frames * 8448 < 400 << 20, "{frames} frames");
    DataLoader::new(sized).unwrap();
    // Frames are folded, of which the bound holds nearly four times as many; what it gives by itself stays what it was.
    DataLoader::new(config(&bounded(400, Some(3 * frames)))).unwrap();
    let error = gristmill_engine::preset::lc0(&bounded(400, Some(4 * frames))).unwrap_err().to_string();
    assert!(error.contains("the bound is 400 MiB"), "{error}");
    let error = gristmill_engine::preset::lc0(&bounded(20, None)).unwrap_err().to_string();
    assert!(error.contains("MiB are needed"), "{error}");
}

#[test]
fn stages_may_be_listed_in_any_order_and_round_trip_as_toml() {
    let mut config = config(&preset(mixed()));
    config.stage.reverse();
    let text = config.to_toml().unwrap();
    let loader = DataLoader::new(DataLoaderConfig::from_toml(&text).unwrap()).unwrap();
    assert!(super::games::next(&loader, "").is_some());
}

#[test]
fn the_promise_has_room_for_every_chunk_that_is_decoded_at_once() {
    let of = |mib: u64| {
        let bounded = DataLoaderConfig { max_chunk_bytes: Some(MemorySize(mib << 20)), ..config(&preset(mixed())) };
        gristmill_engine::pipeline::promise(&bounded).unwrap()
    };
    let (small, large) = (of(8), of(24));
    assert!(large >= small + 2 * (16 << 20), "two threads decode a chunk each: {small}, {large}");
}
