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

/// The bytes of files in a folder of shares that end so.
fn ending(folder: &Path, end: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(ending(&path, end));
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn shares_of_several_packs_end_with_the_bytes_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let (first, other) = (pack(&folder.path().join("a")), pack(&folder.path().join("b")));
    let (alone, out) = (folder.path().join("alone.json"), folder.path().join("out.json"));
    let packs = ["tokenizer", "fit", text(&first), text(&other)];
    let options = ["--num-bins", "16", "--where", "id < 3", "--indent", "0", "--json"];
    let one = run(&[&packs[..], &[text(&alone)], &options].concat()).ok().json();
    for of in ["1", "2", "5", "40"] {
        let share = |number: &str| {
            let share = format!("{number}/{of}");
            run(&[&packs[..], &[text(&out)], &options, &["--share", &share]].concat()).ok().json()
        };
        let numbers: Vec<String> = (1..=of.parse::<u32>().unwrap()).rev().map(|number| number.to_string()).collect();
        let rows: u64 = numbers.iter().map(|number| share(number)["rows"].as_u64().unwrap()).sum();
        assert_eq!(rows, one["rows"].as_u64().unwrap());
        assert_eq!(share("1")["share"]["there"], true);
        assert_eq!(run(&["commit", text(&out), "--json"]).ok().json(), one, "{of} shares");
        assert_eq!(std::fs::read(&out).unwrap(), std::fs::read(&alone).unwrap(), "{of} shares");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "a commit leaves nothing over");
        std::fs::remove_file(&out).unwrap();
    }
}

#[test]
fn shares_that_do_not_belong_together_or_are_damaged_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (pack, out) = (pack(folder.path()), folder.path().join("tokenizer.json"));
    let share = |share: &str, more: &[&str]| {
        let words = ["tokenizer", "fit", text(&pack), text(&out), "--num-bins", "8", "--share", share];
        run(&[&words[..], more].concat())
    };
    let dry = share("1/3", &["--dry-run"]).ok();
    assert!(dry.out.contains("would be made") && std::fs::read_dir(folder.path()).unwrap().count() == 2, "{dry:?}");
    share("1/3", &[]).ok();
    for (more, says) in [
        (&["--num-bins", "9"][..], "num_bins: 8 there, 9 now"),
        (&["--search-failure-cutoff=-3"], "search_failure_cutoff: -1500 there, -3 now"),
        (&["--zero-tolerance", "0.5"], "zero_tolerance: 1e-9 there, 0.5 now"),
        (&["--valuations", "search"], "valuations: "),
        (&["--where", "id > 1"], "packs: "),
        (&["--indent", "0"], "indent: 2 there, 0 now"),
        (&["--overwrite"], "cannot be used with"),
        (&["--summary-out", "x.json"], "cannot be used with"),
    ] {
        let words = ["tokenizer", "fit", text(&pack), text(&out), "--share", "2/3"];
        let bins = if more[0] == "--num-bins" { &[][..] } else { &["--num-bins", "8"] };
        let ran = run(&[&words[..], bins, more].concat());
        assert!(ran.code == 2 && ran.err.contains(says), "{says}: {ran:?}");
    }
    let early = run(&["commit", text(&out)]);
    assert!(early.code == 2 && early.err.contains("2/3 is missing; 3/3 is missing"), "{early:?}");
    assert!(early.err.contains("`gristmill tokenizer fit` with --share N/OF"), "{early:?}");
    for number in ["2/3", "3/3"] {
        share(number, &[]).ok();
    }
    let files = ending(folder.path(), ".tally");
    assert_eq!(files.len(), 3);
    let whole = std::fs::read(&files[1]).unwrap();
    let middle = whole.len() / 2;
    for (bytes, says) in [
        ([&whole[..middle], &[whole[middle] ^ 1], &whole[middle + 1..]].concat(), "does not have its checksum"),
        (whole[..middle].to_vec(), "ends within a block"),
        (Vec::new(), "differences are missing"),
        ([whole.as_slice(), &whole].concat(), "more of them than were found"),
    ] {
        std::fs::write(&files[1], bytes).unwrap();
        let ran = run(&["commit", text(&out)]);
        assert!(ran.code == 1 && ran.err.contains(says) && ran.err.contains("differences.tally"), "{says}: {ran:?}");
        assert!(says.contains("missing") || ran.err.contains("byte"), "{ran:?}");
        assert!(!out.exists());
    }
    std::fs::write(&files[1], whole).unwrap();
    std::fs::write(&out, "another").unwrap();
    let there = run(&["commit", text(&out)]);
    assert!(there.code == 2 && there.err.contains("there is a file already"), "{there:?}");
    let said = run(&["commit", text(&out), "--overwrite"]).ok();
    assert!(said.out.contains("8 bins from") && said.out.contains("tuple11"), "{said:?}");
    let again = share("1/3", &[]);
    assert!(again.code == 2 && again.err.contains("its shares were committed"), "{again:?}");
    let few = run(&["tokenizer", "fit", text(&out), "--share", "1/2"]);
    assert!(few.code == 2 && few.err.contains("the file to write"), "{few:?}");
}
