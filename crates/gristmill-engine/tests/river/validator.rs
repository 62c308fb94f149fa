//! A validator between pool and unpacker: broken games give no rows, and are counted by rule; nothing else changes.

use std::collections::BTreeSet;
use std::path::Path;

use gristmill_engine::config::{BadChunks, ChunkValidatorConfig, DataLoaderConfig, StageConfig};
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error, Next};
use gristmill_format::chess::record::{V6_BYTES, at};
use gristmill_generate::ChessOptions;

use super::games::{all_ids, config, generate, hash, hashes, ids, next, options, preset, spoil};

/// Twelve games; 3 has a wrong result in a frame, 5 and 8 a policy that does not sum to 1.
fn games() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    generate(ChessOptions { games: 12, ..options(folder.path(), 12) });
    let game = |n: u64| folder.path().join(format!("training.{n}.gz"));
    spoil(&game(3), |i, frame| {
        if i == 7 {
            let q = frame.as_frame().result_q();
            frame.set_result_q(if q == 0.0 { 1.0 } else { -q });
        }
    });
    for n in [5, 8] {
        spoil(&game(n), |_, frame| {
            let played = usize::from(frame.as_frame().played_idx());
            let p = frame.as_frame().probability(played);
            frame.set_probability(played, if p < 0.5 { p + 0.3 } else { p - 0.3 });
        });
    }
    folder
}

/// Puts a validator before every unpacker of a graph.
fn validated(mut config: DataLoaderConfig, rules: &[&str]) -> DataLoaderConfig {
    let unpackers = config.stage.iter_mut().filter(|stage| stage.chunk_unpacker.is_some());
    let mut added = Vec::new();
    for unpacker in unpackers {
        let name = format!("validate_{}", unpacker.name);
        let rules = rules.iter().map(ToString::to_string).collect();
        added.push(StageConfig {
            input: std::mem::replace(&mut unpacker.input, vec![name.clone()]),
            chunk_validator: Some(ChunkValidatorConfig { rules, ..ChunkValidatorConfig::default() }),
            name,
            ..StageConfig::default()
        });
    }
    config.stage.append(&mut added);
    config
}

fn pass(folder: &Path) -> Lc0Preset {
    Lc0Preset { epochs: Some(1), sampling_rate: None, reservoir: Some(50), ..preset(folder) }
}

fn loader(config: &DataLoaderConfig) -> DataLoader {
    DataLoader::new(config.clone()).unwrap()
}

#[test]
fn broken_games_give_no_rows_and_are_counted_by_rule() {
    let folder = games();
    for (rules, dropped) in [(&["default"][..], vec![2, 4, 7]), (&["result"], vec![2]), (&["-policy_sum"], vec![2])] {
        let loader = loader(&validated(config(&pass(folder.path())), rules));
        let sources: BTreeSet<u64> = all_ids(&loader, "").into_iter().map(|id| id.0).collect();
        let expected: BTreeSet<u64> = (0..12).filter(|n| !dropped.contains(n)).collect();
        assert_eq!(sources, expected, "{rules:?}");
        let metrics = loader.metrics();
        let stage = metrics.of_kind("chunk_validator").next().unwrap();
        let count = |name: &str| stage.count(name).unwrap().total;
        assert_eq!((count("chunks"), count("dropped")), (12, dropped.len() as u64));
        let sums = if dropped.len() == 3 { 2 } else { 0 };
        let refused = ["result", "policy_sum", "moves"].map(|rule| count(&format!("refused_by_{rule}")));
        assert_eq!(refused, [1, sums, 0]);
        assert!(count("busy_ns") > 0);
        let bad = &metrics.bad_chunks;
        assert_eq!((bad.chunks, bad.by_kind["result"]), (dropped.len() as u64, 1));
        assert!(bad.latest.iter().any(|text| text.contains("training.3.gz, chunk 0, frame 6")), "{:?}", bad.latest);
        assert!(metrics.prometheus().contains("refused_by_result"));
    }
}

#[test]
fn threads_and_resumption_change_nothing() {
    let folder = games();
    let endless = |threads| Lc0Preset { threads: Some(threads), ..preset(folder.path()) };
    let run = |threads| hashes(&loader(&validated(config(&endless(threads)), &["default"])), "", 40);
    let expected = run(1);
    assert_eq!(run(2), expected);
    assert_eq!(run(8), expected);
    assert_ne!(hashes(&loader(&config(&endless(2))), "", 40), expected, "without it, other rows are there");
    for after in [0, 3, 17] {
        let first = loader(&validated(config(&endless(2)), &["default"]));
        (0..after).for_each(|_| drop(next(&first, "")));
        let second = loader(&validated(config(&endless(3)), &["default"]));
        second.restore(&first.state().unwrap()).unwrap();
        let rest: Vec<u64> = (after..40).map(|_| hash(&next(&second, "").unwrap())).collect();
        assert_eq!(rest, expected[after..], "after batch {after}");
    }
}

