//! `tokenizer fit`: from generated games through a pack to an artifact that the encoders take.

use std::path::Path;

use crate::command::{run, text};
use serde_json::Value;

fn pack(folder: &Path) -> std::path::PathBuf {
    let (raw, pack) = (folder.join("raw"), folder.join("pack"));
    let words = ["generate", "2048", text(&raw), "--games", "4", "--seed", "3", "--depth", "0", "--json"];
    run(&words).ok();
    run(&["pack", "--input", text(&raw), "--output", text(&pack), "--json"]).ok();
    pack
}

#[test]
fn a_pack_gives_a_tokenizer() {
    let folder = tempfile::tempdir().unwrap();
    let (pack, out) = (pack(folder.path()), folder.path().join("tokenizer.json"));
    let summary = folder.path().join("summary.json");
    let words = ["tokenizer", "fit", text(&pack), "--output", text(&out), "--num-bins", "8", "--json"];
    let ran = run(&[&words[..], &["--summary-out", text(&summary), "--indent", "0"]].concat()).ok().json();
    let read = |path: &Path| -> Value { serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap() };
    assert_eq!(read(&summary), ran);
    let artifact = read(&out);
    assert_eq!(std::fs::read_to_string(&out).unwrap().lines().count(), 1);
    assert_eq!(artifact["vocab_order"].as_array().unwrap().len(), 11);
    for (i, name) in ["search", "tuple10", "tuple11"].into_iter().enumerate() {
        let edges: Vec<f64> = serde_json::from_value(artifact[name]["bin_edges"].clone()).unwrap();
        assert!(edges.len() == 9 && edges.windows(2).all(|pair| pair[0] < pair[1]), "{name}: {edges:?}");
        assert_eq!(ran["valuations"][i]["name"], name);
    }
    let lineage = |path: &Path| run(&["inspect", "--lineage", text(path), "--json"]).ok().json();
    let told = &lineage(&out)[0];
    assert_eq!((&told["job"], &told["options"]["num_bins"]), (&"tokenizer fit".into(), &8.into()));
    assert_eq!(told["from"][0], lineage(&pack));
    let again = run(&words);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("--overwrite"), "{}", again.err);
    let said = run(&[&words[..7], &["--overwrite"]].concat()).ok();
    assert!(said.out.contains("8 bins from") && said.out.contains("tuple11"), "{}", said.out);
}

#[test]
fn what_cannot_be_fitted_says_why_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (pack, out) = (pack(folder.path()), folder.path().join("tokenizer.json"));
    let fit = |more: &[&str]| run(&[&["tokenizer", "fit", text(&pack), "--output", text(&out)], more].concat());
    for (more, word) in [
        (&["--where", "id = 99"][..], "0 losing branches"),
        (&["--where", "nonsense = 3"], "no such column"),
        (&["--num-bins", "0"], "expected 1 to 65533 bins"),
        (&["--zero-tolerance", "nan"], "zero tolerance"),
    ] {
        let ran = fit(more);
        assert!(ran.code != 0 && ran.err.contains(word), "{ran:?}");
    }
    assert!(!out.exists());
    let nowhere = run(&["tokenizer", "fit", text(folder.path()), "--output", text(&out)]);
    assert!(nowhere.code == 1 && nowhere.err.contains("no pack"), "{nowhere:?}");
}
