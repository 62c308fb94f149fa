//! Lanes: as many ranks as divide them give the same batches together, and a run resumes with another number of ranks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use gristmill_engine::config::{DataLoaderConfig, Overflow};
use gristmill_engine::preset::{Lc0Preset, Weighted};
use gristmill_engine::{Batch, DataLoader, Error, Next};
use gristmill_generate::ChessOptions;
use gristmill_stages::stage::lane::lane_of;

use super::games::{changed, config, generate, ids, next, options, preset, single, with_cache, without_checksum};

const LANES: u32 = 24;

/// A folder with 120 short games as `.gz` and 120 in tars; made once.
fn crowd() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap().keep();
        generate(ChessOptions { plies_max: 10, ..options(&folder, 120) });
        generate(ChessOptions { plies_max: 14, first: 321, games_per_tar: Some(40), ..options(&folder, 120) });
        folder
    })
}

fn usual() -> DataLoaderConfig {
    let options = Lc0Preset { pool: 200, reservoir: Some(240), batch_size: 48, ..preset(crowd()) };
    DataLoaderConfig { lanes: Some(LANES), ..config(&options) }
}

/// All ranks of a run.
struct Ranks(Vec<DataLoader>);

impl Ranks {
    fn of(config: &DataLoaderConfig, world: u32) -> Self {
        let rank = |rank: u32| {
            let threads = Some([1, 2, 8][rank as usize % 3]);
            let (rank, world_size) = (Some(rank), Some(world));
            DataLoader::new(DataLoaderConfig { rank, world_size, threads, ..config.clone() }).unwrap()
        };
        Ranks((0..world).map(rank).collect())
    }

    /// The next batch of all ranks together: each row of it, as the bytes of all its tensors.
    fn next(&self) -> Vec<Vec<u8>> {
        let batches: Vec<Batch> = self.0.iter().map(|rank| next(rank, "").unwrap()).collect();
        assert!(batches.iter().all(|batch| batch.number == batches[0].number));
        let (world, own) = (batches.len(), batches[0].rows);
        let row = |g: usize| {
            let (batch, i) = (&batches[g % world], g / world);
            let bytes = batch.columns.iter().flat_map(|column| {
                let row = column.bytes().len() / own;
                column.bytes()[i * row..][..row].to_vec()
            });
            bytes.collect()
        };
        (0..own * world).map(row).collect()
    }

    fn many(&self, batches: usize) -> Vec<Vec<Vec<u8>>> {
        (0..batches).map(|_| self.next()).collect()
    }

    /// The states of all ranks, as a list of parts.
    fn state(&self) -> String {
        let parts: Vec<String> = self.0.iter().map(|rank| rank.state().unwrap()).collect();
        format!("[{}]", parts.join(","))
    }

    fn restored(config: &DataLoaderConfig, world: u32, state: &str) -> Self {
        let ranks = Ranks::of(config, world);
        ranks.0.iter().for_each(|rank| rank.restore(state).unwrap());
        ranks
    }
}

#[test]
fn any_number_of_ranks_gives_the_same_batches() {
    let whole = Ranks::of(&usual(), 1).many(12);
    assert_ne!(whole[0], whole[1]);
    for world in [2, 3, 4, 6, 8, 12, 24] {
        assert!(Ranks::of(&usual(), world).many(12) == whole, "{world} ranks");
    }
    let mut seen: Vec<_> = whole.iter().flatten().collect();
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 12 * 48 * 9 / 10, "a pass gives each position once: {}", seen.len());
}

#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    let whole = Ranks::of(&usual(), 1).many(14);
    let mut ranks = Ranks::of(&usual(), 4);
    let mut at = 0;
    for world in [3, 8, 1, 4, 12] {
        assert!(ranks.many(2) == whole[at..at + 2], "before {world} ranks");
        at += 2;
        let state = ranks.state();
        ranks = Ranks::restored(&usual(), world, &state);
    }
    assert!(ranks.many(2) == whole[at..at + 2]);
}

/// The state of a rank as it is before its first scan was complete (docs/format/state.md).
fn unscanned(state: &str) -> serde_json::Value {
    let mut state: serde_json::Value = serde_json::from_str(&without_checksum(state)).unwrap();
    for files in state["files"].as_object_mut().unwrap().values_mut() {
        *files = serde_json::json!([]);
    }
    for lane in state["outputs"][""]["lanes"].as_object_mut().unwrap().values_mut() {
        for branch in lane["branches"].as_array_mut().unwrap() {
            branch.as_object_mut().unwrap().remove("drawer");
        }
    }
    state
}

