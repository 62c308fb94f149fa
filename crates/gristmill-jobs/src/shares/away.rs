//! The shares of an output in a bucket: which objects say what stands how, which shares are done, and what no share needs.
//! A share is done when its marker is there, which is created once. Decides nothing by a clock; removes no share that is done.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::shares::{Plan, Share};
use gristmill_engine::store::depot::{Depot, Rooms, Sent, of_lease};
use gristmill_engine::store::files;
use gristmill_engine::store::outgoing::{self, Left as LeftOutput};
use gristmill_format::Kind;
use serde::Serialize;
use serde::de::IgnoredAny;

use super::folder::{Document, FAILED, Folder, MOST, PLAN, corrupt};

/// Seconds without a renewal after which a process counts as dead, for people.
pub(super) const DEAD: u64 = 600;

/// The object by which a commit says that it begins to send the output.
const SENDING: &str = "sending.json";

/// Advice for a marker that does not say which files were sent.
const AGAIN: &str = "expected what was sent of the share; remove it, and make the share again";

/// What the name of the marker of a share ends with.
const MARKER: &str = ".json";

/// The folder with markers, leases and failures.
fn markers(plan: &Plan) -> String {
    format!("{}/shares", plan.name)
}

/// Where leases and files of a plan are.
pub(super) fn rooms(plan: &Plan) -> Rooms {
    Rooms { leases: markers(plan), files: format!("{}/files", plan.name) }
}

/// The object that makes a share done.
pub(super) fn marker(plan: &Plan, share: Share) -> String {
    marker_of(plan, &share.name())
}

/// The same, by the name of the share.
pub(super) fn marker_of(plan: &Plan, name: &str) -> String {
    format!("{}/{name}{MARKER}", markers(plan))
}

/// The object that says why a share failed.
pub(super) fn failed(plan: &Plan, share: Share) -> String {
    format!("{}/{}{FAILED}", markers(plan), share.name())
}

/// The shares of a plan, as the bucket lists them.
#[derive(Debug, Default)]
pub(super) struct Stand {
    /// Names of shares that are done.
    pub(super) done: BTreeMap<String, ()>,
    /// Names of shares that failed, and the objects that say why.
    pub(super) failed: BTreeMap<String, String>,
    /// Names of shares on which processes work, and seconds since one said so.
    pub(super) running: BTreeMap<String, u64>,
}

/// How the shares of a plan stand.
pub(super) fn stand(depot: &Depot, plan: &Plan) -> Result<Stand> {
    let (mut stand, mut leases) = (Stand::default(), Vec::new());
    let within = format!("{}/", markers(plan));
    for (object, _) in depot.list(&markers(plan))? {
        let name = object.strip_prefix(&within).unwrap_or(&object);
        if let Some((share, _)) = of_lease(name) {
            leases.push((share.to_owned(), object.clone()));
        } else if let Some(share) = name.strip_suffix(FAILED) {
            stand.failed.insert(share.to_owned(), object.clone());
        } else if let Some(share) = name.strip_suffix(MARKER) {
            stand.done.insert(share.to_owned(), ());
        }
    }
    for (share, object) in leases.into_iter().filter(|(share, _)| !stand.done.contains_key(share)) {
        if let Some(age) = depot.age(&object)?.filter(|age| *age < DEAD) {
            let least = stand.running.get(&share).map_or(age, |before| age.min(*before));
            stand.running.insert(share, least);
        }
    }
    Ok(stand)
}

/// A share that is done in a bucket.
#[derive(Debug)]
pub(crate) struct Sheet {
    /// Its marker, as it is.
    pub(crate) text: Vec<u8>,
    /// Its files.
    pub(super) sent: Sent,
}

impl Folder {
    /// Reads the marker of a share. Returns `None` if the share is not done.
    ///
    /// Errors: `Format` for a marker that is damaged.
    pub(crate) fn sheet(&self, plan: &Plan, share: Share) -> Result<Option<Sheet>> {
        let path = self.marker(plan, share);
        let Some(text) = files::read(&path, MOST)? else { return Ok(None) };
        let said = serde_json::from_slice::<Document<IgnoredAny>>(&text).ok().and_then(|said| said.sent);
        said.map_or_else(|| Err(corrupt(&path, AGAIN)), |sent| Ok(Some(Sheet { text, sent })))
    }

    /// Fetches the files of a share into a folder of this machine.
    ///
    /// Errors: as [`Depot::fetch`].
    pub(crate) fn fetch(
        &self,
        (plan, share): (&Plan, Share),
        sheet: &Sheet,
        to: &Path,
        each: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let Some(depot) = self.depot() else { return Ok(()) };
        let fetched = depot.fetch((&rooms(plan), &share.name()), &sheet.sent, to, each);
        fetched.map_err(|e| match e {
            Error::Format(e) if e.kind() == Kind::Corrupt || e.kind() == Kind::Io(ErrorKind::NotFound) => {
                let marker = self.marker(plan, share);
                e.and(&format!("; remove {}, and make share {share} again", marker.display())).into()
            }
            e => e,
        })
    }

