//! A folder, a file or a pattern -> what lies there, in words, and which command or call takes that. For errors on folders without the
//! wanted data. Looks at names and first bytes of at most some thousand files; decodes nothing, and changes nothing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use gristmill_format::Kind as Cause;
use gristmill_format::container::chunks::ChunkFile;
use gristmill_format::detect;
use gristmill_runtime::names::STAGING;
use gristmill_runtime::store::files::{is_file, is_folder};
use gristmill_runtime::store::publish::{is_interrupted, is_staged};
use gristmill_runtime::store::{self, Store};

use crate::kinds::{self, Held, Kind};
use crate::row_files::{is_part, is_rows, is_values};

/// At most this many files are listed.
const FILES: usize = 20_000;

/// At most this many files of each ending are opened; the names of the others say what they are.
const OPENED: u64 = 16;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Rows of 2048.
    Rows,
    /// Frames of a kind, by its number in the table of kinds.
    Frames {
        kind: usize,
        /// In a file, and not in a chunk file of a pack.
        loose: bool,
    },
    /// Chunks that were not read, or cannot be.
    Chunks,
    /// Values of rows of 2048.
    Values,
    /// Chunks of a kind that is not known here.
    Unknown,
    /// What no format claims.
    Other,
}

impl What {
    fn of(kind: &str, loose: bool) -> Self {
        kinds::names().position(|name| name == kind).map_or(What::Unknown, |kind| What::Frames { kind, loose })
    }
}

/// What lies in a folder.
#[derive(Debug, Default)]
pub struct Holdings {
    /// Files of each kind, and the first of them.
    found: BTreeMap<What, (u64, String)>,
    /// A job was killed here, or is at work.
    left: bool,
}

impl Holdings {
    /// Looks at a folder, or at a file, or at what a pattern names. What cannot be listed holds nothing.
    pub fn of(place: &Path) -> Self {
        let mut holds = Holdings { left: is_staged(place, STAGING), ..Holdings::default() };
        let Ok(store) = store::open(place) else { return holds };
        let (mut seen, mut opened) = (0, BTreeMap::<String, u64>::new());
        store.list(&mut |file| {
            seen += 1;
            let ending = file.key().rsplit_once('.').map_or("", |(_, ending)| ending).to_owned();
            let opened = opened.entry(ending).or_default();
            *opened += 1;
            let what = what(&*store, &file.name, *opened <= OPENED);
            let (count, first) = holds.found.entry(what).or_insert_with(|| (0, file.name.to_string()));
            *count += 1;
            if **first > *file.name {
                *first = file.name.to_string();
            }
            if seen < FILES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        holds
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether there are games that streams take as they are and packs have whole.
    pub fn has_games(&self) -> bool {
        self.found.contains_key(&What::Chunks)
            || self.kinds().any(|kind| kind.codec().is_some() && kind.declared().is_none())
    }

    /// Whether there are raw logs of games, which are packed in rows.
    pub fn has_logs(&self) -> bool {
        self.kinds().any(|kind| kind.codec().is_none())
    }

    /// Of what there are frames.
    pub fn kinds(&self) -> impl Iterator<Item = &'static dyn Kind> {
        let numbers = self.found.keys().filter_map(|what| match what {
            What::Frames { kind, .. } => Some(*kind),
            _ => None,
        });
        numbers.filter_map(kinds::numbered)
    }

    /// What lies at `place`, and what takes it: the rest of a sentence that began with the place.
    pub fn told(&self, place: &Path) -> String {
        let told = self.held(place);
        match told.strip_prefix("holds ") {
            Some(rest) if is_file(place).unwrap_or(false) => format!("is {rest}"),
            _ => told,
        }
    }

    fn held(&self, folder: &Path) -> String {
        let path = folder.display();
        if is_interrupted(folder, STAGING) || self.left && self.found.is_empty() {
            return format!(
                "holds what a job left that was killed, or is at work: `gristmill recover {path}` finishes it"
            );
        }
        if self.found.is_empty() {
            match is_folder(folder).and_then(|is| Ok(is || is_file(folder)?)) {
                Ok(true) => {}
                Ok(false) => return "names no file".to_owned(),
                Err(e) => return format!("cannot be read: {e}"),
            }
        }
        let Some((what, (count, first))) = self.found.first_key_value() else { return "is empty".to_owned() };
        let files = |one: &str, many: &str| match count {
            1 => format!("{one} ({first})"),
            _ => format!("{count} {many} ({first}, ...)"),
        };
        match what {
            What::Rows => format!(
                "holds a pack of 2048 rows: gristmill.DataLoader(gristmill.open({folder:?}), encoder=...) feeds it in Python, and \
                 `gristmill stats {path}` describes it"
            ),
            What::Frames { kind, loose } => {
                let held = Held { folder, loose: *loose, count: *count, first };
                kinds::numbered(*kind).map_or_else(String::new, |kind| kind.held(&held))
            }
            What::Chunks => format!(
                "holds {}: `gristmill verify {path}` says what is wrong",
                files("a chunk file that cannot be read", "chunk files that cannot be read")
            ),
            What::Values => {
                format!(
                    "holds values of 2048 rows without the rows ({first}): they lie beside the steps.npy of their pack"
                )
            }
            What::Unknown => format!(
                "holds {} of a kind of games that is not known here; the gristmill that wrote them, or a newer one, reads them",
                files("a chunk file", "chunk files")
            ),
            What::Other => {
                format!("holds {}", files("one file that no format here claims", "files that no format here claims"))
            }
        }
    }
}

fn what(store: &dyn Store, name: &str, open: bool) -> What {
    let base = name.rsplit('/').next().unwrap_or(name);
    if is_rows(base) {
        return What::Rows;
    }
    if is_values(base) {
        return What::Values;
    }
    if is_part(base) {
        return What::Other;
    }
    let bytes = if open { store.open(name).ok() } else { None };
    let format = match &bytes {
        Some(bytes) => detect::detect_alone(name, &**bytes),
        None => detect::detect(name, &[]),
    };
    match format {
        Ok(Some(format)) => match (detect::kind(format), bytes) {
            (Some(kind), _) => What::of(kind, true),
            (None, Some(bytes)) => match ChunkFile::open(&*bytes).and_then(|index| kinds::codec(index.codec())) {
                Ok(codec) => What::of(codec.name(), false),
                Err(e) if e.kind() == Cause::Unsupported => What::Unknown,
                Err(_) => What::Chunks,
            },
            (None, None) => What::Chunks,
        },
        Ok(None) | Err(_) => What::Other,
    }
}
