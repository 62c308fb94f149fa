//! A pack in a bucket that was appended to: its manifest says where each file of this version lies -> a folder of the version, in which
//! the files have their usual names. Nothing that a version names is ever replaced, so that readers of older versions find theirs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};
use serde::{Deserialize, Serialize};

use super::bucket::Counts;
use super::outgoing::MANIFEST;
use super::place::{is_local, resolved};
use super::{Faults, FileStat, Readings, Store, Watch, copied, files};

/// What the `format` of such a manifest says. Versions of gristmill before it refuse it by this name.
pub const FORMAT: &str = "gristmill.pack.versions";

/// The file with what opening a pack needs.
pub(super) const OPENING: &str = "opening.index";

/// The newest version of the format.
const NEWEST: u32 = 1;

/// What the names of folders of versions begin with. They are hidden: who lists a place finds no file of a version that was never finished.
const FOLDER: &str = ".gristmill-version-";

/// What a version keeps of its manifest in its own folder.
pub(super) const OWN: &str = "version.json";

/// Bytes of the longest such manifest: of more than a hundred thousand files.
pub(super) const MOST: u64 = 16 << 20;

/// Bytes at the beginning of a manifest that has its `format`.
pub(super) const BEGINNING: usize = 256;

/// One version of a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Version {
    format: String,
    version: u32,
    /// Which version of the pack it is. The one that `pack` wrote is the first.
    number: u64,
    /// The folder of the files that came with this version.
    folder: String,
    /// Names of files, and where they lie below the pack. Other files of the pack lie in its folder.
    pub(super) files: BTreeMap<String, String>,
}

impl Version {
    /// The version after `before`, whose job writes files of these names. `writer` is a random number as hexadecimal digits.
    pub(super) fn after(before: Option<&Version>, writer: &str, names: &[&str]) -> Self {
        let number = before.map_or(2, |before| before.number + 1);
        let folder = format!("{FOLDER}{number:05}-{writer:.16}");
        let mut files = before.map(|before| before.files.clone()).unwrap_or_default();
        // The file of the version before does not fit, even where this version has none.
        let all = names.iter().copied().chain([OPENING]);
        files.extend(all.map(|name| (name.to_owned(), format!("{folder}/{name}"))));
        Version { format: FORMAT.to_owned(), version: NEWEST, number, folder, files }
    }

    /// The bytes of the manifest.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Reads a manifest. `None` for one of another format.
    ///
    /// Errors: `Corrupt`; `UnknownVersion`.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<Self>> {
        if !is_of_versions(bytes) {
            return Ok(None);
        }
        let corrupt = |why: String| Error::new(Kind::Corrupt, format!("manifest of versions: {why}"));
        let read: Version = serde_json::from_slice(bytes).map_err(|e| corrupt(e.to_string()))?;
        if read.version == 0 || read.version > NEWEST {
            let detail = format!("manifest of versions, version {}; this program knows 1 to {NEWEST}", read.version);
            return Err(Error::new(Kind::UnknownVersion, detail));
        }
        let is_name = |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains('/');
        let lies = |place: &str| place.split_once('/').is_some_and(|(folder, name)| is_folder(folder) && is_name(name));
        match read.files.iter().find(|(name, place)| !is_name(name) || !lies(place)) {
            _ if !is_folder(&read.folder) => Err(corrupt(format!("`{}` is no folder", read.folder.escape_debug()))),
            Some((name, place)) => {
                Err(corrupt(format!("{} is not where a file can lie: {}", name.escape_debug(), place.escape_debug())))
            }
            None => Ok(Some(read)),
        }
    }

    /// The folder of the files that came with this version.
    pub(super) fn folder(&self) -> &str {
        &self.folder
    }

    /// Whether a file, by its name below the pack, is of this version.
    pub(super) fn has(&self, name: &str) -> bool {
        match name.split_once('/').filter(|(folder, _)| is_folder(folder)) {
            Some((folder, own)) => {
                self.files.values().any(|place| place == name) || folder == self.folder && own == OWN
            }
            None => name == MANIFEST || !self.files.contains_key(name),
        }
    }

    /// Whether files in a folder of a version are of this one.
    pub(super) fn uses(&self, folder: &str) -> bool {
        self.files.values().any(|place| place.split_once('/').is_some_and(|(own, _)| own == folder))
    }

    /// A file of the version, of the pack in the folder `pack` of a store; for an empty name the folder with all its files.
    pub(super) fn shown(self: Arc<Self>, store: Arc<dyn Store>, pack: &str, file: &str) -> (Arc<dyn Store>, String) {
        let own = format!("{}/{file}", self.folder);
        if file.is_empty() {
            let (readings, name) = (Readings::default(), below(pack, &self.folder));
            return (Arc::new(Seen { store, pack: pack.to_owned(), version: self, readings }), name);
        }
        let place = if file == OWN { &own } else { self.place(file) };
        let name = below(pack, place);
        (store, name)
    }

    /// Where the file of a name lies below the pack.
    pub(super) fn place<'a>(&'a self, name: &'a str) -> &'a str {
        self.files.get(name).map_or(name, String::as_str)
    }
}

