//! Rows of a batch, by number -> their tensors: each step that a view shows is read and encoded where it stands in the batch.
//! What a row shows is a function of its number and the view; no step is copied twice, none is of another game.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use gristmill_format::encode::{Encoder, TensorSpec};
use gristmill_format::layout::{Conform, Scalar};
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::store::Claims;
use gristmill_runtime::table::{Chunks, FrameTable, IndexInput, Parts, Pick};
use gristmill_stages::config::{EncoderConfig, Longer, Pad, View};
use gristmill_stages::stage::view::{Cutting, Window, trajectories, whole};

use super::feed;
use super::only::Only;
use crate::pipeline::plan::encoder::{of_rows, some_of_rows};

/// Maximum number of steps of one row of a batch.
const MOST_STEPS: u64 = 1 << 16;

/// What makes the rows of batches.
#[derive(Debug)]
pub(super) struct Assembly {
    table: Arc<dyn FrameTable>,
    /// The rows of an epoch.
    rows: Arc<Intervals>,
    parts: Vec<Part>,
    fill: Fill,
    mask: Mask,
    outputs: Vec<TensorSpec>,
}

/// Some tensors of a row: of it alone, or of steps around it.
#[derive(Debug)]
struct Part {
    encoder: Arc<dyn Encoder>,
    /// Records of the table into those of the encoder, where they differ.
    conform: Option<Conform>,
    /// The steps that are shown; none for the row alone.
    window: Option<Window>,
}

/// What stands for a step that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    Nearest,
    Zero,
}

/// Which steps of the last part a row tells of, in its last tensor.
#[derive(Debug)]
enum Mask {
    /// Of none: there is no such tensor.
    Nothing,
    /// Whether the game has the step.
    Within,
    /// Whether it does not.
    Beyond,
    /// Whether the game has the step and it is one of these.
    Among(Arc<Intervals>),
}

/// Copies the tensors of rows straight from the table: each tensor is one part of a record.
#[derive(Clone, Copy)]
pub(super) struct Copier<'a> {
    table: &'a dyn Parts,
    /// First byte of each part in a record, and its bytes.
    parts: &'a [(usize, usize)],
}

impl Copier<'_> {
    /// Writes the tensors of these rows of the table. `columns` has one slice for each tensor, with room for the rows.
    ///
    /// Errors: as [`FrameTable::gather`].
    pub(super) fn copy(self, rows: &[u64], columns: &mut [&mut [u8]]) -> Result<()> {
        Ok(self.table.copy(rows, self.parts, columns)?)
    }
}

/// Buffers of one call, used again by the next.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    parts: Vec<PartScratch>,
    pub(super) rows: Vec<u64>,
    stored: Vec<u8>,
    mask: Vec<u8>,
}

#[derive(Debug, Default)]
struct PartScratch {
    picks: Vec<Pick>,
    /// Where the picks stand among the steps of all rows: runs without a gap.
    runs: Vec<Range<usize>>,
    records: Vec<u8>,
}

impl Assembly {
    /// What a config asks for, of the rows of `input`.
    ///
    /// Errors: `Config` with the field, `Unfit` for an encoder that needs what the rows do not have, `Path` and `Format` for
    /// a tokenizer and for rows whose games are not where they should be.
    pub(super) fn new(
        input: &IndexInput,
        config: &EncoderConfig,
        tensors: &[String],
        view: Option<&View>,
    ) -> Result<Self> {
        let (table, rows) = (&input.table, &input.rows);
        let encoder = of_rows(config, tensors, table.layout(), &input.valuations)?;
        let Some(view) = view else { return Assembly::of(input, encoder) };
        let pad = pad(view);
        let mut made = Assembly {
            table: Arc::clone(table),
            rows: epoch(&**table, rows, view)?,
            parts: Vec::new(),
            fill: Fill::Zero,
            mask: Mask::Nothing,
            outputs: Vec::new(),
        };
        made.fill = if pad == Pad::Edge { Fill::Nearest } else { Fill::Zero };
        match view {
            View::Window { offsets, tensors: names, .. } => {
                made.add_some(encoder, (config, tensors), &window(offsets.clone())?, names)?;
                made.mask = if pad == Pad::Drop { Mask::Nothing } else { Mask::Within };
            }
            View::Next { steps, .. } => {
                made.add(Arc::clone(&encoder), None, "")?;
                made.add(encoder, Some(ahead(*steps)?), "next_")?;
                made.mask = if pad == Pad::Drop { Mask::Nothing } else { Mask::Beyond };
            }
            View::Trajectory { length, .. } => {
                made.add(encoder, Some(window((0..length.cast_signed()).collect())?), "")?;
                made.mask = Mask::Among(Arc::clone(rows));
            }
        }
        made.finish()?;
        Ok(made)
    }

