//! A folder of games of one kind -> the files in it that hold games of another: a pack holds one kind, so these are
//! reported. Opens no file by whose name it belongs to the logs of 2048.

use std::path::Path;

use gristmill_format::g2048::log::{STEPS_SUFFIX, is_sidecar};
use gristmill_format::{Error, Kind};

use crate::files;

/// The error for a file of another kind than the `games` that are packed.
pub(super) fn stranger(path: &str, games: &str) -> Error {
    let detail = format!(
        "data of another kind than {games}; a pack holds one kind: move these files to another folder and pack that"
    );
    Error::new(Kind::Unsupported, detail).in_source(path)
}

/// Data files beside the logs of `games` below `root`. A folder that cannot be listed has none; that error is reported
/// elsewhere.
pub(super) fn beside_logs(root: &Path, games: &str) -> Vec<Error> {
    let Ok(listing) = files::list(root) else { return Vec::new() };
    let is_log = |file: &files::Closed| {
        let name = file.path().rsplit('/').next().unwrap_or_default();
        is_sidecar(name) || name.ends_with(STEPS_SUFFIX)
    };
    let strange = listing.files.iter().filter(|file| !is_log(file) && file.format().is_some());
    strange.map(|file| stranger(file.path(), games)).collect()
}
