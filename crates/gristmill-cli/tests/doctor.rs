//! `doctor` over games: each fault made on purpose is read in its row, and sound data have none.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gristmill_jobs::doctor::{CHECKS, Check};
use serde_json::Value;

use crate::command::{Ran, generate, run, text};
use crate::tools::folders::{V6, games, records};

/// What a doctor says of a path, which has findings; by check.
pub(crate) fn findings(words: &[&str]) -> BTreeMap<String, Value> {
    let ran = run(&[&["doctor"][..], words, &["--json"]].concat());
    let found = ran.json();
    assert_eq!((ran.code, found["healthy"].as_bool()), (1, Some(false)), "{found}");
    let all = found["findings"].as_array().unwrap().iter();
    all.map(|finding| (finding["check"].as_str().unwrap().to_owned(), finding.clone())).collect()
}

/// The names of what a doctor finds.
pub(crate) fn names(path: &Path) -> Vec<String> {
    findings(&[text(path)]).into_keys().collect()
}

/// That a doctor finds nothing.
pub(crate) fn healthy(path: &Path) -> Value {
    let found = run(&["doctor", text(path), "--json"]).ok().json();
    assert_eq!((found["healthy"].as_bool(), found["findings"].as_array().map(Vec::len)), (Some(true), Some(0)));
    found
}

#[test]
fn sound_data_are_healthy_in_every_form() {
    let (folder, games) = games("6");
    let at = |name: &str| folder.path().join(name);
    run(&["generate", "chess", text(&at("tars")), "--games", "6", "--seed", "2", "--tar", "--games-per-tar", "6"]).ok();
    run(&["generate", "2048", text(&at("drop")), "--games", "3", "--seed", "1", "--depth", "0"]).ok();
    for (from, to) in [(games.clone(), at("pack")), (at("drop"), at("rows"))] {
        run(&["pack", text(&from), text(&to)]).ok();
    }
    for (path, format, packs) in [
        (games.clone(), "lc0.gz", true),
        (at("tars"), "lc0.tar", true),
        (at("pack"), "chess.chunks", false),
        (at("drop"), "2048.jsonl.gz", true),
        (at("rows"), "steps", false),
    ] {
        let found = healthy(&path);
        assert!(found["formats"][format].as_u64().unwrap() > 0, "{found}");
        let [games, different] = ["games", "different"].map(|name| found["games"][name].as_u64().unwrap());
        assert_eq!((games, different), (found["chunks"].as_u64().unwrap(), games));
        assert!(found["epoch"]["seconds"].as_f64().unwrap() > 0.0 && found["sizes"]["files"].as_u64().unwrap() > 0);
        assert_eq!(found["sizes"]["packed"].as_u64().is_some(), packs, "{}", found["sizes"]);
    }
    let size = |path: &Path, name: &str| healthy(path)["sizes"][name].as_u64();
    assert_eq!(size(&games, "packed"), size(&at("pack"), "stored"), "the sample was all of it");
    assert_eq!(size(&at("drop"), "packed"), size(&at("rows"), "stored"));
    let said = run(&["doctor", text(&games)]).ok().out;
    assert!(said.contains("6 games or episodes") && said.contains("healthy: 21 checks found nothing"), "{said}");
}

/// Writes the one game of a folder as plain records, changed at an offset of frame 1.
fn changed(folder: &Path, offset: usize, bytes: &[u8]) -> PathBuf {
    generate(folder, "1", &[]);
    let file = folder.join("training.1.gz");
    let mut plain = records(&file);
    fs::remove_file(&file).unwrap();
    plain[V6 + offset..][..bytes.len()].copy_from_slice(bytes);
    fs::write(folder.join("training.1"), plain).unwrap();
    folder.join("training.1")
}

fn offset(field: &str) -> usize {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "1", &[]);
    let seen = run(&["inspect", text(&folder.path().join("training.1.gz")), "--json"]).ok().json();
    let fields = seen["layout"]["fields"].as_array().unwrap();
    let found = fields.iter().find(|one| one["name"] == field).unwrap_or_else(|| panic!("no {field}"));
    found["offset"].as_u64().unwrap() as usize
}

