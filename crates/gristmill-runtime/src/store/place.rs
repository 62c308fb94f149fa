//! What a user calls a place -> the store that has it, by a row for each scheme of URLs; a path is of this machine.
//! Reads nothing but names. A place is kept as a path whatever it is, so that names of files are joined to it in one way.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bucket::Bucket;
use super::memory::MemoryStore;
use super::under::Under;
use super::{DirStore, Store, copied, version};
use crate::{Error, Result};

/// What opens the places of one scheme: from what follows `scheme:` and its slashes, to the store and to the name in it.
type Open = fn(&Path, &str) -> Result<(Arc<dyn Store>, String)>;

/// Schemes of URLs whose places are not of this machine's files.
const SCHEMES: [(&str, Open); 10] = [
    ("memory", MemoryStore::found),
    ("s3", Bucket::found),
    ("s3a", Bucket::found),
    ("gs", Bucket::found),
    ("gcs", Bucket::found),
    ("az", Bucket::found),
    ("abfs", Bucket::found),
    ("abfss", Bucket::found),
    ("http", Bucket::found),
    ("https", Bucket::found),
];

/// What fsspec puts before a URL that it caches. Places leave it out: twins are the cache here.
const CACHES: [&str; 3] = ["simplecache::", "filecache::", "blockcache::"];

/// The scheme of files of this machine.
const FILE: &str = "file";

/// A place as the rest of the program takes it: a `file:` URL is the path that it names, and a URL of another scheme has one spelling.
///
/// Errors: `Config` in `directory` for a URL that is none of a file, or of a scheme that is not known here.
pub fn resolved(place: &Path) -> Result<Cow<'_, Path>> {
    let refuse = |detail: String| Error::config("directory", format!("{}: {detail}", place.display()));
    let cached = |cache: &&str| place.to_str().and_then(|text| text.strip_prefix(cache));
    if let Some(rest) = CACHES.iter().find_map(cached) {
        return Ok(Cow::Owned(resolved(Path::new(rest))?.into_owned()));
    }
    let Some((scheme, rest)) = scheme_of(place) else { return Ok(Cow::Borrowed(place)) };
    if scheme == FILE {
        let path = match rest.strip_prefix("//") {
            Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
            None => rest,
        };
        if !path.starts_with('/') {
            return Err(refuse("a URL of a file has an absolute path, such as file:///data/games".to_owned()));
        }
        let bytes =
            unescaped(path).ok_or_else(|| refuse("a % in a URL is followed by two hexadecimal digits".to_owned()))?;
        return Ok(Cow::Owned(OsString::from_vec(bytes).into()));
    }
    if SCHEMES.iter().any(|(known, _)| *known == scheme) {
        return Ok(Cow::Owned(format!("{scheme}://{}", rest.trim_matches('/')).into()));
    }
    let known: Vec<String> = SCHEMES.iter().map(|(known, _)| format!("{known}:")).collect();
    let detail = format!("places of `{scheme}:` cannot be read; expected a path, {FILE}: or {}", known.join(", "));
    Err(refuse(detail))
}

/// The store of what a user means by `place`: a folder, one file, what a pattern names, or a URL.
///
/// Errors: as [`resolved`]; `Path` for what is not there, `Config` for a pattern that is none.
pub fn open(place: &Path) -> Result<Arc<dyn Store>> {
    let place = resolved(place)?;
    match elsewhere(&place) {
        None => Ok(Arc::new(DirStore::at(&place)?)),
        Some(elsewhere) => {
            let (store, name) = elsewhere?;
            Ok(Arc::new(Under::new(store, &name, &place)?))
        }
    }
}

/// The same with hints of the events that its bucket sends to a queue, where one is named (`sqs://NAME`).
///
/// Errors: as [`open`]; `Config` in `events` for a name that is none, a queue that is not there or may not be read, and a place that
/// sends no events.
pub fn open_noticed(place: &Path, events: Option<&str>) -> Result<Arc<dyn Store>> {
    let Some(queue) = events else { return open(place) };
    let place = resolved(place)?;
    let refuse = || {
        let detail = "events come from buckets of s3:// only; other places are listed, or watched by themselves";
        Error::config("events", format!("{queue}, for {}: {detail}", place.display()))
    };
    let (_, rest) = scheme_of(&place).filter(|(scheme, _)| ["s3", "s3a"].contains(scheme)).ok_or_else(refuse)?;
    let bucket = rest.trim_start_matches('/').split('/').next().unwrap_or_default().to_owned();
    let (store, name) = elsewhere(&place).ok_or_else(refuse)??;
    Ok(Arc::new(Under::new(store, &name, &place)?.noticed(queue, &bucket)?))
}

