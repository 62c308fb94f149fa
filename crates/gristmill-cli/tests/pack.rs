//! `pack` and `merge` as commands: what they say, and what is left when they are killed at any moment.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::fs;
use std::path::Path;

use crate::command::{gristmill, run, text};
use gristmill_format::container::gzip::compress;

/// The text of a game, each game and line different.
fn log(seed: usize, steps: usize) -> String {
    let line = |step: usize| {
        format!(
            "{{\"seed\":{seed},\"step_index\":{step},\"max_rank\":3,\"move\":\"left\",\"valuation_type\":\"search\",\
             \"valuation\":0.034000,\"board\":[1,2,3,0,0,0,0,0,0,0,0,0,0,0,0,{}],\
             \"branch_evs\":{{\"up\":null,\"left\":{step}.500000,\"right\":0.25{seed:04},\"down\":-0.125000}}}}\n",
            step % 4
        )
    };
    (0..steps).map(line).collect()
}

fn drop_of(games: usize, steps: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..games {
        let put = |ending: &str, bytes: &[u8]| {
            fs::write(folder.path().join(format!("game{seed:03}.{ending}")), bytes).unwrap();
        };
        let sidecar = format!("{{\"seed\":{seed},\"num_moves\":{steps},\"score\":9,\"max_tile\":8,\"depth\":6}}");
        put("meta.json", sidecar.as_bytes());
        put("jsonl.gz", &compress(1, log(seed, steps).as_bytes()).unwrap());
    }
    folder
}

/// The visible files of a pack.
fn visible(pack: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(pack) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    found.sort();
    found
}

#[test]
fn a_pack_is_made_looked_at_and_merged() {
    let (drop, out) = (drop_of(5, 100), tempfile::tempdir().unwrap());
    fs::write(drop.path().join("game002.jsonl.gz"), "nonsense").unwrap();
    let (a, b, ab) = (out.path().join("a"), out.path().join("b"), out.path().join("ab"));
    let plan = run(&["pack", "--input", text(drop.path()), "--output", text(&a), "--dry-run", "--json"]).ok().json();
    assert_eq!((plan["dry_run"].as_bool(), plan["rows"].as_u64(), a.exists()), (Some(true), Some(500), false));
    let left_out = run(&["pack", "--input", text(drop.path()), "--output", text(&a)]);
    assert_eq!(left_out.code, 3);
    assert!(
        left_out.err.contains("1 game or file was left out") && left_out.err.contains("--skip-bad"),
        "{left_out:?}"
    );
    let said = left_out.out;
    assert!(
        said.contains("game002.jsonl.gz, line 1")
            && said.contains("400 rows of 4 games")
            && said.contains("1 left out"),
        "{said}"
    );
    let words =
        ["pack", "--input", text(drop.path()), "--output", text(&b), "--layout", "packed46", "--shard-rows", "150"];
    let quarantined = ["--on-error", "quarantine", "--threads", "1", "--json", "--skip-bad"];
    let packed = run(&[&words[..], &quarantined].concat()).ok().json();
    assert_eq!((packed["files"].as_u64(), packed["layout"].as_str()), (Some(3), Some("packed46")));
    assert!(b.join("quarantine.jsonl").exists() && packed["peak_rss"].as_u64() > Some(1 << 20));
    let raised = run(&[&words[..], &["--on-error", "raise", "--overwrite"]].concat());
    assert_eq!(raised.code, 1);
    assert!(raised.err.contains("game002.jsonl.gz, line 1") && raised.err.contains("--resume"), "{}", raised.err);
    let merged = run(&["merge", "--left", text(&a), "--right", text(&b), "--output", text(&ab), "--json"]).ok().json();
    assert_eq!(
        (merged["rows"].as_u64(), merged["runs"].as_u64(), merged["packs"].as_u64()),
        (Some(800), Some(8), Some(2))
    );
    let deleted = run(&["merge", text(&a), text(&ab), "--output", text(&out.path().join("c")), "--delete-inputs"]).ok();
    assert!(deleted.out.contains("deleted") && !a.exists() && !ab.exists(), "{deleted:?}");
}

