//! How files look: a card on top, a size that can be read in one go, a name that says something, links that lead somewhere.
//! Binds tests, scripts and documents as much as running code.

use std::path::Path;

use crate::repository::{SourceFile, files, report, root};

const MOST_LINES: usize = 500;

/// Names that say nothing.
const EMPTY_NAMES: [&str; 11] =
    ["utils", "util", "common", "helpers", "helper", "misc", "types", "structs", "core", "stuff", "shared"];

fn code() -> impl Iterator<Item = &'static SourceFile> {
    files().iter().filter(|file| ["rs", "py", "pyi", "sh", "toml"].iter().any(|ending| file.has_ending(ending)))
}

#[test]
fn every_rust_file_opens_with_its_card() {
    let mut breaches = Vec::new();
    for file in files().iter().filter(|file| file.has_ending("rs")) {
        let door = ["mod.rs", "lib.rs"].iter().any(|name| file.path.ends_with(&format!("/{name}")));
        let card = file.text.lines().take_while(|line| line.starts_with("//!"));
        // A door may list its modules, below its card and an empty line.
        let lines = card.take_while(|line| !door || line.len() > 3).count();
        if !(1..=5).contains(&lines) {
            let advice = "open with 1 to 5 lines `//! what enters -> what leaves; what it never does`";
            breaches.push(format!("{}: {lines} lines: {advice}", file.path));
        }
    }
    report("Each Rust file opens with a card.", breaches);
}

#[test]
fn no_file_is_longer_than_five_hundred_lines() {
    let long = code().map(|file| (file, file.text.lines().count())).filter(|(_, lines)| *lines > MOST_LINES);
    let breaches = long.map(|(file, lines)| format!("{}: {lines} lines: split it where its subject splits", file.path));
    report("A file can be read in one go.", breaches.collect());
}

#[test]
fn names_say_what_is_inside() {
    let mut breaches = Vec::new();
    for file in code() {
        let words = file.path.split(['/', '.', '_', '-']);
        if let Some(word) = words.clone().find(|word| EMPTY_NAMES.contains(word)) {
            breaches.push(format!("{}: `{word}` says nothing: name the file after what it does", file.path));
        }
    }
    report("Names say what is inside.", breaches);
}

#[test]
fn promises_are_kept_or_deleted() {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
    let mut breaches = Vec::new();
    for file in code().chain(files().iter().filter(|file| file.has_ending("md"))) {
        for (i, line) in file.text.lines().enumerate() {
            if words.iter().any(|word| line.split(|c: char| !c.is_alphanumeric()).any(|found| found == *word)) {
                breaches.push(format!("{}:{}: do it, or open an issue and say nothing here", file.path, i + 1));
            }
        }
    }
    report("No notes to oneself are left in files.", breaches);
}

#[test]
fn merges_are_done_to_the_end() {
    let of = |file: &'static SourceFile| file.text.lines().enumerate().map(move |line| (file, line));
    let left = files()
        .iter()
        .flat_map(of)
        .filter(|(_, (_, line))| ["<".repeat(7), ">".repeat(7)].iter().any(|mark| line.starts_with(mark)));
    let breaches = left.map(|(file, (i, _))| format!("{}:{}: choose one side, or join them", file.path, i + 1));
    report("No page holds two versions of itself.", breaches.collect());
}

#[test]
fn links_lead_somewhere() {
    let root = root();
    let mut breaches = Vec::new();
    for file in files().iter().filter(|file| file.has_ending("md")) {
        let folder = root.join(&file.path).parent().map(Path::to_owned).unwrap_or_default();
        for link in file.text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next()) {
            let target = link.split('#').next().unwrap_or("");
            let outside = ["http://", "https://", "mailto:"].iter().any(|scheme| link.starts_with(scheme));
            if !outside && !target.is_empty() && !folder.join(target).exists() {
                breaches.push(format!("{}: `{link}` leads nowhere: mend or remove the link", file.path));
            }
        }
    }
    report("Relative links exist.", breaches);
}

#[test]
fn pages_and_tests_that_are_named_exist() {
    let root = root();
    let mut breaches = Vec::new();
    for file in files().iter().filter(|file| ["rs", "py", "pyi", "md"].iter().any(|ending| file.has_ending(ending))) {
        for (i, line) in file.text.lines().enumerate() {
            for word in line.split(|c: char| !(c.is_alphanumeric() || "/._-".contains(c))) {
                let word = word.trim_end_matches('.');
                let page = word.starts_with("docs/") && word.ends_with(".md");
                let test = word.starts_with("tests/") && (word.ends_with(".rs") || word.ends_with(".py"));
                let own = file.path.split("/src/").next().filter(|_| file.path.contains("/src/")).unwrap_or("");
                let crates = [
                    "",
                    own,
                    "crates/gristmill-engine",
                    "crates/gristmill-bytes",
                    "crates/gristmill-demo",
                    "crates/gristmill-format",
                    "crates/gristmill-generate",
                    "crates/gristmill-packs",
                    "crates/gristmill-runtime",
                    "crates/gristmill-stages",
                    "crates/gristmill-c",
                    "crates/gristmill-cli",
                    "crates/gristmill-jobs",
                    "crates/gristmill-plans",
                    "crates/gristmill-sim",
                ];
                if (page || test) && !crates.iter().any(|folder| root.join(folder).join(word).exists()) {
                    breaches.push(format!(
                        "{}:{}: `{word}` does not exist: write it or name another",
                        file.path,
                        i + 1
                    ));
                }
            }
        }
    }
    report("Pages and tests that are named exist.", breaches);
}

#[test]
fn every_test_is_part_of_a_program() {
    let mut breaches = Vec::new();
    for krate in ["format", "engine", "jobs", "cli", "c"].map(|name| format!("crates/gristmill-{name}")) {
        let text = |name: &str| std::fs::read_to_string(root().join(&krate).join(name)).unwrap_or_default();
        let (manifest, program) = (text("Cargo.toml"), text("tests/main.rs"));
        let of_krate = format!("{krate}/tests/");
        let programs =
            || files().iter().filter(|file| file.path.starts_with(&of_krate) && file.path.ends_with("/main.rs"));
        for file in files() {
            let Some(below) = file.path.strip_prefix(&*krate).and_then(|path| path.strip_prefix("/tests/")) else {
                continue;
            };
            let module = below.strip_suffix("/mod.rs").or_else(|| below.strip_suffix(".rs")).unwrap_or("");
            let is_root = below.ends_with("main.rs") || !module.is_empty() && !module.contains('/');
            let is_known = program.lines().any(|line| line == format!("mod {module};"))
                || manifest.contains(&format!("path = \"tests/{below}\""))
                || programs().any(|other| other.text.contains(&format!("#[path = \"../{below}\"]")));
            if is_root && !is_known {
                breaches.push(format!("{}: it never runs: name it in {krate}/tests/main.rs", file.path));
            }
        }
    }
    report("Every test is part of a program.", breaches);
}
