//! A folder -> the games in it, in the order in which packs number them, and what was found that is no whole game.
//! Follows no link to a folder and opens no file.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use gristmill_engine::pack::manifest::Skipped;
use gristmill_engine::store;
use gristmill_engine::store::files::{is_file, len};
use gristmill_engine::store::place::is_local;
use gristmill_format::g2048::log::{STEPS_SUFFIX, is_sidecar, steps_name};
use gristmill_format::{Error, Kind};

use crate::shares::Unit;

/// What a folder holds.
#[derive(Debug, Default)]
pub(super) struct Discovered {
    /// Paths of the sidecars below the folder, with `/`, one for each game, sorted component by component.
    pub(super) sidecars: Vec<String>,
    /// Files that are half of a game, or a second sidecar of one.
    pub(super) halves: Vec<Skipped>,
    /// Folders and files that could not be read or named.
    pub(super) faults: Vec<Error>,
}

impl Discovered {
    /// What it is cut by: its games, each as long as its two files.
    ///
    /// Errors: those of the files.
    pub(super) fn units(&self, root: &Path) -> gristmill_engine::Result<Vec<Unit>> {
        let bytes = |name: &str| Ok::<u64, gristmill_engine::Error>(len(&root.join(name))?.unwrap_or(0));
        let unit = |name: &String| {
            let log = bytes(&steps_name(name).unwrap_or_default())?;
            Ok(Unit { name: name.clone(), bytes: bytes(name)?.saturating_add(log), inputs: 1 })
        };
        self.sidecars.iter().map(unit).collect()
    }
}

/// Walks everything below `root`.
pub(super) fn discover(root: &Path) -> Discovered {
    let mut found = Discovered::default();
    if !is_local(root) {
        elsewhere(root, &mut found);
    }
    let mut folders = if is_local(root) { vec![String::new()] } else { Vec::new() };
    while let Some(folder) = folders.pop() {
        let mut names = Vec::new();
        if let Err(e) = list(root, &folder, &mut folders, &mut names, &mut found) {
            found.faults.push(Error::from(e).in_source(shown(root, &folder)));
        }
        games(root, &folder, names, &mut found);
    }
    found.sidecars.sort_unstable_by(|a, b| a.split('/').cmp(b.split('/')));
    found.halves.sort_unstable_by(|a, b| a.file.split('/').cmp(b.file.split('/')));
    found
}

/// Finds what lies below a place that is not of this machine, where there are no links.
fn elsewhere(root: &Path, found: &mut Discovered) {
    let mut folders: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let store = match store::open(root) {
        Ok(store) => store,
        Err(e) => {
            found.faults.push(Error::new(Kind::Io(std::io::ErrorKind::Other), e.to_string()));
            return;
        }
    };
    let faults = store.list(&mut |stat| {
        let (folder, name) = stat.name.rsplit_once('/').unwrap_or(("", &stat.name));
        if is_sidecar(name) || name.ends_with(STEPS_SUFFIX) {
            folders.entry(folder.to_owned()).or_default().push(name.to_owned());
        }
        ControlFlow::Continue(())
    });
    for (kind, count) in faults.counts() {
        let detail = format!("{count} files could not be listed ({kind}): {}", faults.latest(kind).unwrap_or_default());
        found.faults.push(Error::new(Kind::Io(std::io::ErrorKind::Other), detail).in_source(shown(root, "")));
    }
    for (folder, names) in folders {
        games(root, &folder, names, found);
    }
}

fn shown(root: &Path, name: &str) -> String {
    root.join(name).display().to_string()
}

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Lists one folder: folders below it, and names of files that may belong to games.
fn list(
    root: &Path,
    folder: &str,
    folders: &mut Vec<String>,
    names: &mut Vec<String>,
    found: &mut Discovered,
) -> std::io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            let detail = "the name is not UTF-8; rename it";
            found.faults.push(
                Error::new(Kind::Unsupported, detail).in_source(shown(root, folder) + "/" + &name.to_string_lossy()),
            );
            continue;
        };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            folders.push(below(folder, name));
        } else if is_sidecar(name) && kind.is_symlink() {
            found.halves.push(half(folder, name, "a link to a sidecar; links are not followed"));
        } else if is_sidecar(name) || name.ends_with(STEPS_SUFFIX) {
            names.push(name.to_owned());
        } else if let lower = name.to_ascii_lowercase()
            && (is_sidecar(&lower) || lower.ends_with(STEPS_SUFFIX))
        {
            let detail = format!("the case of an ending counts: rename it to end in {}", ending(&lower));
            found.halves.push(half(folder, name, &detail));
        }
    }
    Ok(())
}

