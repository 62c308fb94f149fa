//! Graphs as lc0 writes them, and ours, through text, bytes, TOML and JSON and back; and what is refused where.

use super::*;
use crate::config::*;

/// A whole training configuration, with the parts that are not about data.
const TRAINING: &str = include_str!("training.textproto");

#[test]
fn a_training_configuration_is_read_as_lc0_means_it() {
    let config = DataLoaderConfig::from_textproto(TRAINING).unwrap();
    let stage = |name: &str| config.stage.iter().find(|stage| stage.name == name).unwrap();
    assert_eq!(stage("files").file_path_provider.as_ref().unwrap().directory.to_str(), Some("/data/games"));
    let load = stage("load").chunk_source_loader.as_ref().unwrap();
    assert_eq!((load.threads, load.frame_format), (Some(2), FrameFormat::V7TrainingData));
    let split = stage("split").chunk_source_splitter.as_ref().unwrap();
    assert_eq!(
        (split.output[1].name.as_str(), split.output[1].queue_capacity, split.output[0].queue_capacity),
        ("test", 9, 4)
    );
    assert_eq!(split.weight, [9, 1]);
    let pool = stage("pool").shuffling_chunk_pool.as_ref().unwrap();
    assert_eq!((pool.chunk_pool_size, pool.key_order, pool.chunk_loading_threads), (250_000, KeyOrder::Bytes, None));
    let extract = stage("all").simple_chunk_extractor.as_ref().unwrap();
    assert_eq!((extract.order, extract.key_order), (ExtractOrder::Shuffled, KeyOrder::Bytes));
    assert_eq!(stage("unpack").chunk_unpacker.as_ref().unwrap().position_sampling_rate, Some(0.03));
    let sampler = stage("sample").shuffling_frame_sampler.as_ref().unwrap();
    assert_eq!((sampler.threads, sampler.reservoir_size_per_thread, sampler.drain), (1, 5000, false));
    let tensors = stage("train_tensors").tensor_generator.as_ref().unwrap();
    assert_eq!((tensors.batch_size, tensors.last_batch), (512, LastBatch::Drop));
    assert_eq!(tensors.output.overflow_behavior, Overflow::KeepNewest);
    assert_eq!(config.output, ["train_tensors", "test:test_tensors"]);
}

#[test]
fn the_message_alone_and_an_empty_text_are_read_too() {
    let whole = DataLoaderConfig::from_textproto(TRAINING).unwrap();
    let inner = TRAINING.split_once("data_loader {").unwrap().1.split_once("\n}\nmodel").unwrap().0;
    assert_eq!(DataLoaderConfig::from_textproto(inner).unwrap(), whole);
    assert_eq!(DataLoaderConfig::from_textproto(" # nothing\n").unwrap(), DataLoaderConfig::default());
    assert_eq!(DataLoaderConfig::from_textproto("data_loader {}").unwrap(), DataLoaderConfig::default());
    assert_eq!(DataLoaderConfig::from_proto_bytes(b"").unwrap(), DataLoaderConfig::default());
}

#[test]
fn what_lc0_would_do_anyway_is_not_written() {
    let config = DataLoaderConfig::from_textproto(TRAINING).unwrap();
    let text = config.to_textproto().unwrap();
    for ours in ["key_order", "drain", "last_batch", "watch", "tensors:", "queue_capacity: 4", "seed"] {
        assert!(!text.contains(ours), "{ours} in\n{text}");
    }
    assert!(text.starts_with("data_loader {\n  stage: [{\n    name: \"files\""), "{text}");
    assert_eq!(DataLoaderConfig::from_textproto(&text).unwrap(), config);
}