#[test]
fn packing_says_by_its_exit_code_what_became_of_the_games() {
    let (drop, out) = (drop_of(3, 20), tempfile::tempdir().unwrap());
    let target = out.path().join("pack");
    let words = ["pack", "--input", text(drop.path()), "--output", text(&target), "--overwrite", "--shard-rows", "0"];
    let ran = |more: &[&str]| run(&[&words[..], more].concat());
    // Another sidecar of a game is no loss.
    fs::write(drop.path().join("game001.meta.json.gz"), "").unwrap();
    assert_eq!(ran(&[]).code, 0);
    for (name, bytes, said) in [
        ("game000.meta.json", "", "the sidecar has no bytes"),
        ("game000.meta.json.GZ", "{}", "rename it to end in .meta.json.gz"),
        ("alone.jsonl.gz", "", "there is no sidecar"),
    ] {
        let before = fs::read(drop.path().join(name)).ok();
        fs::write(drop.path().join(name), bytes).unwrap();
        assert_eq!(ran(&["--dry-run"]).code, 0);
        let left_out = ran(&[]);
        assert!(left_out.code == 3 && left_out.out.contains(said), "{left_out:?}");
        let taken = ran(&["--skip-bad"]);
        assert!(taken.code == 0 && taken.err.is_empty() && taken.out.contains(said), "{taken:?}");
        match before {
            Some(bytes) => fs::write(drop.path().join(name), bytes).unwrap(),
            None => fs::remove_file(drop.path().join(name)).unwrap(),
        }
    }
    // An unreadable file is no bad game. Every user can only write this file.
    let unreadable = "/sys/bus/platform/drivers_probe";
    if fs::metadata(unreadable).is_err() || fs::read(unreadable).is_ok() {
        println!("skipped: there is no file here that cannot be read");
        return;
    }
    fs::remove_file(drop.path().join("game002.jsonl.gz")).unwrap();
    std::os::unix::fs::symlink(unreadable, drop.path().join("game002.jsonl.gz")).unwrap();
    let unreadable = ran(&["--skip-bad"]);
    assert!(unreadable.code == 1 && unreadable.err.contains("game002.jsonl.gz"), "{unreadable:?}");
    assert!(unreadable.err.contains("is no bad game") && unreadable.err.contains("--resume"), "{unreadable:?}");
    fs::remove_file(drop.path().join("game002.jsonl.gz")).unwrap();
    fs::write(drop.path().join("game002.jsonl.gz"), compress(1, log(2, 20).as_bytes()).unwrap()).unwrap();
    let resumed = ["pack", "--input", text(drop.path()), "--output", text(&target), "--resume"];
    assert!(run(&resumed).ok().out.contains("60 rows of 3 games"));
}

#[test]
fn dangerous_and_senseless_words_are_refused() {
    let (drop, out) = (drop_of(1, 5), tempfile::tempdir().unwrap());
    let target = out.path().join("pack");
    let (input, output) = (["--input", text(drop.path())], ["--output", text(&target)]);
    run(&[&["pack"][..], &input, &output].concat()).ok();
    for (words, code) in [
        (&[&["pack"][..], &input].concat()[..], 2),
        (&[&["pack"][..], &input, &output].concat(), 2),
        (&[&["pack", "--resume", "--append"][..], &input, &output].concat(), 2),
        (&[&["pack", "--shard-rows", "-1"][..], &input, &output].concat(), 2),
        (&["pack", "--input", text(&target), "--output", text(&out.path().join("x"))], 1),
        (&[&["merge", text(&target)][..], &output].concat(), 2),
        (&[&["merge", text(&target), text(&target)][..], &["--output", text(&out.path().join("x"))]].concat(), 2),
        (&[&["merge", "--left", text(&target)][..], &output].concat(), 2),
    ] {
        let ran = run(words);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{words:?}: {ran:?}");
    }
}

