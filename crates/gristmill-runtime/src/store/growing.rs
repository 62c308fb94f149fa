//! New files of a pack in a bucket -> its next version: they go to a folder of their own, and then one conditional request replaces the
//! manifest that was read. Of two writers one wins. Never changes an object that a version names.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Mark;
use super::outgoing::{CLAIM, MANIFEST, MOST_MANIFEST, Outgoing, Sending, Target};
use super::version::{OWN, Version, folder_of};
use crate::{Error, Result};

/// The file of this machine that says which pack grows.
pub(super) const NOTE: &str = "grows.json";

/// A pack that grows, as it was when the job began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Growth {
    /// The mark of its manifest.
    mark: Mark,
    /// Its version; none of a pack that was never added to.
    before: Option<Version>,
    /// The folder that it is read from.
    pack: PathBuf,
}

impl Growth {
    /// The pack at a place as it is now.
    fn of(target: &Target, field: &str) -> Result<Self> {
        let (place, writes) = (target.place.display(), target.writes()?);
        let Some((bytes, mark)) = writes.read_marked(&target.file(MANIFEST), MOST_MANIFEST)? else {
            let detail = format!("{place}: there is no {MANIFEST}, and so no pack to add to");
            return Err(Error::config(field, detail));
        };
        if mark.tag.is_none() && mark.version.is_none() {
            let detail = format!(
                "{place}: this service says nothing that tells versions of an object apart (no ETag), so that two writers could \
                 overwrite each other; merge into a new place"
            );
            return Err(Error::config(field, detail));
        }
        let named = |e: gristmill_format::Error| e.in_source(target.place.join(MANIFEST).display().to_string());
        let before = Version::parse(&bytes).map_err(named)?;
        let pack = folder_of(&target.place, &bytes)?.unwrap_or_else(|| target.place.clone());
        Ok(Growth { mark, before, pack })
    }

    /// Whether the pack has files of a version.
    fn is_on(&self, version: &Version) -> bool {
        self.before.as_ref().is_some_and(|before| before.uses(version.folder()))
    }
}

impl Outgoing {
    /// Prepares to add to the pack at `place`, which an option called `field` named; none where `place` is of this machine.
    ///
    /// Errors: `Config` in `field` for a place that cannot be written, that has no pack, or that another writer has claimed; `Path` and
    /// `Format` of reading there.
    pub fn onto(place: &Path, field: &str) -> Result<Option<Self>> {
        let Some(mut outgoing) = Self::open(place, field)? else { return Ok(None) };
        outgoing.is_unclaimed()?;
        let growth = Growth::of(&outgoing.target, field)?;
        let (note, text) = (outgoing.kept.join(NOTE), serde_json::to_vec(&growth).unwrap_or_default());
        fs::write(&note, text).map_err(|e| Error::path(&note, &e))?;
        outgoing.grows = Some(growth);
        Ok(Some(outgoing))
    }

    /// Prepares to resume what an earlier run of this machine began at `place`: as [`Outgoing::to`], or as [`Outgoing::onto`].
    ///
    /// Errors: as these; `Config` in `field` where the pack that was added to has changed since.
    pub fn again(place: &Path, field: &str) -> Result<Option<Self>> {
        let Some(mut outgoing) = Self::open(place, field)? else { return Ok(None) };
        let noted =
            fs::read(outgoing.kept.join(NOTE)).ok().and_then(|text| serde_json::from_slice::<Growth>(&text).ok());
        let Some(growth) = noted else {
            drop(outgoing);
            return Self::to(place, field);
        };
        outgoing.is_unclaimed()?;
        let now = Growth::of(&outgoing.target, field)?;
        let next = Version::after(growth.before.as_ref(), &outgoing.writer, &[]);
        if now.mark != growth.mark && !now.is_on(&next) {
            return Err(outgoing.outrun());
        }
        outgoing.grows = Some(growth);
        Ok(Some(outgoing))
    }

    /// The folder of the pack that is added to.
    pub fn pack(&self) -> Option<&Path> {
        self.grows.as_ref().map(|growth| &*growth.pack)
    }

    /// Checks all that [`Outgoing::onto`] checks and changes nothing. Returns the folder of the pack; none where `place` is of this machine.
    ///
    /// Errors: as [`Outgoing::onto`].
    pub fn could_grow(place: &Path, field: &str) -> Result<Option<PathBuf>> {
        let Some(target) = Target::of(place, field)? else { return Ok(None) };
        match target.claim()? {
            Some(claim) => Err(target.taken(field, &claim)),
            None => Ok(Some(Growth::of(&target, field)?.pack)),
        }
    }

    fn is_unclaimed(&self) -> Result<()> {
        match self.target.claim()? {
            Some(claim) if claim.writer != self.writer => Err(self.target.taken(&self.field, &claim)),
            _ => Ok(()),
        }
    }

    /// The refusal of a job that another one has outrun.
    fn outrun(&self) -> Error {
        let place = self.target.place.display();
        let detail = "another job added to the pack, or replaced it, after this one had read it; nothing of this one was added. \
                      Append again: that adds what the pack lacks now";
        Error::config(&self.field, format!("{place}: {detail}"))
    }

    /// Sends the files as the next version of the pack; nothing where there are none, since no game was new.
    pub(super) fn grow(&self, growth: &Growth, files: &[(String, u64)], sending: &mut Sending<'_>) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        if let Some((name, _)) = files.iter().find(|(name, _)| name.contains('/')) {
            let refusal = std::io::Error::new(ErrorKind::InvalidData, "no version of a pack has files in folders");
            return Err(Error::path(self.folder().join(name), &refusal));
        }
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let next = Version::after(growth.before.as_ref(), &self.writer, &names);
        let (writes, folder) = (self.target.writes()?, format!("{}/", next.folder()));
        let (mut claim, mut now) = (self.claim()?, Growth::of(&self.target, &self.field)?);
        let to = |name: &str| self.target.file(&format!("{folder}{name}"));
        if now.mark == growth.mark {
            self.remove_others(&folder, files)?;
            for name in names {
                self.send_file(name, &to(name), &mut claim, sending)?;
            }
            writes.put(&to(OWN), next.bytes(), false)?;
            // `clean` may have removed some of these files, if this process slept for long.
            self.renew(&mut claim, true)?;
            if !writes.replace(&self.target.file(MANIFEST), next.bytes(), &growth.mark)? {
                now = Growth::of(&self.target, &self.field)?;
            }
        }
        let is_outrun = now.mark != growth.mark && !now.is_on(&next);
        if is_outrun {
            self.remove_others(&folder, &[])?;
        }
        writes.delete(&self.target.file(CLAIM))?;
        if is_outrun { Err(self.outrun()) } else { Ok(()) }
    }
}
