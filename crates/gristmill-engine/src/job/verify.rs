//! Paths -> every check over every chunk and frame, and a list of what failed.
//! Damage is data here, not an error: the job goes on to the last file.

use std::ops::ControlFlow;
use std::path::PathBuf;

use gristmill_format::chess::check::{self, Rules};
use gristmill_format::container::salvage;
use gristmill_format::g2048::row::layout_aligned;
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, chess, g2048};
use serde::Serialize;

use super::files::{self, Found, Opened};
use crate::error::Result;

/// One thing that is wrong, and where.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Fault {
    /// Path of the file.
    pub file: Option<String>,
    /// Name of the member in a container.
    pub member: Option<String>,
    /// Chunk in the file.
    pub chunk: Option<u64>,
    /// Frame in the chunk.
    pub frame: Option<u64>,
    /// Line of a text, from 1.
    pub line: Option<u64>,
    /// Column of that line in bytes, from 1.
    pub column: Option<u64>,
    /// Byte in the decoded chunk; where it could not be decoded, in the file, or in the text that the file holds.
    pub offset: Option<u64>,
    /// A short stable word, such as `truncated` or `out_of_range`.
    pub kind: &'static str,
    /// The rule that a readable game breaks.
    pub rule: Option<&'static str>,
    /// What was expected and what was found.
    pub detail: String,
    /// Whole records that can still be had from a damaged chunk.
    pub salvageable: Option<u64>,
}

impl Fault {
    fn new(e: &Error) -> Self {
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
            rule: None,
            detail: e.detail().to_owned(),
            salvageable: None,
        }
    }
}

/// What a verification found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Verification {
    /// Whether nothing is wrong.
    pub ok: bool,
    /// Frames checked.
    pub checked: u64,
    /// Chunks checked, bad ones included.
    pub chunks: u64,
    /// Data files checked.
    pub files: u64,
    /// Files in directories that are of no known format.
    pub skipped: u64,
    /// What is wrong, at most as many as asked for.
    pub faults: Vec<Fault>,
    /// How many faults there are in all.
    pub fault_count: u64,
    /// Whole records that can still be had from damaged chunks.
    pub salvageable: u64,
}

/// Verifies every file at or below `paths`; keeps at most `keep` faults. `progress` is told of each file.
///
/// Errors: only what is no fault of the data.
pub fn verify(paths: &[PathBuf], keep: usize, progress: &mut dyn FnMut(&Verification)) -> Result<Verification> {
    let mut report = Verification::default();
    let mut hands = Hands::default();
    for path in paths {
        files::walk(path, &mut |found| {
            match found {
                Found::File(file) => one_file(&file, keep, &mut hands, &mut report),
                Found::Other => report.skipped += 1,
                Found::Fault(e) => {
                    report.files += 1;
                    report.add(keep, Fault::new(&e));
                }
                Found::Unlisted { kind, count, latest } => {
                    let detail = format!("{count} files or folders could not be read; the latest: {latest}");
                    let file = Some(path.display().to_string());
                    report.add(keep, Fault { file, kind, detail, ..Fault::default() });
                }
            }
            progress(&report);
            Ok(())
        })?;
    }
    report.ok = report.fault_count == 0;
    Ok(report)
}

impl Verification {
    fn add(&mut self, keep: usize, fault: Fault) {
        self.fault_count += 1;
        self.salvageable += fault.salvageable.unwrap_or(0);
        if self.faults.len() < keep {
            self.faults.push(fault);
        }
    }
}

/// Buffers that are reused from chunk to chunk.
#[derive(Debug, Default)]
struct Hands {
    stored: Vec<u8>,
    chunk: Chunk,
}

fn one_file(file: &Opened, keep: usize, hands: &mut Hands, report: &mut Verification) {
    report.files += 1;
    for fault in file.source.faults() {
        report.add(keep, Fault::new(&fault.clone().in_source(&file.path)));
    }
    if file.source.is_empty() && file.source.faults().is_empty() {
        let e = Error::new(Kind::Empty, "there is no chunk in it");
        report.add(keep, Fault::new(&e.in_source(&file.path)));
    }
    for i in 0..file.source.len() {
        report.chunks += 1;
        if let Err(e) = file.fetch(i, &mut hands.stored) {
            report.add(keep, Fault::new(&e));
            continue;
        }
        if let Err(e) = file.decode(i, &hands.stored, &mut hands.chunk) {
            let chess = file.source.describe().format.starts_with("lc0");
            let salvageable = chess.then(|| salvageable(file, hands));
            report.add(keep, Fault { salvageable, ..Fault::new(&e) });
            continue;
        }
        report.checked += hands.chunk.frames as u64;
        let size = hands.chunk.layout.as_ref().map_or(0, |layout| layout.size());
        let mut tell = |rule: &'static str, frame: usize, offset: usize, reason: String| {
            let e = Error::new(Kind::OutOfRange, reason).at_byte((frame * size + offset) as u64).in_frame(frame);
            let e = e.in_chunk(i).in_source(&file.path);
            let e = file.member(i).map(|name| e.clone().in_member(name)).unwrap_or(e);
            report.add(keep, Fault { rule: Some(rule), ..Fault::new(&e) });
        };
        // What is wrong with demonstrations is found when they are opened: they have no rules of a game.
        if file.source.describe().format.starts_with("demo.") {
            continue;
        }
        if hands.chunk.layout.as_deref() == Some(&**layout_aligned()) {
            steps(&hands.chunk, &mut tell);
            continue;
        }
        let checked = check::check(&hands.chunk, Rules::DEFAULT, &mut |breach| {
            tell(breach.rule.name(), breach.frame, breach.offset, breach.reason);
            ControlFlow::Continue(())
        });
        if let Err(e) = checked {
            report.add(keep, Fault::new(&e.in_chunk(i).in_source(&file.path)));
        }
    }
}

/// Gives every rule that the step rows of a 2048 game break to `tell`: rule, frame, byte of the row, reason.
fn steps(chunk: &Chunk, tell: &mut dyn FnMut(&'static str, usize, usize, String)) {
    let mut checker = g2048::check::Checker::default();
    for (frame, row) in chunk.records().as_chunks().0.iter().enumerate() {
        let row = g2048::StepRow::from_aligned(row);
        checker.row(&row, &mut |rule, reason| tell(rule.name(), frame, rule.offset(), reason));
    }
}

/// How many whole, readable records the damaged chunk in `hands.stored` begins with.
fn salvageable(file: &Opened, hands: &mut Hands) -> u64 {
    let got = salvage::salvage(&hands.stored, file.max_chunk_bytes(), &mut hands.chunk.bytes);
    let Some(tag) = hands.chunk.bytes.first_chunk::<4>() else { return 0 };
    let Some(version) = chess::Version::from_number(u32::from_le_bytes(*tag)) else { return 0 };
    hands.chunk.bytes.truncate(got - got % version.bytes());
    match chess::game::parse(&mut hands.chunk) {
        Ok(()) => hands.chunk.frames as u64,
        Err(e) => e.place().frame.unwrap_or(0),
    }
}
