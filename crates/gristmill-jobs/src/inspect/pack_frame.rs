//! A pack and a place in it -> the frame there, of any kind of pack. Reads that frame alone, and judges nothing.

use std::path::Path;

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::error::Result;
use gristmill_engine::selection::{self, Selection};
use gristmill_engine::store::Residence;
use gristmill_format::g2048::StepRow;
use gristmill_format::g2048::row::{layout_aligned, layout_packed};
use gristmill_format::{Error, Kind};

use super::{FramePlace, FrameView, Step, StepView, Which};
use crate::kinds;
use crate::work::drawn::{demo, record};

/// The frame of the pack in `folder`.
///
/// Errors: `Missing` for a frame, game, run or step that is not there, with how many there are; what reading gives.
pub(super) fn view(folder: &Path, which: Which) -> Result<FrameView> {
    let all = Selection::all(selection::open(folder, Residence::Mapped)?);
    let chunks = all.pack().as_a::<ChunkPack>();
    let [row, step, run] = if chunks.is_some() { ["frame", "frame", "game"] } else { ["row", "step", "run"] };
    let missing = |detail: String| -> gristmill_engine::Error {
        Error::new(Kind::Missing, detail).in_source(folder.display().to_string()).into()
    };
    let place_of = |game: u64| all.games().binary_search(&game).ok();
    let (place, frame) = match which {
        Which::Frame(number) => {
            let found = all.game_of(number).and_then(|(game, frame)| Some((place_of(game)?, frame)));
            let there = all.rows().len();
            found.ok_or_else(|| missing(format!("there is no {row} {number}; the pack has {there}, counted from 0")))?
        }
        Which::InChunk(chunk, frame) => (chunk, frame as u64),
        Which::Step { run, step } if chunks.is_none() => {
            let absent = || missing(format!("there is no run {run} in table runs of metadata.db"));
            (place_of(run).ok_or_else(absent)?, step)
        }
        Which::Step { .. } => {
            return Err(gristmill_engine::Error::config(
                "run",
                "runs are those of packs of 2048; --chunk and --frame name a game and a frame",
            ));
        }
    };
    let Some(&game) = all.games().get(place) else {
        let there = all.games().len();
        return Err(missing(format!("there is no game {place}; the pack has {there}, counted from 0")));
    };
    let frames = all.pack().frames_of(&[game])?;
    if frame >= frames.len() {
        let there = frames.len();
        return Err(missing(format!("there is no {step} {frame} of {run} {game}; it has {there}, counted from 0")));
    }
    let (layout, bytes) = (all.layout(), all.gather(&[frames.row(frame)])?);
    let (file, file_row) = all.locate(frames.row(frame));
    let file = Path::new(&file).strip_prefix(folder).map_or(file.clone(), |within| within.display().to_string());
    let member = chunks.map_or_else(|| format!("{file}, row {file_row}"), |pack| pack.source(game).to_owned());
    let place = FramePlace {
        chunk: place,
        frame: frame as usize,
        frames: frames.len() as usize,
        member: Some(member),
        record: Some(record::record(layout, &bytes)),
    };
    drawn(&all, place, &bytes)
}

/// A record of a pack as its kind draws it.
///
/// Errors: those of a record that cannot be.
pub(super) fn drawn(all: &Selection, place: FramePlace, bytes: &[u8]) -> Result<FrameView> {
    let layout = all.layout();
    if let Some(pack) = all.pack().as_a::<ChunkPack>() {
        return Ok(kinds::of(pack.codec().name())?.view(place, Some(layout), bytes)?);
    }
    let packed = layout == &**layout_packed();
    let step = match (packed, bytes.try_into(), bytes.try_into()) {
        (true, Ok(row), _) => StepRow::from_packed(row),
        (false, _, Ok(row)) if layout == &**layout_aligned() => StepRow::from_aligned(row),
        _ => return Ok(FrameView::Demo(Box::new(demo::view(place, Some(layout), bytes)))),
    };
    Ok(FrameView::G2048(Box::new(StepView { place, step: Step::new(&step) })))
}