/// Whether a manifest that begins with these bytes names the files of a version.
pub(super) fn is_of_versions(bytes: &[u8]) -> bool {
    let format = format!("\"{FORMAT}\"");
    bytes[..bytes.len().min(BEGINNING)].windows(format.len()).any(|window| window == format.as_bytes())
}

/// Whether this is the name of the folder of a version.
pub(super) fn is_folder(name: &str) -> bool {
    let is_hex = |digits: &str| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let parts = name.strip_prefix(FOLDER).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(number, writer)| {
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()) && is_hex(writer)
    })
}

/// Whether a place is the folder of a version of the pack in the folder above.
pub fn is_version(place: &Path) -> bool {
    place.file_name().is_some_and(|name| name.to_str().is_some_and(is_folder))
}

/// The versions that this process read, by the URLs of their folders. What a folder of a version says never changes.
static KNOWN: Mutex<BTreeMap<String, Arc<Version>>> = Mutex::new(BTreeMap::new());

pub(super) fn known() -> MutexGuard<'static, BTreeMap<String, Arc<Version>>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The folder to read the pack at `place` from: that of its newest version in a bucket, else `place` [resolved](resolved). All names of
/// files are joined to it. A copy on this machine of a pack that was appended to in a bucket is read as it is.
///
/// Errors: as [`resolved`]; `Format` of reading the manifest; `Path` of a copy whose files a killed job was renaming, if it cannot be
/// written to.
pub fn newest(place: &Path) -> crate::Result<Cow<'_, Path>> {
    let place = resolved(place)?;
    if is_local(&place) {
        return copied::newest(place);
    }
    if is_version(&place) {
        return Ok(place);
    }
    let path = place.join(MANIFEST);
    let file = match super::open_file(&path) {
        // Without the right to list, a service does not say that an object is missing.
        Err(e) if matches!(e.kind(), Kind::Io(ErrorKind::NotFound | ErrorKind::PermissionDenied)) => return Ok(place),
        file => file?,
    };
    let mut beginning = [0; BEGINNING];
    let read = file.read_at(0, &mut beginning).map_err(|e| e.in_source(path.display().to_string()))?;
    if !is_of_versions(&beginning[..read]) {
        return Ok(place);
    }
    let bytes = files::read(&path, MOST)?.unwrap_or_default();
    Ok(folder_of(&place, &bytes)?.map_or(place, Cow::Owned))
}

/// The folder of the version that the manifest with these bytes names, of the pack in the folder `pack` of a bucket. `None` for an
/// ordinary manifest.
///
/// Errors: `Corrupt` and `UnknownVersion`, with the manifest.
pub fn folder_of(pack: &Path, manifest: &[u8]) -> crate::Result<Option<PathBuf>> {
    let read = Version::parse(manifest).map_err(|e| e.in_source(pack.join(MANIFEST).display().to_string()))?;
    Ok(read.map(|version| {
        let folder = pack.join(&version.folder);
        known().insert(folder.display().to_string(), Arc::new(version));
        folder
    }))
}

