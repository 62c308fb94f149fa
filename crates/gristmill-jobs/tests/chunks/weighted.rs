//! Rows of a pack drawn by weight: as often as their weights say, the same for any threads and ranks, from any batch on.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use gristmill_engine::chunks::manifest::Manifest;
use gristmill_engine::chunks::metadata::Games;
use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::{HanseSamplingConfig, IndexConfig, PositionSamplingConfig};
use gristmill_engine::kinds::chess::columns::WEIGHER;
use gristmill_engine::selection::Selection;
use gristmill_engine::sql::SqlValue;
use gristmill_engine::store::Residence;
use gristmill_engine::table::FrameTable;
use gristmill_engine::{IndexLoader, Next};
use gristmill_format::chess::{DiffFocus, Frame};
use gristmill_format::weigh::{Uniform, Weigher, total};

use crate::fixture::{input, packed, records};
use crate::resumed::check_every_batch;

const FOCUS: DiffFocus =
    DiffFocus { q_weight: 6.0, pol_scale: 3.5, alpha: 1.0, beta: 0.0, gamma: 1.0, tau: 1.0, unknown: 0.5 };

fn focus() -> PositionSamplingConfig {
    PositionSamplingConfig {
        diff_focus_q_weight: Some(6.0),
        diff_focus_pol_scale: Some(3.5),
        default_weight: 0.5,
        ..PositionSamplingConfig::default()
    }
}

fn open(pack: &Path) -> Selection {
    Selection::all(Arc::new(ChunkPack::open(pack, Residence::Mapped).unwrap()))
}

/// What the frames of each game of the folder weigh, by the records themselves.
fn weights(folder: &Path) -> Vec<Vec<f32>> {
    let of = |game: Vec<u8>| {
        let frames = game.chunks_exact(if game[0] == 7 { 8396 } else { 8356 });
        frames.map(|record| FOCUS.weight(&Frame::new(record).unwrap())).collect()
    };
    records(folder, &[".gz", ".tar"]).into_iter().map(of).collect()
}

fn config(gamma: f64) -> IndexConfig {
    let sampling = HanseSamplingConfig {
        hanse_sampling_gamma: gamma,
        position_sampling: Some(focus()),
        ..HanseSamplingConfig::default()
    };
    IndexConfig { batch_size: 24, seed: Some(5), threads: Some(2), sampling: Some(sampling), ..IndexConfig::default() }
}

/// The values of each row of each batch.
fn batches(loader: &IndexLoader) -> Vec<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    while let Next::Batch(batch) = loader.next("", None).unwrap() {
        let rows = batch.columns[2].bytes().chunks_exact(72);
        found.push(rows.map(<[u8]>::to_vec).collect());
    }
    found
}

fn run(games: &Selection, config: IndexConfig) -> Vec<Vec<Vec<u8>>> {
    batches(&IndexLoader::new(games.input(), config).unwrap())
}

#[test]
fn what_games_weigh_in_a_pack_is_what_their_records_weigh() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    packed(input.path(), out.path(), |_| {}).unwrap();
    let all = open(out.path());
    let weighed = all.pack().as_a::<ChunkPack>().unwrap().weighed().unwrap();
    let weights = weights(input.path());
    let sums: Vec<f32> = weights.iter().map(|weights| total(weights.iter().copied())).collect();
    assert_eq!(*weighed.totals(&FOCUS), *sums);
    let lengths: Vec<f32> = weights.iter().map(|weights| weights.len() as f32).collect();
    assert_eq!(*weighed.totals(&Uniform(1.0)), *lengths);
    assert!(sums.iter().zip(&lengths).any(|(sum, length)| sum < length), "some were weighed by what they hold");
    for (game, expected) in weights.iter().enumerate() {
        let (mut chunk, mut found) = Default::default();
        weighed.weights(game as u64, &FOCUS as &dyn Weigher, &mut chunk, &mut found).unwrap();
        assert_eq!(found, *expected);
        let (first, behind) = weighed.rows_of(game as u64);
        assert!((first..behind).all(|row| weighed.chunk_at(row) == game as u64));
    }
}