/// Error of a text, with its stage and field.
fn refused(text: &str) -> (String, Option<String>, Option<String>) {
    match DataLoaderConfig::from_textproto(text) {
        Err(Error::Config { at: Some((line, column)), stage, field, message }) => {
            (format!("line {line}, column {column}: {message}"), stage, field)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn faults_have_line_column_stage_and_field() {
    for (from, to, says, stage, field) in [
        (
            "chunk_pool_size",
            "chunk_pol_size",
            "line 20, column 68: `ShufflingChunkPoolConfig` has no `chunk_pol_size`; \
          did you mean `chunk_pool_size`?",
            "pool",
            "chunk_pol_size",
        ),
        (
            "KEEP_NEWEST",
            "KEEP_NEWES",
            "line 28, column 68: `OverflowBehavior` has no `KEEP_NEWES`; did you mean \
          `KEEP_NEWEST`?",
            "train_tensors",
            "overflow_behavior",
        ),
        ("threads: 2", "threads: -2", "line 11, column 36: expected value to be", "load", "threads"),
        ("threads: 2", "threads: 2 threads: 3", "line 11, column 47: 'threads' is already set", "load", "threads"),
        (": 5000", ": five", "line 25, column 93: expected", "sample", "reservoir_size_per_thread"),
        (
            "shuffling_frame_sampler",
            "frame_sampler",
            "line 25, column 40: `StageConfig` has no `frame_sampler`",
            "sample",
            "frame_sampler",
        ),
    ] {
        assert!(TRAINING.contains(from));
        let (message, at, of) = refused(&TRAINING.replacen(from, to, 1));
        assert!(message.contains(says), "{message}");
        assert_eq!((at.as_deref(), of.as_deref()), (Some(stage), Some(field)), "{message}");
    }
    for (text, says) in [
        ("data_loader { memory: \"2 potatoes\" }", "line 1, column 15: `2 potatoes` is no size"),
        ("data_loader {\n  stage {", "line 2, column 10: the text ends"),
        ("training { }\nmodel { }", "line 1, column 1: there is no `data_loader { … }`"),
        ("data_loader { } data_loader { }", "line 1, column 29: 'data_loader' is already set"),
        ("stages { }", "no `data_loader"),
        ("seed: 3 stages { }", "`DataLoaderConfig` has no `stages`; did you mean `stage`?"),
        ("output: 'a\n'", "line 1, column 9"),
        ("data_loader { [a.b/c.D] { } }", "line 1, column 15"),
    ] {
        let (message, ..) = refused(text);
        assert!(message.contains(says), "{text}: {message}");
    }
}

#[test]
fn bytes_say_in_which_stage_they_are_wrong() {
    let config = DataLoaderConfig {
        stage: vec![StageConfig { name: "s".into(), tensor_generator: Some(Default::default()), ..Default::default() }],
        ..Default::default()
    };
    let bytes = config.to_proto_bytes().unwrap();
    assert_eq!(DataLoaderConfig::from_proto_bytes(&bytes).unwrap(), config);
    let desc = schema::message(LOADER).unwrap();
    let broken = json!({"stage": [{"name": "s", "tensor_generator": {"encoder": 7}}]});
    let broken = schema::encode(&desc, broken.as_object().unwrap()).unwrap();
    let error = DataLoaderConfig::from_proto_bytes(&broken).unwrap_err().to_string();
    assert!(error.starts_with("stage `s`, field `encoder`: invalid type: integer `7`"), "{error}");
    for cut in 1..bytes.len() {
        let _ = DataLoaderConfig::from_proto_bytes(&bytes[..cut]);
    }
}

#[test]
fn what_protobuf_cannot_hold_is_refused() {
    let one = |stage: StageConfig| DataLoaderConfig { stage: vec![stage], ..Default::default() };
    let none = TensorGeneratorConfig { tensors: Vec::new(), ..Default::default() };
    let error = one(StageConfig { tensor_generator: Some(none), ..Default::default() }).to_textproto().unwrap_err();
    assert!(error.to_string().contains("`tensors`: an empty list"), "{error}");
    let endless = JoinPositionsConfig { weight: vec![f64::INFINITY], ..Default::default() };
    let error = one(StageConfig { join_positions: Some(endless), ..Default::default() }).to_proto_bytes().unwrap_err();
    assert!(error.to_string().contains("`weight`"), "{error}");
}
