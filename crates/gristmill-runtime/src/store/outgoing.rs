//! A folder that is made on this machine -> the same below a place elsewhere: claimed by one writer, whole once its manifest is
//! there, and what a killed writer left is known from it. Writes nothing over, and nothing that a reader takes for whole before it is.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gristmill_format::Kind;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::cache::{self, OUTGOING};
use super::place::{elsewhere, resolved};
use super::{Store, Writes, files};
use crate::runtime::seed::fresh_root;
use crate::{Error, Result};

/// The file below the place that says who writes there.
const CLAIM: &str = ".writer.json";

/// The folder of this machine's part of it in which the job writes.
const FILES: &str = "files";

/// The file that makes a pack of a folder: it comes last, and only where there is none.
const MANIFEST: &str = "manifest.json";

/// Time after which a writer says again that it lives, and after which one that did not is taken for dead.
const RENEWED: Duration = Duration::from_secs(60);
const DEAD: Duration = Duration::from_secs(600);

/// How often a place is claimed that others claim and leave meanwhile.
const TRIES: usize = 16;

/// Bytes of the largest claim.
const MOST: u64 = 1 << 16;

/// Who writes below a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// A number of its own.
    pub writer: String,
    /// The name of its machine.
    pub host: String,
    /// Its process.
    pub process: u32,
    /// Since when, and when it said so last: seconds since 1970.
    pub since: u64,
    /// See `since`.
    pub renewed: u64,
}

impl Claim {
    fn new(writer: String) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let since = now();
        Claim { writer, host, process: std::process::id(), since, renewed: since }
    }

    /// Whether it wrote not long ago.
    pub fn is_alive(&self) -> bool {
        now().saturating_sub(self.renewed) < DEAD.as_secs()
    }

    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// A place elsewhere that can be written.
#[derive(Debug, Clone)]
struct Target {
    place: PathBuf,
    store: Arc<dyn Store>,
    /// The name of the folder in the store.
    name: String,
}

impl Target {
    /// The place; none where it is of this machine.
    fn of(place: &Path, field: &str) -> Result<Option<Self>> {
        let place = resolved(place)?.into_owned();
        let Some(found) = elsewhere(&place) else { return Ok(None) };
        let (store, name) = match found {
            // A place in memory that nobody has made.
            Err(Error::Path { kind: ErrorKind::NotFound, .. }) => return Err(files::read_only(&place, field)),
            found => found?,
        };
        if store.writes().is_none() {
            return Err(files::read_only(&place, field));
        }
        if name.is_empty() {
            let detail = "a bucket as a whole is not written; name a folder in it";
            return Err(Error::config(field, format!("{}: {detail}", place.display())));
        }
        Ok(Some(Target { place, store, name }))
    }

    fn writes(&self) -> Result<&dyn Writes> {
        self.store.writes().ok_or_else(|| Error::path(&self.place, &ErrorKind::Unsupported.into()))
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.name)
    }

    /// Who writes there, if anybody.
    fn claim(&self) -> Result<Option<Claim>> {
        let path = self.place.join(CLAIM);
        let bytes = match files::read(&path, MOST) {
            // It went between the two requests.
            Err(e) if e.kind() == Kind::Io(ErrorKind::NotFound) => return Ok(None),
            bytes => bytes?,
        };
        let Some(bytes) = bytes else { return Ok(None) };
        let claim = serde_json::from_slice(&bytes).map_err(|e| {
            let kind = ErrorKind::InvalidData;
            Error::Path { path, kind, message: format!("says not who writes there: {e}; `gristmill clean` removes it") }
        })?;
        Ok(Some(claim))
    }

    /// Names below it and lengths, hidden ones but the claim included, sorted.
    fn files(&self) -> Result<Vec<(String, u64)>> {
        let (mut found, within) = (Vec::new(), format!("{}/", self.name));
        self.writes()?.list_all(&self.name, &mut |name, len| {
            found.extend(name.strip_prefix(&within).filter(|name| *name != CLAIM).map(|name| (name.to_owned(), len)));
            ControlFlow::Continue(())
        })?;
        found.sort_unstable();
        Ok(found)
    }

    /// Refuses a place where something is, or another writer.
    fn is_free(&self, field: &str, writer: &str) -> Result<()> {
        match self.claim()? {
            Some(claim) if claim.writer == writer => Ok(()),
            Some(claim) => Err(self.taken(field, &claim)),
            None => match self.files()?.first() {
                None => Ok(()),
                Some((name, _)) => Err(self.full(field, name)),
            },
        }
    }

    fn full(&self, field: &str, name: &str) -> Error {
        let place = self.place.display();
        Error::config(field, format!("{place}: {name} is there already; write to another place, or remove it first"))
    }

    fn taken(&self, field: &str, claim: &Claim) -> Error {
        let seconds = now().saturating_sub(claim.renewed);
        let place = self.place.display();
        let detail = format!(
            "{place}: process {} of {} writes there, and said so {seconds} s ago; where it was killed, `gristmill clean {place}` \
             removes what it left",
            claim.process, claim.host
        );
        Error::config(field, detail)
    }
}

