//! Configurations that contradict themselves: each refused before anything runs, by a typed error with stage and field.
//! `graphs` has the everyday mistakes; here is what no graph can mean.

use gristmill_engine::config::{
    ChunkSourceSplitterConfig, DataLoaderConfig, JoinPositionsConfig, Lc0Preset, QueueConfig,
    ShufflingFrameSamplerConfig, StageConfig,
};
use gristmill_engine::{DataLoader, Error, Next};

use super::games::{config, mixed, preset};

fn split() -> DataLoaderConfig {
    config(&Lc0Preset { split: vec![("a".into(), 1), ("b".into(), 1)], ..preset(mixed()) })
}

/// Stage, field and message of the refusal, the same from a loader and from TOML and JSON read back.
fn refused(config: &DataLoaderConfig) -> (String, String, String) {
    let refusal = |made: Result<DataLoader, Error>| match made.map(|_| ()) {
        Err(Error::Config { stage, field, message }) => (stage.unwrap_or_default(), field.unwrap_or_default(), message),
        other => panic!("{other:?}"),
    };
    let found = refusal(DataLoader::new(config.clone()));
    let toml = DataLoaderConfig::from_toml(&config.to_toml().unwrap()).and_then(DataLoader::new);
    let json = DataLoaderConfig::from_json(&config.to_json()).and_then(DataLoader::new);
    assert_eq!((refusal(toml), refusal(json)), (found.clone(), found.clone()));
    found
}

fn at<'a>(config: &'a mut DataLoaderConfig, name: &str) -> &'a mut StageConfig {
    config.stage.iter_mut().find(|stage| stage.name == name).unwrap()
}

fn queue(name: &str) -> QueueConfig {
    QueueConfig { name: name.into(), ..QueueConfig::default() }
}

fn sampler(name: &str, input: &str) -> StageConfig {
    let shuffling_frame_sampler = Some(ShufflingFrameSamplerConfig::default());
    StageConfig { name: name.into(), input: vec![input.into()], shuffling_frame_sampler, ..StageConfig::default() }
}

fn join(name: &str, inputs: &[&str]) -> StageConfig {
    let input = inputs.iter().map(|name| (*name).to_owned()).collect();
    StageConfig {
        name: name.into(),
        input,
        join_positions: Some(JoinPositionsConfig::default()),
        ..StageConfig::default()
    }
}

fn splitter(name: &str, input: &str) -> StageConfig {
    let chunk_source_splitter = Some(ChunkSourceSplitterConfig { output: vec![queue("x")], weight: vec![1] });
    StageConfig { name: name.into(), input: vec![input.into()], chunk_source_splitter, ..StageConfig::default() }
}

type Change = fn(&mut DataLoaderConfig);

/// Every change to a sound graph is refused at this stage and field, in these words.
fn all_refused(cases: &[(&str, &str, &str, Change)]) {
    for (stage, field, words, change) in cases {
        let mut config = split();
        change(&mut config);
        let (found_stage, found_field, message) = refused(&config);
        assert_eq!((found_stage.as_str(), found_field.as_str()), (*stage, *field), "{message}");
        assert!(message.contains(words), "{stage}.{field}: {message}");
    }
}

#[test]
fn a_stage_is_of_one_kind() {
    all_refused(&[
        ("load", "chunk_source_loader", "this beside `file_path_provider`", |c| {
            at(c, "load").file_path_provider = Some(Default::default());
        }),
        ("tensors_a", "tensor_generator", "this beside `chunk_unpacker`", |c| {
            at(c, "tensors_a").chunk_unpacker = Some(Default::default());
        }),
        ("pool_a", "", "no kind", |c| at(c, "pool_a").shuffling_chunk_pool = None),
        ("idle", "", "no kind", |c| c.stage.push(StageConfig { name: "idle".into(), ..StageConfig::default() })),
    ]);
}

#[test]
fn names_are_there_and_their_own() {
    all_refused(&[
        ("load", "", "two stages", |c| {
            let again = at(c, "load").clone();
            c.stage.push(again);
        }),
        ("", "", "needs a name", |c| c.stage.push(sampler("", "unpack_a"))),
        ("a.b", "", "without `.`", |c| c.stage.push(sampler("a.b", "unpack_a"))),
        ("a:b", "", "without `.`", |c| c.stage.push(sampler("a:b", "unpack_a"))),
        ("split", "output.name", "two outputs are called `a`", |c| {
            at(c, "split").chunk_source_splitter.as_mut().unwrap().output[1].name = "a".into();
        }),
        ("split", "output.name", "two outputs are called ``", |c| {
            let splitter = at(c, "split").chunk_source_splitter.as_mut().unwrap();
            splitter.output.iter_mut().for_each(|output| output.name.clear());
        }),
    ]);
}

