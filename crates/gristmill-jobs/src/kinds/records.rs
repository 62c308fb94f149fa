//! Records of any game: checked as they are decoded, drawn as fields and values, counted by the length of their games.

use std::collections::BTreeMap;

use gristmill_engine::error::Result;
use gristmill_format::layout::Layout;
use gristmill_format::records::KIND;
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, Result as FormatResult};

use crate::work::drawn::DrawnView;
use crate::work::drawn::record::{Cell, record};
use crate::work::{Counting, Decoded, FramePlace, FrameView, Opened, Signs, Verification, Work};

/// Numbers of an array that are drawn.
const MOST_DRAWN: usize = 16;

/// Rows of a game are counted up to here; longer ones together.
const MOST_ROWS: i64 = 1000;

pub(super) struct Records;

impl Work for Records {
    fn name(&self) -> &'static str {
        KIND
    }

    /// What can be wrong with records that say themselves what they are, decoding has found.
    fn verify(&self, one: &Decoded<'_>, _: usize, found: &mut Verification) {
        found.checked += one.chunk.frames as u64;
    }

    /// What repeats in a game that is not known is no sign.
    fn signs(&self, _: &Decoded<'_>, _: &mut Signs) -> FormatResult<()> {
        Ok(())
    }

    fn view(&self, place: FramePlace, layout: Option<&Layout>, bytes: &[u8]) -> FormatResult<FrameView> {
        let layout = layout.filter(|layout| layout.size() == bytes.len());
        let layout = layout.ok_or_else(|| Error::new(Kind::Missing, "a record without its layout"))?;
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