    /// Notes that a commit begins to send the output.
    ///
    /// Errors: `Format` of writing.
    pub(crate) fn note_sending(&self) -> Result<()> {
        self.depot().map_or(Ok(()), |depot| depot.put(SENDING, b"{}".to_vec()))
    }

    /// Removes the note of a commit that came second, if the shares are gone. The commit that came first removed everything else.
    ///
    /// Errors: `Format` if the bucket cannot be read or written.
    pub(crate) fn forget_sending(&self) -> Result<()> {
        match self.depot() {
            Some(depot) if self.plan()?.is_none() => depot.remove([SENDING]),
            _ => Ok(()),
        }
    }

    /// Whether a commit began to send the output.
    ///
    /// Errors: `Format` of reading.
    pub(crate) fn is_sending(&self) -> Result<bool> {
        Ok(files::is_file(&self.path().join(SENDING))?)
    }
}

/// Removes all shares: first their plan, without which none counts.
pub(super) fn remove(depot: &Depot) -> Result<()> {
    depot.remove([PLAN])?;
    let all = depot.list("")?;
    depot.remove(all.iter().map(|(name, _)| name.as_str()))
}

/// What killed processes left of an output in a bucket.
#[derive(Debug, Clone, Serialize)]
pub struct Left {
    /// At the place of the output.
    #[serde(flatten)]
    pub output: LeftOutput,
    /// Objects beside the output that belong to no share that is done: names below its folder of shares, and bytes.
    pub shares: Vec<(String, u64)>,
    /// Shares on which processes worked within ten minutes, whose objects are not among them.
    pub running: u64,
}

/// Finds what killed processes left of an output in a bucket, and of its shares. With `dead`, all processes count as killed.
///
/// Errors: `Config` in `place` for a place of this machine or one that cannot be written; `Format` and `Path` of reading.
pub fn left(place: &Path, dead: bool) -> Result<Left> {
    let output = outgoing::left(place)?;
    let folder = Folder::beside(Path::new(&output.place))?;
    let mut left = Left { output, shares: Vec::new(), running: 0 };
    let Some(depot) = folder.depot() else { return Ok(left) };
    let all = depot.list("")?;
    let Some(plan) = folder.plan()? else {
        // A commit was killed as it removed them.
        left.shares = all;
        return Ok(left);
    };
    let (stand, rooms) = (stand(depot, &plan)?, rooms(&plan));
    left.running = if dead { 0 } else { stand.running.len() as u64 };
    let mut sent = BTreeMap::new();
    for (object, bytes) in all {
        let is_of = |share: &str, id: &str, sent: &mut BTreeMap<String, String>| -> Result<bool> {
            if !stand.done.contains_key(share) {
                return Ok(!dead && stand.running.contains_key(share));
            }
            if !sent.contains_key(share) {
                sent.insert(share.to_owned(), folder.sent_of(&plan, share)?.map(|sent| sent.id).unwrap_or_default());
            }
            Ok(sent.get(share).is_some_and(|known| known == id))
        };
        let within = |room: &str| object.strip_prefix(room).and_then(|rest| rest.strip_prefix('/'));
        let stays = if let Some((share, id)) = within(&rooms.leases).and_then(of_lease) {
            is_of(share, id, &mut sent)?
        } else if within(&rooms.leases).is_some() {
            true
        } else if let Some((share, rest)) = within(&rooms.files).and_then(|rest| rest.split_once('/')) {
            is_of(share, rest.split('/').next().unwrap_or(rest), &mut sent)?
        } else {
            [PLAN, SENDING].contains(&&*object)
        };
        if !stays {
            left.shares.push((object, bytes));
        }
    }
    Ok(left)
}

/// Removes what [`left`] found.
///
/// Errors: as [`outgoing::clean`]; `Format` of removing.
pub fn clean(left: &Left, dead: bool) -> Result<()> {
    outgoing::clean(&left.output, dead)?;
    let folder = Folder::beside(Path::new(&left.output.place))?;
    let Some(depot) = folder.depot() else { return Ok(()) };
    let is_lease = |name: &str| name.rsplit('/').next().is_some_and(|name| of_lease(name).is_some());
    let (leases, files): (Vec<&str>, Vec<&str>) =
        left.shares.iter().map(|(name, _)| name.as_str()).partition(|name| is_lease(name));
    depot.remove(leases)?;
    // This look finds a process that finished its share meanwhile. A process that finishes later finds its lease gone.
    let Some(plan) = folder.plan()? else { return depot.remove(files) };
    let (rooms, mut known) = (rooms(&plan), BTreeMap::new());
    let mut gone = Vec::new();
    for file in files {
        let share = file
            .strip_prefix(&rooms.files)
            .and_then(|rest| rest.strip_prefix('/'))
            .and_then(|rest| rest.split_once('/'));
        if let Some((share, rest)) = share {
            if !known.contains_key(share) {
                known.insert(share, folder.sent_of(&plan, share)?.map(|sent| sent.id));
            }
            let id = rest.split('/').next();
            if known.get(share).is_some_and(|known| known.is_some() && known.as_deref() == id) {
                continue;
            }
        }
        gone.push(file);
    }
    depot.remove(gone)
}
