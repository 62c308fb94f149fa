//! The stage `dedup_window`: which rows it drops, its states after every batch, in lanes and on ranks, and what it says of itself.

use std::collections::{HashSet, VecDeque};

use gristmill_engine::config::{DataLoaderConfig, StageConfig};
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::stage::kinds::dedup_window::DedupWindowConfig;
use gristmill_engine::{DataLoader, Error, Next, merge_states};

use super::games::{config, hash, hashes, ids, next, preset, varied, with_cache};
use super::resume::check_every_batch_of;

fn with_window(options: &Lc0Preset, window: u64, behind: bool) -> DataLoaderConfig {
    windowed(config(options), window, behind)
}

/// A stream with such a stage before its sampler, or after it.
pub(super) fn windowed(mut config: DataLoaderConfig, window: u64, behind: bool) -> DataLoaderConfig {
    let reader = |stage: &StageConfig| match behind {
        true => stage.tensor_generator.is_some(),
        false => stage.shuffling_frame_sampler.is_some() || stage.tensor_generator.is_some(),
    };
    let reads = config.stage.iter_mut().find(|stage| reader(stage)).unwrap();
    let input = std::mem::replace(&mut reads.input, vec!["dedup".into()]);
    let dedup_window = Some(DedupWindowConfig { window, ..DedupWindowConfig::default() });
    config.stage.push(StageConfig { name: "dedup".into(), input, dedup_window, ..StageConfig::default() });
    config
}

/// Several passes over a few games, so that their positions come again.
fn passes(reservoir: usize) -> Lc0Preset {
    Lc0Preset { epochs: Some(3), reservoir: Some(reservoir), ..preset(varied()) }
}

type Place = (u64, u64, u64);

/// Where the rows of a stream come from, and which positions they are of: pieces, castling rights, side to move.
fn rows_of(loader: &DataLoader) -> Vec<(Place, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some(batch) = next(loader, "") {
        let planes = batch.column("planes").unwrap().bytes().chunks_exact(112 * 256);
        let position = |planes: &[u8]| [&planes[..12 * 256], &planes[104 * 256..109 * 256]].concat();
        found.extend(ids(&batch).into_iter().zip(planes.map(position)));
    }
    found
}

fn of_dedup(loader: &DataLoader, name: &str) -> u64 {
    loader.metrics().of_kind("dedup_window").next().unwrap().count(name).unwrap().total
}

#[test]
fn rows_that_came_among_the_last_ones_are_dropped_and_counted() {
    let options = Lc0Preset { tensors: vec!["ids".into(), "planes".into()], ..passes(0) };
    let rows = rows_of(&DataLoader::new(config(&options)).unwrap());
    let pass = rows.len() / 3;
    for window in [7, pass as u64 - 1, pass as u64 * 3] {
        let mut last: VecDeque<&[u8]> = VecDeque::new();
        let mut expected = Vec::new();
        for (place, position) in &rows {
            if !last.contains(&&position[..]) {
                expected.push(*place);
            }
            last.push_back(position);
            if last.len() as u64 > window {
                last.pop_front();
            }
        }
        assert!(expected.len() < rows.len(), "games begin alike");
        let loader = DataLoader::new(with_window(&options, window, false)).unwrap();
        let found: Vec<Place> = rows_of(&loader).into_iter().map(|(place, _)| place).collect();
        assert!(found == expected, "window {window}: {} rows, expected {}", found.len(), expected.len());
        assert_eq!(of_dedup(&loader, "frames"), found.len() as u64);
        assert_eq!(of_dedup(&loader, "duplicates"), (rows.len() - found.len()) as u64);
        let unique: HashSet<Place> = found.iter().copied().collect();
        assert!(window < pass as u64 || unique.len() == found.len());
    }
}

#[test]
fn states_resume_after_every_batch() {
    for (reservoir, behind) in [(0, false), (40, false), (40, true)] {
        check_every_batch_of(&with_window(&passes(reservoir), 150, behind), "", 1000, 4);
    }
    let joined = {
        let mut options = passes(30);
        let again = options.directories[0].clone();
        options.directories.push(again);
        with_window(&options, 60, false)
    };
    check_every_batch_of(&joined, "", 40, 4);
}

#[test]
fn rows_of_a_cache_are_known_too() {
    let options = Lc0Preset { position_count: Some(1), sampling_rate: None, reservoir: Some(0), ..preset(varied()) };
    let cached = with_cache(with_window(&options, 40, false), 30, 3);
    let whole = DataLoader::new(with_window(&options, 40, false)).unwrap();
    let seen = DataLoader::new(cached.clone()).unwrap();
    assert_eq!(hashes(&seen, "", 12), hashes(&whole, "", 12), "a cache changes no batch");
    check_every_batch_of(&cached, "", 8, 6);
}