/// What is made here for a place elsewhere.
#[derive(Debug)]
pub struct Outgoing {
    target: Target,
    field: String,
    /// What this machine keeps of it: the folder, and who its writer is.
    kept: PathBuf,
    writer: String,
    /// Locked: one process of this machine writes to a place.
    _lock: File,
}

impl Outgoing {
    /// What is to be written at `place`, an option called `field`; none where that is of this machine.
    ///
    /// Errors: `Config` in `field` for a place that cannot be written, where something is already, or where another writer is;
    /// `Path`, `Format` of reading there.
    pub fn to(place: &Path, field: &str) -> Result<Option<Self>> {
        let Some(target) = Target::of(place, field)? else { return Ok(None) };
        let text = target.place.display().to_string();
        let kept = cache::root()?.join(OUTGOING).join(format!("{:016x}", xxh3_64(text.as_bytes())));
        let at = |e: std::io::Error| Error::path(&kept, &e);
        fs::create_dir_all(&kept).map_err(at)?;
        let lock = File::options().create(true).append(true).open(kept.join("lock")).map_err(at)?;
        if lock.try_lock().is_err() {
            let detail = format!("{text}: another process of this machine writes there");
            return Err(Error::config(field, detail));
        }
        let own = kept.join("writer");
        let writer = match fs::read_to_string(&own) {
            Ok(writer) => writer,
            Err(_) => {
                let writer = format!("{:016x}{:016x}", fresh_root(), fresh_root());
                fs::write(&own, &writer).map_err(at)?;
                writer
            }
        };
        let outgoing = Outgoing { target, field: field.to_owned(), kept, writer, _lock: lock };
        outgoing.target.is_free(field, &outgoing.writer)?;
        Ok(Some(outgoing))
    }

    /// Whether `place` could be written; `false` for one of this machine. Changes nothing.
    ///
    /// Errors: as [`Outgoing::to`].
    pub fn could_be(place: &Path, field: &str) -> Result<bool> {
        let Some(target) = Target::of(place, field)? else { return Ok(false) };
        target.is_free(field, "").map(|()| true)
    }

    /// The folder of this machine in which it is made.
    pub fn folder(&self) -> PathBuf {
        self.kept.join(FILES)
    }

    /// The place.
    pub fn place(&self) -> &Path {
        &self.target.place
    }

    /// Writes all files of the folder there, a manifest last, and removes the folder; the number of files. `each` hears bytes
    /// that have come, of all, and may end it: then the same resumes.
    ///
    /// Errors: `Config` in the field where another writer came first; `Path`, `Format` of reading and writing; those of `each`.
    pub fn send(self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<u64> {
        let (folder, writes) = (self.folder(), self.target.writes()?);
        let mut files = Vec::new();
        list(&folder, "", &mut files)?;
        files.sort_by_key(|(name, _)| (name == MANIFEST, name.clone()));
        let all: u64 = files.iter().map(|(_, len)| len).sum();
        let (mut claim, name) = (self.claim()?, self.target.file(CLAIM));
        let mut done = 0;
        for (file, _) in &files {
            let (to, from) = (self.target.file(file), folder.join(file));
            self.renew(&mut claim)?;
            if file == MANIFEST {
                let bytes = fs::read(&from).map_err(|e| Error::path(&from, &e))?;
                done += bytes.len() as u64;
                if !writes.put(&to, bytes, true)? {
                    let detail = format!("{}: another writer came first", self.target.place.display());
                    return Err(Error::config(&self.field, detail));
                }
                each(done, all)?;
                continue;
            }
            let mut ended = None;
            let sent = writes.send(&to, &from, &mut |bytes| {
                done += bytes;
                self.renew(&mut claim).and_then(|()| each(done, all)).map_err(|e| {
                    ended = Some(e);
                    gristmill_format::Error::new(Kind::Io(ErrorKind::Interrupted), "it was ended")
                })
            });
            match ended {
                Some(e) => return Err(e),
                None => sent?,
            }
        }
        writes.delete(&name)?;
        // It is whole where it was to be; what cannot be removed here is written over by the next.
        let _ = fs::remove_dir_all(&folder);
        Ok(files.len() as u64)
    }
}

impl Outgoing {
    /// Takes the place for this writer, unless another has it.
    fn claim(&self) -> Result<Claim> {
        let (writes, name) = (self.target.writes()?, self.target.file(CLAIM));
        let mut claim = Claim::new(self.writer.clone());
        for _ in 0..TRIES {
            match self.target.claim()? {
                Some(there) if there.writer == self.writer => return Ok(there),
                Some(there) => return Err(self.target.taken(&self.field, &there)),
                None => claim.renewed = now(),
            }
            if writes.put(&name, claim.bytes(), true)? {
                // Another writer may have come and gone since the place was found free.
                let Some((there, _)) = self.target.files()?.into_iter().next() else { return Ok(claim) };
                writes.delete(&name)?;
                return Err(self.target.full(&self.field, &there));
            }
        }
        Err(self.target.taken(&self.field, &claim))
    }

