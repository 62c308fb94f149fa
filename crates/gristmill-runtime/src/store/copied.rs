//! A copy on this machine of a pack that was appended to in a bucket -> for readers a folder in which its files have their usual names,
//! for jobs that write there an ordinary pack. A reader writes nothing: the folder may be read only.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::outgoing::MANIFEST;
use super::place::{is_local, is_url, resolved};
use super::publish::{Staging, adopt, is_interrupted};
use super::version::{BEGINNING, MOST, OPENING, OWN, Version, folder_of, is_folder, is_of_versions, known};
use super::{DirStore, Store};

/// The staging of jobs on packs.
const STAGING: &str = "pack";

/// How often, and after which pause, a process tries to hold a copy that another process is making an ordinary pack of.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// What a path below the folder of a version is.
struct Parts<'a> {
    pack: PathBuf,
    folder: &'a str,
    file: &'a Path,
}

impl<'a> Parts<'a> {
    fn of(path: &'a Path) -> Option<Self> {
        let mut pack = PathBuf::new();
        let mut parts = path.components();
        while let Some(part) = parts.next() {
            if let Component::Normal(name) = part
                && let Some(folder) = name.to_str().filter(|name| is_folder(name))
            {
                return Some(Parts { pack, folder, file: parts.as_path() });
            }
            pack.push(part);
        }
        None
    }

    /// The version, where this process read its manifest, or the folder has it.
    fn version(&self) -> Option<Arc<Version>> {
        let folder = self.pack.join(self.folder);
        let key = folder.display().to_string();
        if let Some(version) = known().get(&key) {
            return Some(Arc::clone(version));
        }
        let mut bytes = Vec::new();
        File::open(folder.join(OWN)).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
        let version = Arc::new(Version::parse(&bytes).ok()??);
        known().insert(key, Arc::clone(&version));
        Some(version)
    }
}

/// What a path on this machine is, if it is the folder of a version or lies in one.
fn found(path: &Path) -> Option<(Parts<'_>, Arc<Version>)> {
    if is_url(path) {
        return None;
    }
    let parts = Parts::of(path)?;
    let version = parts.version()?;
    Some((parts, version))
}

/// Whether a path on this machine is the folder of a version, or lies in one.
pub(super) fn is_view(path: &Path) -> bool {
    found(path).is_some()
}

/// The store of such a path, and its name there.
pub(super) fn shown(path: &Path) -> Option<crate::Result<(Arc<dyn Store>, String)>> {
    let (parts, version) = found(path)?;
    let file = parts.file.to_string_lossy();
    if file.is_empty() {
        return Some(store(&parts.pack).map(|store| version.shown(store, "", "")));
    }
    // The store of its own folder says that a file is missing where the folder is.
    let lies = parts.pack.join(version.place(&file));
    let name = lies.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Some(store(lies.parent().unwrap_or(Path::new(""))).map(|store| (store, name)))
}

fn store(folder: &Path) -> crate::Result<Arc<dyn Store>> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Ok(Arc::new(DirStore::new(folder)?))
}

/// The file of this machine that a path leads to; none for one elsewhere.
pub fn here(path: &Path) -> Option<Cow<'_, Path>> {
    match found(path) {
        Some((parts, version)) => Some(parts.pack.join(version.place(&parts.file.to_string_lossy())).into()),
        None => is_local(path).then_some(Cow::Borrowed(path)),
    }
}

/// The folder of the pack that `folder` is a version of, on this machine; else `folder`.
pub fn pack_of(folder: &Path) -> Cow<'_, Path> {
    found(folder).map_or(Cow::Borrowed(folder), |(parts, _)| parts.pack.into())
}

/// Whether a pack on this machine lies there as it did in a bucket.
fn is_copy(place: &Path) -> bool {
    let mut beginning = Vec::new();
    let opened = File::open(place.join(MANIFEST));
    let read = opened.and_then(|file| file.take(BEGINNING as u64).read_to_end(&mut beginning));
    read.is_ok() && is_of_versions(&beginning)
}

