//! 2048 through the public API: published vectors, the tables of bad input line by line, the pieces of a game.
//! Vectors are found through `GRISTMILL_SHARED`, else in `shared` beside the repository; tests without them say so.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(missing_docs, clippy::unwrap_used)]

mod bad_lines;
mod bad_sidecars;
mod document;
mod parts;
mod vectors;

use gristmill_format::Result;
use gristmill_format::g2048::log::{GameSummary, Sidecar, parse_game};
use gristmill_format::g2048::row::StepRow;
use gristmill_format::source::Limits;

/// A sidecar as the producer writes it.
const SIDECAR: &str = r#"{"seed": 9, "depth": 6, "num_moves": 1, "score": 795564, "max_tile": 32768, "max_rank": 15}"#;

/// A line in the producer's exact form.
const LINE: &str = concat!(
    r#"{"seed":272350805,"step_index":7,"max_rank":15,"move":"down","valuation_type":"search","valuation":-1587.186000,"#,
    r#""board":[15,13,11,1,14,12,1,0,0,0,0,0,0,0,0,0],"#,
    r#""branch_evs":{"up":null,"left":0.034000,"right":-0.000000,"down":-1587.186000}}"#
);

fn sidecar() -> Sidecar {
    Sidecar::parse(SIDECAR.as_bytes()).unwrap()
}

fn parse(text: impl AsRef<[u8]>) -> Result<(GameSummary, Vec<StepRow>)> {
    let mut rows = Vec::new();
    let summary = parse_game(&sidecar(), text.as_ref(), &Limits::default(), &mut rows)?;
    assert_eq!(rows.len() as u64, 48 * summary.rows);
    Ok((summary, rows.as_chunks().0.iter().map(StepRow::from_aligned).collect()))
}

/// The only row of a line.
fn row(line: impl AsRef<[u8]>) -> StepRow {
    let (_, rows) = parse(line).unwrap();
    assert_eq!(rows.len(), 1);
    rows[0]
}