#[test]
fn sums_of_the_default_rule_are_there_and_others_are_kept_when_they_were_asked_for() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    packed(input.path(), out.path(), |_| {}).unwrap();
    let sum = |rule: &DiffFocus| -> Vec<f32> {
        let pack = ChunkPack::open(out.path(), Residence::Mapped).unwrap();
        pack.weighed().unwrap().totals(rule).to_vec()
    };
    let kept = || {
        fs::read_dir(out.path())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().ends_with(".sums"))
            .count()
    };
    let files = Manifest::read(out.path()).unwrap().files.len();
    assert!(files > 1 && kept() == files, "packing keeps the sums of its own rule");
    let (own, other) = (sum(&WEIGHER), sum(&FOCUS));
    assert_eq!(kept(), 2 * files);
    let database = Games::open(&out.path().join("metadata.db")).unwrap();
    let column: Vec<f32> = database.column("weight").unwrap().into_iter().map(|sum| sum as f32).collect();
    let records = records(input.path(), &[".gz", ".tar"]);
    let frames = records.iter().map(|game| game.chunks_exact(if game[0] == 7 { 8396 } else { 8356 }));
    let by = |rule: DiffFocus| {
        frames
            .clone()
            .map(move |frames| total(frames.map(|record| rule.weight(&Frame::new(record).unwrap()))))
            .collect::<Vec<f32>>()
    };
    assert_eq!((&own, &column, &other), (&by(WEIGHER), &by(WEIGHER), &by(FOCUS)));
    // Every byte of the games is damaged, and the sums are known all the same.
    for name in ["games-00000.chunks", "games-00001.chunks"] {
        let path = out.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes[100] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!((sum(&WEIGHER), sum(&FOCUS)), (own, other));
    let third = DiffFocus { tau: 0.5, ..FOCUS };
    let found = sum(&third);
    assert!(found.iter().any(|sum| sum.is_nan()) && kept() == 3 * files - 2, "what is damaged is not kept");
    let all = open(out.path());
    let few = all.query("weight < ? AND proven = 0 AND max_length = 0", &[SqlValue::Real(6.0)]).unwrap();
    assert!(!few.games().is_empty() && few.games().len() < all.games().len());
    let men = |record: &[u8]| (0..12).map(|i| Frame::new(record).unwrap().plane(i).count_ones()).sum::<u32>();
    let fewest: Vec<f64> = frames.clone().map(|frames| frames.map(men).min().unwrap().into()).collect();
    assert_eq!(database.column("fewest_men").unwrap(), fewest);
    let few: Vec<f64> = frames.map(|frames| frames.filter(|record| men(record) <= 7).count() as f64).collect();
    assert_eq!(database.column("few_men").unwrap(), few);
    assert!(database.column("nonsense").is_err());
}

