//! Who may name whom inside a crate: the folders of the format room and of the engine room.
//! Looks at paths in running code; tests may name what they test with.

use crate::repository::{SourceFile, report, rust};

const FORMAT: &str = "crates/gristmill-format/src/";
const ENGINE: &str = "crates/gristmill-engine/src/";

/// Formats of games; none names another.
const GAMES: [&str; 3] = ["chess", "g2048", "demo"];

/// The nouns that every format shares; they name only one another.
const NOUNS: [&str; 5] = ["error", "layout", "source", "encode", "head"];

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
fn formats_know_the_nouns_and_the_nouns_know_nobody() {
    let mut breaches = Vec::new();
    for (file, room, line, path) in named(FORMAT) {
        let to = part(&path, 0);
        let allowed = match room.as_str() {
            "container" => to == "container" || NOUNS.contains(&to),
            game if GAMES.contains(&game) => to == game || !GAMES.contains(&to) && to != "detect",
            noun if NOUNS.contains(&noun) => NOUNS.contains(&to) || to.starts_with(char::is_uppercase),
            _ => true,
        };
        if !allowed {
            breaches.push(format!(
                "{}:{line}: `{}`: move this to the format that needs it, or to `detect`",
                file.path,
                path.join("::")
            ));
        }
    }
    report("Containers name no game, games name no other game, and the shared nouns name neither.", breaches);
}

#[test]
fn the_machinery_knows_nothing_of_what_flows_through_it() {
    let mut breaches = Vec::new();
    for (file, room, line, path) in named(ENGINE).filter(|(_, room, ..)| room == "runtime") {
        if part(&path, 0) != room {
            breaches.push(format!(
                "{}:{line}: `{}`: pass it in as a type or a closure instead",
                file.path,
                path.join("::")
            ));
        }
    }
    report("`runtime/` names no stage, store, config, pipeline or format.", breaches);
}

#[test]
fn a_stage_knows_itself_and_the_machinery_alone() {
    let mut breaches = Vec::new();
    for (file, _, line, path) in named(ENGINE).filter(|(_, room, ..)| room == "stage") {
        let own = file.module().get(1).cloned().unwrap_or_default();
        let (to, inner) = (part(&path, 0), part(&path, 1));
        let allowed = match to {
            "stage" => inner == own || inner.starts_with(char::is_uppercase),
            "store" | "facts" => matches!(own.as_str(), "discover" | "load"),
            "runtime" | "key" | "error" | "gristmill_format" => true,
            other => other.starts_with(char::is_uppercase) && other != "DataLoader",
        };
        if !allowed {
            let advice = "a stage gets what it needs as arguments; `pipeline/` brings stages together";
            breaches.push(format!("{}:{line}: `{}`: {advice}", file.path, path.join("::")));
        }
    }
    report(
        "A stage imports no other stage; only `discover` and `load` know stores; none knows config or pipeline.",
        breaches,
    );
}

#[test]
fn several_stages_are_named_only_where_they_are_put_together() {
    let free = ["stage", "pipeline", "config"];
    let mut breaches = Vec::new();
    for file in rust(ENGINE).filter(|file| !file.is_test()) {
        let room = file.module().into_iter().next().unwrap_or_default();
        let paths = file.paths();
        let stages = paths.iter().filter(|(_, path)| part(path, 0) == "stage").map(|(_, path)| part(path, 1));
        let mut stages: Vec<&str> = stages.filter(|name| name.starts_with(char::is_lowercase)).collect();
        stages.sort_unstable();
        stages.dedup();
        if stages.len() > 1 && !free.contains(&room.as_str()) {
            breaches.push(format!("{}: names {stages:?}: let `pipeline/` put them together", file.path));
        }
        let forbidden: &[&str] = match room.as_str() {
            "store" => &["stage", "pipeline", "config", "facts", "open"],
            "facts" => &["stage", "pipeline", "config"],
            "config" => &["pipeline", "store"],
            _ => &[],
        };
        for (line, path) in &paths {
            let to = part(path, 0);
            if forbidden.contains(&to) {
                breaches.push(format!("{}:{line}: `{}`: `{room}` must not know `{to}`", file.path, path.join("::")));
            }
            if to == "pipeline" && !matches!(room.as_str(), "pipeline" | "preset" | "") {
                breaches.push(format!(
                    "{}:{line}: `{}`: only jobs and the faces use the pipeline",
                    file.path,
                    path.join("::")
                ));
            }
        }
    }
    report("Only config and pipeline name several stages; the river's folders look one way.", breaches);
}
