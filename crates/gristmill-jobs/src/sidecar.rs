//! The path of a sidecar, or of the log of a 2048 game -> what the sidecar says, and its text as it was written.
//! Reads a bounded file and nothing else.

use std::path::Path;

use gristmill_engine::store::files::is_file;
use gristmill_engine::store::open_file;
use gristmill_format::container::gzip::Inflater;
use gristmill_format::g2048::log::{STEPS_SUFFIX, Sidecar};
use gristmill_format::source::{Span, read_span};
use gristmill_format::{Error, Kind, Result};

/// Longest sidecar, stored or inflated.
const MOST: usize = 1 << 20;

/// The sidecar at `path`, and its text.
///
/// Errors: what cannot be read, and what its parser refuses.
pub(super) fn read(path: &Path) -> Result<(Sidecar, String)> {
    let file = open_file(path)?;
    let mut stored = Vec::new();
    read_span(&*file, Span::WHOLE, MOST as u64, &mut stored)?;
    if stored.is_empty() {
        let detail = "the sidecar has no bytes: writing it was cut short; expected one JSON object";
        return Err(Error::new(Kind::Empty, detail).at_byte(0));
    }
    let mut text = Vec::new();
    Inflater::default().inflate(&stored, MOST, &mut text)?;
    let sidecar = Sidecar::parse(&text)?;
    let text = String::from_utf8(text).map_err(|_| Error::new(Kind::Corrupt, "the sidecar is not UTF-8"))?;
    Ok((sidecar, text.trim_end().to_owned()))
}

/// The sidecar beside the log at `path`; `None` where there is none.
///
/// Errors, with the sidecar's path: as [`read`].
pub(super) fn beside(log: &str) -> Result<Option<Sidecar>> {
    let Some(base) = log.strip_suffix(STEPS_SUFFIX) else { return Ok(None) };
    let names = [".meta.json", ".meta.json.gz"].map(|suffix| format!("{base}{suffix}"));
    for name in names {
        if is_file(Path::new(&name))? {
            return read(Path::new(&name)).map(|(sidecar, _)| Some(sidecar)).map_err(|e| e.moved_to(&name));
        }
    }
    Ok(None)
}
