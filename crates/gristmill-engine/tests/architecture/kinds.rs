//! Games are named in `kinds` and in their own folders; every other file that still names one is in a list here, which only shrinks.
//! A game that is named elsewhere is one that the next game is forgotten beside.

use std::collections::BTreeSet;

use crate::repository::{report, rust};

/// Folders of the format room that are of one game.
const GAMES: [&str; 7] = ["chess", "g2048", "demo", "binpack", "bullet", "records", "katago"];

/// Crates above the formats and below the faces.
const CRATES: [&str; 6] = [
    "crates/gristmill-runtime/src/",
    "crates/gristmill-stages/src/",
    "crates/gristmill-packs/src/",
    "crates/gristmill-engine/src/",
    "crates/gristmill-jobs/src/",
    "crates/gristmill-plans/src/",
];

/// Folders that say what each game is, one file or folder for each.
const KINDS: [&str; 2] = ["crates/gristmill-packs/src/kinds/", "crates/gristmill-jobs/src/kinds/"];

/// Files that name a game all the same: folder below `crates/`, and names. None may be added.
const GLUE: &[(&str, &[&str])] = &[
    ("gristmill-stages/src", &["rescorer.rs"]),
    ("gristmill-stages/src/config", &["g2048.rs", "rescorer.rs", "stages.rs"]),
    (
        "gristmill-packs/src/demos",
        &["columns.rs", "data.rs", "indexed.rs", "open.rs", "packed.rs", "spill.rs", "write.rs"],
    ),
    ("gristmill-packs/src", &["recording.rs"]),
    ("gristmill-runtime/src/facts", &["index.rs", "record.rs"]),
    (
        "gristmill-packs/src/pack",
        &[
            "mod.rs",
            "open.rs",
            "recorder.rs",
            "rows.rs",
            "runs.rs",
            "table.rs",
            "valuation.rs",
            "values.rs",
            "writer.rs",
        ],
    ),
    ("gristmill-engine/src/pipeline/plan", &["acceptance.rs"]),
    ("gristmill-stages/src/stage", &["rescore.rs", "validate.rs"]),
    ("gristmill-stages/src/stage/load", &["index.rs"]),
    ("gristmill-runtime/src/tablebase", &["mod.rs"]),
    ("gristmill-jobs/src", &["files.rs", "sidecar.rs"]),
    ("gristmill-jobs/src/convert", &["database.rs", "flow.rs", "mod.rs", "plan.rs", "source.rs", "target.rs"]),
    (
        "gristmill-jobs/src/demos",
        &[
            "dict.rs",
            "gather.rs",
            "grouped.rs",
            "groups.rs",
            "mod.rs",
            "shards.rs",
            "source.rs",
            "spaces.rs",
            "split.rs",
            "spool.rs",
            "task.rs",
        ],
    ),
    ("gristmill-jobs/src/inspect", &["mod.rs", "pack_frame.rs", "strip.rs"]),
    ("gristmill-jobs/src/merge", &["beside.rs", "block.rs"]),
    ("gristmill-jobs/src/pack", &["assemble.rs", "discover.rs", "flow.rs", "game.rs", "strangers.rs", "work.rs"]),
    ("gristmill-jobs/src/pack/chunks", &["demos.rs"]),
    ("gristmill-jobs/src/rewrite", &["filter.rs", "line.rs", "pass.rs", "plan.rs", "recast.rs", "split.rs"]),
    ("gristmill-jobs/src/stats", &["counting.rs", "demo.rs", "look.rs", "start.rs"]),
    ("gristmill-jobs/src/stats/g2048", &["mod.rs", "tally.rs"]),
    ("gristmill-jobs/src/tokenizer", &["mod.rs"]),
    ("gristmill-jobs/src/values", &["backwards.rs", "mod.rs"]),
    ("gristmill-jobs/src/verify/pack", &["block.rs", "mod.rs", "values.rs"]),
    ("gristmill-jobs/src/work", &["opened.rs"]),
    ("gristmill-plans/src", &["selected.rs"]),
    ("gristmill-jobs/src/work/drawn", &["chess.rs", "g2048.rs"]),
];

/// Files of the engine and of the jobs, outside of `kinds`, whose running code names a game's folder of the format room.
fn naming() -> BTreeSet<&'static str> {
    let files = CRATES.iter().flat_map(|folder| rust(folder));
    let files = files.filter(|file| !file.is_test() && !KINDS.iter().any(|kinds| file.path.starts_with(kinds)));
    let named = files.filter(|file| {
        let games = |path: &[String]| {
            path.first().is_some_and(|room| room == "gristmill_format")
                && path.get(1).is_some_and(|game| GAMES.contains(&game.as_str()))
        };
        file.paths().iter().any(|(_, path)| games(path))
    });
    named.map(|file| file.path.as_str()).collect()
}

#[test]
fn games_are_named_in_kinds_and_the_list_of_other_places_only_shrinks() {
    let listed: BTreeSet<String> = GLUE
        .iter()
        .flat_map(|(folder, names)| names.iter().map(move |name| format!("crates/{folder}/{name}")))
        .collect();
    let naming = naming();
    let mut breaches = Vec::new();
    for file in naming.iter().filter(|file| !listed.contains(**file)) {
        breaches.push(format!("{file}: it names a game: let `kinds` say what this needs, by a method of its trait"));
    }
    for file in listed.iter().filter(|file| !naming.contains(file.as_str())) {
        breaches.push(format!("{file}: it names no game any more: strike it from the list"));
    }
    report("What a game is, `kinds` says; no other file of the engine or of the jobs names one.", breaches);
}

#[test]
fn every_game_has_its_place_in_every_table_of_kinds() {
    let mut breaches = Vec::new();
    for (kinds, game) in KINDS.iter().flat_map(|kinds| GAMES.map(|game| (kinds, game))) {
        let places = [format!("{kinds}{game}.rs"), format!("{kinds}{game}/mod.rs")];
        if rust("crates/").all(|file| !places.contains(&file.path)) {
            breaches.push(format!("{kinds}: there is no file for `{game}`"));
        }
    }
    report("Each game has one file, or one folder, in each `kinds`.", breaches);
}