#[test]
fn a_changed_field_is_read_in_its_row_with_its_place() {
    let policy = offset("probabilities");
    for (check, rule, at, bytes) in [
        ("illegal_policy", "policy_sum", policy, 0.5f32.to_le_bytes().to_vec()),
        ("illegal_move", "best_idx", offset("best_idx"), 1857u16.to_le_bytes().to_vec()),
        ("result", "result", offset("result_q"), 0.25f32.to_le_bytes().to_vec()),
        ("numbers", "out_of_range", offset("best_q"), f32::NAN.to_le_bytes().to_vec()),
        ("order", "rule50", offset("rule50_count"), vec![77]),
        ("rules", "castling", offset("castling_us_ooo"), vec![9]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = changed(folder.path(), at, &bytes);
        let found = findings(&[text(folder.path())]);
        let finding = found.get(check).unwrap_or_else(|| panic!("no {check} in {:?}", found.keys()));
        assert!(finding["of"][rule].as_u64().unwrap() > 0, "{finding}");
        let places = finding["first"].as_array().unwrap();
        let place = places.iter().find(|place| place["rule"] == rule || place["kind"] == rule);
        let place = place.unwrap_or_else(|| panic!("{rule}: {finding}"));
        assert_eq!(place["file"], text(&file));
        assert!(place["frame"].as_u64().unwrap() <= 2 && place["offset"].as_u64().is_some(), "{place}");
        assert!(["cause", "remedy", "says"].iter().all(|name| finding[*name].as_str().unwrap().len() > 10));
    }
}

#[test]
fn damage_strangers_and_what_cannot_be_read_are_told_apart() {
    let (folder, games) = games("3");
    let bytes = fs::read(games.join("training.2.gz")).unwrap();
    fs::write(games.join("training.2.gz"), &bytes[..bytes.len() / 2]).unwrap();
    let found = findings(&[text(&games)]);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["damaged"]);
    let place = &found["damaged"]["first"][0];
    assert!(place["salvageable"].as_u64().unwrap() > 0 && place["kind"] == "truncated", "{place}");
    let stranger = folder.path().join("notes.gz");
    fs::write(&stranger, "no game").unwrap();
    assert_eq!(names(&stranger).len(), 1);
    let cut = folder.path().join("cut.binpack");
    fs::write(&cut, b"BINP\x10\0\0\0").unwrap();
    let found = findings(&[text(&cut)]);
    let place = &found.values().next().unwrap()["first"][0];
    assert!(place["detail"].as_str().unwrap().contains("a block of 16 bytes"), "{found:?}");
    let drop = folder.path().join("drop");
    run(&["generate", "2048", text(&drop), "--games", "2", "--seed", "1", "--depth", "0"]).ok();
    run(&["pack", text(&drop), text(&folder.path().join("rows"))]).ok();
    let legacy = folder.path().join("legacy");
    let rows = folder.path().join("rows");
    run(&["convert", text(&rows), text(&legacy), "--to", "legacy", "--lossy", "--defaults"]).ok();
    let found = findings(&[text(&legacy)]);
    assert!(found["foreign"]["first"][0]["detail"].as_str().unwrap().contains("convert"), "{found:?}");
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(names(&empty), ["nothing"]);
}

#[test]
fn games_that_repeat_mirror_or_leak_are_named_with_their_first() {
    let (folder, games) = games("4");
    let other = folder.path().join("other");
    generate(&other, "2", &["--first", "9"]);
    let said = run(&["doctor", text(&games), "--held-out", text(&other)]).ok();
    assert!(said.out.contains("healthy"));
    fs::copy(games.join("training.3.gz"), games.join("training.8.gz")).unwrap();
    fs::copy(games.join("training.1.gz"), other.join("mine.gz")).unwrap();
    let found = findings(&[text(&games), "--held-out", text(&other)]);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["duplicates", "leakage"]);
    let detail = |check: &str| found[check]["first"][0]["detail"].as_str().unwrap().to_owned();
    assert!(detail("duplicates").contains("to the byte") && detail("duplicates").contains("training.3.gz"));
    assert!(detail("leakage").contains("training.1.gz"));
    assert_eq!(found["leakage"]["first"][0]["file"], text(&other.join("mine.gz")));
    // The copy within a pack, too, and as rows of 2048.
    let drop = folder.path().join("drop");
    run(&["generate", "2048", text(&drop), "--games", "2", "--seed", "1", "--depth", "0"]).ok();
    for (from, to) in [(&games, "pack"), (&drop, "rows")] {
        run(&["pack", text(from), text(&folder.path().join(to))]).ok();
    }
    assert_eq!(names(&folder.path().join("pack")), ["duplicates"]);
    let found = findings(&[text(&drop), "--held-out", text(&folder.path().join("rows"))]);
    assert_eq!(found["leakage"]["count"], 2);
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let refused = run(&["doctor", text(&games), "--held-out", text(&empty)]);
    assert!(refused.code == 2 && refused.err.contains("holds no file"), "{refused:?}");
}

