//! A pack and a place in it -> the frame there, of any kind of pack. Reads that frame alone, and judges nothing.

use std::path::Path;

use gristmill_engine::chunks::is_pack;
use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::error::Result;
use gristmill_engine::pack::open::Pack;
use gristmill_engine::store::Residence;
use gristmill_engine::table::FrameTable;
use gristmill_format::g2048::StepRow;
use gristmill_format::g2048::row::{layout_aligned, layout_packed};
use gristmill_format::{Error, Kind};

use super::{FramePlace, FrameView, StepView, Which, demo, g2048, record};
use crate::kinds;

/// The frame of the pack in `folder`.
///
/// Errors: `Missing` for a frame, game, run or step that is not there, with how many there are; what reading gives.
pub(super) fn view(folder: &Path, which: Which) -> Result<FrameView> {
    if is_pack(folder) { of_games(folder, which) } else { of_rows(folder, which) }
}

fn missing(folder: &Path, detail: String) -> gristmill_engine::Error {
    Error::new(Kind::Missing, detail).in_source(folder.display().to_string()).into()
}

/// Of a pack of whole games or trajectories.
fn of_games(folder: &Path, which: Which) -> Result<FrameView> {
    let pack = ChunkPack::open(folder, Residence::Mapped)?;
    let (game, frame) = match which {
        Which::Frame(row) => pack.place_of(row).ok_or_else(|| {
            missing(folder, format!("there is no frame {row}; the pack has {}, counted from 0", pack.len()))
        })?,
        Which::InChunk(chunk, frame) => (chunk as u64, frame as u64),
        Which::Step { .. } => {
            return Err(gristmill_engine::Error::config(
                "run",
                "runs are those of packs of 2048; --chunk and --frame name a game and a frame",
            ));
        }
    };
    let (first, frames) = pack.frames(game).ok_or_else(|| {
        missing(folder, format!("there is no game {game}; the pack has {}, counted from 0", pack.games()))
    })?;
    if frame >= frames {
        return Err(missing(
            folder,
            format!("there is no frame {frame} of game {game}; it has {frames}, counted from 0"),
        ));
    }
    let mut bytes = vec![0; pack.layout().size()];
    pack.gather(&[first + frame], &mut bytes)?;
    let place = FramePlace {
        chunk: game as usize,
        frame: frame as usize,
        frames: frames as usize,
        member: Some(pack.source(game).to_owned()),
        record: Some(record::record(pack.layout(), &bytes)),
    };
    Ok(kinds::of(pack.codec().name())?.view(place, Some(pack.layout()), &bytes)?)
}

/// Of a pack of rows of 2048, in any form.
fn of_rows(folder: &Path, which: Which) -> Result<FrameView> {
    let pack = Pack::open(folder, Residence::Mapped)?;
    let (table, index) = (pack.table(), pack.index());
    let in_run = |at: usize, step: u64| -> Result<u64> {
        let rows = index.rows_of(&[at as u32], &**table)?;
        let run = index.runs()[at].id;
        let there = rows.len();
        match step < there {
            true => Ok(rows.row(step)),
            false => {
                Err(missing(folder, format!("there is no step {step} of run {run}; it has {there}, counted from 0")))
            }
        }
    };
    let row = match which {
        Which::Frame(row) => row,
        Which::InChunk(chunk, frame) if chunk < index.runs().len() => in_run(chunk, frame as u64)?,
        Which::InChunk(chunk, _) => {
            let there = index.runs().len();
            return Err(missing(folder, format!("there is no game {chunk}; the pack has {there}, counted from 0")));
        }
        Which::Step { run, step } => {
            let at = index.runs().iter().position(|known| known.id == run);
            let at =
                at.ok_or_else(|| missing(folder, format!("there is no run {run} in table runs of metadata.db")))?;
            in_run(at, step)?
        }
    };
    let Some((run, step)) = index.locate(row) else {
        return Err(missing(folder, format!("there is no row {row}; the pack has {}, counted from 0", table.len())));
    };
    let at = index.runs().iter().position(|known| known.id == run).unwrap_or_default();
    let mut bytes = vec![0; table.layout().size()];
    table.gather(&[row], &mut bytes)?;
    let (file, file_row) = table.locate(row);
    let file = Path::new(&file).strip_prefix(folder).map_or(file.clone(), |within| within.display().to_string());
    let place = FramePlace {
        chunk: at,
        frame: step as usize,
        frames: index.rows_of(&[at as u32], &**table)?.len() as usize,
        member: Some(format!("{file}, row {file_row}")),
        record: Some(record::record(table.layout(), &bytes)),
    };
    let packed = table.layout() == &**layout_packed();
    let step = match (packed, bytes.as_slice().try_into(), bytes.as_slice().try_into()) {
        (true, Ok(row), _) => StepRow::from_packed(row),
        (false, _, Ok(row)) if table.layout() == &**layout_aligned() => StepRow::from_aligned(row),
        _ => return Ok(FrameView::Demo(Box::new(demo::view(place, Some(table.layout()), &bytes)))),
    };
    Ok(FrameView::G2048(Box::new(StepView { place, step: g2048::Step::new(&step) })))
}
