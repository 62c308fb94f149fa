//! Marks, duplicates, splits by content and lineage through the command, on games that it generated itself.

mod command;

use std::fs;
use std::path::Path;

use command::{generate, run, text};

fn pack(input: &Path, output: &Path, more: &[&str]) {
    run(&[&["pack", "--input", text(input), "--output", text(output)], more].concat()).ok();
}

#[test]
fn frames_are_marked_listed_extended_and_removed() {
    let (input, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(input.path(), "5", &[]);
    let folder = out.path().join("pack");
    pack(input.path(), &folder, &[]);
    let pack_at = text(&folder);
    let would = run(&["mark", pack_at, "opening", "--rule", "ply < 6", "--dry-run"]).ok().out;
    assert!(would.contains("would mark 30 of ") && !folder.join("marks").exists(), "{would}");
    let made = run(&["mark", pack_at, "opening", "--rule", "ply < 6", "--json"]).ok().json();
    assert_eq!((made["marked"].as_u64(), made["rule"].as_str()), (Some(30), Some("ply < 6")));
    let again = run(&["mark", pack_at, "opening", "--rule", "1"]);
    assert!(again.code == 2 && again.err.contains("--replace"), "{again:?}");
    let wrong = run(&["mark", pack_at, "other", "--rule", "nonsense = 1"]);
    assert!(wrong.code == 2 && wrong.err.contains("no such column: nonsense"), "{wrong:?}");
    let listed = run(&["mark", pack_at, "--list"]).ok().out;
    assert!(listed.contains("opening: 30 of ") && listed.contains("rule: ply < 6"), "{listed}");
    run(&["generate", "chess", text(input.path()), "--games", "2", "--first", "9", "--seed", "5", "--plies-max", "20"])
        .ok();
    pack(input.path(), &folder, &["--append"]);
    let listed = run(&["mark", pack_at, "--list", "--json"]).ok().json();
    assert_eq!(listed[0]["fit"], "grown");
    let extended = run(&["mark", pack_at, "opening", "--update", "--json"]).ok().json();
    assert_eq!(extended["marked"].as_u64(), Some(42));
    run(&["mark", pack_at, "--remove", "opening"]).ok();
    let gone = run(&["mark", pack_at, "--remove", "opening"]);
    assert!(gone.code == 1 && gone.err.contains("there is no mark `opening`"), "{gone:?}");
    for words in [vec!["mark", pack_at], vec!["mark", pack_at, "x"], vec!["mark", pack_at, "--list", "--rule", "1"]] {
        assert_eq!(run(&words).code, 2, "{words:?}");
    }
}

#[test]
fn copies_are_told_marked_and_dealt_to_one_folder() {
    let (input, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(input.path(), "4", &[]);
    let mut names: Vec<_> = fs::read_dir(input.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for (i, name) in names.iter().enumerate() {
        fs::copy(name, input.path().join(format!("training.{}.gz", 100 + i))).unwrap();
    }
    let folder = out.path().join("pack");
    pack(input.path(), &folder, &[]);
    let said = run(&["dedup", text(&folder), "--report"]).ok().out;
    assert!(said.contains("4 different games among 8: 4 are there again to the byte, 0 recorded otherwise"), "{said}");
    assert!(said.lines().filter(|line| line.contains(" exact ")).count() == 4, "{said}");
    let marked = run(&["dedup", text(&folder), "--mark", "again", "--json"]).ok().json();
    assert_eq!(marked["mark"]["marked"], marked["frames"]);
    let parts = out.path().join("parts");
    run(&["split", text(input.path()), text(&parts), "--into", "a:1,b:1,c:1", "--by", "content"]).ok();
    for side in ["a", "b", "c"] {
        let found: Vec<String> = match fs::read_dir(parts.join(side)) {
            Ok(entries) => entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect(),
            Err(_) => Vec::new(),
        };
        let number = |name: &String| name.split('.').nth(1).and_then(|n| n.parse::<u64>().ok());
        let games: Vec<u64> = found.iter().filter(|name| !name.starts_with('.')).filter_map(number).collect();
        let copies = games.iter().filter(|n| **n >= 100).count();
        assert_eq!(games.len(), 2 * copies, "{side}: {games:?}");
    }
}

#[test]
fn packs_tell_how_they_came_to_be() {
    let out = tempfile::tempdir().unwrap();
    let at = |name: &str| out.path().join(name);
    generate(&at("games"), "3", &[]);
    run(&["filter", text(&at("games")), text(&at("good"))]).ok();
    pack(&at("good"), &at("pack"), &[]);
    run(&["generate", "chess", text(&at("more")), "--games", "2", "--first", "50", "--seed", "8", "--plies-max", "20"])
        .ok();
    pack(&at("more"), &at("pack"), &["--append"]);
    let lineage = |name: &str| run(&["inspect", "--lineage", text(&at(name)), "--json"]).ok().json();
    let chess = lineage("pack");
    assert_eq!((&chess[0]["job"], &chess[1]["job"]), (&"pack".into(), &"append".into()));
    assert_eq!((&chess[0]["sources"]["name"], &chess[0]["sources"]["games"]), (&"good".into(), &3.into()));
    assert_eq!(chess[1]["sources"]["games"], 2);
    assert_eq!(chess[0]["from"][0][0]["job"], "filter");
    assert_eq!(chess[0]["from"][0][0]["options"]["input"], "games");
    assert!(!chess.to_string().contains(text(out.path())), "{chess}");
    let told = run(&["inspect", "--lineage", text(&at("pack"))]).ok().out;
    assert!(told.starts_with("append (gristmill ") && told.contains("\n  filter ("), "{told}");
    // The same games, packed again elsewhere, have the same lineage.
    pack(&at("good"), &at("again"), &["--workers", "1"]);
    assert_eq!(lineage("again")[0], chess[0]);

    for (drop, seed) in [("drop1", "1"), ("drop2", "2")] {
        run(&[
            "generate",
            "2048",
            text(&at(drop)),
            "--games",
            "1",
            "--seed",
            seed,
            "--depth",
            "0",
            "--moves-max",
            "30",
        ])
        .ok();
        pack(&at(drop), &at(&format!("{drop}-pack")), &[]);
    }
    let (left, right) = (at("drop1-pack"), at("drop2-pack"));
    run(&["merge", text(&left), text(&right), "--output", text(&at("merged"))]).ok();
    let merged = lineage("merged");
    assert_eq!((&merged[0]["job"], merged[0]["from"].as_array().map(Vec::len)), (&"merge".into(), Some(2)));
    assert_eq!(merged[0]["from"][1], lineage("drop2-pack"));
    let none = run(&["inspect", "--lineage", text(&at("games"))]);
    assert!(none.code == 1 && none.err.contains("nothing here tells"), "{none:?}");
    // A pack of before tells nothing, and opens.
    let manifest = at("drop1-pack").join("manifest.json");
    let mut old: serde_json::Value = serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    old.as_object_mut().unwrap().remove("lineage");
    fs::write(&manifest, old.to_string()).unwrap();
    run(&["verify", text(&left)]).ok();
    run(&["merge", text(&left), text(&right), "--output", text(&at("merged2"))]).ok();
    assert_eq!(lineage("merged2")[0]["from"][0][0]["job"], "unrecorded");
}