/// Whether a place, as [`resolved`] gives it, is of this machine's files, with the names that they have there.
pub fn is_local(place: &Path) -> bool {
    !is_url(place) && !copied::is_view(place)
}

/// Whether a place is of a scheme other than that of files.
pub(super) fn is_url(place: &Path) -> bool {
    row_of(place).is_some()
}

/// The same place, where files can be written: a folder of this machine.
///
/// Errors: as [`resolved`]; `Config` in `field` for a place elsewhere.
pub fn writable<'a>(place: &'a Path, field: &str) -> Result<Cow<'a, Path>> {
    let resolved = resolved(place)?;
    if is_local(&resolved) {
        return Ok(resolved);
    }
    let detail = "is read only; write into a folder of this machine";
    Err(Error::config(field, format!("{}: {detail}", place.display())))
}

/// The store that has a file or folder, given as [`resolved`] gives it, and its name there; none for one of this machine.
pub(super) fn elsewhere(place: &Path) -> Option<Result<(Arc<dyn Store>, String)>> {
    let Some((open, rest)) = row_of(place) else { return copied::shown(place) };
    Some(open(place, rest).and_then(version::led))
}

/// The row of a place's scheme, and what follows it.
fn row_of(place: &Path) -> Option<(Open, &str)> {
    let (scheme, rest) = scheme_of(place)?;
    let (_, open) = SCHEMES.iter().find(|(known, _)| *known == scheme)?;
    Some((*open, rest.trim_matches('/')))
}

/// The scheme that a place names, and what follows its colon. Other names with a colon are paths, as `a:b` is.
fn scheme_of(place: &Path) -> Option<(&str, &str)> {
    let (scheme, rest) = place.to_str()?.split_once(':')?;
    let known = scheme == FILE || SCHEMES.iter().any(|(known, _)| *known == scheme);
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    (known || named && rest.starts_with("//")).then_some((scheme, rest))
}

/// The bytes that a part of a URL stands for.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    Some(bytes)
}

/// The URL of a name below a place, whatever is of this machine.
pub(super) fn joined(root: &Path, name: &str) -> PathBuf {
    if name.is_empty() { root.to_owned() } else { root.join(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(place: &str) -> String {
        match resolved(Path::new(place)) {
            Ok(place) => place.display().to_string(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn a_url_of_a_file_is_its_path_and_other_schemes_have_one_spelling() {
        let same = ["games", "/data/games", "a:b", "C:/games", "./memory:x", "games/20*/*.tar", "", "~/x"];
        same.into_iter().for_each(|place| assert_eq!(told(place), place));
        assert_eq!(told("file:/data/a%20b"), "/data/a b");
        assert_eq!(told("file:///data"), "/data");
        assert_eq!(told("file://localhost/data"), "/data");
        for memory in ["memory:drops/a", "memory://drops/a", "memory:///drops/a/"] {
            assert_eq!(told(memory), "memory://drops/a");
        }
        assert!(told("file:data").contains("such as file:///data/games"), "{}", told("file:data"));
        assert!(told("file://server/data").contains("absolute path"));
        assert!(told("file:///a%2").contains("hexadecimal") && told("file:///a%zz").contains("hexadecimal"));
        assert_eq!(told("s3://bucket/games/"), "s3://bucket/games");
        assert_eq!(told("simplecache::s3://bucket/games"), "s3://bucket/games");
        assert_eq!(told("filecache::file:///data"), "/data");
        let refusal = told("ftp://host/games");
        assert!(
            refusal.contains("ftp://host/games: places of `ftp:`") && refusal.contains("file: or memory:, s3:"),
            "{refusal}"
        );
    }

    #[test]
    fn only_this_machine_is_written() {
        assert_eq!(writable(Path::new("file:///out"), "output").unwrap(), Path::new("/out"));
        let refusal = writable(Path::new("memory://out"), "output").unwrap_err().to_string();
        assert!(refusal.contains("output") && refusal.contains("memory://out: is read only"), "{refusal}");
        assert!(is_local(Path::new("out")) && !is_local(Path::new("memory://out")));
    }
}
