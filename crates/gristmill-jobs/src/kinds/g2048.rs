//! Logs of games of 2048: held against the rules and their sidecars, drawn as boards, counted by step.

use std::path::Path;

use gristmill_engine::error::Result;
use gristmill_engine::selection;
use gristmill_engine::store::Residence;
use gristmill_format::g2048::check::{Checker, Rule};
use gristmill_format::g2048::identity::{Identity, RunIdentity};
use gristmill_format::g2048::moves::{Move, slide};
use gristmill_format::g2048::row::layout_aligned;
use gristmill_format::g2048::{Board, KIND, StepRow};
use gristmill_format::layout::{Conform, Layout};
use gristmill_format::{Error, Kind, Result as FormatResult};

use crate::sidecar;
use crate::work::drawn::{Step, StepView};
use crate::work::findings::Example;
use crate::work::{Counting, Decoded, Fault, FramePlace, FrameView, Opened, Signs, Verification, Work};
use gristmill_format::g2048::played::{HIGHEST_TILE, Played, STEPS};

pub(super) struct G2048;

/// Games end where no move is left.
const NO_END: &str = "no_end";
const CUT: &str = "after the last move of the game another one is possible, whatever tile appears: it was cut";

/// Rows of a pack that are read at a time.
const SCANNED: usize = 4096;

/// Notes the values of a row: of the moves that are legal.
fn values(row: &StepRow, signs: &mut Signs) {
    for (_, value) in row.branch_evs.iter().enumerate().filter(|(i, _)| row.ev_legal >> i & 1 != 0) {
        signs.value("branch_evs", &value.to_le_bytes(), || value.to_string());
    }
    let mut legal = (0..row.branch_evs.len()).filter(|i| row.ev_legal >> i & 1 != 0).map(|i| row.branch_evs[i]);
    if let (Some(first), Some(second)) = (legal.next(), legal.next()) {
        let flat = first == second && legal.all(|value| value == first);
        signs.always("branch_evs of a step", flat, "one number for all moves");
    }
}

/// Whether a move is possible after that of a row, whatever tile appears and wherever.
fn goes_on(row: &StepRow) -> bool {
    let moved = Move::from_index(row.move_dir).and_then(|mv| slide(&row.decoded_board(), mv).ok()?);
    let Some(after) = moved.map(|moved| moved.board) else { return false };
    let empty: Vec<usize> = (0..after.ranks().len()).filter(|cell| after.ranks()[*cell] == 0).collect();
    let [cell] = empty[..] else { return !empty.is_empty() };
    let moves = |board: Board| Move::ALL.into_iter().any(|mv| slide(&board, mv).is_ok_and(|slid| slid.is_some()));
    [1, 2].into_iter().all(|rank| moves(after.with(cell, rank)))
}

impl Work for G2048 {
    fn name(&self) -> &'static str {
        KIND
    }

    fn verify(&self, one: &Decoded<'_>, keep: usize, found: &mut Verification) {
        found.checked += one.chunk.frames as u64;
        found.will_check(Rule::ALL.map(Rule::name));
        let (mut checker, mut before, mut played) = (Checker::default(), None, Played::default());
        for (frame, row) in one.chunk.records().as_chunks().0.iter().enumerate() {
            let row = StepRow::from_aligned(row);
            checker.row(&row, &mut |rule, reason| {
                let fault = one.broken(rule.name(), (frame, rule.offset()), reason);
                let drawn = |fault| Example { fault, before: before.as_ref().map(Step::new), row: Step::new(&row) };
                found.add_row(keep, fault, drawn);
            });
            before = Some(row);
            played.add(&row);
        }
        match sidecar::beside(&one.file.path) {
            Ok(None) => {}
            Ok(Some(sidecar)) => {
                found.will_check([STEPS, HIGHEST_TILE]);
                if let Some((rule, detail)) = played.ended().against(sidecar.num_moves, sidecar.max_tile.into()) {
                    let e = Error::new(Kind::OutOfRange, format!("its sidecar: {detail}")).in_source(&one.file.path);
                    found.add(keep, Fault { rule: Some(rule), ..Fault::new(&e) });
                }
            }
            Err(e) => found.add(keep, Fault::new(&e)),
        }
    }

    fn signs(&self, one: &Decoded<'_>, signs: &mut Signs) -> FormatResult<()> {
        let (mut run, mut last) = (RunIdentity::default(), None);
        for row in one.chunk.records().as_chunks().0 {
            let row = StepRow::from_aligned(row);
            run.step(row.board, row.tile_65536_mask, row.move_dir);
            values(&row, signs);
            last = Some(row);
        }
        let Some(last) = last else { return Ok(()) };
        let Identity { key, image } = run.finish();
        signs.games.push(one.met(key, image));
        if goes_on(&last) {
            signs.add(one.broken(NO_END, (one.chunk.frames - 1, 0), CUT.to_owned()));
        }
        Ok(())
    }

    fn signs_of_rows(&self, folder: &Path, signs: &mut Signs) -> Result<bool> {
        let pack = selection::open(folder, Residence::Mapped)?;
        let (table, layout) = (pack.clone().table(), layout_aligned());
        let Ok(conform) = Conform::new(table.layout(), layout) else { return Ok(true) };
        let (mut stored, mut aligned) = (Vec::new(), Vec::new());
        for game in pack.game_ids() {
            let stretches = pack.stretches(game);
            let rows: Vec<u64> = stretches.iter().flat_map(|(first, end)| *first..*end).collect();
            let mut last = None;
            for rows in rows.chunks(SCANNED) {
                stored.resize(rows.len() * table.layout().size(), 0);
                aligned.resize(rows.len() * layout.size(), 0);
                table.gather(rows, &mut stored)?;
                conform.records(&stored, &mut aligned)?;
                for row in aligned.as_chunks().0 {
                    let row = StepRow::from_aligned(row);
                    values(&row, signs);
                    last = Some(row);
                }
            }
            if last.is_some_and(|last| goes_on(&last)) {
                let (file, row) = rows.last().map_or_else(Default::default, |row| table.locate(*row));
                let e = Error::new(Kind::OutOfRange, CUT).in_source(file);
                signs.add(Fault { rule: Some(NO_END), run: Some(game), frame: Some(row), ..Fault::new(&e) });
            }
        }
        Ok(true)
    }

    fn view(&self, place: FramePlace, layout: Option<&Layout>, record: &[u8]) -> FormatResult<FrameView> {
        match record.try_into() {
            Ok(row) if layout == Some(&**layout_aligned()) => {
                let step = Step::new(&StepRow::from_aligned(row));
                Ok(FrameView::G2048(Box::new(StepView { place, step })))
            }
            _ => Err(Error::new(Kind::WrongSize, format!("{} bytes are no step of 2048", record.len()))),
        }
    }

    fn count(&self, file: &Opened, counting: &mut dyn Counting) -> Result<()> {
        counting.logs(file);
        Ok(())
    }
}
