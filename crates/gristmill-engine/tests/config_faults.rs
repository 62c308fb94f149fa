//! Contradictions and broken texts through every form of a config: TOML, JSON (which Python's dataclasses become),
//! protobuf text and protobuf bytes. Each is refused with its stage and field, in texts with line and column.

use gristmill_engine::config::{
    ChunkUnpackerConfig, DataLoaderConfig, JoinPositionsConfig, QueueConfig, StageConfig, TextForm,
};
use gristmill_engine::{DataLoader, Error};

const GRAPH: &str = r#"
output = ["tensors", "test:test_tensors"]
stage = [
  { name = "files", file_path_provider = { directory = "games" } },
  { name = "load", input = ["files"], chunk_source_loader = {} },
  { name = "split", input = ["load"], chunk_source_splitter = { output = [{ name = "train" }, { name = "test" }], weight = [9, 1] } },
  { name = "pool", input = ["split.train", "unpack.ahead"], shuffling_chunk_pool = { position_cache_size = 9, cachehit_output = { name = "hits" } } },
  { name = "judge", input = ["pool"], chunk_validator = {} },
  { name = "unpack", input = ["judge"], chunk_unpacker = { position_count = 1, prefetch_count = 4, prefetch_output = { name = "ahead" } } },
  { name = "both", input = ["unpack", "pool.hits"], join_positions = {} },
  { name = "sample", input = ["both"], shuffling_frame_sampler = { reservoir_size_per_thread = 40 } },
  { name = "tensors", input = ["sample"], tensor_generator = { batch_size = 16 } },
  { name = "all", input = ["split.test"], simple_chunk_extractor = {} },
  { name = "unpack_all", input = ["all"], chunk_unpacker = { position_sampling_rate = 0.5 } },
  { name = "test_tensors", input = ["unpack_all"], tensor_generator = {} },
]
"#;

fn at<'a>(config: &'a mut DataLoaderConfig, name: &str) -> &'a mut StageConfig {
    config.stage.iter_mut().find(|stage| stage.name == name).unwrap()
}

fn reads(config: &mut DataLoaderConfig, name: &str, inputs: &[&str]) {
    at(config, name).input = inputs.iter().map(|input| (*input).to_owned()).collect();
}

fn unpacker(config: &mut DataLoaderConfig, name: &str) -> ChunkUnpackerConfig {
    at(config, name).chunk_unpacker.clone().unwrap()
}

