//! Replays the corpus of the `config` fuzz target on stable Rust through the same body.
//! `cargo test -p gristmill-engine --test parts config_corpus -- --ignored` writes the seeds again.
#![allow(unreachable_pub)]

use std::path::PathBuf;

use gristmill_engine::preset::{Lc0Preset, Weighted, lc0};

#[path = "../../../fuzz/src/config.rs"]
mod bodies;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/config")
}

#[test]
fn every_file_of_the_corpus_keeps_the_promises() {
    let mut files: Vec<_> = std::fs::read_dir(corpus()).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "the corpus is missing");
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let outcome = std::panic::catch_unwind(|| bodies::config(&bytes));
        assert!(outcome.is_ok(), "{} breaks a promise", file.display());
    }
}

#[test]
#[ignore = "writes the seeds into the corpus"]
fn write_seeds() {
    let directory = |name: &str| Weighted { directory: name.into(), weight: 1.0 };
    let preset = Lc0Preset {
        directories: vec![directory("a"), directory("b")],
        split: vec![("train".into(), 9), ("test".into(), 1)],
        ..Lc0Preset::default()
    };
    let config = lc0(&preset).unwrap();
    let hostile = "[[stage]]\nname = \"j\"\n[stage.join_positions]\nweight = [nan, inf, -1.0, 1e308]\n";
    let overflow = config
        .to_toml()
        .unwrap()
        .replace("reservoir_size_per_thread = 32768", "reservoir_size_per_thread = 18446744073709551615");
    let state = r#"{"gristmill_state": 1, "config": {}, "seed": 18446744073709551615, "files": {}, "outputs": {}}"#;
    for (name, text) in [
        ("graph.toml", config.to_toml().unwrap()),
        ("graph.json", config.to_json()),
        ("preset.json", serde_json::to_string(&preset).unwrap()),
        ("hostile.toml", hostile.to_owned()),
        ("overflow.toml", overflow),
        ("state.json", state.to_owned()),
        ("graph.textproto", config.to_textproto().unwrap()),
        ("training.textproto", format!("name: 'x' {} model {{ a <b: [1, -inf]> }}", config.to_textproto().unwrap())),
        ("deep.textproto", "data_loader {".repeat(64)),
        ("bounds.json", config.to_json().replacen('{', r#"{"max_chunk_bytes":18446744073709551615,"memory":1,"#, 1)),
    ] {
        std::fs::write(corpus().join(name), text).unwrap();
    }
    std::fs::write(corpus().join("graph.binpb"), config.to_proto_bytes().unwrap()).unwrap();
}