/// The games of a PGN, each with its result and its moves.
fn pgn(folder: &Path, games: &[(&str, &str, &str)]) -> PathBuf {
    let game = |(start, moves, result): &(&str, &str, &str)| {
        let fen = if start.is_empty() { String::new() } else { format!("[SetUp \"1\"]\n[FEN \"{start}\"]\n") };
        format!("{fen}[Result \"{result}\"]\n\n{moves} {result}\n\n")
    };
    let file = folder.join("games.pgn");
    fs::write(&file, games.iter().map(game).collect::<String>()).unwrap();
    file
}

#[test]
fn results_and_values_that_never_change_are_signs() {
    let folder = tempfile::tempdir().unwrap();
    let turned = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR b KQkq - 0 1";
    let file = pgn(folder.path(), &[("", "1. e4 e5 2. Nf3", "1-0"), (turned, "1... e5 2. e4 Nf6", "0-1")]);
    assert_eq!(names(&file), ["mirrors"]);
    let mate = pgn(folder.path(), &[("", "1. f3 e5 2. g4 Qh4#", "1-0")]);
    let found = findings(&[text(&mate)]);
    assert!(found["result"]["first"][0]["detail"].as_str().unwrap().contains("0-1"), "{found:?}");
    let firsts = ["a3", "b3", "c3", "d3", "e3", "f3", "g3", "h3", "a4", "b4", "c4", "d4", "e4", "f4", "g4", "h4"];
    let firsts = [&firsts[..], &["Na3", "Nc3", "Nf3", "Nh3"]].concat();
    let second = |first: &str| if first.starts_with('e') { "d3" } else { "e3" };
    let moves: Vec<String> = firsts.iter().map(|first| format!("1. {first} e6 2. {}", second(first))).collect();
    let won: Vec<(&str, &str, &str)> = moves.iter().map(|moves| ("", moves.as_str(), "1-0")).collect();
    assert_eq!(names(&pgn(folder.path(), &won)), ["one_result"]);
    // Values that are all one number, over more than a few frames.
    let (_other, games) = crate::tools::folders::games("4");
    let (best, root, probabilities) = (offset("best_q"), offset("root_q"), offset("probabilities"));
    let d = [offset("best_d"), offset("root_d")];
    for n in 1..=4 {
        let file = games.join(format!("training.{n}.gz"));
        let mut plain = records(&file);
        fs::remove_file(&file).unwrap();
        for record in plain.chunks_exact_mut(V6) {
            for at in [best, root] {
                record[at..][..4].copy_from_slice(&0.25f32.to_le_bytes());
            }
            for at in d {
                record[at..][..4].copy_from_slice(&0.25f32.to_le_bytes());
            }
            let policy = &mut record[probabilities..][..4 * 1858];
            let legal = |p: &&mut [u8; 4]| f32::from_le_bytes(**p) >= 0.0;
            let count = policy.as_chunks_mut().0.iter_mut().filter(legal).count();
            let even = (1.0 / count as f32).to_le_bytes();
            policy.as_chunks_mut().0.iter_mut().filter(legal).for_each(|p| *p = even);
        }
        fs::write(games.join(format!("training.{n}")), plain).unwrap();
    }
    let found = findings(&[text(&games)]);
    let details: Vec<&str> =
        found["frozen_values"]["first"].as_array().unwrap().iter().map(|one| one["detail"].as_str().unwrap()).collect();
    let [best, policy, root] = details[..] else { panic!("{details:?}") };
    assert!(best.contains("`best_q` is 0.25 in all") && root.contains("`root_q` is 0.25 in all"), "{details:?}");
    assert!(policy.contains("`policy` is flat"), "{details:?}");
}

#[test]
fn games_of_2048_that_were_cut_have_no_end() {
    let folder = tempfile::tempdir().unwrap();
    let [drop, rows] = ["drop", "rows"].map(|name| folder.path().join(name));
    let words = ["generate", "2048", text(&drop), "--games", "3", "--seed", "1", "--depth", "0", "--moves-max", "50"];
    run(&words).ok();
    run(&["pack", text(&drop), text(&rows)]).ok();
    for path in [&drop, &rows] {
        let found = findings(&[text(path)]);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["no_end"]);
        assert_eq!(found["no_end"]["count"], 3);
    }
}