#[test]
fn what_one_output_refuses_another_still_gives() {
    let folder = games();
    let mut both = validated(config(&pass(folder.path())), &["default"]);
    for stage in config(&pass(folder.path())).stage {
        if stage.file_path_provider.is_some() || stage.chunk_source_loader.is_some() {
            continue;
        }
        let rename = |name: &String| if name.contains("load") { name.clone() } else { format!("plain_{name}") };
        let input = stage.input.iter().map(rename).collect();
        both.stage.push(StageConfig { name: format!("plain_{}", stage.name), input, ..stage });
    }
    let last = both.output[0].clone();
    both.output = vec![format!("strict:{last}"), format!("all:plain_{last}")];
    let loader = loader(&both);
    let sources = |alias| all_ids(&loader, alias).into_iter().map(|id| id.0).collect::<BTreeSet<u64>>().len();
    assert_eq!((sources("strict"), sources("all")), (9, 12));
}

#[test]
fn policies_hold_for_refused_games_too() {
    let folder = games();
    let raise = Lc0Preset { bad_chunks: BadChunks::Raise, ..pass(folder.path()) };
    let raising = loader(&validated(config(&raise), &["default"]));
    let mut raised = Vec::new();
    loop {
        match raising.next("", None) {
            Ok(Next::Batch(_)) => {}
            Ok(_) => break,
            Err(Error::Format(e)) => raised.push((e.kind().name(), e.place().frame)),
            Err(e) => panic!("{e}"),
        }
    }
    assert_eq!(raised, [("result", Some(6)), ("policy_sum", Some(0)), ("policy_sum", Some(0))]);
    let report = folder.path().join(".bad.jsonl");
    let quarantine =
        Lc0Preset { bad_chunks: BadChunks::Quarantine, quarantine: Some(report.clone()), ..pass(folder.path()) };
    all_ids(&loader(&validated(config(&quarantine), &["default"])), "");
    let kinds: Vec<serde_json::Value> =
        std::fs::read_to_string(report).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(kinds.iter().map(|line| line["kind"].as_str().unwrap()).collect::<Vec<_>>().len(), 3);
    assert!(kinds.iter().any(|line| line["kind"] == "result" && line["offset"] == 6 * V6_BYTES + at::RESULT_Q));
}

#[test]
fn where_no_game_is_sound_the_loader_says_so() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 3));
    for n in 1..=3 {
        spoil(&folder.path().join(format!("training.{n}.gz")), |_, frame| {
            frame.set_played_idx(1858);
        });
    }
    let error = loader(&validated(config(&preset(folder.path())), &["default"])).next("", None).unwrap_err();
    assert!(error.to_string().contains("all 3 chunks are bad") && error.to_string().contains("played_idx"), "{error}");
}

#[test]
fn graphs_that_make_no_sense_are_refused_with_the_stage() {
    let folder = games();
    let refused = |config: DataLoaderConfig| DataLoader::new(config).unwrap_err().to_string();
    let typo = refused(validated(config(&pass(folder.path())), &["policy"]));
    assert!(typo.contains("stage `validate_unpack`, field `rules`: no rule is called `policy`"), "{typo}");
    let none = refused(validated(config(&pass(folder.path())), &["men", "-men"]));
    assert!(none.contains("no rule is left"), "{none}");
    let mut late = validated(config(&pass(folder.path())), &["default"]);
    let frames = late.stage.iter().find(|stage| stage.chunk_unpacker.is_some()).unwrap().name.clone();
    late.stage.last_mut().unwrap().input = vec![frames];
    assert!(refused(late).contains("expected chunks"));
    let twice = validated(validated(config(&pass(folder.path())), &["result"]), &["policy_sum"]);
    // The second call named its stage as the first did.
    assert!(refused(twice.clone()).contains("two stages have this name"));
    let mut chained = twice;
    let last = chained.stage.len() - 1;
    chained.stage[last].name = "second".to_owned();
    let unpacker = chained.stage.iter_mut().find(|stage| stage.chunk_unpacker.is_some()).unwrap();
    unpacker.input = vec!["second".to_owned()];
    let loader = loader(&chained);
    let rows = std::iter::from_fn(|| next(&loader, "")).map(|batch| ids(&batch)).collect::<Vec<_>>().concat();
    assert_eq!(rows.iter().map(|id| id.0).collect::<BTreeSet<_>>().len(), 9);
    let counted: Vec<u64> =
        loader.metrics().of_kind("chunk_validator").map(|stage| stage.count("dropped").unwrap().total).collect();
    assert_eq!(counted, [1, 2], "in the order of the chain");
}