#[test]
fn parts_of_before_and_after_the_first_scan_go_on_together() {
    let config = usual();
    let expected = Ranks::of(&config, 1).many(3);
    let ranks = Ranks::of(&config, 2);
    let parts = ranks.0.iter().map(|rank| {
        rank.start().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let states = std::iter::repeat_with(|| rank.state().unwrap()).take_while(|_| Instant::now() < until);
        { states }.find(|state| !unfinished(state)).expect("a window")
    });
    let parts: Vec<String> = parts.collect();
    for late in 0..2 {
        let both: Vec<String> = (0..2)
            .map(|rank| if rank == late { unscanned(&parts[rank]).to_string() } else { parts[rank].clone() })
            .collect();
        let again = Ranks::restored(&config, 1, &format!("[{}]", both.join(",")));
        assert!(again.many(3) == expected, "rank {late} had not scanned");
    }
}

/// Whether a lane has no window yet.
fn unfinished(state: &str) -> bool {
    let state: serde_json::Value = serde_json::from_str(state).unwrap();
    let lanes = state["outputs"][""]["lanes"].as_object().unwrap();
    lanes.values().any(|lane| lane["branches"].as_array().unwrap().iter().any(|branch| branch["drawer"].is_null()))
}

#[test]
fn hanse_sampling_caches_joins_and_splits_have_lanes() {
    let one = Lc0Preset { pool: 200, batch_size: 24, ..single(crowd()) };
    let hanse = changed(&one, |pool, _| pool.hanse_sampling_threshold = Some(1));
    let cached = with_cache(hanse.clone(), 240, 4);
    let joined = |lanes: &Lc0Preset| Lc0Preset {
        directories: [2.0, 1.0].map(|weight| Weighted { directory: crowd().to_owned(), weight }).to_vec(),
        ..lanes.clone()
    };
    let small = Lc0Preset { pool: 100, reservoir: Some(96), batch_size: 24, ..preset(crowd()) };
    let sides = vec![("train".into(), 2), ("".into(), 3)];
    let split = config(&Lc0Preset { split: sides, ..small.clone() });
    for (what, config) in [("hanse", hanse), ("cache", cached), ("join", config(&joined(&small))), ("split", split)] {
        let config = DataLoaderConfig { lanes: Some(6), ..config };
        let whole = Ranks::of(&config, 1).many(10);
        let three = Ranks::of(&config, 3);
        assert!(three.many(5) == whole[..5], "{what}");
        assert!(Ranks::restored(&config, 2, &three.state()).many(5) == whole[5..], "{what}");
    }
}

#[test]
fn each_rank_decodes_its_share_only() {
    let mut seen = Vec::new();
    for rank in Ranks::of(&usual(), 3).0 {
        let own: BTreeSet<_> =
            (0..20).flat_map(|_| ids(&next(&rank, "").unwrap())).map(|(source, chunk, _)| (source, chunk)).collect();
        seen.push(own);
    }
    assert!(seen.iter().all(|own| own.len() > 30));
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        assert!(seen[a].is_disjoint(&seen[b]), "ranks {a} and {b}");
    }
    let tars = |own: &BTreeSet<(u64, u64)>| own.iter().filter(|(_, chunk)| *chunk > 0).count();
    assert!(seen.iter().all(|own| tars(own) > 10), "the games of a tar belong to several ranks");
}

#[test]
fn what_cannot_be_dealt_is_refused_with_advice() {
    let refused = |config: DataLoaderConfig| DataLoader::new(config).unwrap_err().to_string();
    let ranks = |lanes, world_size| DataLoaderConfig { lanes, world_size, ..usual() };
    assert!(refused(ranks(Some(24), Some(5))).contains("5 ranks cannot share 24 lanes; expected one of 1, 2, 3, 4"));
    assert!(refused(ranks(None, Some(2))).contains("set lanes = 48"));
    let options = Lc0Preset { pool: 200, reservoir: Some(240), batch_size: 50, ..preset(crowd()) };
    let text = refused(DataLoaderConfig { lanes: Some(24), world_size: Some(4), ..config(&options) });
    assert!(text.contains("50 rows for 4 ranks") && text.contains("48 would do"), "{text}");
    let small = |pool, reservoir| Lc0Preset { pool, reservoir, ..options.clone() };
    let text = refused(DataLoaderConfig { lanes: Some(24), ..config(&small(20, Some(240))) });
    assert!(text.contains("chunk_pool_size") && text.contains("20 chunks for 24 lanes"), "{text}");
    let text = refused(DataLoaderConfig { lanes: Some(24), ..config(&small(200, Some(20))) });
    assert!(text.contains("20 frames for 24 lanes"), "{text}");
    let text = refused(DataLoaderConfig { lanes: Some(24), ..config(&Lc0Preset { epochs: Some(1), ..options }) });
    assert!(text.contains("whole passes have no lanes"), "{text}");
    let mut dropping = ranks(Some(24), Some(2));
    let tensors = dropping.stage.iter_mut().find_map(|stage| stage.tensor_generator.as_mut()).unwrap();
    tensors.output.overflow_behavior = Overflow::DropNew;
    assert!(refused(dropping).contains("use BLOCK"));
}

