//! `bench` on generated data of each kind: stages and their limits, the page, what cannot be measured. Never checks how long
//! anything took.

use std::path::Path;

use serde_json::Value;

use crate::command::{generate, run, text};
use crate::demos::files::{shard, steps};

/// The data of this test, in a folder: games, their pack, rows of 2048, a shard, its pack.
fn made(folder: &Path) -> [String; 5] {
    let [games, pack, logs, rows, demos, trajectories] =
        ["games", "pack", "logs", "rows", "demos.tar.zst", "trajectories"]
            .map(|name| text(&folder.join(name)).to_owned());
    generate(Path::new(&games), "12", &[]);
    run(&["generate", "2048", &logs, "--games", "2", "--seed", "1", "--depth", "0", "--moves-max", "200"]).ok();
    shard(Path::new(&demos), &steps(&[40, 30, 50]));
    for (from, to) in [(&games, &pack), (&logs, &rows), (&demos, &trajectories)] {
        run(&["pack", from, to]).ok();
    }
    [games, pack, rows, demos, trajectories]
}

/// Elements that have no end.
const VOID: [&str; 2] = ["meta", "!doctype"];

/// That every element of a page ends, in the order in which they began.
fn assert_well_formed(page: &str) {
    let mut open = Vec::new();
    for part in page.split('<').skip(1) {
        let (tag, after) = part.split_once('>').unwrap_or_else(|| panic!("`<{part}` has no end"));
        assert!(!after.contains('>'), "a stray `>` in `{after}`");
        let name = tag.split([' ', '/']).find(|name| !name.is_empty()).unwrap_or_default();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for stranger in ["<script", "@import", "url(", "<link", "src=", "href="] {
        assert!(!page.contains(stranger), "`{stranger}`");
    }
    assert!(!page.replace("http://www.w3.org/2000/svg", "").contains("http"), "the page needs a network");
}

#[test]
fn every_stage_of_every_kind_is_held_against_its_limit_in_json_and_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = text(&folder.path().join("page.html")).to_owned();
    let [games, pack, rows, demos, trajectories] = made(folder.path());
    let stream = ["read", "decode", "reservoir", "encode", "handoff"];
    let table = ["gather", "encode", "handoff"];
    let small = ["--batch-size", "16", "--batches", "40", "--threads", "1,2", "--json"];
    for (data, works, more) in [
        (&games, &stream[..], &["--reservoir", "64"][..]),
        (&demos, &stream, &["--reservoir", "32"]),
        (&pack, &table, &[]),
        (&rows, &table, &[]),
        (&trajectories, &table, &[]),
    ] {
        let words = [&["bench", data, "--html", &page, "--overwrite"][..], &small, more].concat();
        let found = run(&words).ok().json();
        let stages = found["stages"].as_array().unwrap();
        let found_works: Vec<&str> = stages.iter().map(|stage| stage["work"].as_str().unwrap()).collect();
        assert_eq!(found_works, works, "{data}");
        let html = std::fs::read_to_string(&page).unwrap();
        assert_well_formed(&html);
        for stage in stages {
            let us = stage["us"].as_f64().unwrap();
            assert!(us.is_finite() && us >= 0.0, "{stage}");
            assert!(html.contains(&format!("<td>{us:.3}</td>")), "{stage} is not on the page");
            assert!(html.contains(stage["says"].as_str().unwrap()), "{stage} is not on the page");
            let share = stage["share"].as_f64();
            assert_eq!(stage["limit"].is_null(), share.is_none(), "{stage}");
            if let Some(share) = share {
                assert!(share > 0.0 && share.is_finite(), "{stage}");
                assert!((share - stage["floor_us"].as_f64().unwrap() / us).abs() < 1e-9, "{stage}");
                assert!(html.contains(&format!("<td>{:.0} %</td>", share * 100.0)), "{stage} is not on the page");
            }
        }
        let limited = stages.iter().filter(|stage| stage["work"] != "handoff" && stage["work"] != "gather");
        assert!(limited.clone().count() > 0 && limited.clone().all(|stage| stage["share"].is_f64()), "{found}");
        for run in found["runs"].as_array().unwrap() {
            for queue in run["queues"].as_array().unwrap() {
                let shares = queue["depths"].as_array().unwrap().iter().map(|share| share.as_f64().unwrap());
                let all: f64 = shares.sum();
                assert!(queue["looks"] == 0 || (all - 1.0).abs() < 1e-9, "{queue}");
            }
        }
        assert_eq!(html.matches("<circle").count(), 2, "a point for each run");
    }
}

