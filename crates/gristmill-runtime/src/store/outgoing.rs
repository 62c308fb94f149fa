//! A folder of this machine -> the same files below a place in a bucket. One writer claims the place; the manifest comes last, so that
//! a reader takes nothing for a pack before it is whole; the claim says what a killed writer left. Overwrites nothing.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gristmill_format::Kind;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::cache::{self, OUTGOING};
use super::growing::{Growth, NOTE};
use super::place::{elsewhere, resolved};
use super::{Store, Writes, files};
use crate::runtime::seed::fresh_root;
use crate::{Error, Result};

pub use super::cleaning::{Left, clean, left};

/// The claim: a file below the place that says who writes there.
pub(super) const CLAIM: &str = ".writer.json";

/// The folder in which the job writes, below what this machine keeps for the place.
const FILES: &str = "files";

/// The file that makes a folder a pack. It is written last, and only where there is none.
pub(super) const MANIFEST: &str = "manifest.json";

/// A writer renews its claim after this time; one that has not renewed it for the longer time counts as dead.
const RENEWED: Duration = Duration::from_secs(60);
const DEAD: Duration = Duration::from_secs(600);

/// How often a writer tries to claim a place that other writers claim and release in between.
const TRIES: usize = 16;

/// Bytes of the largest claim, and of the largest manifest.
const MOST: u64 = 1 << 16;
pub(super) const MOST_MANIFEST: u64 = 256 << 20;

/// What a writer says of itself. An empty `writer` stands for a claim that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// A random number that no other writer has, as 32 hexadecimal digits.
    pub writer: String,
    /// The name of its machine.
    pub host: String,
    /// The number of its process.
    pub process: u32,
    /// When it claimed the place, in seconds since 1970.
    pub since: u64,
    /// When it renewed the claim last, in seconds since 1970.
    pub renewed: u64,
}

impl Claim {
    pub(super) fn new(writer: String) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let since = now();
        Claim { writer, host, process: std::process::id(), since, renewed: since }
    }

    /// Whether it renewed the claim within ten minutes.
    pub fn is_alive(&self) -> bool {
        now().saturating_sub(self.renewed) < DEAD.as_secs()
    }

    /// The claim of a writer that says nothing of itself, and counts as dead.
    fn unknown() -> Self {
        Claim { writer: String::new(), host: String::new(), process: 0, since: 0, renewed: 0 }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// A folder of a bucket, to be written.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) place: PathBuf,
    pub(super) store: Arc<dyn Store>,
    /// The name of the folder in the store.
    pub(super) name: String,
}

/// Makes a folder of this machine for a place, and locks it against other processes of this machine.
///
/// Errors: `Config` in `field` where one of them has it; `Path`.
pub(super) fn hold(kept: &Path, place: &str, field: &str) -> Result<File> {
    let at = |e: std::io::Error| Error::path(kept, &e);
    fs::create_dir_all(kept).map_err(at)?;
    let lock = File::options().create(true).append(true).open(kept.join("lock")).map_err(at)?;
    match lock.try_lock() {
        // Where the file system has no locks, processes of this machine are on their own; what is in the bucket still holds.
        Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => Ok(lock),
        Err(TryLockError::Error(e)) => Err(at(e)),
        Err(TryLockError::WouldBlock) => {
            Err(Error::config(field, format!("{place}: another process of this machine writes there")))
        }
        Ok(()) => Ok(lock),
    }
}

impl Target {
    /// The folder that `place` means; none where `place` is of this machine.
    pub(super) fn of(place: &Path, field: &str) -> Result<Option<Self>> {
        let place = resolved(place)?.into_owned();
        let Some(found) = elsewhere(&place) else { return Ok(None) };
        let (store, name) = match found {
            // Nobody has written to this place in memory.
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

    pub(super) fn writes(&self) -> Result<&dyn Writes> {
        self.store.writes().ok_or_else(|| Error::path(&self.place, &ErrorKind::Unsupported.into()))
    }

    pub(super) fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.name)
    }

