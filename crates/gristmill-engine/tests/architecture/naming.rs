//! What may name whom where the table of folders does not say it: the machinery, the stages, and who puts stages together.
//! Looks at paths in running code; tests may name what they test with.

use crate::repository::{SourceFile, report, rust};

const RUNTIME: &str = "crates/gristmill-runtime/src/";
const STAGES: &str = "crates/gristmill-stages/src/";
const PACKS: &str = "crates/gristmill-packs/src/";

/// Running code of a crate: file, its module's first part (empty for the door), line, parts of a path it names.
fn named(under: &'static str) -> impl Iterator<Item = (&'static SourceFile, String, usize, Vec<String>)> {
    rust(under).filter(|file| !file.is_test()).flat_map(|file| {
        let room = file.module().into_iter().next().unwrap_or_default();
        file.paths().into_iter().map(move |(line, path)| (file, room.clone(), line, path))
    })
}

fn part(path: &[String], i: usize) -> &str {
    path.get(i).map_or("", String::as_str)
}

#[test]
fn the_machinery_knows_nothing_of_what_flows_through_it() {
    let mut breaches = Vec::new();
    for (file, room, line, path) in named(RUNTIME).filter(|(_, room, ..)| room == "runtime") {
        if part(&path, 0) != room {
            breaches.push(format!(
                "{}:{line}: `{}`: pass it in as a type or a closure instead",
                file.path,
                path.join("::")
            ));
        }
    }
    report("`runtime/` names no store and no format.", breaches);
}

#[test]
fn a_stage_knows_itself_and_the_machinery_alone() {
    let mut breaches = Vec::new();
    for (file, _, line, path) in named(STAGES).filter(|(_, room, ..)| room == "stage") {
        let own = file.module().get(1).cloned().unwrap_or_default();
        let (to, inner) = (part(&path, 0), part(&path, 1));
        let allowed = match to {
            "stage" => inner == own || inner.starts_with(char::is_uppercase),
            "gristmill_runtime" => match inner {
                "store" | "facts" => matches!(own.as_str(), "discover" | "load"),
                inner => matches!(inner, "runtime" | "key" | "error") || inner.starts_with(char::is_uppercase),
            },
            "gristmill_format" | "options" => true,
            other => other.starts_with(char::is_uppercase),
        };
        if !allowed {
            let advice = "a stage gets what it needs as arguments; the pipeline brings stages together";
            breaches.push(format!("{}:{line}: `{}`: {advice}", file.path, path.join("::")));
        }
    }
    report("A stage imports no other stage; only `discover` and `load` know stores; none knows config.", breaches);
}

#[test]
fn options_are_read_without_a_store() {
    let mut breaches = Vec::new();
    for (file, _, line, path) in named(STAGES).filter(|(_, room, ..)| room == "config") {
        if part(&path, 0) == "gristmill_runtime" && part(&path, 1) == "store" {
            breaches.push(format!("{}:{line}: `{}`: open it where the stream starts", file.path, path.join("::")));
        }
    }
    report("`config/` says what is wanted and opens nothing.", breaches);
}

#[test]
fn several_stages_are_named_only_where_they_are_put_together() {
    let mut breaches = Vec::new();
    let rescorer = rust(STAGES).filter(|file| file.module().first().is_some_and(|room| room == "rescorer"));
    for file in rust(PACKS).chain(rescorer).filter(|file| !file.is_test()) {
        let paths = file.paths();
        let stages = paths.iter().filter_map(|(_, path)| match part(path, 0) {
            "stage" => Some(part(path, 1)),
            "gristmill_stages" if part(path, 1) == "stage" => Some(part(path, 2)),
            _ => None,
        });
        let mut stages: Vec<&str> = stages.filter(|name| name.starts_with(char::is_lowercase)).collect();
        stages.sort_unstable();
        stages.dedup();
        if stages.len() > 1 {
            breaches.push(format!("{}: names {stages:?}: let the pipeline put them together", file.path));
        }
    }
    report("Only config and pipeline name several stages.", breaches);
}
