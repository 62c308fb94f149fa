//! Statistics and inspection: numbers agree with each other, and the page of plots stands alone.

use std::fs;

use serde_json::Value;

use super::folders::games;
use crate::command::{generate, run, text};

fn sum(map: &Value) -> u64 {
    map.as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum()
}

#[test]
fn distributions_count_every_position_once() {
    let (_folder, games) = games("8");
    let stats = run(&["stats", text(&games), "--json"]).ok().json();
    let frames = stats["frames"].as_u64().unwrap();
    assert_eq!((sum(&stats["men"]), stats["plies"]["count"].as_u64()), (frames, Some(frames)));
    assert_eq!(stats["plies"]["max"].as_u64().unwrap() + 1, stats["length"]["max"].as_u64().unwrap());
    assert_eq!(stats["weights"]["count"].as_u64().unwrap() + stats["unweighed"].as_u64().unwrap(), frames);
    assert!(stats["weights"]["max"].as_f64().unwrap() <= 1.0 && stats["weights"]["mean"].as_f64().unwrap() > 0.0);
    let start = &stats["start"];
    assert_eq!((start["positions"].as_u64(), start["moves"].as_array().unwrap().len()), (Some(8), 20));
    let [shares, played] = ["share", "played"]
        .map(|name| start["moves"].as_array().unwrap().iter().map(|m| m[name].as_f64().unwrap()).sum::<f64>());
    assert!((shares - 1.0).abs() < 1e-4 && played == 8.0, "{start}");
    let other = run(&["stats", text(&games), "--json", "--q-weight", "1", "--pol-scale", "9"]).ok().json();
    assert_ne!(other["weights"], stats["weights"]);
    assert_eq!(other["men"], stats["men"]);
    let shown = run(&["stats", text(&games)]).ok().out;
    for part in ["result (games)", "men on the board", "weight by difference focus", "policy of the start", "g1f3"] {
        assert!(shown.contains(part), "no `{part}` in {shown}");
    }
}

#[test]
fn a_page_stands_alone_and_replaces_nothing_unasked() {
    let (folder, games) = games("3");
    let page = folder.path().join("page.html");
    let words = ["stats", text(&games), "--html", text(&page), "--json"];
    run(&[&words[..], &["--dry-run"]].concat()).ok();
    assert!(!page.exists());
    let stats = run(&words).ok().json();
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<svg").count(), 10);
    for part in [text(&games), "policy of the start position", stats["frames"].to_string().as_str()] {
        assert!(html.contains(part), "no `{part}`");
    }
    for stranger in ["<script", "<link", "src=", "href=", "url(", "https:"] {
        assert!(!html.contains(stranger), "`{stranger}`");
    }
    fs::write(&page, "mine").unwrap();
    let refused = run(&words);
    assert!(refused.code == 2 && refused.err.contains("--overwrite"), "{refused:?}");
    assert_eq!(fs::read_to_string(&page).unwrap(), "mine");
    run(&[&words[..], &["--overwrite"]].concat()).ok();
    assert_eq!(fs::read_to_string(&page).unwrap(), html);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing hidden is left");
}

#[test]
fn a_frame_is_told_in_full() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "1", &["--version", "7"]);
    let file = folder.path().join("training.1.gz");
    let seen = run(&["inspect", text(&file), "--frame", "2", "--json"]).ok().json();
    let record = &seen["frame"]["record"];
    let fields = seen["layout"]["fields"].as_array().unwrap();
    assert_eq!(record.as_object().unwrap().len(), fields.len());
    assert!(fields.iter().all(|field| record.get(field["name"].as_str().unwrap()).is_some()));
    assert_eq!((record["version"].as_u64(), record["planes"].as_array().unwrap().len()), (Some(7), 104));
    let policy = record["probabilities"].as_array().unwrap();
    let legal = policy.iter().filter(|p| p.as_f64().unwrap() >= 0.0).count() as u64;
    assert_eq!((policy.len(), Some(legal)), (1858, seen["frame"]["legal_moves"].as_u64()));
    assert!(run(&["inspect", text(&file), "--json"]).ok().json()["frame"].get("record").is_none());
    let shown = run(&["inspect", text(&file), "--frame", "2", "--ascii", "--record"]).ok().out;
    for part in ["a b c d e f g h", "the record in full:", "1858 numbers, all -1 but", "next_played_idx", "d_st"] {
        assert!(shown.contains(part), "no `{part}` in {shown}");
    }
}