#[test]
fn rows_come_as_often_as_they_weigh() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    packed(input.path(), out.path(), |_| {}).unwrap();
    let all = open(out.path());
    let stored = IndexConfig { shuffle: gristmill_engine::config::Shuffle::Off, sampling: None, ..config(1.0) };
    let rows: Vec<Vec<u8>> = run(&all, stored).concat();
    let weights = weights(input.path());
    let sums: Vec<f64> = weights.iter().map(|weights| f64::from(total(weights.iter().copied()))).collect();
    for gamma in [1.0, 3.0] {
        let shares = weights
            .iter()
            .zip(&sums)
            .flat_map(|(weights, sum)| weights.iter().map(move |weight| sum.powf(gamma) * f64::from(*weight) / sum));
        let mut expected: BTreeMap<&[u8], f64> = BTreeMap::new();
        rows.iter().zip(shares).for_each(|(row, share)| *expected.entry(row).or_default() += share);
        let whole: f64 = expected.values().sum();
        let drawn = run(&all, IndexConfig { batch_size: 512, epochs: Some(40), ..config(gamma) }).concat();
        assert_eq!(drawn.len(), 40 * rows.len(), "an epoch is as many draws as there are rows");
        let mut found: BTreeMap<&[u8], f64> = BTreeMap::new();
        drawn.iter().for_each(|row| *found.entry(row).or_default() += 1.0);
        assert!(found.keys().all(|row| expected.contains_key(row)));
        let (mut chi, mut rest, mut freedom) = (0.0, (0.0, 0.0), 0.0f64);
        for (row, share) in &expected {
            let (seen, want) = (found.get(row).copied().unwrap_or(0.0), drawn.len() as f64 * share / whole);
            if want < 5.0 {
                rest = (rest.0 + seen, rest.1 + want);
            } else {
                (chi, freedom) = (chi + (seen - want).powi(2) / want, freedom + 1.0);
            }
        }
        chi += if rest.1 > 0.0 { (rest.0 - rest.1).powi(2) / rest.1 } else { 0.0 };
        // Wilson and Hilferty: exceeded once in a thousand.
        let bound = freedom * (1.0 - 2.0 / (9.0 * freedom) + 3.09 * (2.0 / (9.0 * freedom)).sqrt()).powi(3);
        assert!(freedom > 30.0 && chi < bound, "gamma {gamma}: {chi} with {freedom} degrees of freedom");
    }
}

#[test]
fn draws_are_the_same_for_any_threads_and_ranks_and_from_any_batch_on() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    packed(input.path(), out.path(), |_| {}).unwrap();
    let some = open(out.path()).query("frames > ? OR id < 3", &[SqlValue::Integer(12)]).unwrap();
    let threads = |threads| IndexConfig { threads: Some(threads), ..config(1.5) };
    let whole = run(&some, threads(1));
    assert_eq!(whole.iter().map(Vec::len).sum::<usize>() as u64, some.rows().len());
    assert!(whole.len() > 5);
    for n in [2, 8] {
        assert!(run(&some, threads(n)) == whole, "{n} threads");
    }
    for world_size in [2, 3] {
        let rank = |rank| run(&some, IndexConfig { rank, world_size, ..config(1.5) });
        let ranks: Vec<_> = (0..world_size).map(rank).collect();
        for (number, batch) in whole.iter().enumerate() {
            let mut union: Vec<_> = ranks.iter().flat_map(|rank| rank[number].clone()).collect();
            let mut expected = batch.clone();
            union.sort();
            expected.sort();
            assert!(union == expected, "batch {number} of {world_size} ranks");
        }
    }
    let epochs = IndexConfig { batch_size: 12, epochs: Some(2), ..config(1.5) };
    check_every_batch("drawn by weight", &some.input(), &epochs, &[1, 3, 2]);
    let other = IndexLoader::new(some.input(), config(2.0)).unwrap();
    let state = IndexLoader::new(some.input(), config(1.5)).unwrap().state().unwrap();
    let refused = other.restore(&state).unwrap_err().to_string();
    assert!(refused.contains("sampling") && refused.contains("1.5"), "{refused}");
}

#[test]
fn a_game_that_cannot_be_weighed_is_named_at_once() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    packed(input.path(), out.path(), |_| {}).unwrap();
    let path = out.path().join("games-00000.chunks");
    let mut bytes = fs::read(&path).unwrap();
    bytes[200] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let all = open(out.path());
    let error = IndexLoader::new(all.input(), config(1.0)).unwrap_err().to_string();
    assert!(error.contains("games-00000.chunks") && error.contains("chunk 0") && error.contains("checksum"), "{error}");
    let rest = all.query("id > 0", &[]).unwrap();
    assert!(matches!(IndexLoader::new(rest.input(), config(1.0)).unwrap().next("", None).unwrap(), Next::Batch(_)));
}