    /// The rows of `input`, each made by this encoder.
    ///
    /// Errors: `Unfit` for an encoder of other rows.
    pub(super) fn of(input: &IndexInput, encoder: Arc<dyn Encoder>) -> Result<Self> {
        let mut made = Assembly {
            table: Arc::clone(&input.table),
            rows: Arc::clone(&input.rows),
            parts: Vec::new(),
            fill: Fill::Zero,
            mask: Mask::Nothing,
            outputs: Vec::new(),
        };
        made.add(encoder, None, "")?;
        Ok(made)
    }

    /// Adds tensors of the row alone or of the steps of a window.
    fn add(&mut self, encoder: Arc<dyn Encoder>, window: Option<Window>, prefix: &str) -> Result<()> {
        let conform = feed::conform(&*self.table, &*encoder)?;
        let steps = window.as_ref().filter(|_| prefix.is_empty()).map(Window::steps);
        for spec in encoder.outputs() {
            let shape = steps.into_iter().chain(spec.row_shape.iter().copied()).collect::<Vec<_>>();
            self.outputs.push(TensorSpec::new(format!("{prefix}{}", spec.name), spec.dtype, &shape));
        }
        self.parts.push(Part { encoder, conform, window });
        Ok(())
    }

    /// Adds the tensors of these names over the window, all when none is named, and the others of the row alone before.
    fn add_some(
        &mut self,
        encoder: Arc<dyn Encoder>,
        (config, tensors): (&EncoderConfig, &[String]),
        window: &Window,
        names: &[String],
    ) -> Result<()> {
        let known = |name: &String| encoder.outputs().iter().any(|spec| spec.name == *name);
        if let Some(unknown) = names.iter().find(|name| !known(name)) {
            let there: Vec<&str> = encoder.outputs().iter().map(|spec| spec.name.as_str()).collect();
            return Err(refuse(&format!(
                "there is no tensor `{unknown}` to be shown over time; there are {}",
                there.join(", ")
            )));
        }
        if encoder.outputs().iter().all(|spec| names.is_empty() || names.contains(&spec.name)) {
            return self.add(encoder, Some(window.clone()), "");
        }
        for (shown, window) in [(false, None), (true, Some(window.clone()))] {
            let keep = |name: &str| names.iter().any(|known| known == name) == shown;
            let part: Arc<dyn Encoder> = match some_of_rows(config, tensors, &keep) {
                Some(part) => part,
                None => Arc::new(Only::new(Arc::clone(&encoder), keep)),
            };
            self.add(part, window, "")?;
        }
        Ok(())
    }

    /// Adds what tells of the steps of the last part, and sees to it that names differ.
    fn finish(&mut self) -> Result<()> {
        let steps = self.parts.last().and_then(|part| part.window.as_ref()).map_or(1, Window::steps);
        match self.mask {
            Mask::Nothing => {}
            Mask::Beyond => self.outputs.push(TensorSpec::new("done", Scalar::Bool, &[])),
            Mask::Within | Mask::Among(_) => self.outputs.push(TensorSpec::new("mask", Scalar::Bool, &[steps])),
        }
        let mut names = HashSet::new();
        match self.outputs.iter().find(|output| !names.insert(&output.name)) {
            None => Ok(()),
            Some(twice) => Err(refuse(&format!("two tensors would be called `{}`; leave one out", twice.name))),
        }
    }

    /// The tensors of a row, in order.
    pub(super) fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    /// The rows of an epoch.
    pub(super) fn rows(&self) -> &Arc<Intervals> {
        &self.rows
    }

    /// The table.
    pub(super) fn table(&self) -> &dyn FrameTable {
        &*self.table
    }

    /// Whether the random bits of rows matter.
    pub(super) fn draws(&self) -> bool {
        self.parts.iter().any(|part| part.encoder.draws())
    }