    /// The claim, if a writer has claimed the place.
    pub(super) fn claim(&self) -> Result<Option<Claim>> {
        let bytes = match files::read(&self.place.join(CLAIM), MOST) {
            // The writer removed it between the two requests.
            Err(e) if e.kind() == Kind::Io(ErrorKind::NotFound) => return Ok(None),
            bytes => bytes?,
        };
        Ok(bytes.map(|bytes| serde_json::from_slice(&bytes).unwrap_or_else(|_| Claim::unknown())))
    }

    /// Names and lengths of all files below the place, sorted, hidden ones too, but not the claim.
    pub(super) fn files(&self) -> Result<Vec<(String, u64)>> {
        let (mut found, within) = (Vec::new(), format!("{}/", self.name));
        self.writes()?.list_all(&self.name, &mut |name, len| {
            found.extend(name.strip_prefix(&within).filter(|name| *name != CLAIM).map(|name| (name.to_owned(), len)));
            ControlFlow::Continue(())
        })?;
        found.sort_unstable();
        Ok(found)
    }

    /// A file that is in the way. `None` if the place is empty, or if this writer has claimed it.
    fn in_the_way(&self, field: &str, writer: &str) -> Result<Option<String>> {
        match self.claim()? {
            Some(claim) if claim.writer == writer => Ok(None),
            Some(claim) => Err(self.taken(field, &claim)),
            None => Ok(self.files()?.into_iter().next().map(|(name, _)| name)),
        }
    }

    /// Refuses a place that holds files, or that another writer has claimed.
    fn is_free(&self, field: &str, writer: &str) -> Result<()> {
        self.in_the_way(field, writer)?.map_or(Ok(()), |name| Err(self.full(field, &name)))
    }

    fn full(&self, field: &str, name: &str) -> Error {
        let place = self.place.display();
        Error::config(field, format!("{place}: {name} is there already; write to another place, or remove it first"))
    }

    pub(super) fn taken(&self, field: &str, claim: &Claim) -> Error {
        let seconds = now().saturating_sub(claim.renewed);
        let place = self.place.display();
        let who = match claim.writer.is_empty() {
            true => format!("{place}/{CLAIM} says not who writes there"),
            false => format!(
                "{place}: process {} of {} writes there, and said so {seconds} s ago",
                claim.process, claim.host
            ),
        };
        let detail = format!("{who}; if that writer was killed, `gristmill clean {place}` removes what it left");
        Error::config(field, detail)
    }
}

/// The output of a job that is made on this machine and belongs in a bucket.
#[derive(Debug)]
pub struct Outgoing {
    pub(super) target: Target,
    pub(super) field: String,
    /// The folder of this machine for it: the files, and the number of the writer.
    pub(super) kept: PathBuf,
    pub(super) writer: String,
    /// The pack that is added to; none where the place must be free.
    pub(super) grows: Option<Growth>,
    /// One process of this machine writes to a place at a time, and holds this lock.
    _lock: File,
}

impl Outgoing {
    /// Prepares to write at `place`, which an option called `field` named; none where `place` is of this machine.
    ///
    /// Errors: `Config` in `field` for a place that cannot be written, that holds files, or that another writer has claimed; `Path` and
    /// `Format` of reading there.
    pub fn to(place: &Path, field: &str) -> Result<Option<Self>> {
        let Some(outgoing) = Self::open(place, field)? else { return Ok(None) };
        outgoing.target.is_free(field, &outgoing.writer)?;
        // What a killed job was to add to a pack that is gone.
        let _ = fs::remove_file(outgoing.kept.join(NOTE));
        Ok(Some(outgoing))
    }

    /// The same, without a look at the place.
    ///
    /// Errors: `Config` in `field` for a place that cannot be written, or that another process of this machine writes to; `Path`.
    pub fn open(place: &Path, field: &str) -> Result<Option<Self>> {
        let Some(target) = Target::of(place, field)? else { return Ok(None) };
        let text = target.place.display().to_string();
        let kept = cache::root()?.join(OUTGOING).join(format!("{:016x}", xxh3_64(text.as_bytes())));
        let at = |e: std::io::Error| Error::path(&kept, &e);
        let lock = hold(&kept, &text, field)?;
        let own = kept.join("writer");
        let writer = match fs::read_to_string(&own) {
            Ok(writer) => writer,
            Err(_) => {
                let writer = format!("{:016x}{:016x}", fresh_root(), fresh_root());
                fs::write(&own, &writer).map_err(at)?;
                writer
            }
        };
        Ok(Some(Outgoing { target, field: field.to_owned(), kept, writer, grows: None, _lock: lock }))
    }

