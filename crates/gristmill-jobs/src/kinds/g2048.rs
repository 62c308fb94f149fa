//! Logs of games of 2048: held against the rules and their sidecars, drawn as boards, counted by step.

use gristmill_engine::error::Result;
use gristmill_format::g2048::check::{Checker, Rule};
use gristmill_format::g2048::row::layout_aligned;
use gristmill_format::g2048::{KIND, StepRow};
use gristmill_format::layout::Layout;
use gristmill_format::{Error, Kind, Result as FormatResult};

use crate::sidecar;
use crate::work::drawn::{Step, StepView};
use crate::work::findings::Example;
use crate::work::played::{HIGHEST_TILE, Played, STEPS};
use crate::work::{Counting, Decoded, Fault, FramePlace, FrameView, Opened, Verification, Work};

pub(super) struct G2048;

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
                if let Some((rule, detail)) = played.against(sidecar.num_moves, sidecar.max_tile.into()) {
                    let e = Error::new(Kind::OutOfRange, format!("its sidecar: {detail}")).in_source(&one.file.path);
                    found.add(keep, Fault { rule: Some(rule), ..Fault::new(&e) });
                }
            }
            Err(e) => found.add(keep, Fault::new(&e)),
        }
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
