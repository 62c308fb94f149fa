//! Folders of generated games, what is in them, and games with a fault.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{generate, run, text};

/// Bytes of a V6 record.
pub(crate) const V6: usize = 8356;

/// A folder with a folder `games` of `n` loose games in it.
pub(crate) fn games(n: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games");
    generate(&games, n, &[]);
    (folder, games)
}

/// Name and bytes of every visible file below a folder, sorted.
pub(crate) fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with('.') {
            continue;
        }
        match entry.path().is_dir() {
            true => found.extend(tree(&entry.path()).into_iter().map(|(at, bytes)| (format!("{name}/{at}"), bytes))),
            false => found.push((name, fs::read(entry.path()).unwrap())),
        }
    }
    found.sort();
    found
}

/// The same with the members of tars in their stead, by name of member.
pub(crate) fn unpacked(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let to = tempfile::tempdir().unwrap();
    let (mut tars, mut all): (Vec<_>, Vec<_>) = tree(folder).into_iter().partition(|(name, _)| name.ends_with(".tar"));
    for (name, _) in tars.drain(..) {
        let words = ["-xf", text(&folder.join(&name)), "-C", text(to.path())].map(str::to_owned);
        assert!(Command::new("tar").args(words).status().unwrap().success());
    }
    all.extend(tree(to.path()));
    all
}

/// The names of [`tree`].
pub(crate) fn names(folder: &Path) -> Vec<String> {
    tree(folder).into_iter().map(|(name, _)| name).collect()
}

/// The records in a file of gzip.
pub(crate) fn records(path: &Path) -> Vec<u8> {
    let mut child = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = fs::read(path).unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    output.stdout
}

/// Replaces game `n` by plain records, changed by `change`.
pub(crate) fn spoil(games: &Path, n: u32, change: impl FnOnce(&mut Vec<u8>)) {
    let path = games.join(format!("training.{n}.gz"));
    let mut bytes = records(&path);
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
}

/// Whether `verify` finds nothing wrong.
pub(crate) fn is_sound(path: &Path) -> bool {
    let ran = run(&["verify", text(path), "--json"]);
    assert!(ran.code == 0 || !ran.json()["faults"].as_array().unwrap().is_empty());
    ran.code == 0
}
