//! Records of any game: checked as they are decoded, drawn as fields and values, counted by the length of their games.

use std::collections::BTreeMap;

use gristmill_engine::error::Result;
use gristmill_format::Result as FormatResult;
use gristmill_format::layout::Layout;
use gristmill_format::records::KIND;
use gristmill_format::source::Chunk;

use crate::work::drawn::DrawnView;
use crate::work::drawn::record::{Cell, record};
use crate::work::{Counting, FramePlace, FrameView, Opened, Work, layout_of};

/// Numbers of an array that are drawn.
const MOST_DRAWN: usize = 16;

/// Rows of a game are counted up to here; longer ones together.
const MOST_ROWS: i64 = 1000;

pub(super) struct Records;

impl Work for Records {
    fn name(&self) -> &'static str {
        KIND
    }

    fn view(&self, place: FramePlace, layout: Option<&Layout>, bytes: &[u8]) -> FormatResult<FrameView> {
        let layout = layout_of(layout, bytes)?;
        let picture = record(layout, bytes).0.into_iter().map(|(name, cell)| format!("{name}: {}", drawn(&cell)));
        Ok(FrameView::Drawn(Box::new(DrawnView { place, picture: picture.collect(), facts: BTreeMap::new() })))
    }

    fn count(&self, file: &Opened, counting: &mut dyn Counting) -> Result<()> {
        counting.chunks(file, &mut |chunk: &Chunk, counts| {
            let rows = i64::try_from(chunk.frames).unwrap_or(MOST_ROWS).min(MOST_ROWS);
            (0..chunk.frames).for_each(|_| counts.add("rows of its game", rows));
            Ok(())
        })
    }
}

/// A value in few words.
fn drawn(cell: &Cell) -> String {
    match cell {
        Cell::Unsigned(number) => number.to_string(),
        Cell::Signed(number) => number.to_string(),
        Cell::Single(number) => number.to_string(),
        Cell::Double(number) => number.to_string(),
        Cell::Truth(truth) => truth.to_string(),
        Cell::Bytes(digits) => digits.clone(),
        Cell::Array(cells) => {
            let some = cells.iter().take(MOST_DRAWN).map(drawn).collect::<Vec<_>>().join(" ");
            if cells.len() > MOST_DRAWN { format!("{some} ... ({} in all)", cells.len()) } else { some }
        }
        Cell::Record(fields) => {
            fields.0.iter().map(|(name, cell)| format!("{name}={}", drawn(cell))).collect::<Vec<_>>().join(" ")
        }
    }
}