/// The folder to read the pack at `place` from.
///
/// Errors: `Format` of the manifest; `Path` of a copy whose files were being renamed by a job that was killed, if it cannot be written to.
pub(super) fn newest(place: Cow<'_, Path>) -> crate::Result<Cow<'_, Path>> {
    if !is_copy(&place) {
        return Ok(place);
    }
    if is_interrupted(&place, STAGING) {
        settle(&place)?;
        return Ok(place);
    }
    let path = place.join(MANIFEST);
    let bytes = fs::read(&path).map_err(|e| crate::Error::path(&path, &e))?;
    Ok(folder_of(&place, &bytes)?.map_or(place, Cow::Owned))
}

/// The folder of a pack that a job writes to. A copy of a pack that was appended to in a bucket becomes an ordinary pack. With `dry_run` the
/// folder to read it from: nothing is written.
///
/// Errors: as [`super::newest`]; `Path` of a copy that cannot be written to.
pub fn settled(place: &Path, dry_run: bool) -> crate::Result<Cow<'_, Path>> {
    if dry_run {
        return super::newest(place);
    }
    let place = match resolved(place)? {
        place if is_view(&place) => pack_of(&place).into_owned().into(),
        place => place,
    };
    if is_local(&place) && is_copy(&place) {
        settle(&place)?;
    }
    match place {
        Cow::Borrowed(place) => super::newest(place),
        Cow::Owned(place) => Ok(Cow::Owned(super::newest(&place)?.into_owned())),
    }
}

/// The staging of a folder, once no other process holds it: all ranks of a run may open a copy at once.
fn held(folder: &Path) -> crate::Result<Staging> {
    let mut tries = 0;
    loop {
        match Staging::open(folder, STAGING, "version") {
            Err(crate::Error::Path { kind: ErrorKind::ResourceBusy, .. }) if tries < TRIES => {
                tries += 1;
                thread::sleep(PAUSE);
            }
            Err(crate::Error::Path { kind, message, .. })
                if matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
            {
                let detail = format!(
                    "{message}: this is a copy of a pack in a bucket, whose files take their usual names before a job writes there; \
                     make the folder writable for that"
                );
                return Err(crate::Error::path(folder, &std::io::Error::new(kind, detail)));
            }
            opened => return opened.map(|(staging, _)| staging),
        }
    }
}

/// Each file of a copy takes its usual name, and the folders of versions go.
///
/// Errors: `Path`, of kind `ResourceBusy` while a job writes there; `Format` for a manifest that is none, and for a file that is missing.
fn settle(folder: &Path) -> crate::Result<()> {
    let mut staging = held(folder)?;
    let path = folder.join(MANIFEST);
    let bytes = fs::read(&path).map_err(|e| crate::Error::path(&path, &e))?;
    // Another process may have done it meanwhile.
    let Some(version) = Version::parse(&bytes).map_err(|e| e.in_source(path.display().to_string()))? else {
        return Ok(());
    };
    if staging.job() != "version" {
        let detail = "files of versions lie here, and what a job left that was killed; `gristmill recover` says what can be done";
        return Err(crate::Error::path(folder, &std::io::Error::new(ErrorKind::InvalidData, detail)));
    }
    staging.clear("version")?;
    let mut gone = BTreeSet::new();
    for (name, place) in &version.files {
        let from = folder.join(place);
        match name == OPENING && !from.exists() {
            true => _ = gone.insert(name.clone()),
            false => _ = adopt(&from, &staging.path(name))?,
        }
    }
    for entry in fs::read_dir(folder).map_err(|e| crate::Error::path(folder, &e))?.flatten() {
        let own = entry.file_name().to_string_lossy().into_owned();
        let inner = fs::read_dir(entry.path()).ok().filter(|_| is_folder(&own));
        for file in inner.into_iter().flatten().flatten() {
            gone.insert(format!("{own}/{}", file.file_name().to_string_lossy()));
        }
    }
    staging.publish(&gone.into_iter().collect::<Vec<_>>())
}
