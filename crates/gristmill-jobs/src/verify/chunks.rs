//! An opened file -> every check over its chunks and frames.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use gristmill_format::chess::check::{self, Rules};
use gristmill_format::container::salvage;
use gristmill_format::demo::pack::PACKED;
use gristmill_format::demo::source::DemoFile;
use gristmill_format::g2048::StepRow;
use gristmill_format::g2048::check::{Checker, Rule};
use gristmill_format::g2048::row::layout_aligned;
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, chess};

use super::game::{HIGHEST_TILE, Played, STEPS};
use super::told::Told;
use super::{Example, Fault, Verification, demo};
use crate::files::Opened;
use crate::inspect::Step;
use crate::sidecar;

/// Buffers that are used again, from file to file and by any thread.
#[derive(Debug, Default)]
pub(super) struct Hands(Mutex<Vec<Hand>>);

#[derive(Debug, Default)]
struct Hand {
    stored: Vec<u8>,
    chunk: Chunk,
}

/// Checks all that is in a file.
pub(super) fn verify(file: &Opened, keep: usize, hands: &Hands, found: &mut Verification) {
    let waiting = || hands.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut hand = waiting().pop().unwrap_or_default();
    found.files += 1;
    for fault in file.source.faults() {
        found.add(keep, Fault::new(&fault.clone().in_source(&file.path)));
    }
    if file.source.is_empty() && file.source.faults().is_empty() {
        let e = Error::new(Kind::Empty, "there is no chunk in it");
        found.add(keep, Fault::new(&e.in_source(&file.path)));
    }
    if let Some(demo) = &file.demo {
        demo::verify(&file.path, demo, keep, found);
    }
    // Demonstrations are decoded already.
    let chunks = if file.demo.is_some() { 0 } else { file.source.len() };
    let told = Told::of(file);
    for i in 0..chunks {
        found.chunks += 1;
        if let Err(e) = file.fetch(i, &mut hand.stored) {
            found.add(keep, Fault::new(&e));
            continue;
        }
        if let Err(e) = file.decode(i, &hand.stored, &mut hand.chunk) {
            let chess = file.kind.name() == chess::KIND;
            let salvageable = chess.then(|| salvageable(file, &mut hand));
            found.add(keep, Fault { salvageable, ..Fault::new(&e) });
            continue;
        }
        if file.source.describe().format == PACKED {
            let key = &file.source.describe().key;
            match DemoFile::of_packed(key, &hand.stored, &hand.chunk) {
                Ok(one) => demo::verify_packed(&file.path, &one, i, keep, found),
                Err(e) => found.add(keep, Fault::new(&e.in_chunk(i).in_source(&file.path))),
            }
            continue;
        }
        found.checked += hand.chunk.frames as u64;
        if let Some(told) = &told {
            told.check(i, &hand.chunk, keep, found);
        }
        match hand.chunk.layout.as_deref() == Some(&**layout_aligned()) {
            true => steps(file, i, &hand.chunk, keep, found),
            false => positions(file, i, &hand.chunk, keep, found),
        }
    }
    waiting().push(hand);
}

/// The fault of a frame that breaks a rule, `offset` bytes into the frame.
fn broken(file: &Opened, i: usize, chunk: &Chunk, rule: &'static str, place: (usize, usize), reason: String) -> Fault {
    let size = chunk.layout.as_ref().map_or(0, |layout| layout.size());
    let (frame, offset) = place;
    let e = Error::new(Kind::OutOfRange, reason).at_byte((frame * size + offset) as u64).in_frame(frame);
    let e = e.in_chunk(i).in_source(&file.path);
    let e = file.member(i).map(|name| e.clone().in_member(name)).unwrap_or(e);
    Fault { rule: Some(rule), ..Fault::new(&e) }
}

/// Checks the rules of chess.
fn positions(file: &Opened, i: usize, chunk: &Chunk, keep: usize, found: &mut Verification) {
    let checked = check::check(chunk, Rules::DEFAULT, &mut |breach| {
        let place = (breach.frame, breach.offset);
        found.add(keep, broken(file, i, chunk, breach.rule.name(), place, breach.reason));
        ControlFlow::Continue(())
    });
    if let Err(e) = checked {
        found.add(keep, Fault::new(&e.in_chunk(i).in_source(&file.path)));
    }
}

/// Checks the step rows of a 2048 game.
fn steps(file: &Opened, i: usize, chunk: &Chunk, keep: usize, found: &mut Verification) {
    found.will_check(Rule::ALL.map(Rule::name));
    let (mut checker, mut before, mut played) = (Checker::default(), None, Played::default());
    for (frame, row) in chunk.records().as_chunks().0.iter().enumerate() {
        let row = StepRow::from_aligned(row);
        checker.row(&row, &mut |rule, reason| {
            let fault = broken(file, i, chunk, rule.name(), (frame, rule.offset()), reason);
            let drawn = |fault| Example { fault, before: before.as_ref().map(Step::new), row: Step::new(&row) };
            found.add_row(keep, fault, drawn);
        });
        before = Some(row);
        played.add(&row);
    }
    match sidecar::beside(&file.path) {
        Ok(None) => {}
        Ok(Some(sidecar)) => {
            found.will_check([STEPS, HIGHEST_TILE]);
            if let Some((rule, detail)) = played.against(sidecar.num_moves, sidecar.max_tile.into()) {
                let e = Error::new(Kind::OutOfRange, format!("its sidecar: {detail}")).in_source(&file.path);
                found.add(keep, Fault { rule: Some(rule), ..Fault::new(&e) });
            }
        }
        Err(e) => found.add(keep, Fault::new(&e)),
    }
}

/// How many whole, readable records the damaged chunk in `hand.stored` begins with.
fn salvageable(file: &Opened, hand: &mut Hand) -> u64 {
    let got = salvage::salvage(&hand.stored, file.max_chunk_bytes(), &mut hand.chunk.bytes);
    let Some(tag) = hand.chunk.bytes.first_chunk::<4>() else { return 0 };
    let Some(version) = chess::Version::from_number(u32::from_le_bytes(*tag)) else { return 0 };
    hand.chunk.bytes.truncate(got - got % version.bytes());
    match chess::game::parse(&mut hand.chunk) {
        Ok(()) => hand.chunk.frames as u64,
        Err(e) => e.place().frame.unwrap_or(0),
    }
}
