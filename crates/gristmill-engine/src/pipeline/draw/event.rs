//! What a run tells of its files and draws in its journal (docs/format/journal.md), line by line. Writes nothing by itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use gristmill_runtime::runtime::journal::Journal;
use gristmill_stages::config::SplitBy;
use serde::{Deserialize, Serialize};

use crate::pipeline::draw::drawer::Admission;
use crate::pipeline::draw::recorded::Recorded;

/// One line of the journal (docs/format/journal.md).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(in crate::pipeline) enum Event {
    /// The run's root seed.
    Seed(u64),
    /// The same, of a run that resumes from a state: per output, the batch that comes next.
    From { seed: u64, at: BTreeMap<String, u64> },
    /// What a splitter stage goes by; a splitter without this event goes by file.
    Split { stage: String, by: SplitBy },
    /// The first scan of a loader stage.
    Initial { loader: String, files: Vec<Recorded> },
    /// The files that a resumed run knew, where its rank has no journal yet; in the midst of one: files whose ids are others
    /// from here on.
    Known { loader: String, files: Vec<Recorded> },
    /// Files of the first scan that were gone before a pool could take them in. Older versions said it of all pools at once.
    Gone {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pool: Option<String>,
        /// In which lanes, where there are several.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lanes: Vec<u32>,
        loader: String,
        files: Vec<u64>,
    },
    /// What was first read of files: id and digest.
    Read { loader: String, files: Vec<(u64, String)> },
    /// Draws of a pool below `at` may have been made; no file without an event was taken in before any of them.
    Reached {
        pool: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<u32>,
        at: u64,
    },
    /// A source that a pool admitted before one of its draws.
    Admit {
        pool: String,
        /// Whose draws are counted, where there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<u32>,
        loader: String,
        file: Recorded,
        #[serde(flatten)]
        admission: Admission,
    },
}

impl Event {
    /// The files that it names, each with the name of its loader stage.
    pub(in crate::pipeline) fn files(&self) -> impl Iterator<Item = (&str, &Recorded)> {
        let (loader, files) = match self {
            Event::Initial { loader, files } | Event::Known { loader, files } => (loader.as_str(), files.as_slice()),
            Event::Admit { loader, file, .. } => (loader.as_str(), std::slice::from_ref(file)),
            _ => ("", &[][..]),
        };
        files.iter().map(move |file| (loader, file))
    }
}

/// A journal that several pools write to.
pub(in crate::pipeline) type SharedJournal = Arc<Mutex<Journal>>;