/// What a name is, if it is the folder of a version or lies in one: the pack, the folder, and the name in it.
fn parted(name: &str) -> Option<(&str, &str, &str)> {
    if !name.contains(FOLDER) {
        return None;
    }
    let mut at = 0;
    for part in name.split('/') {
        if is_folder(part) {
            let end = at + part.len();
            return Some((name[..at].trim_end_matches('/'), part, name[end..].trim_start_matches('/')));
        }
        at += part.len() + 1;
    }
    None
}

/// Where a name in a store leads: a file in the folder of a version to where it lies, the folder itself to a store that shows all files of
/// the version there.
///
/// Errors: `Format` of reading what the version says of itself.
pub(super) fn led(found: (Arc<dyn Store>, String)) -> crate::Result<(Arc<dyn Store>, String)> {
    let (store, name) = found;
    let Some((pack, folder, file)) = parted(&name) else { return Ok((store, name)) };
    let url = format!("{}/{pack}/{folder}", store.root());
    let seen = known().get(&url).cloned();
    let version = match seen {
        Some(version) => version,
        None => {
            let own = format!("{pack}/{folder}/{OWN}");
            let opened = match store.open(&own) {
                Err(e) if e.kind() == Kind::Io(ErrorKind::NotFound) => return Ok((store, name)),
                opened => opened?,
            };
            let place = |e: Error| e.in_source(format!("{}/{own}", store.root()));
            let len = opened.len().map_err(place)?.min(MOST);
            let mut bytes = vec![0; len as usize];
            opened.read_at(0, &mut bytes).map_err(place)?;
            let Some(version) = Version::parse(&bytes).map_err(place)? else { return Ok((store, name)) };
            let version = Arc::new(version);
            known().insert(url, Arc::clone(&version));
            version
        }
    };
    Ok(version.shown(store, pack, file))
}

/// Where a file lies: for one in the folder of a version that this process read, its place below the pack.
pub(super) fn lies(path: &Path) -> Cow<'_, Path> {
    let Some((scheme, rest)) = path.to_str().and_then(|text| text.split_once("://")) else { return path.into() };
    let Some((pack, folder, file)) = parted(rest) else { return path.into() };
    match known().get(&format!("{scheme}://{pack}/{folder}")) {
        Some(version) => PathBuf::from(format!("{scheme}://{pack}/{}", version.place(file))).into(),
        None => path.into(),
    }
}

/// The name of what lies in a folder of a store.
fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A store in which the folder of a version holds all its files.
#[derive(Debug)]
struct Seen {
    store: Arc<dyn Store>,
    pack: String,
    version: Arc<Version>,
    readings: Readings,
}

impl Seen {
    fn folder(&self) -> String {
        below(&self.pack, &self.version.folder)
    }

    /// Where a name leads.
    fn there(&self, name: &str) -> String {
        let own = name.strip_prefix(&self.folder()).and_then(|rest| rest.strip_prefix('/'));
        own.map_or_else(|| name.to_owned(), |own| below(&self.pack, self.version.place(own)))
    }

    /// The name of a file that lies there. `None` for a file of another version.
    fn here(&self, there: &str) -> Option<String> {
        let below = match self.pack.as_str() {
            "" => there,
            pack => there.strip_prefix(pack)?.strip_prefix('/')?,
        };
        let name = match below.split_once('/').filter(|(folder, _)| is_folder(folder)) {
            Some((_, name)) => Some(name).filter(|name| self.version.place(name) == below)?,
            None if below.split('/').any(|part| part.starts_with('.')) => return None,
            None => Some(below).filter(|name| !self.version.files.contains_key(*name))?,
        };
        Some(format!("{}/{name}", self.folder()))
    }
}