    /// Whether the place holds no file. Files that this writer sent in an earlier run count, too.
    ///
    /// Errors: `Config` in the field where another writer has claimed it; `Path` and `Format` of reading there.
    pub fn is_free(&self) -> Result<bool> {
        Ok(self.target.in_the_way(&self.field, &self.writer)?.is_none())
    }

    /// Whether the place has the files of the folder, and no others: names, lengths, and the bytes of the manifest.
    ///
    /// Errors: `Path` and `Format` of reading.
    pub fn is_sent(&self) -> Result<bool> {
        let mut files = Vec::new();
        list(&self.folder(), "", &mut files)?;
        files.sort_unstable();
        let there: Vec<_> = self.target.files()?;
        let visible = |(name, _): &&(String, u64)| !name.split('/').any(|part| part.starts_with('.'));
        Ok(there.iter().filter(visible).eq(files.iter()) && self.manifest()?.unwrap_or(true))
    }

    /// Whether the place has the manifest of the folder. `None` if the place has no manifest.
    fn manifest(&self) -> Result<Option<bool>> {
        let there = files::read(&self.target.place.join(MANIFEST), MOST_MANIFEST);
        let there = match there {
            Err(e) if e.kind() == Kind::Io(ErrorKind::NotFound) => None,
            there => there?,
        };
        Ok(there.map(|there| fs::read(self.folder().join(MANIFEST)).is_ok_and(|here| here == there)))
    }

    /// The refusal of a place that has files of others.
    pub fn refusal(&self) -> Error {
        let first = self.target.files().ok().and_then(|files| files.into_iter().next());
        self.target.full(&self.field, &first.map_or_else(|| "a file".to_owned(), |(name, _)| name))
    }

