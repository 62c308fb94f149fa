//! Marks, duplicates, splits by content and lineage through the command, on games that it generated itself.

use std::fs;
use std::path::Path;

use crate::command::{generate, gristmill, run, text};
use gristmill_format::container::gzip::compress;
use gristmill_format::container::marks::Mark;

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
    pack(&at("good"), &at("again"), &["--threads", "1"]);
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
    // What is made of the merged pack tells the same, and what is made of that.
    run(&["values", text(&at("merged")), "--gamma", "0.5"]).ok();
    let valued = lineage("merged/values.json");
    assert_eq!((&valued[0]["job"], &valued[0]["options"]["gamma"]), (&"values".into(), &0.5.into()));
    assert_eq!(valued[0]["from"][0], merged);
    run(&["convert", text(&at("merged")), text(&at("aligned")), "--to", "packed46"]).ok();
    run(&["merge", text(&at("aligned")), text(&right), "--output", text(&at("twice"))]).ok();
    assert_eq!(lineage("twice")[0]["from"][0][0]["from"][0], merged);
    let joined = at("merged/values");
    run(&[
        "convert",
        text(&at("merged")),
        text(&at("played")),
        "--to",
        "exponents",
        "--join",
        text(&joined),
        "--lossy",
    ])
    .ok();
    assert_eq!(lineage("played")[0]["from"], serde_json::json!([merged, valued]));
    run(&["split", text(&at("good")), text(&at("parts")), "--into", "a:1,b:1"]).ok();
    let sides = ["parts/a", "parts/b"].map(lineage);
    assert_eq!((&sides[0][0]["job"], &sides[1][0]["options"]["folder"]), (&"split".into(), &"b".into()));
    assert_eq!(sides[1][0]["from"], sides[0][0]["from"]);
    assert_eq!(sides[1][0]["from"][0][0]["job"], "filter");
    let none = run(&["inspect", "--lineage", text(&at("games"))]);
    assert!(none.code == 1 && none.err.contains("nothing here tells"), "{none:?}");
    // A pack of before tells nothing, and opens.
    let manifest = at("drop1-pack").join("manifest.json");
    let mut old: serde_json::Value = serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    old.as_object_mut().unwrap().remove("lineage");
    fs::write(&manifest, old.to_string()).unwrap();
    fs::remove_file(at("drop1-pack").join("opening.index")).unwrap();
    run(&["verify", text(&left)]).ok();
    run(&["merge", text(&left), text(&right), "--output", text(&at("merged2"))]).ok();
    assert_eq!(lineage("merged2")[0]["from"][0][0]["job"], "unrecorded");
}

/// Generates games into a pack of their own.
fn generated(out: &Path, name: &str, words: &[&str], more: &[&str]) {
    let games = out.join(format!("{name}-games"));
    let few = if words[0] == "chess" { ["--plies-max", "20"] } else { ["--moves-max", "30"] };
    run(&[&["generate", words[0], text(&games)], &words[1..], &few].concat()).ok();
    pack(&games, &out.join(name), more);
}

fn mark(pack: &Path, name: &str, rule: &str) {
    run(&["mark", text(pack), name, "--rule", rule]).ok();
}

/// Merges packs; what was said, and the new pack.
fn merge(out: &Path, inputs: &[&str], output: &str, more: &[&str]) -> serde_json::Value {
    let paths: Vec<_> = inputs.iter().map(|name| out.join(name)).collect();
    let inputs: Vec<_> = paths.iter().map(|path| text(path)).collect();
    let to = out.join(output);
    run(&[&["merge"], &inputs[..], &["--output", text(&to), "--json"], more].concat()).ok().json()
}

/// Asserts that a pack has exactly these marks, each as its rule finds it now.
fn are_as_found(pack: &Path, names: &[&str]) {
    let read = |name: &str| Mark::from_bytes(&fs::read(pack.join(format!("marks/{name}.mark"))).unwrap()).unwrap();
    let entries = fs::read_dir(pack.join("marks")).unwrap();
    let mut found: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, names.iter().map(|name| format!("{name}.mark")).collect::<Vec<_>>());
    for name in names {
        let carried = read(name);
        assert!(!carried.rows.is_empty() && carried.rows.len() < carried.frames, "{name} tells nothing: {carried:?}");
        run(&["mark", text(pack), name, "--rule", &carried.rule, "--replace"]).ok();
        assert_eq!(read(name), carried, "{name}");
    }
}

