//! Statistics of demonstrations: known counts, lengths, returns and actions; as JSON, as text, as a page.

use std::fs;

use super::files::{imitation, shard, steps};
use crate::command::{run, text};

#[test]
fn known_trajectories_give_known_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = steps(&[3, 1, 4]);
    all.last_mut().unwrap().done = false;
    let path = shard(&folder.path().join("demos.tar.zst"), &all);
    let page = folder.path().join("page.html");
    let stats = run(&["stats", text(&path), "--html", text(&page), "--json"]).ok().json();
    let demos = &stats["demos"];
    assert_eq!((&stats["chunks"], &stats["frames"], &stats["length"]["count"]), (&3.into(), &8.into(), &0.into()));
    let ends = ["terminated", "truncated", "unended"].map(|name| demos[name].as_u64().unwrap());
    assert_eq!(ends, [2, 1, 1]);
    assert_eq!((&demos["length"]["min"], &demos["length"]["max"]), (&1.into(), &4.into()));
    // Rewards are 0.5, 1.5 and 2.5 a step: returns of 1.5, 1.5 and 10.
    let returns = &demos["returns"];
    let number = |name: &str| returns[name].as_f64().unwrap();
    assert!((number("mean") - 13.0 / 3.0).abs() < 1e-9 && (number("std") - (289.0f64 / 18.0).sqrt()).abs() < 1e-9);
    assert_eq!((number("min"), number("max")), (1.5, 10.0));
    let actions = demos["actions"].as_object().unwrap();
    assert_eq!(actions.values().map(|n| n.as_u64().unwrap()).sum::<u64>(), 8);
    assert_eq!(actions["2"], 2);
    let said = run(&["stats", text(&path)]).ok().out;
    for part in [
        "3 trajectories, 8 steps in 1 files",
        "2 terminated, 1 truncated (1 without",
        "return (trajectories)",
        "mean 4.3333 ± 4.0069",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("steps per trajectory") && html.contains("<svg"), "{html}");
}

#[test]
fn actions_that_are_vectors_are_counted_by_component_and_files_without_rewards_have_no_returns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("i.npz");
    imitation(&path, &[3, 2], 0.0);
    let stats = run(&["stats", text(&path), "--json"]).ok().json();
    assert_eq!((&stats["demos"]["returns"]["count"], &stats["demos"]["actions"]["1"]), (&0.into(), &2.into()));
    assert_eq!(stats["demos"]["components"].as_array().unwrap().len(), 0);
}