    /// A folder of this machine beside the one with the output, which goes with it once the output is sent.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.kept.join(name)
    }

    /// Removes what this machine keeps for the place.
    pub fn abandon(self) {
        // The next writer overwrites what cannot be removed here.
        let _ = fs::remove_dir_all(&self.kept);
    }

    /// Checks all that [`Outgoing::to`] checks and changes nothing; `false` where `place` is of this machine.
    ///
    /// Errors: as [`Outgoing::to`].
    pub fn could_be(place: &Path, field: &str) -> Result<bool> {
        let Some(target) = Target::of(place, field)? else { return Ok(false) };
        target.is_free(field, "").map(|()| true)
    }

    /// The folder of this machine in which the job makes the output.
    pub fn folder(&self) -> PathBuf {
        self.kept.join(FILES)
    }

    /// The place in the bucket.
    pub fn place(&self) -> &Path {
        &self.target.place
    }

    /// Claims the place, sends all files of the folder there with the manifest last, releases the place, and removes the folder. To a pack
    /// that grows it sends them as a new version. Returns the number of files. `each` gets the bytes sent so far and all bytes; an error of `each` stops the sending, which the
    /// next call begins again.
    ///
    /// Errors: `Config` in the field where another writer came first; `Path` and `Format` of reading and writing; those of `each`.
    pub fn send(self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<u64> {
        let (mut files, folder) = (Vec::new(), self.folder());
        // A job that found no new game for a pack wrote none.
        if self.grows.is_none() || folder.exists() {
            list(&folder, "", &mut files)?;
        }
        files.sort_by_key(|(name, _)| (name == MANIFEST, name.clone()));
        let mut sending = Sending { done: 0, all: files.iter().map(|(_, len)| len).sum(), each };
        if let Some(growth) = &self.grows {
            self.grow(growth, &files, &mut sending)?;
        } else {
            self.fill(&files, &mut sending)?;
        }
        // The output is whole in the bucket; the next writer overwrites what cannot be removed here.
        let _ = fs::remove_dir_all(&self.kept);
        Ok(files.len() as u64)
    }

    /// Sends the files to a place that has none.
    fn fill(&self, files: &[(String, u64)], sending: &mut Sending<'_>) -> Result<()> {
        let (mut claim, writes) = (self.claim()?, self.target.writes()?);
        match self.manifest()? {
            Some(true) => {}
            // This writer had sent another output whole when it was killed.
            Some(false) => return Err(self.target.full(&self.field, MANIFEST)),
            None => self.remove_others("", files)?,
        }
        for (file, _) in files {
            if file != MANIFEST {
                self.send_file(file, &self.target.file(file), &mut claim, sending)?;
                continue;
            }
            self.renew(&mut claim, false)?;
            let from = self.folder().join(file);
            let bytes = fs::read(&from).map_err(|e| Error::path(&from, &e))?;
            sending.done += bytes.len() as u64;
            if !writes.put(&self.target.file(file), bytes, true)? {
                let detail = format!("{}: another writer came first", self.target.place.display());
                return Err(Error::config(&self.field, detail));
            }
            sending.tell()?;
        }
        Ok(writes.delete(&self.target.file(CLAIM))?)
    }

    /// Sends one file of the folder to a name in the store.
    pub(super) fn send_file(&self, file: &str, to: &str, claim: &mut Claim, sending: &mut Sending<'_>) -> Result<()> {
        self.renew(claim, false)?;
        let mut ended = None;
        let sent = self.target.writes()?.send(to, &self.folder().join(file), &mut |bytes| {
            sending.done += bytes;
            self.renew(claim, false).and_then(|()| sending.tell()).map_err(|e| {
                ended = Some(e);
                gristmill_format::Error::new(Kind::Io(ErrorKind::Interrupted), "it was ended")
            })
        });
        match ended {
            Some(e) => Err(e),
            None => Ok(sent?),
        }
    }

    /// Removes what this writer sent of another output before it was killed: what lies in a folder (empty, or with a `/` at its end) and is
    /// none of these files.
    pub(super) fn remove_others(&self, folder: &str, files: &[(String, u64)]) -> Result<()> {
        let own: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let there = self.target.files()?;
        let others = there.iter().filter(|(name, _)| name.strip_prefix(folder).is_some_and(|name| !own.contains(name)));
        Ok(self.target.writes()?.delete_all(&others.map(|(name, _)| self.target.file(name)).collect::<Vec<_>>())?)
    }

    /// Claims the place for this writer, unless another has claimed it.
    pub(super) fn claim(&self) -> Result<Claim> {
        let (writes, name) = (self.target.writes()?, self.target.file(CLAIM));
        let mut claim = Claim::new(self.writer.clone());
        for _ in 0..TRIES {
            match self.target.claim()? {
                Some(there) if there.writer == self.writer => return Ok(there),
                Some(there) => return Err(self.target.taken(&self.field, &there)),
                None => claim.renewed = now(),
            }
            if writes.put(&name, claim.bytes(), true)? {
                if self.grows.is_some() {
                    return Ok(claim);
                }
                // Another writer may have claimed, filled and released the place since it was found free.
                let Some((there, _)) = self.target.files()?.into_iter().next() else { return Ok(claim) };
                writes.delete(&name)?;
                return Err(self.target.full(&self.field, &there));
            }
        }
        Err(self.target.taken(&self.field, &claim))
    }

    /// Renews the claim when it is due, or now. Refuses to go on where the claim is no longer this writer's.
    pub(super) fn renew(&self, claim: &mut Claim, is_due: bool) -> Result<()> {
        if !is_due && now().saturating_sub(claim.renewed) < RENEWED.as_secs() {
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

/// How much of the output was sent, and what is called with it.
pub(super) struct Sending<'a> {
    done: u64,
    all: u64,
    each: &'a mut dyn FnMut(u64, u64) -> Result<()>,
}

impl Sending<'_> {
    fn tell(&mut self) -> Result<()> {
        (self.each)(self.done, self.all)
    }
}

impl Drop for Outgoing {
    /// Leaves nothing on this machine where no job wrote a file.
    fn drop(&mut self) {
        let holds = |folder: &Path| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        let mut folders = fs::read_dir(&self.kept).into_iter().flatten().flatten().map(|entry| entry.path());
        if !folders.any(|folder| holds(&folder)) {
            let _ = fs::remove_dir_all(&self.kept);
        }
    }
}

/// Finds the files below a folder of this machine, with their lengths; skips hidden ones.
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