    /// Returns what copies the tensors of rows, if they are parts of single records and the table can copy these.
    pub(super) fn copier(&self) -> Option<Copier<'_>> {
        let ([Part { encoder, conform: None, window: None }], Mask::Nothing) = (&self.parts[..], &self.mask) else {
            return None;
        };
        let (table, parts) = self.table.parts().zip(encoder.parts())?;
        Some(Copier { table, parts })
    }

    /// Steps that are read for one row.
    pub(super) fn steps(&self) -> usize {
        self.parts.iter().map(Part::steps).sum()
    }

    /// Finds the steps of `rows` and reads what is not read while it is encoded.
    pub(super) fn gather(&self, rows: &[Pick], scratch: &mut Scratch) -> Result<()> {
        self.find_all(rows, scratch)?;
        if self.table.straight().is_some() {
            return Ok(());
        }
        let Scratch { parts, rows: numbers, stored, .. } = scratch;
        for (part, scratch) in self.parts.iter().zip(parts) {
            numbers.clear();
            numbers.extend(scratch.picks.iter().map(|pick| pick.row));
            let size = part.encoder.input().size();
            feed::records(&*self.table, part.conform.as_ref(), size, numbers, stored, &mut scratch.records)?;
        }
        Ok(())
    }

    /// Claims what the steps of `rows` are read from, where the table is elsewhere.
    pub(super) fn claim(&self, rows: &[Pick], scratch: &mut Scratch) -> Result<Vec<Claims>> {
        let rows = self.read_for(rows, scratch)?;
        Ok(self.table.claim(&rows)?)
    }

    /// What other readers bring of `rows` of the table, or of its files where there are none: everything that a batch of these rows reads.
    /// Claims nothing. `None` if there is something to claim, or if a batch reads rows beside its own.
    pub(super) fn awaited(&self, rows: Option<&[Range<u64>]>) -> Result<Option<Vec<Claims>>> {
        match rows {
            Some(_) if self.is_viewed() => Ok(None),
            Some(rows) => Ok(self.table.awaited(rows)?),
            None => {
                let (files, mut claims) = (self.table.files(), Vec::new());
                let are_claimed = files.iter().all(|file| file.awaited(&[(0, usize::MAX)], &mut claims));
                Ok((are_claimed && !files.is_empty()).then_some(claims))
            }
        }
    }

    /// The rows of the table that the steps of `rows` are read from.
    pub(super) fn read_for(&self, rows: &[Pick], scratch: &mut Scratch) -> Result<Vec<Range<u64>>> {
        self.find_all(rows, scratch)?;
        let picks = scratch.parts.iter().flat_map(|part| &part.picks);
        Ok(picks.map(|pick| pick.row..pick.row + 1).collect())
    }

    /// Whether a batch reads steps beside its rows.
    fn is_viewed(&self) -> bool {
        self.parts.iter().any(|part| part.window.is_some())
    }

    /// Finds the steps of `rows` for each part.
    fn find_all(&self, rows: &[Pick], scratch: &mut Scratch) -> Result<()> {
        let Scratch { parts, mask, .. } = scratch;
        parts.resize_with(self.parts.len(), PartScratch::default);
        mask.clear();
        let games = if self.is_viewed() { Some(self.table.chunks()?) } else { None };
        for (i, (part, scratch)) in self.parts.iter().zip(parts).enumerate() {
            scratch.picks.clear();
            scratch.runs.clear();
            match (&part.window, games) {
                (Some(window), Some(games)) => {
                    let told = if i + 1 == self.parts.len() { Some(&mut *mask) } else { None };
                    self.find(window, games, rows, scratch, told);
                }
                _ => {
                    scratch.picks.extend_from_slice(rows);
                    scratch.runs.push(0..rows.len());
                }
            }
        }
        Ok(())
    }

    /// The steps of a window of each row: those that are read, and where they stand; and which of them there are.
    fn find(
        &self,
        window: &Window,
        games: &dyn Chunks,
        rows: &[Pick],
        found: &mut PartScratch,
        mut mask: Option<&mut Vec<u8>>,
    ) {
        let steps = window.steps();
        for (i, pick) in rows.iter().enumerate() {
            let game = games.bounds(pick.row);
            let within = window.within(pick.row, &game);
            let shown = if self.fill == Fill::Nearest { 0..steps } else { within.clone() };
            found.picks.extend(shown.clone().map(|j| Pick { row: window.step(j, pick.row, &game), ..*pick }));
            let run = i * steps + shown.start..i * steps + shown.end;
            match found.runs.last_mut() {
                Some(last) if last.end == run.start => last.end = run.end,
                _ if run.is_empty() => {}
                _ => found.runs.push(run),
            }
            if let Some(mask) = &mut mask {
                let is_there = |j: usize| within.contains(&j);
                match &self.mask {
                    Mask::Nothing => {}
                    Mask::Within => mask.extend((0..steps).map(|j| u8::from(is_there(j)))),
                    Mask::Beyond => mask.extend((0..steps).map(|j| u8::from(!is_there(j)))),
                    Mask::Among(rows) => mask.extend(
                        (0..steps).map(|j| u8::from(is_there(j) && rows.contains(window.step(j, pick.row, &game)))),
                    ),
                }
            }
        }
    }

    /// Writes the rows that [`Assembly::gather`] found: one slice for each tensor, as long as the rows take.
    pub(super) fn encode(&self, scratch: &Scratch, columns: &mut [&mut [u8]]) -> Result<()> {
        let mut columns = columns.iter_mut();
        for (part, found) in self.parts.iter().zip(&scratch.parts) {
            let specs = part.encoder.outputs();
            let mut columns: Vec<&mut [u8]> = columns.by_ref().take(specs.len()).map(|column| &mut **column).collect();
            let (mut at, mut read) = (0, 0);
            for run in &found.runs {
                skip(specs, &mut columns, run.start - at);
                let mut out = front(specs, &mut columns, run.len());
                let picks = &found.picks[read..read + run.len()];
                match self.table.straight() {
                    Some(straight) => straight.encode(&*part.encoder, picks, &mut out)?,
                    None => {
                        let size = part.encoder.input().size();
                        let records = &found.records[read * size..(read + run.len()) * size];
                        feed::encode(&*part.encoder, &*self.table, picks, records, &mut out)?;
                    }
                }
                (at, read) = (run.end, read + run.len());
            }
            columns.iter_mut().for_each(|rest| rest.fill(0));
        }
        if let Some(mask) = columns.next() {
            mask.copy_from_slice(&scratch.mask);
        }
        Ok(())
    }
}

