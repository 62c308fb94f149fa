//! A place in a bucket -> what killed writers left there, and what belongs to older versions of its pack. Removes these files and no
//! others, and nothing while a writer is at work.

use std::path::Path;

use serde::Serialize;

use super::outgoing::{CLAIM, Claim, MANIFEST, MOST_MANIFEST, Target};
use super::version::{Version, is_folder};
use crate::runtime::seed::fresh_root;
use crate::{Error, Result};

/// What can be removed below a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left {
    /// The place.
    pub place: String,
    /// The claim of the writer; none where no writer left anything.
    pub claim: Option<Claim>,
    /// Whether a whole pack is there, which [`clean`] keeps.
    pub whole: bool,
    /// The files that go: names below the place, and bytes. Of a whole pack those of its older versions, and of versions that were never
    /// finished.
    pub files: Vec<(String, u64)>,
}

/// Finds what a killed writer left at a place in a bucket, and what belongs to older versions of its pack alone.
///
/// Errors: `Config` in `place` for a place of this machine or one that cannot be written; `Path` and `Format` of reading.
pub fn left(place: &Path) -> Result<Left> {
    let target = target(place)?;
    let claim = target.claim()?;
    let (whole, files) = rest(&target, claim.is_some())?;
    Ok(Left { place: target.place.display().to_string(), claim, whole, files })
}

/// Whether a whole pack is there, and what does not belong to it; where there is none, all that the writer of a claim left.
fn rest(target: &Target, is_claimed: bool) -> Result<(bool, Vec<(String, u64)>)> {
    // The list comes first: files of a version that is made meanwhile are not in it, or else the manifest names them.
    let mut files = target.files()?;
    let manifest = target.writes()?.read_marked(&target.file(MANIFEST), MOST_MANIFEST)?;
    match manifest.as_ref().map(|(bytes, _)| Version::parse(bytes)) {
        None if is_claimed => {}
        None => files.clear(),
        Some(version) => {
            let version = version.map_err(|e| e.in_source(target.place.join(MANIFEST).display().to_string()))?;
            files.retain(|(name, _)| match &version {
                Some(version) => !version.has(name),
                None => name.split_once('/').is_some_and(|(folder, _)| is_folder(folder)),
            });
        }
    }
    Ok((manifest.is_some(), files))
}

/// Removes the files that [`left`] found and that still can go, and the claim.
///
/// Errors: `Config` in `place` where the writer renewed its claim within ten minutes and the caller does not say that it is `dead`, and
/// where another writer came meanwhile; as [`left`].
pub fn clean(left: &Left, dead: bool) -> Result<()> {
    let target = target(Path::new(&left.place))?;
    let writes = target.writes()?;
    match (&left.claim, target.claim()?) {
        (None, None) if left.files.is_empty() => return Ok(()),
        (Some(_), None) => return Ok(()),
        // No writer begins while its files are looked through.
        (None, None) => {
            let own = Claim::new(format!("{:016x}{:016x}", fresh_root(), fresh_root()));
            if !writes.put(&target.file(CLAIM), own.bytes(), true)? {
                return Err(target.taken("place", &target.claim()?.unwrap_or(own)));
            }
        }
        (Some(claim), Some(there)) if claim.writer == there.writer && (dead || !there.is_alive()) => {}
        (_, Some(there)) => return Err(target.taken("place", &there)),
    }
    let (_, mut files) = rest(&target, left.claim.is_some())?;
    files.retain(|(name, _)| left.files.iter().any(|(found, _)| found == name));
    writes.delete_all(&files.iter().map(|(name, _)| target.file(name)).collect::<Vec<_>>())?;
    Ok(writes.delete(&target.file(CLAIM))?)
}

fn target(place: &Path) -> Result<Target> {
    Target::of(place, "place")?.ok_or_else(|| {
        let detail = "is of this machine; `gristmill recover` says what jobs left there";
        Error::config("place", format!("{}: {detail}", place.display()))
    })
}
