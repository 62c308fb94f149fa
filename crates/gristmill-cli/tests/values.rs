//! `values` as a command: what it says and leaves, what `verify` finds, and what `merge`, `convert` and `pack` do about it.
//! On the real binary.

use std::fs;
use std::path::Path;

use crate::command::{run, text};

/// A pack of three games played from `seed`; `more` are further options of `pack`.
fn pack(root: &Path, name: &str, seed: &str, more: &[&str]) -> std::path::PathBuf {
    let (logs, pack) = (root.join(format!("{name}-logs")), root.join(name));
    let played = ["--games", "3", "--depth", "0", "--moves-max", "120", "--level", "1", "--json"];
    run(&[&["generate", "2048", text(&logs), "--seed", seed][..], &played].concat()).ok();
    run(&[&["pack", "--input", text(&logs), "--output", text(&pack)][..], more].concat()).ok();
    pack
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.filter(|name| name.starts_with("values")).collect();
    names.sort();
    names
}

#[test]
fn values_are_made_verified_and_carried() {
    let root = tempfile::tempdir().unwrap();
    let a = pack(root.path(), "a", "1", &["--shard-rows", "100"]);
    let b = pack(root.path(), "b", "50", &["--layout", "packed46"]);
    let plan = run(&["values", text(&a), "--dry-run", "--json"]).ok().json();
    assert_eq!((plan["dry_run"].as_bool(), names(&a).len()), (Some(true), 0));
    let made = run(&["values", text(&a), "--gamma", "0.9", "--json"]).ok().json();
    for key in ["rows", "runs", "files", "reward"] {
        assert_eq!(made[key], plan[key], "{key}");
    }
    let files = made["files"].as_u64().unwrap();
    assert_eq!((made["gamma"].as_f64(), files), (Some(0.9), made["rows"].as_u64().unwrap().div_ceil(100)));
    assert_eq!(names(&a).len() as u64, files + 1);
    let again = run(&["values", text(&a)]);
    assert!(again.code == 2 && again.err.contains("--overwrite"), "{again:?}");
    let said = run(&["values", text(&a), "--overwrite", "--threads", "1", "--gamma", "0.9"]).ok().out;
    assert!(said.contains("3 games") && said.contains("gamma 0.9") && said.contains("epsilon 0.001"), "{said}");
    assert_eq!(run(&["verify", text(&a), "--json"]).ok().json()["checks"]["values"].as_u64(), Some(0));

    let merge = |output: &Path| run(&["merge", text(&a), text(&b), "--output", text(output), "--overwrite"]).ok().out;
    let ab = root.path().join("ab");
    let said = merge(&ab);
    assert!(said.contains("are not carried") && said.contains("/b has none") && names(&ab).is_empty(), "{said}");
    run(&["values", text(&b), "--gamma", "0.9"]).ok();
    assert!(merge(&ab).contains("beside the rows: values") && names(&ab) == ["values.json", "values.npy"]);
    run(&["verify", text(&ab)]).ok();

    let joined = root.path().join("joined");
    let words = ["convert", text(&ab), text(&joined), "--to", "exponents", "--join"];
    let done = run(&[&words[..], &[text(&ab.join("values")), "--json"]].concat()).ok().json();
    assert_eq!(done["remarks"].as_array().map(Vec::len), Some(0));
    let bytes = fs::read(joined.join("steps.npy")).unwrap();
    assert!(String::from_utf8_lossy(&bytes[..600]).contains("return_scaled"));
    let plain =
        run(&["convert", text(&ab), text(&root.path().join("plain")), "--to", "packed46", "--json"]).ok().json();
    assert!(plain["remarks"][0].as_str().unwrap().contains("gristmill values"), "{plain}");

    let file = ab.join("values.npy");
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();
    let found = run(&["verify", text(&ab), "--json"]);
    let (code, found) = (found.code, found.json());
    assert_eq!(
        (code, found["fault_count"].as_u64(), found["faults"][0]["rule"].as_str()),
        (1, Some(1), Some("values"))
    );

    let logs = root.path().join("more-logs");
    run(&["generate", "2048", text(&logs), "--games", "1", "--seed", "9", "--depth", "0", "--moves-max", "9"]).ok();
    let said = run(&["pack", "--input", text(&logs), "--output", text(&b), "--append"]).ok().out;
    assert!(said.contains("values.npy is of the rows before") && said.contains("--overwrite"), "{said}");
    assert_eq!(run(&["verify", text(&b)]).code, 1);
}

#[test]
fn senseless_words_are_refused_and_nothing_is_written() {
    let root = tempfile::tempdir().unwrap();
    let pack = pack(root.path(), "a", "1", &[]);
    let nothing = root.path().join("nothing");
    for (words, code) in [
        (&["values"][..], 2),
        (&["values", text(&pack), "--gamma", "1.5"], 2),
        (&["values", text(&pack), "--gamma", "nan"], 2),
        (&["values", text(&pack), "--reward-scale", "0"], 2),
        (&["values", text(&pack), "--threads", "0"], 2),
        (&["values", text(&nothing)], 1),
        (&["values", text(root.path())], 1),
    ] {
        let ran = run(words);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{words:?}: {ran:?}");
    }
    assert!(names(&pack).is_empty() && !nothing.exists());
    let out = root.path().join("out");
    run(&["values", text(&pack), "--output", text(&out), "--reward-scale", "0.001"]).ok();
    assert_eq!((names(&out).len(), names(&pack).len()), (2, 0));
}