impl Part {
    fn steps(&self) -> usize {
        self.window.as_ref().map_or(1, Window::steps)
    }
}

/// Takes the first `rows` rows off columns.
fn front<'a>(specs: &[TensorSpec], columns: &mut [&'a mut [u8]], rows: usize) -> Vec<&'a mut [u8]> {
    let take = |(column, spec): (&mut &'a mut [u8], &TensorSpec)| {
        let (first, rest) = std::mem::take(column).split_at_mut(rows * spec.row_bytes());
        *column = rest;
        first
    };
    columns.iter_mut().zip(specs).map(take).collect()
}

/// Writes zeros for the first `rows` rows, and takes them off.
fn skip(specs: &[TensorSpec], columns: &mut [&mut [u8]], rows: usize) {
    if rows > 0 {
        front(specs, columns, rows).into_iter().for_each(|gap| gap.fill(0));
    }
}

/// The rows of an epoch, of these rows of a table: those of which a view has all that it shows, or the first of each
/// trajectory. What is made of them does not matter.
///
/// Errors: `Config` in `view`, also where not one row is left.
pub(super) fn epoch(table: &dyn FrameTable, rows: &Arc<Intervals>, view: &View) -> Result<Arc<Intervals>> {
    let games = table.chunks().map_err(|e| Error::config("view", e.to_string()))?;
    let windows = match view {
        View::Window { offsets, .. } => vec![window(offsets.clone())?],
        View::Next { steps, .. } => vec![ahead(*steps)?],
        View::Trajectory { length, longer, .. } => {
            if !(1..=MOST_STEPS).contains(length) {
                return Err(refuse(&format!("trajectories of {length} steps; expected 1 to {MOST_STEPS}")));
            }
            let cutting = Cutting { length: *length, split: *longer == Longer::Split, full: pad(view) == Pad::Drop };
            let (first, longest) = trajectories(rows, cutting, |row| games.bounds(row));
            if *longer == Longer::Refuse && longest > *length {
                let text = format!(
                    "the longest of these trajectories has {longest} steps, rows have room for {length}; raise the \
                     length, or say that longer ones are to be cut or split"
                );
                return Err(refuse(&text));
            }
            return some(rows, first);
        }
    };
    if pad(view) != Pad::Drop {
        return Ok(Arc::clone(rows));
    }
    some(rows, whole(rows, &windows, |row| games.bounds(row)))
}

/// The rows that a view has of `all`, which are some unless there is no row at all.
fn some(all: &Intervals, shown: Intervals) -> Result<Arc<Intervals>> {
    if shown.is_empty() && !all.is_empty() {
        return Err(refuse("no game is as long as it wants; take a shorter one, or pad with edge or zero"));
    }
    Ok(Arc::new(shown))
}

fn pad(view: &View) -> Pad {
    match view {
        View::Window { pad, .. } | View::Next { pad, .. } | View::Trajectory { pad, .. } => *pad,
    }
}

/// A window of one step, `steps` after the row.
fn ahead(steps: u64) -> Result<Window> {
    let distance = i64::try_from(steps).ok().filter(|steps| *steps > 0);
    window(distance.into_iter().collect()).map_err(|_| refuse(&format!("{steps} steps; expected 1 or more")))
}

fn window(offsets: Vec<i64>) -> Result<Window> {
    let text = format!("{} steps; expected 1 to {MOST_STEPS} at distances that ascend", offsets.len());
    let window = (offsets.len() as u64 <= MOST_STEPS).then(|| Window::new(offsets)).flatten();
    window.ok_or_else(|| refuse(&text))
}

fn refuse(text: &str) -> Error {
    Error::config("view", text)
}
