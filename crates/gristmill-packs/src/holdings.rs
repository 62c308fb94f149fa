//! A folder, a file or a pattern -> what lies there, in words, and which command or call takes that. For errors on folders without the
//! wanted data. Looks at names and first bytes of at most some thousand files; decodes nothing, and changes nothing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use gristmill_format::Kind;
use gristmill_format::container::chunks::ChunkFile;
use gristmill_format::demo;
use gristmill_format::detect::{self, Format};
use gristmill_format::g2048::log::STEPS_SUFFIX;
use gristmill_runtime::names::STAGING;
use gristmill_runtime::store::publish::{is_interrupted, is_staged};
use gristmill_runtime::store::{DirStore, Store};

use crate::kinds;
use crate::pack::{is_part, is_rows, values};

/// At most this many files are listed.
const FILES: usize = 20_000;

/// At most this many files of each ending are opened; the names of the others say what they are.
const OPENED: u64 = 16;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Rows of 2048.
    Rows,
    /// A pack of demonstrations.
    PackedDemos,
    /// A game of chess, a tar of them, or a pack of them.
    Games,
    /// The log of a game of 2048.
    Log,
    /// A file of demonstrations.
    Demos,
    /// Values of rows of 2048.
    Values,
    /// Chunks of a kind that is not known here.
    Unknown,
    /// What no format claims.
    Other,
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
        let Ok(store) = DirStore::at(place) else { return holds };
        let (mut seen, mut opened) = (0, BTreeMap::<String, u64>::new());
        store.list(&mut |file| {
            seen += 1;
            let ending = file.key().rsplit_once('.').map_or("", |(_, ending)| ending).to_owned();
            let opened = opened.entry(ending).or_default();
            *opened += 1;
            let what = what(&store, &file.name, *opened <= OPENED);
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

    /// Whether there are games of chess.
    pub fn has_games(&self) -> bool {
        self.found.contains_key(&What::Games)
    }

    /// Whether there are raw logs of games of 2048.
    pub fn has_logs(&self) -> bool {
        self.found.contains_key(&What::Log)
    }

    /// What lies at `place`, and what takes it: the rest of a sentence that began with the place.
    pub fn told(&self, place: &Path) -> String {
        let told = self.held(place);
        match told.strip_prefix("holds ") {
            Some(rest) if place.is_file() => format!("is {rest}"),
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
        if self.found.is_empty() && !folder.exists() {
            return "names no file".to_owned();
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
            What::PackedDemos => format!(
                "holds a pack of demonstrations: gristmill.DataLoader, PairLoader or StepLoader feed \
                 gristmill.open({folder:?}) in Python"
            ),
            What::Games => {
                format!(
                    "holds {}: `gristmill feed {path}` feeds them",
                    files("a file of chess games", "files of chess games")
                )
            }
            What::Log => format!(
                "holds {}: `gristmill pack` makes a pack of them, which gristmill.DataLoader(gristmill.open(PACK), \
                 encoder=...) feeds in Python",
                files("the raw log of a 2048 game", "raw logs of 2048 games")
            ),
            What::Demos => format!(
                "holds {}: gristmill.PairLoader or StepLoader feed gristmill.open of them in Python, and `gristmill inspect \
                 {path}` describes them",
                files("a file of demonstrations", "files of demonstrations")
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

fn what(store: &DirStore, name: &str, open: bool) -> What {
    let base = name.rsplit('/').next().unwrap_or(name);
    if is_rows(base) {
        return What::Rows;
    }
    if values::is_values(base) {
        return What::Values;
    }
    if is_part(base) {
        return What::Other;
    }
    if base.ends_with(STEPS_SUFFIX) {
        return What::Log;
    }
    let bytes = if open { store.open(name).ok() } else { None };
    let format = match &bytes {
        Some(bytes) => detect::detect_alone(name, &**bytes),
        None => detect::detect(name, &[]),
    };
    match format {
        Ok(Some(Format::Chunks)) => {
            match bytes.map(|bytes| ChunkFile::open(&*bytes).and_then(|index| kinds::codec(index.codec()))) {
                Some(Ok(codec)) if codec.name() == demo::KIND => What::PackedDemos,
                Some(Err(e)) if e.kind() == Kind::Unsupported => What::Unknown,
                _ => What::Games,
            }
        }
        Ok(Some(Format::ChessGame | Format::ChessTar)) => What::Games,
        Ok(Some(Format::G2048Log)) => What::Log,
        Ok(Some(Format::Demonstrations)) => What::Demos,
        Ok(Some(_) | None) | Err(_) => What::Other,
    }
}