#[test]
fn a_stage_reads_as_many_as_its_kind_can() {
    all_refused(&[
        ("load", "input", "found 0 inputs", |c| at(c, "load").input.clear()),
        ("unpack_a", "input", "found 2 inputs", |c| at(c, "unpack_a").input.push("pool_b".into())),
        ("pool_a", "input", "found 2 inputs", |c| at(c, "pool_a").input.push("split.b".into())),
        ("tensors_a", "input", "found 2 inputs", |c| at(c, "tensors_a").input.push("sample_b".into())),
        ("split", "input", "found 3 inputs", |c| at(c, "split").input = vec!["load".into(); 3]),
        ("files", "input", "no input", |c| at(c, "files").input.push("load".into())),
        ("both", "input", "found 0 inputs", |c| c.stage.push(join("both", &[]))),
        ("both", "weight", "1 weights for 2 inputs", |c| {
            let weights = JoinPositionsConfig { weight: vec![1.0], ..JoinPositionsConfig::default() };
            c.stage.push(StageConfig { join_positions: Some(weights), ..join("both", &["unpack_a", "unpack_b"]) });
            at(c, "sample_a").input = vec!["both".into()];
            c.stage.retain(|stage| !stage.name.ends_with("_b") || stage.name == "unpack_b" || stage.name == "pool_b");
            c.output.truncate(1);
        }),
        ("split", "weight", "3 weights", |c| {
            at(c, "split").chunk_source_splitter.as_mut().unwrap().weight = vec![1, 2, 3];
        }),
        ("split", "weight", "positive sum", |c| {
            at(c, "split").chunk_source_splitter.as_mut().unwrap().weight = vec![0, 0];
        }),
    ]);
}

#[test]
fn nothing_reads_what_it_gives() {
    const WORDS: &str = "what it gives itself";
    all_refused(&[
        ("sample_a", "input", WORDS, |c| at(c, "sample_a").input = vec!["sample_a".into()]),
        ("split", "input", WORDS, |c| at(c, "split").input = vec!["split.a".into()]),
        ("sample_a", "input", WORDS, |c| {
            c.stage.push(sampler("again", "sample_a"));
            at(c, "sample_a").input = vec!["again".into()];
        }),
        ("sample_a", "input", WORDS, |c| {
            c.stage.push(join("round", &["unpack_a", "sample_a"]));
            at(c, "sample_a").input = vec!["round".into()];
        }),
        // Nobody waits for these, and they make no more sense.
        ("x", "input", WORDS, |c| c.stage.extend([splitter("x", "y.x"), splitter("y", "x.x")])),
        ("x", "input", WORDS, |c| c.stage.extend([sampler("x", "y"), join("y", &["x"])])),
    ]);
}

#[test]
fn outputs_are_batches_under_names_of_their_own() {
    all_refused(&[
        ("", "output", "did you mean `tensors_a`", |c| c.output.push("c:tensors_c".into())),
        ("", "output", "no stage is called ``", |c| c.output.push("c:".into())),
        ("", "output", "no output `x`", |c| c.output[0] = "a:tensors_a.x".into()),
        ("", "output", "alias `a`", |c| c.output[1] = "a:tensors_b".into()),
        ("", "output", "alias ``", |c| c.output = vec!["tensors_a".into(), "tensors_b".into()]),
        ("", "output", "no batches", |c| c.output[0] = "a:sample_a".into()),
        ("tensors_a", "output", "read by both", |c| c.output.push("c:tensors_a".into())),
    ]);
}

#[test]
fn an_alias_that_is_not_there_is_told_with_those_that_are() {
    let loader = DataLoader::new(split()).unwrap();
    for alias in ["", "c", "tensors_a", "A"] {
        match loader.next(alias, None) {
            Err(Error::UnknownAlias { alias: told, known }) => {
                assert_eq!((told.as_str(), known.as_str()), (alias, "`a`, `b`"));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(loader.next("a", None), Ok(Next::Batch(_))), "a wrong question harms nothing");
    let none = DataLoader::new(DataLoaderConfig { output: Vec::new(), ..split() }).unwrap();
    assert!(none.outputs().is_empty());
    assert!(matches!(none.next("", None), Err(Error::UnknownAlias { known, .. }) if known.is_empty()));
}
