//! What is known of bad chunks: counted by kind, remembered so that a bad chunk costs nothing twice, reported.
//! Decides by policy whether the stream continues; never by how often a chunk was seen.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gristmill_format::Kind;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::events::{Event, Events, Level};
use gristmill_stages::config::BadChunks;
use serde::Serialize;

/// Latest verdicts that are kept for people to read.
const KEPT: usize = 100;

/// Bad chunks so far.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BadChunkCounts {
    /// Different chunks found bad; one that several outputs refuse counts for each.
    pub chunks: u64,
    /// The same by kind, such as `truncated` or `not_found`.
    pub by_kind: BTreeMap<String, u64>,
    /// How many of them the quarantine report has.
    pub quarantined: u64,
    /// The latest messages, oldest first.
    pub latest: Vec<String>,
    /// Why the quarantine report could not be written, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_fault: Option<String>,
}

/// One line of the quarantine report.
#[derive(Serialize)]
struct Line<'a> {
    source: Option<&'a str>,
    member: Option<&'a str>,
    chunk: Option<u64>,
    frame: Option<u64>,
    offset: Option<u64>,
    kind: &'static str,
    detail: &'a str,
}

#[derive(Debug)]
enum Remembered {
    Kind(Kind),
    Error(gristmill_format::Error),
}

/// For whom a chunk is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::pipeline) enum Scope {
    /// For all draws: its bytes are missing or cannot be read.
    Bytes,
    /// For the branch of this number: a stage of it refused the chunk, or its encoder has no use for such records.
    Branch(u32),
}

#[derive(Debug, Default)]
struct Known {
    /// Kind of each bad chunk; with the `raise` policy the whole error, since it is given again at each draw.
    bad: HashMap<(Scope, u64, u32), Remembered>,
    by_kind: BTreeMap<&'static str, u64>,
    quarantined: u64,
    latest: VecDeque<String>,
    report_fault: Option<String>,
}

/// The verdicts of one loader.
#[derive(Debug)]
pub(in crate::pipeline) struct Verdicts {
    pub(in crate::pipeline) policy: BadChunks,
    report: Option<Mutex<File>>,
    known: Mutex<Known>,
    events: Arc<Events>,
}

impl Verdicts {
    /// Opens the report, if the policy writes one.
    ///
    /// Errors: `Config` when the policy needs a report that is not named, `Path` when it cannot be written.
    pub(in crate::pipeline) fn new(policy: BadChunks, report: Option<&Path>, events: Arc<Events>) -> Result<Self> {
        let report = match (policy, report) {
            (BadChunks::Quarantine, None) => {
                return Err(Error::config("quarantine", "bad_chunks = \"quarantine\" needs the path of the report"));
            }
            (BadChunks::Quarantine, Some(path)) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                Some(Mutex::new(file.map_err(|e| Error::path(path, &e))?))
            }
            (_, Some(_)) => {
                return Err(Error::config("quarantine", "a report is only written with bad_chunks = \"quarantine\""));
            }
            (_, None) => None,
        };
        Ok(Verdicts { policy, report, known: Mutex::default(), events })
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the chunk is known to be bad for the branch of this number, if it is.
    pub(in crate::pipeline) fn of(&self, branch: u32, source: u64, chunk: u32) -> Option<gristmill_format::Error> {
        let known = self.lock();
        let found = |scope| known.bad.get(&(scope, source, chunk));
        Some(match found(Scope::Bytes).or_else(|| found(Scope::Branch(branch)))? {
            Remembered::Kind(kind) => gristmill_format::Error::new(*kind, "found bad before").in_chunk(chunk as usize),
            Remembered::Error(error) => error.clone(),
        })
    }

    /// Remembers a verdict, counts it, tells it and writes it to the report: once per chunk and scope.
    pub(in crate::pipeline) fn add(&self, scope: Scope, source: u64, chunk: u32, error: &gristmill_format::Error) {
        let mut known = self.lock();
        let remembered = match self.policy {
            BadChunks::Raise => Remembered::Error(error.clone()),
            BadChunks::Skip | BadChunks::Quarantine => Remembered::Kind(error.kind()),
        };
        if known.bad.insert((scope, source, chunk), remembered).is_some() {
            return;
        }
        *known.by_kind.entry(error.kind().name()).or_default() += 1;
        known.latest.push_back(error.to_string());
        if known.latest.len() > KEPT {
            known.latest.pop_front();
        }
        let written = self.report.as_ref().map(|report| write_line(report, error));
        let place = error.place();
        let quarantined = matches!(written, Some(Ok(())));
        known.quarantined += u64::from(quarantined);
        let kind = if quarantined { "quarantined" } else { "bad_chunk" };
        let event = Event::new(Level::Warning, kind, error.to_string()).with("kind", Some(error.kind().name()));
        let event = event.with("source", place.source.as_deref()).with("member", place.member.as_deref());
        self.events.add(event.with("chunk", place.chunk).with("frame", place.frame).with("offset", place.offset));
        if let Some(Err(e)) = written {
            let fault = Some(e.to_string());
            if known.report_fault != fault {
                let message = format!("the quarantine report cannot be written: {e}");
                self.events.add(Event::new(Level::Error, "report_fault", message));
            }
            known.report_fault = fault;
        }
    }

    /// The counts.
    pub(in crate::pipeline) fn counts(&self) -> BadChunkCounts {
        let known = self.lock();
        BadChunkCounts {
            chunks: known.bad.len() as u64,
            by_kind: known.by_kind.iter().map(|(kind, n)| ((*kind).to_owned(), *n)).collect(),
            quarantined: known.quarantined,
            latest: known.latest.iter().cloned().collect(),
            report_fault: known.report_fault.clone(),
        }
    }
}

fn write_line(report: &Mutex<File>, error: &gristmill_format::Error) -> std::io::Result<()> {
    let place = error.place();
    let line = Line {
        source: place.source.as_deref(),
        member: place.member.as_deref(),
        chunk: place.chunk,
        frame: place.frame,
        offset: place.offset,
        kind: error.kind().name(),
        detail: error.detail(),
    };
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    report.lock().unwrap_or_else(PoisonError::into_inner).write_all(&text)
}
