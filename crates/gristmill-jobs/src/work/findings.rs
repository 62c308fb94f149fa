//! What a verification found: each thing that is wrong with its place, which check found it, what was expected; and counts.
//! Pure data; damage is no error here.

use std::collections::BTreeMap;

use gristmill_format::Error;
use serde::{Deserialize, Serialize};

use super::drawn::Step;
use super::opened::is_unreadable;
use crate::word::{self, Word};

/// One thing that is wrong, and where.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Fault {
    /// Path of the file.
    pub file: Option<String>,
    /// Name of the member in a container.
    pub member: Option<String>,
    /// Chunk in the file.
    pub chunk: Option<u64>,
    /// Run of a pack.
    pub run: Option<u64>,
    /// Frame in the chunk; of a pack, row of the file. From 0.
    pub frame: Option<u64>,
    /// Line of a text, from 1.
    pub line: Option<u64>,
    /// Column of that line in bytes, from 1.
    pub column: Option<u64>,
    /// Byte in the decoded chunk; where it could not be decoded and in a pack, in the file, or in the text that the
    /// file holds.
    pub offset: Option<u64>,
    /// A short stable word, such as `truncated` or `out_of_range`.
    #[serde(deserialize_with = "word::one")]
    pub kind: Word,
    /// Whether the system refused to read: the content is unknown.
    pub unreadable: bool,
    /// The rule that a readable game breaks.
    #[serde(deserialize_with = "word::some")]
    pub rule: Option<Word>,
    /// What was expected and what was found.
    pub detail: String,
    /// Whole records that can still be had from a damaged chunk.
    pub salvageable: Option<u64>,
}

impl Fault {
    pub(crate) fn new(e: &Error) -> Self {
        let place = e.place();
        Fault {
            file: place.source.clone(),
            member: place.member.clone(),
            chunk: place.chunk,
            frame: place.frame,
            line: place.line.map(|(line, _)| line),
            column: place.line.map(|(_, column)| column),
            offset: place.offset,
            kind: e.kind().name(),
            unreadable: is_unreadable(e),
            detail: e.detail().to_owned(),
            ..Fault::default()
        }
    }

    /// What it is.
    pub(crate) fn nature(&self) -> Nature {
        match self.rule {
            _ if self.unreadable => Nature::Unread,
            Some(_) => Nature::Rule,
            None => Nature::Damage,
        }
    }

    /// The check that found it: the rule, or else the kind.
    pub fn check(&self) -> &'static str {
        self.rule.unwrap_or(self.kind)
    }
}

/// The first fault that a check found in rows of 2048 games, with the rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Example {
    /// What is wrong.
    pub fault: Fault,
    /// The row before it in the same game.
    pub before: Option<Step>,
    /// The row.
    pub row: Step,
}

impl Example {
    /// Draws the boards again: a document has none.
    pub(crate) fn redraw(&mut self) {
        self.before.iter_mut().chain([&mut self.row]).for_each(Step::redraw);
    }
}

/// What a fault is: of reading, of bytes, or of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Nature {
    /// The system refused to read.
    Unread,
    /// The bytes are damaged.
    Damage,
    /// A readable chunk breaks a rule.
    Rule,
}

/// The first faults of one check, and how many there are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Firsts {
    pub(crate) count: u64,
    pub(crate) faults: Vec<Fault>,
}

/// How many faults of each check are kept, whatever others there are.
pub(crate) const FIRST: usize = 5;

/// What a verification found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Verification {
    /// Whether nothing is wrong.
    pub ok: bool,
    /// Frames checked.
    pub checked: u64,
    /// Chunks checked, bad ones included; of a pack, its runs.
    pub chunks: u64,
    /// Data files checked.
    pub files: u64,
    /// Files in directories that are of no known format.
    pub skipped: u64,
    /// The faults, at most `max_faults`.
    pub faults: Vec<Fault>,
    /// How many faults there are in all.
    pub fault_count: u64,
    /// How many of them are of unreadable files, whose content is unknown.
    pub unreadable: u64,
    /// How many faults each check found: by rule, or else by kind. Checks of 2048 rows and of demonstrations that found
    /// none are there too.
    #[serde(deserialize_with = "word::map")]
    pub checks: BTreeMap<Word, u64>,
    /// The first fault of each check of 2048 rows, drawn.
    pub examples: Vec<Example>,
    /// Whole records that can still be had from damaged chunks.
    pub salvageable: u64,
    /// The first faults of each check.
    #[serde(skip)]
    pub(crate) firsts: BTreeMap<(Nature, Word), Firsts>,
}

impl Verification {
    pub(crate) fn add(&mut self, keep: usize, fault: Fault) {
        self.fault_count += 1;
        self.salvageable += fault.salvageable.unwrap_or(0);
        self.unreadable += u64::from(fault.unreadable);
        *self.checks.entry(fault.check()).or_default() += 1;
        let firsts = self.firsts.entry((fault.nature(), fault.check())).or_default();
        firsts.count += 1;
        if firsts.faults.len() < FIRST {
            firsts.faults.push(fault.clone());
        }
        if self.faults.len() < keep {
            self.faults.push(fault);
        }
    }

    /// Adds a fault in a row of a 2048 game; the rows are drawn where it is the first of its check.
    pub(crate) fn add_row(&mut self, keep: usize, fault: Fault, rows: impl FnOnce(Fault) -> Example) {
        if self.checks.get(fault.check()).is_none_or(|count| *count == 0) {
            self.examples.push(rows(fault.clone()));
        }
        self.add(keep, fault);
    }

    /// Names checks that are made, so that those that find nothing are listed as well.
    pub(crate) fn will_check(&mut self, checks: impl IntoIterator<Item = &'static str>) {
        for check in checks {
            self.checks.entry(check).or_default();
        }
    }

    /// Takes in what was found later.
    pub(crate) fn absorb(&mut self, keep: usize, later: Verification) {
        self.checked += later.checked;
        self.chunks += later.chunks;
        self.files += later.files;
        self.skipped += later.skipped;
        self.fault_count += later.fault_count;
        self.salvageable += later.salvageable;
        self.unreadable += later.unreadable;
        let room = keep.saturating_sub(self.faults.len());
        self.faults.extend(later.faults.into_iter().take(room));
        let new = |example: &Example| self.checks.get(example.fault.check()).is_none_or(|count| *count == 0);
        self.examples.extend(later.examples.into_iter().filter(new));
        for (check, of_later) in later.firsts {
            let firsts = self.firsts.entry(check).or_default();
            firsts.count += of_later.count;
            let room = FIRST.saturating_sub(firsts.faults.len());
            firsts.faults.extend(of_later.faults.into_iter().take(room));
        }
        for (check, count) in later.checks {
            *self.checks.entry(check).or_default() += count;
        }
    }
}