impl Store for Seen {
    fn root(&self) -> String {
        self.store.root()
    }

    fn list(&self, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        self.list_below(&self.folder(), each)
    }

    fn list_below(&self, folder: &str, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        if folder != self.folder() {
            return self.store.list_below(folder, each);
        }
        self.store.list_hidden(&self.pack, &mut |stat| match self.here(&stat.name) {
            Some(name) => each(FileStat { name: name.into(), ..stat }),
            None => ControlFlow::Continue(()),
        })
    }

    fn stat(&self, name: &str) -> Result<FileStat> {
        if name == self.folder() {
            return Err(Error::from(std::io::Error::from(ErrorKind::NotFound)).in_source(name));
        }
        let stat = self.store.stat(&self.there(name))?;
        Ok(FileStat { name: name.into(), ..stat })
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        self.store.open(&self.there(name))
    }

    fn open_listed(&self, folder: &str, is: &dyn Fn(&str) -> bool) -> Result<Vec<(String, Arc<dyn ReadAt>)>> {
        if folder != self.folder() {
            return self.store.open_listed(folder, is);
        }
        let found = self.store.open_listed(&self.pack, &|there| self.here(there).is_some_and(|name| is(&name)))?;
        Ok(found.into_iter().filter_map(|(there, file)| Some((self.here(&there)?, file))).collect())
    }

    fn readings(&self) -> &Readings {
        &self.readings
    }

    fn watch(&self) -> Result<Option<Box<dyn Watch>>> {
        Ok(None)
    }

    fn counts(&self) -> Option<Arc<Counts>> {
        self.store.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_what_the_one_before_had_and_what_came_with_it() {
        let first = Version::after(None, "0123456789abcdef0123456789abcdef", &["manifest.json", "steps-00001.npy"]);
        assert_eq!(first.folder(), ".gristmill-version-00002-0123456789abcdef");
        let next = Version::after(Some(&first), "fedcba9876543210", &["manifest.json"]);
        assert_eq!(Version::parse(&next.bytes()).unwrap(), Some(next.clone()));
        assert_eq!(next.place("steps-00001.npy"), format!("{}/steps-00001.npy", first.folder()));
        assert_eq!(next.place("steps-00000.npy"), "steps-00000.npy");
        let has = |name: &str| next.has(name);
        assert!(has("manifest.json") && has("steps-00000.npy") && has("marks/few.mark"));
        assert!(has(&format!("{}/{OWN}", next.folder())) && has(next.place("steps-00001.npy")));
        assert!(!has("steps-00001.npy") && !has(&format!("{}/manifest.json", first.folder())));
        assert!(next.uses(first.folder()) && !first.uses(next.folder()));
    }

    #[test]
    fn manifests_that_lead_elsewhere_or_are_damaged_are_refused() {
        let version = Version::after(None, "0123456789abcdef", &["manifest.json"]);
        let text = String::from_utf8(version.bytes()).unwrap();
        let refused = |text: &str| Version::parse(text.as_bytes()).unwrap_err().kind();
        let lies = format!("\"{}/manifest.json\"", version.folder());
        for place in ["\"../manifest.json\"", "\"/etc/passwd\"", "\"manifest.json\"", "\"a/b/c\"", "\"\"", "7"] {
            assert_eq!(refused(&text.replace(&lies, place)), Kind::Corrupt, "{place}");
        }
        assert_eq!(refused(&text.replace("\"manifest.json\":", "\"../a\":")), Kind::Corrupt);
        assert_eq!(refused(&text.replace(version.folder(), "version")), Kind::Corrupt);
        assert_eq!(refused(&text.replace("\"version\": 1", "\"version\": 2")), Kind::UnknownVersion);
        for end in text.len() / 2..text.len() - 2 {
            assert_eq!(refused(&text[..end]), Kind::Corrupt, "{end}");
        }
        assert_eq!(Version::parse(b"{\"format\": \"gristmill.pack.2048\"}").unwrap(), None);
    }
}