/// Runs a command and kills it as soon as `when` holds; whether it came to that.
fn killed(words: &[&str], when: &dyn Fn() -> bool) -> bool {
    let mut child = gristmill(words).stdout(std::process::Stdio::null()).spawn().unwrap();
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if when() {
            child.kill().unwrap();
            child.wait().unwrap();
            return true;
        }
    }
}

#[test]
fn killed_at_any_moment_it_leaves_the_old_pack_or_one_that_can_be_gone_on_with() {
    let (old, new, out) = (drop_of(3, 50), drop_of(60, 700), tempfile::tempdir().unwrap());
    let (target, whole) = (out.path().join("pack"), out.path().join("whole"));
    let shape = ["--shard-rows", "9000", "--checkpoint-rows", "1500", "--json"];
    run(&[&["pack", "--input", text(new.path()), "--output", text(&whole)][..], &shape].concat()).ok();
    let whole = visible(&whole);
    run(&["pack", "--input", text(old.path()), "--output", text(&target)]).ok();
    let before = visible(&target);
    let words = ["pack", "--input", text(new.path()), "--output", text(&target)];
    let overwrite = [&words[..], &["--overwrite"], &shape].concat();
    let resume = [&words[..], &["--resume"], &shape].concat();

    let staging = target.join(".pack.part");
    let staged = |name: &str| fs::metadata(staging.join(name)).map_or(0, |file| file.len());
    let plan = || staging.join(".publish.json").exists();
    let moments: [(&str, &dyn Fn() -> bool); 8] = [
        ("it begins", &|| staging.exists()),
        ("the database is made", &|| staged("metadata.db") > 0),
        ("rows are written", &|| staged("steps-00000.npy") > 100_000),
        ("a file is complete", &|| staged("steps-00001.npy") > 0),
        ("more rows are written", &|| staged("steps-00003.npy") > 200_000),
        ("the last file is begun", &|| staged("steps-00004.npy") > 0),
        ("all is staged", &|| staged("manifest.json") > 0 || plan()),
        ("it is published", &|| plan() || target.join("steps-00000.npy").exists()),
    ];
    let mut kills = 0;
    for (moment, when) in moments {
        // A job that was killed before its first point has nothing to resume, and says so.
        let hit = killed(&resume, when) || killed(&overwrite, when);
        kills += usize::from(hit);
        let now = visible(&target);
        let names: Vec<_> = now.iter().filter(|file| !whole.contains(file)).map(|(name, _)| name).collect();
        assert!(now == before || now == whole || plan(), "killed when {moment}; not as it should be: {names:?}");
    }
    assert!(kills >= 5, "{kills} kills");
    if run(&resume).code != 0 {
        run(&overwrite).ok();
    }
    let now = visible(&target);
    let names: Vec<_> = now.iter().filter(|file| !whole.contains(file)).map(|(name, _)| name).collect();
    assert!(now == whole, "what was resumed is what was never killed: {names:?}");
    assert!(!staging.exists());
}

#[test]
fn a_long_game_needs_little_memory() {
    let out = tempfile::tempdir().unwrap();
    let (drop, target) = (drop_of(1, 500_000), out.path().join("pack"));
    let words = ["pack", "--input", text(drop.path()), "--output", text(&target), "--threads", "4"];
    let packed = run(&[&words[..], &["--json"]].concat()).ok().json();
    assert_eq!(packed["rows"].as_u64(), Some(500_000));
    let peak = packed["peak_rss"].as_u64().unwrap();
    assert!(peak < 256_000_000, "{} MB for 24 MB of rows and 110 MB of text", peak / 1_000_000);
    let valued = run(&["values", text(&target), "--threads", "4", "--json"]).ok().json();
    assert_eq!(valued["rows"].as_u64(), Some(500_000));
    let peak = valued["peak_rss"].as_u64().unwrap();
    assert!(peak < 128_000_000, "{} MB for 24 MB of rows", peak / 1_000_000);
}