#[test]
fn text_and_page_of_one_run_agree_and_lines_fit_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let games = folder.path().join("games");
    generate(&games, "12", &[]);
    let words = ["bench", text(&games), "--batch-size", "16", "--reservoir", "64", "--threads", "1", "--html"];
    let found = run(&[&words[..], &[text(&page)]].concat()).ok();
    let html = std::fs::read_to_string(&page).unwrap();
    let long: Vec<&str> = found.out.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(long.is_empty(), "{long:?}");
    let stages: Vec<&str> = found
        .out
        .lines()
        .skip_while(|line| !line.starts_with("stage "))
        .skip(1)
        .take_while(|l| !l.is_empty())
        .collect();
    assert_eq!(stages.len(), 5, "{}", found.out);
    for stage in &stages[..4] {
        let cells: Vec<&str> = stage.split_whitespace().collect();
        for cell in [cells[2], cells[4]] {
            assert!(html.contains(&format!("<td>{cell}</td>")), "{cell} of `{stage}` is not on the page");
        }
    }
    for name in ["cores", "copy", "fill", "inflate", "disk", "memory"] {
        let line = found.out.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}"));
        assert!(html.contains(&format!("<dt>{name}</dt><dd>{}</dd>", line.trim())), "{name}: {line}");
    }
    let refused = run(&[&words[..], &[text(&page)]].concat());
    assert!(refused.code == 2 && refused.err.contains("--overwrite"), "{refused:?}");
}

#[test]
fn bench_names_the_bottleneck() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "6", &[]);
    let words = ["bench", text(folder.path()), "--batches", "3", "--batch-size", "64", "--reservoir", "64", "--json"];
    let found = run(&[&words[..], &["--threads", "1,2"]].concat()).ok().json();
    assert_eq!(found["runs"].as_array().map(Vec::len), Some(2));
    assert_eq!((&found["runs"][1]["threads"], &found["bytes_per_frame"]), (&2.into(), &36_176.0.into()));
    for name in ["inflate_us", "encode_us", "ceiling", "of_ceiling", "speedup"] {
        assert!(found[name].as_f64().unwrap() > 0.0, "{name}");
    }
    let names = ["storage", "decode", "copy", "encode", "handoff", "core", "pool", "trainer"];
    assert!(names.contains(&found["bottleneck"].as_str().unwrap()));
    assert!(found["explains"].as_str().unwrap().contains("thread"), "{found}");
    let machine = &found["machine"];
    assert!(machine["cores"].as_u64().unwrap() > 0 && machine["cores_had"].as_f64().unwrap() > 0.0, "{machine}");
    assert!(machine["gather"].is_null() && machine["inflate"]["form"] == "gzip", "{machine}");
    assert!(machine["storage"]["cold"].is_boolean() && machine["storage"]["files"] == 6, "{machine}");
    let cores = run(&["bench", text(folder.path()), "--batches", "3", "--batch-size", "8", "--json"]).ok().json();
    let threads: Vec<u64> = cores["runs"].as_array().unwrap().iter().map(|r| r["threads"].as_u64().unwrap()).collect();
    assert_eq!((threads[0], threads.last()), (1, machine["cores"].as_u64().as_ref()), "{threads:?}");
}

#[test]
fn what_cannot_be_measured_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| text(&folder.path().join(name)).to_owned();
    let [empty, none, note, logs, one, page] = ["empty", "none", "note.txt", "logs", "games", "page.html"].map(place);
    std::fs::create_dir(&empty).unwrap();
    std::fs::write(&note, "no game").unwrap();
    run(&["generate", "2048", &logs, "--games", "1", "--seed", "1", "--depth", "0", "--moves-max", "30"]).ok();
    for (data, says) in [
        (&empty, "is empty"),
        (&none, "No such file"),
        (&note, "one file that no format here claims"),
        (&logs, "gristmill pack"),
    ] {
        let ran = run(&["bench", data, "--html", &page, "--json"]);
        let told: Value = ran.json();
        assert!(ran.code != 0 && told["ok"] == false, "{ran:?}");
        assert!(told["error"]["message"].as_str().unwrap().contains(says), "{told}");
    }
    assert!(!Path::new(&page).exists(), "what failed writes no page");
    for words in [["--threads", "0"], ["--threads", "1,999"], ["--batches", "1"]] {
        assert_eq!(run(&[&["bench", &empty][..], &words].concat()).code, 2, "{words:?}");
    }
    generate(Path::new(&one), "1", &[]);
    let file = format!("{one}/training.1.gz");
    let words = ["bench", &file, "--batches", "5", "--batch-size", "4", "--reservoir", "8", "--threads", "1", "--json"];
    assert_eq!(run(&words).ok().json()["stages"].as_array().map(Vec::len), Some(5), "one file is enough");
    run(&["pack", &one, &place("pack")]).ok();
    let refused = run(&["bench", &place("pack"), "--pool", "3"]);
    assert!(refused.code == 2 && refused.err.contains("--pool"), "{refused:?}");
}
