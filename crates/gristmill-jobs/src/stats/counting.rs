//! Files and packs, one after another -> what is counted of them. Chunks that are damaged are counted as such, and left out.

use std::path::Path;

use gristmill_engine::error::{Error, Result};
use gristmill_format::Result as FormatResult;
use gristmill_format::chess::weight::DiffFocus;
use gristmill_format::chess::{Frame, Version};
use gristmill_format::container::salvage;
use gristmill_format::demo::form::DemoFile;
use gristmill_format::source::{Chunk, ChunkSource};

use super::g2048::LogTally;
use super::look::Looked;
use super::part::{Bad, Input, OfPack};
use super::{MILLION, Part, Stats, StatsOptions};
use crate::files::{Found, Unlisted, is_unreadable};
use crate::inputs::{OwnFile, Place};
use crate::work::{Counts, Opened};

/// What counts, and its buffers.
#[derive(Debug)]
pub(super) struct Counting {
    part: Part,
    rule: DiffFocus,
    /// What of the file that is counted now is to be counted.
    place: Place,
    /// Which input that is.
    input: Input,
    stored: Vec<u8>,
    tag: Vec<u8>,
    chunk: Chunk,
}

impl Counting {
    pub(super) fn new(options: &StatsOptions) -> Self {
        let StatsOptions { q_weight, pol_scale, .. } = *options;
        let rule = DiffFocus { q_weight, pol_scale, alpha: 1.0, beta: 0.0, gamma: 1.0, tau: 1.0, unknown: 1.0 };
        let (stored, tag, chunk) = (Vec::new(), Vec::new(), Chunk::default());
        Counting { part: Part::default(), rule, place: Place::whole(), input: Input::default(), stored, tag, chunk }
    }

    /// Says which input comes next.
    pub(super) fn at(&mut self, input: Input) {
        self.input = input;
    }

    /// The counts so far, without distributions.
    pub(super) fn so_far(&self) -> &Stats {
        &self.part.stats
    }

    /// What was counted.
    pub(super) fn part(self) -> Part {
        self.part
    }

    /// Adds the counts that a thread made of a file, and counts the files that it skipped.
    pub(super) fn take(&mut self, looked: Looked, own: &OwnFile) -> Result<()> {
        self.place = own.place;
        match looked {
            Looked::Log(log) => {
                self.part.stats.files += 1;
                self.log(log.map(|log| *log));
            }
            Looked::Other => match own.file.open() {
                Found::File(file) => self.file(&file)?,
                _ if !own.place.begins() => {}
                Found::Fault(e) => self.bad_file(&e),
                Found::Other | Found::Pack(_) | Found::Unlisted(_) => self.part.stats.skipped += 1,
            },
        }
        Ok(())
    }

    fn log(&mut self, log: gristmill_format::Result<LogTally>) {
        self.part.stats.chunks += 1;
        match log {
            Ok(log) => {
                self.part.stats.frames += log.rows();
                self.part.stats.stored_bytes += log.stored_bytes;
                self.part.stats.inflated_bytes += log.text_bytes;
                self.part.steps.log(log);
            }
            Err(e) => self.bad_chunk(&e),
        }
    }

    pub(super) fn bad_file(&mut self, e: &gristmill_format::Error) {
        if is_unreadable(e) { self.unread(1, e.to_string()) } else { self.part.stats.bad_files += 1 }
    }

    fn bad_chunk(&mut self, e: &gristmill_format::Error) {
        if is_unreadable(e) { self.unread(1, e.to_string()) } else { self.part.stats.bad_chunks += 1 }
    }

    /// Counts files and folders that could not be listed.
    pub(super) fn unlisted(&mut self, unlisted: &Unlisted) {
        if unlisted.is_unreadable() {
            self.unread(unlisted.count, unlisted.latest.clone());
        } else {
            self.part.stats.bad_files += unlisted.count;
        }
    }

    /// Counts a file that could not be read. That is no damage.
    fn unread(&mut self, count: u64, why: String) {
        self.part.unread(self.input, count, why);
    }

    fn file(&mut self, file: &Opened) -> Result<()> {
        self.part.stats.files += u64::from(self.place.begins());
        file.kind.count(file, self)
    }

    /// Counts a file of demonstrations, of `size` bytes.
    fn demonstrations(&mut self, size: u64, file: &DemoFile) {
        let all = file.trajectories();
        self.part.stats.chunks += file.len() as u64;
        self.part.stats.frames += all.frames() as u64;
        self.part.stats.stored_bytes += size;
        self.part.stats.inflated_bytes += (all.frames() * all.layout().map_or(0, |layout| layout.size())) as u64;
        self.part.demos.file(file);
    }

    /// Counts what of a pack of 2048 games is at `place`.
    pub(super) fn pack(&mut self, folder: &Path, place: Place, options: &StatsOptions) -> Result<()> {
        let mut found = OfPack::default();
        found.bad[0] = bad(found.steps.rows(folder, place, options.workers, &options.stop, &mut found.counted))?;
        if place.begins() && found.bad[0].is_none() {
            found.bad[1] = bad(found.steps.games(folder, &mut found.counted))?;
        }
        match place.is_whole() {
            true => self.part.take(self.input, found),
            false => self.part.packs.push((self.input, found)),
        }
        Ok(())
    }