    /// Says now and then that the writer lives, unless its place was taken from it meanwhile.
    fn renew(&self, claim: &mut Claim) -> Result<()> {
        if now().saturating_sub(claim.renewed) < RENEWED.as_secs() {
            return Ok(());
        }
        match self.target.claim()? {
            Some(there) if there.writer == self.writer => {}
            there => return Err(self.target.taken(&self.field, there.as_ref().unwrap_or(claim))),
        }
        claim.renewed = now();
        self.target.writes()?.put(&self.target.file(CLAIM), claim.bytes(), false)?;
        Ok(())
    }
}

impl Drop for Outgoing {
    /// Nothing stays on this machine where no job has begun.
    fn drop(&mut self) {
        let begun = fs::read_dir(self.folder()).is_ok_and(|mut entries| entries.next().is_some());
        if !begun {
            let _ = fs::remove_dir_all(&self.kept);
        }
    }
}

/// Files below a folder of this machine, by name, with their lengths; none that are hidden.
fn list(folder: &Path, below: &str, found: &mut Vec<(String, u64)>) -> Result<()> {
    let at = |e: std::io::Error| Error::path(folder, &e);
    for entry in fs::read_dir(folder).map_err(at)? {
        let entry = entry.map_err(at)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let meta = entry.metadata().map_err(at)?;
        match meta.is_dir() {
            true => list(&entry.path(), &format!("{below}{name}/"), found)?,
            false => found.push((format!("{below}{name}"), meta.len())),
        }
    }
    Ok(())
}

/// What a writer left below a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left {
    /// The place.
    pub place: String,
    /// The writer; none where nothing was left.
    pub claim: Option<Claim>,
    /// Whether the pack is whole, so that its files stay.
    pub whole: bool,
    /// Names of the files, and their bytes.
    pub files: Vec<(String, u64)>,
}

/// What a writer that was killed left at a place elsewhere.
///
/// Errors: `Config` in `place` for one of this machine, and for one that cannot be written; `Path`, `Format` of reading.
pub fn left(place: &Path) -> Result<Left> {
    let target = target(place)?;
    let claim = target.claim()?;
    let files = if claim.is_some() { target.files()? } else { Vec::new() };
    let whole = files.iter().any(|(name, _)| name == MANIFEST);
    Ok(Left { place: target.place.display().to_string(), claim, whole, files })
}

/// Removes what [`left`] found: all files of a pack that is not whole, and last what says who wrote it.
///
/// Errors: `Config` in `place` where the writer said within ten minutes that it lives, unless `dead` says that it does not; as [`left`].
pub fn clean(left: &Left, dead: bool) -> Result<()> {
    let target = target(Path::new(&left.place))?;
    let (Some(claim), Some(there)) = (&left.claim, target.claim()?) else { return Ok(()) };
    if claim.writer != there.writer || there.is_alive() && !dead {
        return Err(target.taken("place", &there));
    }
    let writes = target.writes()?;
    for (name, _) in left.files.iter().filter(|_| !left.whole) {
        writes.delete(&target.file(name))?;
    }
    Ok(writes.delete(&target.file(CLAIM))?)
}

fn target(place: &Path) -> Result<Target> {
    Target::of(place, "place")?.ok_or_else(|| {
        let detail = "is of this machine; `gristmill recover` says what jobs left there";
        Error::config("place", format!("{}: {detail}", place.display()))
    })
}
