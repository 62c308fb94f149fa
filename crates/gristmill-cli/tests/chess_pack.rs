//! Chess games through `pack`, `inspect`, `verify` and `convert`: into a pack and back to the very records.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::command::{generate, run, text};
use gristmill_engine::open::open;
use gristmill_format::source::Chunk;

/// The records of each game below a folder, by name of the game.
fn games(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(games(&path));
        } else if text(&path).ends_with(".gz") {
            let mut chunk = Chunk::default();
            open(&path).unwrap().chunk(0, &mut chunk).unwrap();
            found.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), chunk.records().to_vec());
        }
    }
    found
}

#[test]
fn games_go_into_a_pack_and_come_back() {
    let (input, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(input.path(), "5", &[]);
    let (pack, back) = (out.path().join("pack"), out.path().join("back"));
    let with = |rule: &str| run(&["pack", "--input", text(input.path()), "--output", text(&pack), "--weigh", rule]);
    let refused = with("diff_focus_q_wieght = 6");
    assert!(refused.code == 2 && refused.err.contains("did you mean `diff_focus_q_weight`"), "{}", refused.err);
    let said = with("diff_focus_q_weight = 6, diff_focus_gamma = 0.5").ok().out;
    let sums = fs::read_dir(&pack).unwrap().filter(|e| text(&e.as_ref().unwrap().path()).ends_with(".sums")).count();
    assert_eq!(sums, 2, "by the pack's own rule, and by the one of the command line");
    assert!(said.contains("of 5 games in one file, chess chunks"), "{said}");
    let looked = run(&["inspect", text(&pack.join("games-00000.chunks")), "--json"]).ok().json();
    assert_eq!((looked["format"].as_str(), looked["chunks"].as_u64()), (Some("chess.chunks"), Some(5)));
    let checked = run(&["verify", text(&pack), "--json"]).ok().json();
    assert_eq!((checked["ok"].as_bool(), checked["chunks"].as_u64()), (Some(true), Some(5)));
    // Packs are merged as they are, or by packing what holds them.
    let (merged, more) = (out.path().join("merged"), tempfile::tempdir().unwrap());
    run(&["generate", "chess", text(more.path()), "--games", "2", "--seed", "8", "--plies-max", "20"]).ok();
    run(&["pack", "--input", text(more.path()), "--output", text(&out.path().join("more"))]).ok();
    let said = run(&["pack", "--input", text(out.path()), "--output", text(&merged)]).ok().out;
    assert!(said.contains("of 7 games"), "{said}");
    let joined = out.path().join("joined");
    let said = run(&["merge", text(&pack), text(&out.path().join("more")), "--output", text(&joined)]).ok().out;
    assert!(said.contains("of 7 games from 2 packs, chess"), "{said}");
    let seen = run(&["inspect", text(&joined)]).ok().out;
    assert!(seen.contains("pack of 7 games (chess)") && seen.contains("won by White"), "{seen}");
    assert_eq!(run(&["inspect", text(&joined), "--json"]).ok().json()["pack"]["games"], 7);
    let against = run(&["verify", text(&joined), "--against", text(input.path()), "--json"]).ok().json();
    assert_eq!((against["ok"].as_bool(), against["chunks"].as_u64()), (Some(true), Some(5)));
    let against = run(&["verify", text(&pack), "--against", text(more.path()), "--json"]);
    assert_eq!((against.code, against.json()["checks"]["missing"].as_u64()), (1, Some(2)));
    run(&["convert", text(&pack), text(&back), "--container", "loose"]).ok();
    let originals = games(input.path());
    assert_eq!(originals.len(), 5);
    assert!(games(&back) == originals);

    let path = pack.join("games-00000.chunks");
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let bad = run(&["verify", text(&pack), "--json"]);
    assert_eq!((bad.code, bad.json()["fault_count"].as_u64()), (1, Some(1)));
}