#[test]
fn ranks_share_the_window_of_their_lanes() {
    let options = Lc0Preset { reservoir: Some(40), ..preset(varied()) };
    let of = |rank, world| DataLoaderConfig {
        lanes: Some(4),
        rank: Some(rank),
        world_size: Some(world),
        ..with_window(&options, 80, false)
    };
    check_every_batch_of(&of(0, 1), "", 10, 6);
    let whole = DataLoader::new(of(0, 1)).unwrap();
    hashes(&whole, "", 5);
    let expected: Vec<Vec<Place>> = (0..6).map(|_| ids(&next(&whole, "").unwrap())).collect();
    let states: Vec<String> = (0..2)
        .map(|rank| {
            let one = DataLoader::new(of(rank, 2)).unwrap();
            hashes(&one, "", 5);
            one.state().unwrap()
        })
        .collect();
    let state = merge_states(&states).unwrap();
    for world in [1, 2, 4] {
        let ranks: Vec<DataLoader> = (0..world).map(|rank| DataLoader::new(of(rank, world)).unwrap()).collect();
        ranks.iter().for_each(|rank| rank.restore(&state).unwrap());
        for rows in &expected {
            for (rank, loader) in ranks.iter().enumerate() {
                let own: Vec<Place> = rows.iter().copied().skip(rank).step_by(world as usize).collect();
                // Ranks number files by themselves: chunk and frame stand for a row.
                let found = ids(&next(loader, "").unwrap());
                assert_eq!(found.len(), own.len());
                assert!(found.iter().zip(&own).all(|(a, b)| (a.1, a.2) == (b.1, b.2)), "rank {rank} of {world}");
            }
        }
    }
}

#[test]
fn threads_and_queues_change_nothing() {
    let batches = |threads| {
        let config = DataLoaderConfig { threads: Some(threads), ..with_window(&passes(40), 100, false) };
        let loader = DataLoader::new(config).unwrap();
        let mut found = Vec::new();
        while let Some(batch) = next(&loader, "") {
            found.push(hash(&batch));
        }
        found
    };
    let one = batches(1);
    assert!(one.len() > 4);
    assert!([2, 8].iter().all(|threads| batches(*threads) == one));
}

#[test]
fn wrong_options_are_refused_by_name() {
    for window in [0, 1 << 40] {
        match DataLoader::new(with_window(&passes(0), window, false)) {
            Err(Error::Config { stage, field, message, .. }) => {
                assert_eq!((stage.as_deref(), field.as_deref()), (Some("dedup"), Some("window")));
                assert!(message.contains("expected 1 to"), "{message}");
            }
            other => panic!("{:?}", other.err()),
        }
    }
    let lanes = DataLoaderConfig { lanes: Some(8), ..with_window(&preset(varied()), 5, false) };
    let refused = DataLoader::new(lanes).err().unwrap().to_string();
    assert!(refused.contains("window") && refused.contains("8 lanes"), "{refused}");
    let mut twice = with_window(&passes(0), 5, false);
    let reads = twice.stage.iter_mut().find(|stage| stage.tensor_generator.is_some()).unwrap();
    reads.input = vec!["again".into()];
    let dedup_window = Some(DedupWindowConfig::default());
    let again =
        StageConfig { name: "again".into(), input: vec!["dedup".into()], dedup_window, ..StageConfig::default() };
    twice.stage.push(again);
    assert!(DataLoader::new(twice).err().unwrap().to_string().contains("one `dedup_window` at most"));
    let text = with_window(&passes(0), 5, false).to_toml().unwrap().replace("window = 5", "windw = 5");
    assert!(DataLoaderConfig::from_toml(&text).unwrap_err().to_string().contains("`window`"));
    let original = DataLoader::new(with_window(&passes(0), 5, false)).unwrap();
    hashes(&original, "", 2);
    let other = DataLoader::new(with_window(&passes(0), 6, false)).unwrap();
    let refused = other.restore(&original.state().unwrap()).unwrap_err().to_string();
    assert!(refused.contains("window: saved 5, configured 6"), "{refused}");
}

#[test]
fn a_stream_that_has_nothing_new_ends_with_the_reason() {
    let options = Lc0Preset { reservoir: Some(0), ..preset(varied()) };
    let loader = DataLoader::new(with_window(&options, 1 << 15, false)).unwrap();
    let error = loop {
        match loader.next("", None) {
            Ok(Next::Batch(_)) => {}
            Ok(_) => panic!("it ended without a reason"),
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, Error::Stage { stage, .. } if stage == "dedup"), "{error}");
    assert!(error.to_string().contains("lower it, or take more games"), "{error}");
}

#[test]
fn the_bound_counts_the_window() {
    let promise = |window| gristmill_engine::pipeline::promise(&with_window(&passes(0), window, false)).unwrap();
    assert!(promise(1 << 20) >= promise(1 << 10) + 64 * ((1 << 20) - (1 << 10)));
}