/// Stage, field, words of the refusal, and the change that is refused.
type Case = (Option<&'static str>, Option<&'static str>, &'static str, fn(&mut DataLoaderConfig));

const CONTRADICTIONS: [Case; 27] = [
    (Some("both"), None, "several kinds", |c| at(c, "both").chunk_unpacker = Some(Default::default())),
    (Some("judge"), None, "no kind", |c| at(c, "judge").chunk_validator = None),
    (Some("all"), None, "two stages", |c| at(c, "unpack_all").name = "all".into()),
    (Some(""), None, "needs a name", |c| at(c, "both").name = String::new()),
    (Some("a.b"), None, "without `.`", |c| at(c, "both").name = "a.b".into()),
    (Some("split"), Some("output.name"), "two outputs are called `train`", |c| {
        at(c, "split").chunk_source_splitter.as_mut().unwrap().output[1].name = "train".into();
    }),
    (Some("pool"), Some("output.name"), "two outputs are called ``", |c| {
        at(c, "pool").shuffling_chunk_pool.as_mut().unwrap().cachehit_output = Some(QueueConfig::default());
        reads(c, "both", &["unpack", "pool"]);
    }),
    (Some("unpack"), Some("output.name"), "two outputs are called ``", |c| {
        let twice = Some(QueueConfig::default());
        at(c, "unpack").chunk_unpacker = Some(ChunkUnpackerConfig { prefetch_output: twice, ..unpacker(c, "unpack") });
        reads(c, "pool", &["split.train", "unpack"]);
    }),
    (Some("files"), Some("input"), "no input", |c| reads(c, "files", &["load"])),
    (Some("load"), Some("input"), "found 0 inputs", |c| reads(c, "load", &[])),
    (Some("both"), Some("input"), "found 0 inputs", |c| reads(c, "both", &[])),
    (Some("judge"), Some("input"), "found 2 inputs", |c| reads(c, "judge", &["pool", "all"])),
    (Some("pool"), Some("input"), "second input", |c| reads(c, "pool", &["split.train"])),
    (Some("pool"), Some("input"), "found 3 inputs", |c| reads(c, "pool", &["split.train", "unpack.ahead", "load"])),
    (Some("sample"), Some("input"), "expected frames", |c| reads(c, "sample", &["pool"])),
    (Some("sample"), Some("input"), "did you mean `both`", |c| reads(c, "sample", &["boht"])),
    (Some("both"), Some("input"), "no output `hist`; it has ``, `hits`", |c| {
        reads(c, "both", &["unpack", "pool.hist"])
    }),
    (Some("all"), Some("output"), "read by both", |c| reads(c, "unpack", &["all"])),
    (Some("again"), Some("input"), "what it gives itself", |c| {
        let again = StageConfig { name: "again".into(), ..at(c, "sample").clone() };
        c.stage.insert(0, again);
        reads(c, "again", &["sample"]);
        reads(c, "sample", &["again"]);
        reads(c, "tensors", &["both"]);
    }),
    (Some("ring"), Some("input"), "what it gives itself", |c| {
        let join_positions = Some(JoinPositionsConfig::default());
        c.stage.push(StageConfig { name: "ring".into(), join_positions, ..StageConfig::default() });
        reads(c, "ring", &["ring"]);
    }),
    (Some("pool"), Some("input"), "this very pool", |c| {
        let ahead = unpacker(c, "unpack");
        at(c, "unpack_all").chunk_unpacker = Some(ahead);
        reads(c, "pool", &["split.train", "unpack_all.ahead"]);
    }),
    (Some("split"), Some("weight"), "1 weights for 2 outputs", |c| {
        at(c, "split").chunk_source_splitter.as_mut().unwrap().weight.truncate(1);
    }),
    (Some("sample"), Some("output.queue_capacity"), "at least 1", |c| {
        at(c, "sample").shuffling_frame_sampler.as_mut().unwrap().output.queue_capacity = 0;
    }),
    (None, Some("output"), "two outputs have the alias ``", |c| c.output[1] = "test_tensors".into()),
    (None, Some("output"), "gives no batches", |c| c.output[1] = "test:all".into()),
    (None, Some("output"), "did you mean `tensors`", |c| c.output[0] = "tenors".into()),
    (None, Some("output"), "no output `x`", |c| c.output[0] = "tensors.x".into()),
];

fn text_at(text: &str, (line, column): (usize, usize)) -> String {
    let line = text.lines().nth(line - 1).expect("a line of the text");
    line.chars().skip(column - 1).collect()
}

#[test]
fn every_contradiction_is_refused_in_every_form_by_stage_and_field() {
    let sound = DataLoaderConfig::from_toml(GRAPH).unwrap();
    DataLoader::new(sound.clone()).unwrap();
    for (stage, field, says, change) in CONTRADICTIONS {
        let mut config = sound.clone();
        change(&mut config);
        let (toml, text) = (config.to_toml().unwrap(), config.to_textproto().unwrap());
        let read = [
            (None, "", DataLoaderConfig::from_json(&config.to_json())),
            (None, "", DataLoaderConfig::from_proto_bytes(&config.to_proto_bytes().unwrap())),
            (Some(TextForm::Toml), toml.as_str(), DataLoaderConfig::from_toml(&toml)),
            (Some(TextForm::Textproto), text.as_str(), DataLoaderConfig::from_textproto(&text)),
        ];
        for (form, text, read) in read {
            let error = DataLoader::new(read.unwrap()).err().unwrap_or_else(|| panic!("{says}: accepted"));
            let error = form.map_or(error.clone(), |form| form.place(text, error));
            let Error::Config { at, stage: of, field: found, message } = &error else { panic!("{error}") };
            assert_eq!((of.as_deref(), found.as_deref()), (stage, field), "{error}");
            assert!(message.contains(says), "{error}");
            assert_eq!(at.is_some(), form.is_some());
            let Some(at) = *at else { continue };
            let there = text_at(text, at);
            let named = field.is_some_and(|field| field.split('.').any(|step| there.starts_with(step)));
            // A field that the text leaves out is looked for at its stage.
            let of_stage = ["[[stage]]", "{", "stage"].iter().any(|start| there.starts_with(start));
            assert!(named || of_stage && stage.is_some(), "{error}\n{there}\n{text}");
            assert!(error.to_string().starts_with(&format!("line {}, column {}: ", at.0, at.1)));
        }
    }
}

/// A text or bytes in one of the forms, where it is refused, stage and field, and words of the refusal.
type Broken = (Form, Option<(usize, usize)>, Option<&'static str>, Option<&'static str>, &'static str);

enum Form {
    Toml(&'static str),
    Json(&'static str),
    Textproto(&'static str),
    Bytes(&'static [u8]),
}

use Form::{Bytes, Json, Textproto, Toml};

const BROKEN: [Broken; 26] = [
    (
        Toml("[[stage]]\nname = \"p\"\n[stage.join_position]"),
        Some((3, 8)),
        Some("p"),
        Some("join_position"),
        "did you mean `join_positions`",
    ),
    (
        Toml("[[stage]]\nname = \"p\"\njoin_positions = { wait = [1] }"),
        Some((3, 20)),
        Some("p"),
        Some("wait"),
        "unknown field `wait`",
    ),
    (
        Toml("[[stage]]\nname = \"p\"\n[stage.tensor_generator]\nlast_batch = \"kep\""),
        Some((4, 14)),
        Some("p"),
        Some("last_batch"),
        "did you mean `keep`",
    ),
    (
        Toml("[[stage]]\nname = \"p\"\n[stage.tensor_generator]\nbatch_size = -3"),
        Some((4, 14)),
        Some("p"),
        Some("batch_size"),
        "-3",
    ),
    (Toml("seed = 1\nstage = 3"), Some((2, 9)), None, None, "invalid type"),
    (Toml("memory = \"2 potatoes\""), Some((1, 10)), None, Some("memory"), "no size"),
    (Toml("[[stage]]\nname = \"p\"\nname = \"q\""), Some((3, 1)), None, None, "duplicate key"),
    (Toml("[[stage"), Some((1, 8)), None, None, ""),
    (
        Toml("[[stage]]\nname = \"p\"\njoin_positions = { weight = [1, nan] }"),
        Some((3, 33)),
        Some("p"),
        Some("weight"),
        "expected a finite number",
    ),
    (
        Json("{\"stage\": [{\"name\": \"p\",\n\"join_position\": {}}]}"),
        Some((2, 1)),
        Some("p"),
        Some("join_position"),
        "did you mean `join_positions`",
    ),
    (
        Json("{\"stage\": [{\"name\": \"p\", \"join_positions\": {\"wait\": 1}}]}"),
        Some((1, 45)),
        Some("p"),
        Some("wait"),
        "unknown field `wait`",
    ),
    (
        Json("{\"stage\": [{\"name\": \"p\", \"tensor_generator\": {\"batch_size\": -3}}]}"),
        Some((1, 61)),
        Some("p"),
        Some("batch_size"),
        "-3",
    ),
    (Json("{\"seed\": \"x\"}"), Some((1, 10)), None, Some("seed"), "invalid type"),
    (Json("{\"seed\": 1"), Some((1, 10)), None, None, "EOF"),
    (Json("{} {}"), Some((1, 4)), None, None, "trailing"),
    (Json("{\"seed\": 1, \"seed\": 2}"), Some((1, 18)), None, None, "duplicate field `seed`"),
    (
        Textproto("stage { name: 'p' join_position {} }"),
        Some((1, 19)),
        Some("p"),
        Some("join_position"),
        "did you mean `join_positions`",
    ),
    (
        Textproto("stage {\n name: 'p'\n join_positions { weight: inf } }"),
        Some((3, 19)),
        Some("p"),
        Some("weight"),
        "finite",
    ),
    (
        Textproto("data_loader {\n stage { name: 'p' tensor_generator { batch_size: -3 } } }"),
        Some((2, 51)),
        Some("p"),
        Some("batch_size"),
        "-3",
    ),
    (Textproto("stage { name: 'p' tensor_generator { batch_size: 3 }"), Some((1, 53)), None, None, "`}`"),
    (Bytes(b"\xff"), None, None, None, "no serialized `lczero.training.DataLoaderConfig`"),
    (Bytes(b"data_loader { }"), None, None, None, "no serialized `lczero.training.DataLoaderConfig`"),
    (Bytes(b"\x0a\x05abc"), None, None, None, "no serialized `lczero.training.DataLoaderConfig`"),
    (Bytes(b"\x7a\x01a"), None, None, None, "has no field 15"),
    // A stage called p; in it a tensor generator with field 99, then one whose queue has an overflow behaviour 9.
    (Bytes(b"\x0a\x08\x0a\x01p\x4a\x03\x98\x06\x01"), None, Some("p"), Some("tensor_generator"), "has no field 99"),
    (Bytes(b"\x0a\x09\x0a\x01p\x4a\x04\x1a\x02\x18\x09"), None, Some("p"), Some("overflow_behavior"), "no value 9"),
];

#[test]
fn what_cannot_be_read_is_refused_in_every_form_at_its_place() {
    for (input, place, stage, field, says) in &BROKEN {
        let read = match input {
            Toml(text) => DataLoaderConfig::from_toml(text),
            Json(text) => DataLoaderConfig::from_json(text),
            Textproto(text) => DataLoaderConfig::from_textproto(text),
            Bytes(bytes) => DataLoaderConfig::from_proto_bytes(bytes),
        };
        let error = read.err().unwrap_or_else(|| panic!("{says}: accepted"));
        let Error::Config { at, stage: of, field: found, message } = &error else { panic!("{error}") };
        assert_eq!((*at, of.as_deref(), found.as_deref()), (*place, *stage, *field), "{error}");
        assert!(message.contains(says), "{error}");
    }
}

#[test]
fn an_alias_that_nothing_has_is_refused_with_those_there_are() {
    let empty = tempfile::tempdir().unwrap();
    let graph = GRAPH.replace("\"games\"", &format!("{:?}", empty.path()));
    let loader = DataLoader::new(DataLoaderConfig::from_toml(&graph).unwrap()).unwrap();
    match loader.next("validation", None) {
        Err(Error::UnknownAlias { alias, known }) => {
            assert_eq!((alias.as_str(), known.as_str()), ("validation", "``, `test`"));
        }
        other => panic!("{other:?}"),
    }
}

/// A configuration as upstream writes it.
const TRAINING: &str = include_str!("../../gristmill-stages/src/config/proto/training.textproto");

#[test]
fn faults_of_the_graph_are_placed_in_the_text() {
    assert!(DataLoader::new(DataLoaderConfig::from_textproto(TRAINING).unwrap()).is_ok());
    for (from, to, says) in [
        ("\"split.train\"", "\"split.tran\"", "line 20, column 24: stage `split` has no output `tran`"),
        ("position_count: 1", "position_count: 0", "line 23, column 60: expected at least 1"),
        ("weight: [9, 1]", "weight: [9]", "line 17, column 7: 1 weights for 2 outputs"),
        ("output: \"train_tensors\"", "output: \"sample\"", "line 31, column 3: output `` is stage `sample`"),
        ("join_positions {}", "join_positions {} chunk_unpacker {}", "line 24, column 3: has several kinds"),
        ("join_positions {}", "", "line 24, column 3: has no kind"),
    ] {
        assert!(TRAINING.contains(from));
        let text = TRAINING.replacen(from, to, 1);
        let error = DataLoader::new(DataLoaderConfig::from_textproto(&text).unwrap()).unwrap_err();
        let Error::Config { at: Some((line, column)), message, .. } = TextForm::Textproto.place(&text, error) else {
            panic!("{from}");
        };
        let placed = format!("line {line}, column {column}: {message}");
        assert!(placed.contains(says), "{placed}");
    }
}