fn says(said: &serde_json::Value, name: &str, why: &str) {
    let start = format!("mark `{name}` is not carried: ");
    let lost: Vec<&str> = said["lost"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    assert!(lost.iter().any(|text| text.starts_with(&start) && text.contains(why)), "{name}: {why}: {lost:#?}");
}

#[test]
fn marks_of_games_go_along_when_packs_are_merged() {
    let out = tempfile::tempdir().unwrap();
    let at = |name: &str| out.path().join(name);
    generated(out.path(), "a", &["chess", "--games", "3", "--seed", "5"], &["--shard-rows", "25"]);
    // The second game of `a`, and two of its own around it.
    generated(out.path(), "b", &["chess", "--games", "3", "--first", "2", "--seed", "5"], &[]);
    generated(out.path(), "c", &["chess", "--games", "2", "--seed", "6"], &[]);
    let rules = [("black", "ply < 6 AND black_to_move = 1"), ("long", "game.frames > 10 AND ply % 3 = 0")];
    for pack in ["a", "b", "c"] {
        rules.iter().for_each(|(name, rule)| mark(&at(pack), name, rule));
        mark(&at(pack), "numbered", "frame.frame < 9");
        mark(&at(pack), "placed", "game.first_frame = 0 -- a comment");
        mark(&at(pack), "longest", "frames = (SELECT max(frames) FROM games)");
        mark(&at(pack), "other", &format!("ply < {}", u8::from(pack == "b") + 1));
        mark(&at(pack), "broken", "ply < 3");
        mark(&at(pack), "grown", "ply < 3");
        run(&["dedup", text(&at(pack)), "--mark", "again"]).ok();
    }
    mark(&at("a"), "alone", "ply < 3");
    let broken = at("b").join("marks/broken.mark");
    let mut bytes = fs::read(&broken).unwrap();
    bytes[70] ^= 1;
    fs::write(&broken, bytes).unwrap();
    run(&["generate", "chess", text(&at("c-games")), "--games", "1", "--first", "9", "--seed", "6"]).ok();
    pack(&at("c-games"), &at("c"), &["--append"]);
    ["black", "long", "longest", "numbered"].iter().for_each(|name| {
        run(&["mark", text(&at("c")), name, "--update"]).ok();
    });
    let dry = merge(out.path(), &["a", "b", "c"], "none", &["--dry-run"]);
    let said = merge(out.path(), &["a", "b", "c"], "abc", &[]);
    assert_eq!((&said["marks"], &said["known"]), (&serde_json::json!(["black", "long"]), &2.into()), "{said}");
    assert_eq!((&dry["marks"], &dry["lost"]), (&said["marks"], &said["lost"]));
    for (name, why) in [
        ("again", "dedup"),
        ("alone", "has none of this name"),
        ("broken", "broken.mark"),
        ("grown", "--update"),
        ("longest", "SELECT"),
        ("numbered", "`frame.frame`"),
        ("other", "different rules"),
    ] {
        says(&said, name, why);
    }
    are_as_found(&at("abc"), &["black", "long"]);
    merge(out.path(), &["c", "a"], "abc", &["--overwrite"]);
    are_as_found(&at("abc"), &["black", "long"]);
    let said = merge(out.path(), &["b", "a"], "ba", &["--delete-inputs"]);
    says(&said, "placed", "`game.first_frame`");
    are_as_found(&at("ba"), &["black", "grown", "long"]);
    assert!(at("a/marks/placed.mark").exists() && !at("a/marks/long.mark").exists(), "what is not carried stays");
}

#[test]
fn marks_of_steps_go_along_when_packs_are_merged() {
    let out = tempfile::tempdir().unwrap();
    let at = |name: &str| out.path().join(name);
    let played = |name: &str, seed: &str, more: &[&str]| {
        generated(out.path(), name, &["2048", "--games", "2", "--seed", seed, "--depth", "0"], more);
    };
    played("a", "1", &["--layout", "packed46", "--shard-rows", "20"]);
    played("b", "2", &[]);
    fs::create_dir(at("empty-games")).unwrap();
    fs::write(at("empty-games/x.meta.json"), r#"{"seed":1,"num_moves":0,"score":0,"max_tile":2}"#).unwrap();
    fs::write(at("empty-games/x.jsonl.gz"), compress(1, b"").unwrap()).unwrap();
    pack(&at("empty-games"), &at("empty"), &[]);
    for pack in ["a", "b"] {
        run(&["values", text(&at(pack))]).ok();
        mark(&at(pack), "high", "max_exponent >= 4 AND game.steps > 3");
        mark(&at(pack), "paid", "reward > 0");
        mark(&at(pack), "first", "run_id = 0");
    }
    let said = merge(out.path(), &["b", "empty", "a"], "both", &["--shard-rows", "33"]);
    assert_eq!(said["marks"], serde_json::json!(["high", "paid"]), "{said}");
    says(&said, "first", "`frame.run_id`");
    are_as_found(&at("both"), &["high", "paid"]);
    fs::remove_file(at("a").join("values.json")).unwrap();
    let said = merge(out.path(), &["a", "b"], "ab", &[]);
    says(&said, "paid", "`frame.reward`");
    are_as_found(&at("ab"), &["high"]);
    let marked = at("b").join("marks");
    fs::remove_dir_all(&marked).unwrap();
    merge(out.path(), &["b", "empty"], "ab", &["--overwrite"]);
    assert!(!at("ab").join("marks").exists(), "marks of the pack that was replaced");
}

#[test]
fn a_rule_is_one_condition_that_says_the_same_each_time() {
    let (input, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(input.path(), "2", &[]);
    let folder = out.path().join("pack");
    pack(input.path(), &folder, &[]);
    for (rule, said) in [
        ("1) UNION SELECT 99999999 WHERE (1", "syntax error"),
        ("1) LIMIT (5", "syntax error"),
        ("1) -- ", "syntax error"),
        ("1 THEN 1 END, CASE WHEN 1", "syntax error"),
        ("1; SELECT 1", "syntax error"),
        ("random() > 0", "function: random"),
        ("ply < 3 OR game.id IN (SELECT id FROM games ORDER BY RANDOM() LIMIT 1)", "function: RANDOM"),
        ("CURRENT_TIMESTAMP > ''", "function: CURRENT_TIMESTAMP"),
        ("strftime('%s', 'n' || 'ow') % 2", "function: strftime"),
    ] {
        let refused = run(&["mark", text(&folder), "x", "--rule", rule]);
        assert!(refused.code == 2 && refused.err.contains(said), "{rule}: {refused:?}");
        assert!(!folder.join("marks").exists(), "{rule}");
    }
    for rule in
        ["(ply < 3) OR (1 = 0)", "ply < 3 -- the opening", "frame.ply < 3 AND game.id IN (SELECT id FROM games)"]
    {
        let marked = run(&["mark", text(&folder), "x", "--rule", rule, "--dry-run", "--json"]).ok().json();
        assert_eq!(marked["marked"].as_u64(), Some(6), "{rule}");
    }
}

/// A condition that SQLite never comes to an end with.
const ENDLESS: &str = "(WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n) > 0";

#[test]
fn endless_sql_ends_by_its_time_and_by_a_signal() {
    let (input, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(input.path(), "2", &[]);
    let folder = out.path().join("pack");
    pack(input.path(), &folder, &[]);
    let words = ["mark", text(&folder), "x", "--rule", ENDLESS];
    let timed = gristmill(&words).env("GRISTMILL_SQL_SECONDS", "1").output().unwrap();
    let said = String::from_utf8(timed.stderr).unwrap();
    assert!(timed.status.code() == Some(2) && said.contains("took too long"), "{said}");
    let mut endless = gristmill(&words).spawn().unwrap();
    let status = format!("/proc/{}/status", endless.id());
    // Until the process listens for SIGINT.
    let listens = |text: String| {
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"))?.trim().to_owned();
        u64::from_str_radix(&caught, 16).ok().filter(|caught| caught & 2 != 0)
    };
    while fs::read_to_string(&status).ok().and_then(listens).is_none() {
        std::thread::yield_now();
    }
    let sent = std::process::Command::new("kill").args(["-INT", &endless.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(endless.wait().unwrap().code(), Some(130));
}

#[test]
fn views_and_triggers_in_the_database_of_a_pack_are_refused() {
    let (input, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(input.path(), "2", &[]);
    let folder = out.path().join("pack");
    pack(input.path(), &folder, &[]);
    let view = "ALTER TABLE games RENAME TO real; CREATE VIEW games AS WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL \
                SELECT i + 1 FROM n) SELECT real.* FROM real, n";
    let trigger = "CREATE TRIGGER more AFTER INSERT ON games BEGIN SELECT 1; END";
    for (sql, said) in [(view, "a view `games`"), (trigger, "a trigger `more`")] {
        let copy = tempfile::tempdir().unwrap();
        for file in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap()).filter(|entry| entry.path().is_file()) {
            fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        rusqlite::Connection::open(copy.path().join("metadata.db")).unwrap().execute_batch(sql).unwrap();
        for word in ["verify", "inspect", "dedup"] {
            let done = run(&[word, text(copy.path())]);
            assert!(done.code != 0 && (done.err + &done.out).contains(said), "{word}");
        }
        let appended = run(&["pack", "--input", text(input.path()), "--output", text(copy.path()), "--append"]);
        assert!(appended.code != 0 && appended.err.contains(said), "{appended:?}");
    }
}