/// Pairs the sidecars of one folder with their logs.
fn games(root: &Path, folder: &str, mut names: Vec<String>, found: &mut Discovered) {
    names.sort_unstable();
    let there: HashSet<&str> = names.iter().map(String::as_str).collect();
    let mut taken: HashSet<String> = HashSet::new();
    for name in &names {
        let Some(steps) = steps_name(name) else { continue };
        if !there.contains(steps.as_str()) || matches!(is_file(&root.join(below(folder, &steps))), Ok(false)) {
            found.halves.push(half(folder, name, &format!("there is no log `{steps}` beside it")));
        } else if taken.insert(steps) {
            found.sidecars.push(below(folder, name));
        } else {
            let mut second = half(folder, name, "another sidecar of the same game is beside it; the game counts once");
            second.kind = "duplicate".to_owned();
            found.halves.push(second);
        }
    }
    for name in names.iter().filter(|name| name.ends_with(STEPS_SUFFIX) && !taken.contains(*name)) {
        found.halves.push(half(folder, name, "there is no sidecar (.meta.json or .meta.json.gz) beside it"));
    }
}

/// The ending by which a name of lower-case letters belongs to a game.
fn ending(name: &str) -> &'static str {
    [STEPS_SUFFIX, ".meta.json.gz"].into_iter().find(|ending| name.ends_with(ending)).unwrap_or(".meta.json")
}

fn half(folder: &str, name: &str, detail: &str) -> Skipped {
    Skipped::new(&below(folder, name), &Error::new(Kind::Missing, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, name: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    fn game(root: &Path, base: &str) {
        put(root, &format!("{base}.meta.json"));
        put(root, &format!("{base}.jsonl.gz"));
    }

    #[test]
    fn games_are_in_the_order_of_existing_packs() {
        let root = tempfile::tempdir().unwrap();
        let expected = ["B/g", "a/g", "a b/g", "a-b/g", "a.x/g", "g10", "g9", "ga"];
        for base in ["g9", "a.x/g", "ga", "a b/g", "B/g", "a-b/g", "g10", "a/g"] {
            game(root.path(), base);
        }
        let found = discover(root.path());
        assert_eq!(found.sidecars, expected.map(|base| format!("{base}.meta.json")));
        assert!(found.halves.is_empty() && found.faults.is_empty());
    }

    #[test]
    fn a_game_is_two_files_and_counts_once() {
        let root = tempfile::tempdir().unwrap();
        game(root.path(), "both");
        put(root.path(), "both.meta.json.gz");
        game(root.path(), "deep/er/");
        put(root.path(), "gz.meta.json.gz");
        put(root.path(), "gz.jsonl.gz");
        put(root.path(), "lonely.meta.json");
        put(root.path(), "mute.jsonl.gz");
        put(root.path(), "LOUD.META.JSON");
        put(root.path(), "notes.txt");
        put(root.path(), "deep/g.meta.json.GZ");
        fs::create_dir(root.path().join("folder.meta.json")).unwrap();
        game(root.path(), "real");
        fs::rename(root.path().join("real.jsonl.gz"), root.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", root.path().join("real.jsonl.gz")).unwrap();
        put(root.path(), "linked.jsonl.gz");
        std::os::unix::fs::symlink("real.meta.json", root.path().join("linked.meta.json")).unwrap();
        std::os::unix::fs::symlink(".", root.path().join("loop")).unwrap();
        let found = discover(root.path());
        assert_eq!(found.sidecars, ["both.meta.json", "deep/er/.meta.json", "gz.meta.json.gz", "real.meta.json"]);
        let halves: Vec<(&str, &str)> = found.halves.iter().map(|s| (s.file.as_str(), s.kind.as_str())).collect();
        let expected = [
            ("LOUD.META.JSON", "missing"),
            ("both.meta.json.gz", "duplicate"),
            ("deep/g.meta.json.GZ", "missing"),
            ("linked.jsonl.gz", "missing"),
            ("linked.meta.json", "missing"),
            ("lonely.meta.json", "missing"),
            ("mute.jsonl.gz", "missing"),
        ];
        assert_eq!(halves, expected);
        assert!(found.halves[0].detail.ends_with("rename it to end in .meta.json"), "{}", found.halves[0].detail);
        assert!(found.faults.is_empty());
        assert_eq!(discover(&root.path().join("nowhere")).faults.len(), 1);
    }
}