#[test]
fn a_pack_is_verified_and_described_and_damage_is_drawn() {
    let (logs, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (target, page) = (out.path().join("pack"), out.path().join("page.html"));
    let words = ["generate", "2048", text(logs.path()), "--games", "3", "--seed", "1", "--moves-max", "200"];
    run(&[&words[..], &["--depth", "0"]].concat()).ok();
    run(&["pack", "--input", text(logs.path()), "--output", text(&target), "--layout", "packed46"]).ok();
    for path in [logs.path(), &target] {
        let sound = run(&["verify", text(path), "--json", "--threads", "3"]).ok().json();
        assert_eq!((sound["ok"].as_bool(), sound["chunks"].as_u64()), (Some(true), Some(3)));
        assert_eq!((sound["checks"]["continuity"].as_u64(), sound["checks"]["steps"].as_u64()), (Some(0), Some(0)));
        let stats = run(&["stats", text(path), "--json", "--threads", "1"]).ok().json();
        assert_eq!(run(&["stats", text(path), "--json", "--threads", "3"]).ok().json(), stats);
        let games = &stats["g2048"];
        assert_eq!((games["games"].as_u64(), games["rows"].as_u64()), (Some(3), sound["checked"].as_u64()));
        assert_eq!((games["score"]["count"].as_u64(), games["length"]["count"].as_u64()), (Some(3), Some(3)));
        let (tiles, by) = (games["highest_tiles"].as_object().unwrap(), games["valuations"].as_object().unwrap());
        assert_eq!(tiles.values().map(|n| n.as_u64().unwrap()).sum::<u64>(), 3);
        assert_eq!(by.values().map(|of| of["rows"].as_u64().unwrap()).sum::<u64>(), sound["checked"].as_u64().unwrap());
        assert!(by["search"]["gaps"]["count"].as_u64() > Some(0) && by["search"]["gaps"]["max"].as_f64() > Some(0.0));
    }
    let said = run(&["stats", text(&target), "--html", text(&page)]).ok().out;
    for title in
        ["score (games)", "steps per game", "highest tile", "valuation", "gap between the best two EVs, search"]
    {
        assert!(said.contains(title), "{title}: {said}");
    }
    assert!(!said.contains("plies") && fs::read_to_string(&page).unwrap().contains("gap between the best two EVs"));

    let steps = target.join("steps.npy");
    let mut bytes = fs::read(&steps).unwrap();
    let at = 384 + 46 * 150 + 22;
    bytes[at] = (bytes[at] + 1) % 4;
    fs::write(&steps, bytes).unwrap();
    let damaged = run(&["verify", text(&target)]);
    assert_eq!(damaged.code, 1, "{damaged:?}");
    for part in ["row 15", "the first of continuity", "step 150", "move ", "faults by check: ", "hash 1"] {
        assert!(damaged.out.contains(part), "{part}: {}", damaged.out);
    }
    let example = &run(&["verify", text(&target), "--json", "--max-faults", "0"]).json()["examples"][0];
    assert_eq!(example["row"]["ranks"].as_array().map(Vec::len), Some(16), "{example}");
}

#[test]
fn an_input_that_is_no_folder_is_named_and_nothing_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (folder.path().join("file"), folder.path().join("pack"));
    fs::write(&file, "text").unwrap();
    let unknown = "unknown_format: no format known here; expected";
    for (input, words) in [(folder.path().join("nowhere"), "No such file or directory"), (file, unknown)] {
        let refused = run(&["pack", "--input", text(&input), "--output", text(&output)]);
        assert!(refused.code == 1 && refused.err.contains(&format!("{}: {words}", input.display())), "{refused:?}");
        assert!(!refused.err.contains("vanished") && !output.exists(), "{refused:?}");
    }
}
