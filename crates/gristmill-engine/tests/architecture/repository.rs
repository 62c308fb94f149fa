//! The checkout -> its files as text, and the paths that each source file names.
//! Knows no law; the laws are in the files beside this one.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 6] = ["target", "demo-data", "artifacts", "corpus", "__pycache__", "venv"];

/// One text file of the repository.
pub(crate) struct SourceFile {
    /// Path below the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the crate lies in the repository")
}

/// All text files of the repository, in order of path.
pub(crate) fn files() -> &'static [SourceFile] {
    static FILES: OnceLock<Vec<SourceFile>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut found = Vec::new();
        gather(&root(), "", &mut found);
        found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        found
    })
}

fn gather(folder: &Path, below: &str, found: &mut Vec<SourceFile>) {
    for entry in std::fs::read_dir(folder).expect("the checkout can be read") {
        let entry = entry.expect("the checkout can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_folder = entry.file_type().expect("an entry has a type").is_dir();
        if name.starts_with('.') && name != ".ci" || is_folder && SKIPPED.contains(&&*name) {
            continue;
        }
        let path = format!("{below}{name}");
        if is_folder {
            gather(&entry.path(), &format!("{path}/"), found);
        } else if let Ok(text) = std::fs::read_to_string(entry.path()) {
            found.push(SourceFile { path, text });
        }
    }
}

/// The Rust files below a folder.
pub(crate) fn rust(under: &'static str) -> impl Iterator<Item = &'static SourceFile> {
    files().iter().filter(move |file| file.path.starts_with(under) && file.has_ending("rs"))
}

/// Fails with all breaches of a law at once and what to do about them.
pub(crate) fn report(law: &str, breaches: Vec<String>) {
    assert!(breaches.is_empty(), "{law}\n  {}\n", breaches.join("\n  "));
}

impl SourceFile {
    pub(crate) fn has_ending(&self, ending: &str) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, found)| found == ending)
    }

    /// Test code as a whole file: laws about running code do not bind it.
    pub(crate) fn is_test(&self) -> bool {
        let parts = || self.path.split('/');
        parts().any(|part| part == "tests" || part == "benches" || part == "tests.rs")
    }

    /// Numbered lines of running code: no comments, and nothing from a file's own `mod tests` on.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(i, line)| (i + 1, line));
        let running = lines.take_while(|(_, line)| !line.starts_with("#[cfg(test)]"));
        running.map(|(i, line)| (i, line.split("//").next().unwrap_or(""))).filter(|(_, line)| !line.trim().is_empty())
    }

    /// Every path in running code that starts at the crate (`crate::`, `super::`) or at `gristmill_*`, made absolute:
    /// line and parts, the crate's own ones without `crate`. Groups in braces give one path each.
    pub(crate) fn paths(&self) -> Vec<(usize, Vec<String>)> {
        let code: Vec<(usize, &str)> = self.code().collect();
        let text = code.iter().flat_map(|(_, line)| [line, "\n"]).collect::<String>();
        let starts =
            ["crate::", "super::", "gristmill_format::", "gristmill_engine::", "gristmill_jobs::", "gristmill_plans::"];
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(next) = starts.iter().filter_map(|start| Some(at + text[at..].find(start)?)).min() {
            let bound = text[..next].chars().next_back();
            let mut rest = &text[next..];
            if bound.is_none_or(|c| !(c.is_alphanumeric() || c == '_' || c == ':')) {
                let line = code[text[..next].matches('\n').count()].0;
                let (prefix, after) = self.prefix(rest);
                rest = expand(after, prefix, line, &mut found);
            } else {
                rest = &rest[1..];
            }
            at = text.len() - rest.len();
        }
        found
    }

    /// The module that the first words of a path lead to, and what follows them.
    fn prefix<'a>(&self, path: &'a str) -> (Vec<String>, &'a str) {
        if let Some(rest) = path.strip_prefix("crate::") {
            return (Vec::new(), rest);
        }
        let mut rest = path;
        let mut module = self.module();
        while let Some(after) = rest.strip_prefix("super::") {
            module.pop();
            rest = after;
        }
        if rest.len() == path.len() { (Vec::new(), path) } else { (module, rest) }
    }

    /// The module of the file within its crate: `src/stage/pool/mod.rs` is `stage`, `pool`.
    pub(crate) fn module(&self) -> Vec<String> {
        let below = self.path.split_once("/src/").map_or("", |(_, below)| below).trim_end_matches(".rs");
        let mut parts: Vec<String> = below.split('/').map(str::to_owned).collect();
        if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main" | "")) {
            parts.pop();
        }
        parts
    }
}

/// Reads one path, or a group of them, after `prefix`; returns what follows it.
fn expand<'a>(text: &'a str, prefix: Vec<String>, line: usize, found: &mut Vec<(usize, Vec<String>)>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut inner) = text.strip_prefix('{') {
        loop {
            inner = expand(inner, prefix.clone(), line, found).trim_start();
            match inner.chars().next() {
                Some(',') => inner = &inner[1..],
                Some('}') => return &inner[1..],
                _ => return inner,
            }
        }
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let mut path = prefix;
    if !word.is_empty() && word != "self" {
        path.push(word.to_owned());
    }
    match rest.strip_prefix("::") {
        Some(rest) if !word.is_empty() => expand(rest, path, line, found),
        _ => {
            found.push((line, path));
            rest
        }
    }
}

#[test]
fn paths_in_sources_are_found_and_made_absolute() {
    let text = "use crate::stage::{Draw, pool::{Pool, PoolState}};\nuse super::seed::Key; // crate::comment\n\
                fn f() { crate::key::of_name(); gristmill_format::Error::new() }\n#[cfg(test)]\nuse crate::hidden;\n";
    let file = SourceFile { path: "crates/x/src/runtime/permute.rs".into(), text: text.into() };
    let found: Vec<(usize, String)> = file.paths().into_iter().map(|(line, path)| (line, path.join("::"))).collect();
    let expected = [
        (1, "stage::Draw"),
        (1, "stage::pool::Pool"),
        (1, "stage::pool::PoolState"),
        (2, "runtime::seed::Key"),
        (3, "key::of_name"),
        (3, "gristmill_format::Error::new"),
    ];
    assert_eq!(found, expected.map(|(line, path)| (line, path.to_owned())));
}