#[test]
fn a_page_stands_alone_and_names_command_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("<img src=x>\u{1b}[2J");
    generate(&games, "2", &[]);
    fs::write(games.join("training.1.gz"), "<script>alert(1)</script>").unwrap();
    let page = folder.path().join("page.html");
    let words = ["doctor", text(&games), "--html", text(&page)];
    assert!(run(&[&words[..], &["--dry-run"]].concat()).code == 1 && !page.exists());
    let ran = run(&words);
    assert!(ran.code == 1 && !ran.out.contains('\u{1b}'), "{ran:?}");
    let html = fs::read_to_string(&page).unwrap();
    for part in ["foreign: files of a form", "remedy: ", "&lt;img src=x&gt;", "<svg"] {
        assert!(html.contains(part), "no `{part}` in {html}");
    }
    for stranger in ["<script", "<link", "<img", "href=", "url(", "https:"] {
        assert!(!html.contains(stranger), "`{stranger}`");
    }
    let refused = run(&words);
    assert!(refused.code == 2 && refused.err.contains("--overwrite"), "{refused:?}");
    assert_eq!(run(&[&words[..], &["--overwrite"]].concat()).code, 1);
}

#[test]
fn bytes_from_nowhere_are_findings() {
    let folder = tempfile::tempdir().unwrap();
    let mut seed = 7u64;
    for ending in ["gz", "tar", "tar.zst", "pkl", "pkl.gz", "npz", "jsonl.gz", "pgn", "chunks", "npy", "db", "tgz"] {
        let mut noise = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 56) as u8
        };
        for (name, head) in
            [("a", &b""[..]), ("b", &[0x1F, 0x8B, 8, 0]), ("c", b"PK\x03\x04"), ("d", b"\x28\xB5\x2F\xFD")]
        {
            let bytes: Vec<u8> = head.iter().copied().chain((0..3000).map(|_| noise())).collect();
            fs::write(folder.path().join(format!("{name}.{ending}")), bytes).unwrap();
        }
    }
    let Ran { code, err, out } = run(&["doctor", text(folder.path())]);
    assert!(code == 1 && !err.contains("panicked") && out.contains("damaged"), "{err} {out}");
}

#[test]
fn the_page_of_the_guide_has_every_check_and_no_other() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/doctor.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |check: &Check| format!("| `{}` | {} | {} | {} |", check.name, check.says, check.cause, check.remedy);
    assert_eq!(rows, CHECKS.iter().map(row).collect::<Vec<_>>());
}

/// The samples of others, where they are at hand: what the guide says of them.
#[test]
fn the_samples_that_the_guide_tells_of_are_as_it_says() {
    let shared = std::env::var_os("GRISTMILL_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    for (name, expected) in [
        ("lc0/lc0-data-sample.tar", &[][..]),
        ("demos/pong.tar.zst", &["no_end", "order"]),
        ("demos/magical-MoveToRegion.pkl.gz", &[]),
        ("demos/imit_cartpole_final.pkl", &[]),
        ("demos/imit_cartpole_final.npz", &[]),
    ] {
        let path = shared.join("data").join(name);
        if !path.exists() {
            println!("skipped: no sample {name}");
            continue;
        }
        if expected.is_empty() {
            healthy(&path);
        } else {
            assert_eq!(names(&path), expected);
        }
    }
}

/// Samples that crates bring, where a registry of crates is at hand.
fn of_crate(crate_name: &str, file: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let below = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let crates = below(&home.join("registry/src")).flat_map(|registry| below(&registry).collect::<Vec<_>>());
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(crate_name));
    let found = crates.filter(named).map(|path| path.join(file)).find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: no {file} of {crate_name} in {}; `cargo fetch` of that crate brings it", home.display());
    }
    found
}

#[test]
fn samples_of_crates_are_as_the_guide_says() {
    for (file, games, frames, checks) in
        [("benches/lichess_db_100k.pgn", 47, 2770, &[][..]), ("benches/twic1599_100k.pgn", 110, 9810, &["nothing"][..])]
    {
        let Some(path) = of_crate("pgn-reader-0.29", file) else { continue };
        let found = run(&["doctor", text(&path), "--json"]).json();
        assert_eq!((found["chunks"].as_u64(), found["frames"].as_u64()), (Some(games), Some(frames)), "{file}");
        let named: Vec<&str> =
            found["findings"].as_array().unwrap().iter().map(|one| one["check"].as_str().unwrap()).collect();
        assert_eq!(named, checks, "{file}");
    }
    if let Some(path) = of_crate("sfbinpack-", "test/ep1.binpack") {
        healthy(&path);
    }
}
