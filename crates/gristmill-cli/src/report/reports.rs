//! A share of a report as text: its inputs and its folder. Prints nothing.

use gristmill_jobs::reports::Reported;

use super::shares;

/// The text of a share.
pub(crate) fn shared(made: &Reported) -> String {
    let Reported { folder, share, files, chunks, frames, dry_run } = made;
    shares::made(share, *dry_run, &format!("{frames} frames of {chunks} chunks in {files} files"), folder)
}
