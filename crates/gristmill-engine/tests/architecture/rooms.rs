//! Which crate may know which, and what none of them may pull in: read from the manifests and the lock file.
//! A crate's own test dependencies are free, except other rooms.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::repository::{SourceFile, files, report, root};

/// More rooms that the tests of a room may know. Generators make the games that tests feed; a server on loopback has buckets; jobs pack
/// and verify what C programs wrote; plans say which rows a loader fed.
const TESTS_KNOW: [(&str, &str); 9] = [
    ("crates/gristmill-engine", "gristmill-generate"),
    ("crates/gristmill-jobs", "gristmill-generate"),
    ("crates/gristmill-view", "gristmill-generate"),
    ("crates/gristmill-engine", "gristmill-jobs"),
    ("crates/gristmill-engine", "gristmill-plans"),
    ("crates/gristmill-jobs", "gristmill-plans"),
    ("crates/gristmill-engine", "gristmill-faultserver"),
    ("crates/gristmill-cli", "gristmill-faultserver"),
    ("crates/gristmill-c", "gristmill-jobs"),
];

/// Each room and the rooms it may know.
const ROOMS: [(&str, &[&str]); 17] = [
    ("crates/gristmill-bytes", &[]),
    ("crates/gristmill-demo", &["gristmill-bytes"]),
    ("crates/gristmill-format", &["gristmill-bytes", "gristmill-demo"]),
    ("crates/gristmill-runtime", &["gristmill-format"]),
    ("crates/gristmill-generate", &["gristmill-format", "gristmill-runtime"]),
    ("crates/gristmill-stages", &["gristmill-format", "gristmill-runtime"]),
    ("crates/gristmill-packs", &["gristmill-format", "gristmill-runtime", "gristmill-stages"]),
    ("crates/gristmill-engine", &["gristmill-format", "gristmill-packs", "gristmill-runtime", "gristmill-stages"]),
    ("crates/gristmill-jobs", &["gristmill-format", "gristmill-engine"]),
    ("crates/gristmill-plans", &["gristmill-format", "gristmill-engine"]),
    ("crates/gristmill-view", &["gristmill-format", "gristmill-engine", "gristmill-jobs", "gristmill-plans"]),
    (
        "crates/gristmill-cli",
        &[
            "gristmill-format",
            "gristmill-generate",
            "gristmill-engine",
            "gristmill-jobs",
            "gristmill-plans",
            "gristmill-view",
        ],
    ),
    (
        "crates/gristmill-python",
        &[
            "gristmill-format",
            "gristmill-generate",
            "gristmill-engine",
            "gristmill-jobs",
            "gristmill-plans",
            "gristmill-view",
        ],
    ),
    ("crates/gristmill-c", &["gristmill-format", "gristmill-runtime", "gristmill-packs"]),
    ("crates/gristmill-sim", &["gristmill-format", "gristmill-engine", "gristmill-jobs"]),
    ("tests/faultserver", &[]),
    ("fuzz", &["gristmill-format", "gristmill-engine"]),
];

/// What a room must not pull in, however indirectly.
const ABSENT: [(&str, &[&str]); 8] = [
    (
        "gristmill-format",
        &[
            "tokio",
            "crossbeam",
            "crossbeam-channel",
            "rayon",
            "rayon-core",
            "notify",
            "inotify",
            "memmap2",
            "walkdir",
            "object_store",
            "clap",
            "indicatif",
            "ratatui",
            "pyo3",
            "numpy",
            "rand",
            "httparse",
        ],
    ),
    (
        "gristmill-engine",
        &["rayon", "clap", "indicatif", "ratatui", "pyo3", "numpy", "shakmaty", "aws-lc-sys", "openssl-sys"],
    ),
    ("gristmill-jobs", &["rayon", "clap", "indicatif", "ratatui", "pyo3", "numpy", "shakmaty"]),
    ("gristmill-plans", &["rayon", "clap", "indicatif", "ratatui", "pyo3", "numpy", "shakmaty"]),
    ("gristmill-view", &["axum", "tiny_http", "clap", "indicatif", "ratatui", "pyo3", "numpy", "shakmaty"]),
    ("gristmill-cli", &["pyo3", "numpy", "shakmaty"]),
    ("gristmill-c", &["clap", "indicatif", "ratatui", "pyo3", "numpy"]),
    ("gristmill-python", &["clap", "indicatif", "ratatui", "shakmaty"]),
];

fn manifest(folder: &str) -> Table {
    let path = root().join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Names of the dependencies in tables of the given kinds, for every target.
fn dependencies(manifest: &Table, kinds: &[&str]) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let tables = targets.filter_map(Value::as_table).chain([manifest]);
    let listed = tables.flat_map(|table| kinds.iter().filter_map(|kind| table.get(*kind)?.as_table()));
    listed.flat_map(Table::keys).cloned().collect()
}