    fn game(&mut self) -> Result<()> {
        let frames = self.chunk.frames as u64;
        let stored_version = self.tag.first_chunk::<4>().map_or(0, |tag| u32::from_le_bytes(*tag));
        let record = Version::from_number(stored_version).map_or(0, |version| version.bytes() as u64);
        *self.part.stats.versions.entry(stored_version).or_default() += frames;
        self.part.stats.frames += frames;
        self.part.stats.stored_bytes += self.stored.len() as u64;
        self.part.stats.inflated_bytes += frames * record;
        self.part.length.add(frames);
        for i in 0..self.chunk.frames {
            let frame = Frame::new(self.chunk.record(i))?;
            *self.part.stats.input_formats.entry(frame.input_format_value()).or_default() += 1;
            if frame.visits() > 0 {
                self.part.visits.add(u64::from(frame.visits()));
            }
            self.part.plies.add(i as u64);
            self.part.legal.add(frame.probabilities().filter(|p| *p >= 0.0).count() as u64);
            // The newest board is the first thirteen planes; the last of them marks repetitions.
            let men: u32 = (0..12).map(|plane| frame.plane(plane).count_ones()).sum();
            *self.part.stats.men.entry(men).or_default() += 1;
            if frame.orig_q().is_nan() {
                self.part.stats.unweighed += 1;
            } else {
                self.part.weights.add((self.rule.weight(&frame) * MILLION).round() as u64);
            }
            self.part.start.add(&frame);
        }
        let last = Frame::new(self.chunk.record(self.chunk.frames - 1))?;
        self.part.stats.ending(last);
        Ok(())
    }
}

impl crate::work::Counting for Counting {
    fn games(&mut self, file: &Opened) -> Result<()> {
        let place = self.place;
        for i in (0..file.source.len()).filter(|i| place.has(file, *i)) {
            self.part.stats.chunks += 1;
            let decoded = file.fetch(i, &mut self.stored).and_then(|()| {
                salvage::inflate_prefix(&self.stored, 4, &mut self.tag)?;
                file.decode(i, &self.stored, &mut self.chunk)
            });
            match decoded {
                Ok(()) => self.game()?,
                Err(e) => self.bad_chunk(&e),
            }
        }
        Ok(())
    }

    fn chunks(&mut self, file: &Opened, count: &mut dyn FnMut(&Chunk, &mut Counts) -> FormatResult<()>) -> Result<()> {
        let (place, mut counts) = (self.place, Counts::default());
        for i in (0..file.source.len()).filter(|i| place.has(file, *i)) {
            self.part.stats.chunks += 1;
            let decoded = file.fetch(i, &mut self.stored).and_then(|()| file.decode(i, &self.stored, &mut self.chunk));
            if let Err(e) = decoded {
                match is_unreadable(&e) {
                    true => self.part.unread(self.input, 1, e.to_string()),
                    false => self.part.stats.bad_chunks += 1,
                }
                continue;
            }
            self.part.stats.frames += self.chunk.frames as u64;
            self.part.stats.stored_bytes += self.stored.len() as u64;
            self.part.stats.inflated_bytes += self.chunk.records().len() as u64;
            counts.chunks += 1;
            counts.frames += self.chunk.frames as u64;
            count(&self.chunk, &mut counts)?;
        }
        self.part.stats.kinds.entry(file.kind.name()).or_default().join(counts);
        Ok(())
    }

    fn logs(&mut self, file: &Opened) {
        let place = self.place;
        for i in (0..file.source.len()).filter(|i| place.has(file, *i)) {
            let decoded = file
                .fetch(i, &mut self.stored)
                .and_then(|()| file.decode(i, &self.stored, &mut self.chunk))
                .map(|()| LogTally::new(&file.path, self.stored.len() as u64, &self.chunk));
            self.log(decoded);
        }
    }

    fn demos(&mut self, file: &Opened) {
        if let Some(demo) = &file.demo {
            if !self.place.begins() {
                return;
            }
            self.part.stats.bad_files += u64::from(!demo.faults().is_empty());
            return self.demonstrations(file.size, demo);
        }
        let key = &file.source.describe().key;
        let place = self.place;
        for i in (0..file.source.len()).filter(|i| place.has(file, *i)) {
            let decoded = file.fetch(i, &mut self.stored).and_then(|()| {
                file.decode(i, &self.stored, &mut self.chunk)?;
                DemoFile::of_packed(key, &self.stored, &self.chunk)
            });
            match decoded {
                Ok(one) => self.demonstrations(self.stored.len() as u64, &one),
                Err(e) => {
                    self.part.stats.chunks += 1;
                    self.bad_chunk(&e);
                }
            }
        }
    }
}

/// What is wrong with a pack.
///
/// Errors: those that are none of the data.
fn bad(counted: Result<()>) -> Result<Option<Bad>> {
    match counted {
        Ok(()) => Ok(None),
        Err(Error::Format(e)) if !is_unreadable(&e) => Ok(Some(Bad::Damaged)),
        Err(e @ (Error::Format(_) | Error::Path { .. })) => Ok(Some(Bad::Unread(e.to_string()))),
        Err(e) => Err(e),
    }
}

impl Stats {
    fn ending(&mut self, last: Frame<'_>) {
        let canonical = last.input_format().is_ok_and(|format| format.is_canonical());
        let black = match canonical {
            true => last.invariance_info() & 1 << 7 != 0,
            false => last.side_to_move_or_enpassant() == 1,
        };
        let white_q = if black { -last.result_q() } else { last.result_q() };
        let results = &mut self.results;
        // Rescored games have fractions; the nearest whole result counts.
        match white_q {
            q if q > 0.5 => results.white += 1,
            q if q < -0.5 => results.black += 1,
            _ => results.draw += 1,
        }
        self.maximum_length += u64::from(last.invariance_info() & 1 << 4 != 0);
        self.adjudicated += u64::from(last.invariance_info() & 1 << 5 != 0);
    }
}