#[test]
fn an_empty_lane_is_named() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 5));
    for watch in [false, true] {
        let options = Lc0Preset { watch: Some(watch), pool: 100, reservoir: Some(100), ..preset(folder.path()) };
        let loader = DataLoader::new(DataLoaderConfig { lanes: Some(48), ..config(&options) }).unwrap();
        match loader.next("", None) {
            Err(Error::Stage { message, .. }) => assert!(message.contains("of 48 has no chunk to draw"), "{message}"),
            other => panic!("{other:?}"),
        }
    }
}

/// A batch may have fewer rows than there are lanes. Whether it comes must not depend on which lane is quicker.
#[test]
fn a_lane_that_cannot_fill_ends_the_stream_before_batches_without_a_row_of_it() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 60));
    for file in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
        if lane_of(file.file_name().to_str().unwrap(), 0, 3) == 2 {
            let bytes = std::fs::read(file.path()).unwrap();
            std::fs::write(file.path(), &bytes[..bytes.len() / 2]).unwrap();
        }
    }
    for threads in [1, 2, 8] {
        let small = Lc0Preset { pool: 60, reservoir: Some(6), batch_size: 2, ..preset(folder.path()) };
        let config = DataLoaderConfig { lanes: Some(3), threads: Some(threads), ..config(&small) };
        match DataLoader::new(config).unwrap().next("", None) {
            Err(Error::Stage { message, .. }) => assert!(message.contains("chunks are bad"), "{message}"),
            other => panic!("with {threads} threads: {other:?}"),
        }
    }
}

/// A rank that has one empty lane alone must not wait while the others train.
#[test]
fn a_rank_of_empty_lanes_says_what_all_lanes_in_one_process_say() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 1));
    for watch in [false, true] {
        let options = Lc0Preset { watch: Some(watch), pool: 100, reservoir: Some(100), ..preset(folder.path()) };
        let refused = (0..4).filter(|rank| {
            let ranks = DataLoaderConfig { lanes: Some(4), rank: Some(*rank), world_size: Some(4), ..config(&options) };
            let next = DataLoader::new(ranks).unwrap().next("", Some(Duration::from_secs(20)));
            match next {
                Err(Error::Stage { message, .. }) => message.contains("of 4 has no chunk to draw"),
                Ok(Next::Pending) => panic!("rank {rank} waits"),
                _ => false,
            }
        });
        assert_eq!(refused.count(), 3, "one game is in one lane");
    }
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let two = Ranks::of(&usual(), 2);
    two.next();
    let even = two.state();
    next(&two.0[0], "").unwrap();
    let uneven = two.state();
    let restore = |state: &str| match Ranks::of(&usual(), 1).0[0].restore(state) {
        Err(Error::State(text)) => text,
        other => panic!("{other:?}"),
    };
    let text = restore(&uneven);
    assert!(text.contains("rank 0 of 2") && text.contains("before batch 2 and before batch 1"), "{text}");
    let part = two.0[1].state().unwrap();
    assert!(restore(&part).contains("it is the part of rank 1 of 2 and lacks lane 0"));
    assert!(restore(&format!("[{part},{part}]")).contains("both have lane 1 of output ``"));
    Ranks::of(&usual(), 1).0[0].restore(&even).unwrap();
    let same = Ranks::of(&usual(), 2);
    same.0[1].restore(&part).unwrap();
}

#[test]
fn lanes_share_memory_and_windows() {
    let promise = |lanes| gristmill_engine::pipeline::promise(&DataLoaderConfig { lanes, ..usual() }).unwrap();
    let (one, many) = (promise(None), promise(Some(LANES)));
    // Each lane may have its next chunk decoded; reservoirs, batches and threads are those of one.
    assert!(many - one < u64::from(LANES) * ((8 << 20) + (1 << 20)), "{one} {many}");
}