#[test]
fn rooms_know_only_the_rooms_below_them() {
    let members = manifest("")["workspace"]["members"].as_array().expect("a list").clone();
    let listed = |member: &Value| ROOMS.iter().any(|(folder, _)| member.as_str() == Some(folder));
    let unknown = members
        .iter()
        .filter(|member| !listed(member))
        .map(|member| format!("{member}: say in ROOMS whom it may know"));
    let mut breaches: Vec<String> = unknown.collect();
    for (folder, below) in ROOMS {
        let running = dependencies(&manifest(folder), &["dependencies", "build-dependencies"]);
        let testing = dependencies(&manifest(folder), &["dev-dependencies"]);
        let testing = testing.iter().filter(|name| !TESTS_KNOW.contains(&(folder, name.as_str())));
        let named = running.iter().chain(testing);
        let known = named.filter(|name| name.starts_with("gristmill") && !below.contains(&name.as_str()));
        breaches.extend(
            known.map(|name| format!("{folder}/Cargo.toml: remove `{name}`; this room may know only {below:?}")),
        );
    }
    report(
        "Crates stand in one order: container <- format <- runtime <- stages <- packs <- engine <- {jobs, plans} <- view <- {cli, python}; c, sim and fuzz stand beside them.",
        breaches,
    );
}

/// Lines of source that a crate may have.
const LARGEST: usize = 30_000;

#[test]
fn a_crate_can_be_learned_in_a_week() {
    let size = |folder: &str| -> usize { rust_of(folder).map(|file| file.text.lines().count()).sum() };
    let sizes = ROOMS.iter().map(|(folder, _)| (folder, size(folder))).filter(|(_, lines)| *lines > LARGEST);
    let breaches =
        sizes.map(|(folder, lines)| format!("{folder}: {lines} lines: find the part that nobody below needs"));
    report("No crate has more than 30 000 lines of source.", breaches.collect());
}

fn rust_of(folder: &str) -> impl Iterator<Item = &'static SourceFile> {
    let source = format!("{folder}/src/");
    files().iter().filter(move |file| file.path.starts_with(&source) && file.path.ends_with(".rs"))
}

#[test]
fn what_a_room_must_not_pull_in_is_absent() {
    let lock: Table = std::fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock").parse().expect("TOML");
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in lock["package"].as_array().expect("packages") {
        let named = package.get("dependencies").and_then(Value::as_array).into_iter().flatten();
        let names = named.filter_map(|name| Some(name.as_str()?.split(' ').next()?.to_owned()));
        graph.entry(package["name"].as_str().expect("a name").to_owned()).or_default().extend(names);
    }
    // The lock mixes in the test dependencies of our own crates; their manifests say which are not.
    for (folder, _) in &ROOMS[..ROOMS.len() - 1] {
        let name = folder.trim_start_matches("crates/").replace("tests/", "gristmill-");
        graph.insert(name, dependencies(&manifest(folder), &["dependencies", "build-dependencies"]));
    }
    let mut breaches = Vec::new();
    for (room, absent) in ABSENT {
        let mut reached = BTreeMap::from([(room.to_owned(), String::new())]);
        let mut open = vec![room.to_owned()];
        while let Some(name) = open.pop() {
            for next in graph.get(&name).into_iter().flatten() {
                if !reached.contains_key(next) {
                    reached.insert(next.clone(), name.clone());
                    open.push(next.clone());
                }
            }
        }
        for name in absent.iter().filter(|name| reached.contains_key(**name)) {
            let through = &reached[*name];
            breaches.push(format!(
                "{room}: `{name}` comes in through `{through}`: drop it or move the need to another room"
            ));
        }
    }
    report("Absence is architecture: some libraries stay out of some rooms.", breaches);
}

#[test]
fn every_crate_stands_behind_the_one_lint_wall_and_unwinds() {
    let mut breaches = Vec::new();
    for (folder, _) in &ROOMS[..ROOMS.len() - 1] {
        let wall = manifest(folder).get("lints").and_then(|lints| lints.get("workspace")).and_then(Value::as_bool);
        if wall != Some(true) {
            breaches.push(format!("{folder}/Cargo.toml: add `[lints] workspace = true`"));
        }
    }
    for file in files().iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        if file.text.lines().any(|line| line.replace(' ', "").starts_with("panic=\"abort\"")) {
            breaches.push(format!("{}: remove `panic`: a Rust panic must reach Python as an exception", file.path));
        }
    }
    report("One lint wall, and panics unwind.", breaches);
}
