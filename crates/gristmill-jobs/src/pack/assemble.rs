//! What comes out of the flow, in order -> the staged files of a pack. One thread; all that is numbered is numbered here.
//! Notes, together with what it has written, how to resume from there.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::lineage::{self, Step};
use gristmill_engine::pack::manifest::{self, Manifest, Remarked, RowFile, Skipped, Sources};
use gristmill_engine::pack::metadata::{Extra, Metadata, MetadataWriter, Run};
use gristmill_engine::pack::open::valuations;
use gristmill_engine::pack::rows::{RowsOf, blocks};
use gristmill_engine::pack::valuation::ValuationTypes;
use gristmill_engine::pack::writer::{Mark, RowWriter};
use gristmill_engine::pack::{self, layout_name, shards};
use gristmill_engine::row_files;
use gristmill_engine::store::publish::Staging;
use gristmill_format::g2048::RowForm;
use gristmill_format::g2048::log::{Game, Piece, steps_name};
use gristmill_format::g2048::row::{ALIGNED_BYTES, at, narrow};
use gristmill_format::{Error as FormatError, Kind};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::begin::{stage, stage_quarantine};
use super::flow::{End, Event, Flow};
use super::join::Part;
use super::lineage::{Made, Told};
use super::{OnError, PackOptions, Progress, is_unreadable};

/// Where a job stands: everything that it needs to resume, beside the files.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Standing {
    /// `aligned48` or `packed46`.
    pub(super) layout: String,
    pub(super) shard_rows: Option<u64>,
    /// Whether games are added to an existing pack.
    pub(super) append: bool,
    /// Games that were read.
    pub(super) done: usize,
    /// XXH3-128 of their names, each with a line feed, as 32 hexadecimal digits.
    pub(super) names: String,
    /// Runs so far: the id of the next one.
    pub(super) runs: u64,
    /// Runs that were there before the job.
    pub(super) runs_before: u64,
    pub(super) known: u64,
    /// Files of rows that are complete, and rows in the one that is not.
    pub(super) complete: Vec<RowFile>,
    pub(super) open_rows: u64,
    pub(super) valuations: Vec<String>,
    pub(super) sources: Sources,
    pub(super) skipped: Vec<Skipped>,
    pub(super) remarks: Vec<Remarked>,
    /// How many of the two lists were there before the job.
    pub(super) skipped_before: usize,
    pub(super) remarks_before: usize,
}

impl Standing {
    /// Lists a left-out game; replaces the entry of an earlier job for the same file.
    pub(super) fn skip(&mut self, skipped: Skipped) {
        if let Some(before) = self.skipped.iter().position(|before| before.file == skipped.file) {
            self.skipped.remove(before);
            self.skipped_before -= usize::from(before < self.skipped_before);
        }
        self.skipped.push(skipped);
    }
}

/// The pack in the making.
pub(super) struct Assembly<'a> {
    pub(super) options: &'a PackOptions,
    pub(super) staging: Staging,
    pub(super) form: RowForm,
    pub(super) writer: RowWriter,
    pub(super) metadata: MetadataWriter,
    pub(super) types: ValuationTypes,
    pub(super) standing: Standing,
    /// Hash of the names of the games that were read.
    pub(super) names: Xxh3,
    /// Rows at the last point to which a killed job returns.
    pub(super) checkpoint: u64,
    /// Keys of the games that the pack had before.
    pub(super) known: HashSet<u128>,
    /// What shares say of their games, where it is made of these.
    pub(super) told: Option<Told>,
}

/// The game that is coming out, and where everything stood before it.
struct Current {
    game: Game,
    mark: Mark,
    first_row: u64,
    types: usize,
}

impl Assembly<'_> {
    /// Takes in everything that the flow gives.
    ///
    /// Errors: those of the files and of the flow; under [`OnError::Raise`] that of the first bad game. What came
    /// before can be resumed.
    pub(super) fn run(&mut self, sidecars: &[String], flow: &mut Flow, tell: &mut dyn FnMut(Progress)) -> Result<()> {
        let mut current = self.begin();
        let mut narrowed = Vec::new();
        loop {
            let name = sidecars.get(self.standing.done).map_or("", String::as_str);
            match flow.next() {
                Ok(None) => return Ok(()),
                Ok(Some(Event::Rows { piece, mut rows })) => {
                    let taken = self.take(&mut current, &piece, &mut rows, &mut narrowed)?;
                    flow.recycle(rows);
                    match taken {
                        Ok(()) => continue,
                        Err(e) => {
                            flow.abandon();
                            self.refuse(current, &log_of(name), e)?;
                        }
                    }
                }
                Ok(Some(Event::End(end))) => match self.end(&current, *end, &log_of(name))? {
                    Ok(()) => {}
                    Err(e) => self.refuse(current, name, e)?,
                },
                Ok(Some(Event::Known)) => {
                    self.back(current)?;
                    self.standing.known += 1;
                }
                Ok(Some(Event::Refused(e))) => {
                    // Inflating counts bytes of the file, not of the text.
                    let e = if e.place().line.is_some() { current.game.place(e) } else { e };
                    let file = e.place().source.clone().unwrap_or_else(|| name.to_owned());
                    self.refuse(current, &file, e)?;
                }
                Err(e) => {
                    self.back(current)?;
                    self.checkpoint()?;
                    return Err(e);
                }
            }
            self.names.update(name.as_bytes());
            self.names.update(b"\n");
            self.standing.done += 1;
            if self.writer.rows() - self.checkpoint >= self.options.checkpoint_rows {
                self.checkpoint()?;
            }
            current = self.begin();
            tell(Progress {
                done: self.standing.done as u64,
                games: sidecars.len() as u64,
                rows: self.writer.rows(),
                skipped: (self.standing.skipped.len() - self.standing.skipped_before) as u64,
            });
        }
    }

    fn begin(&self) -> Current {
        let (first_row, types) = (self.writer.rows(), self.types.names().len());
        Current { game: Game::default(), mark: self.writer.mark(), first_row, types }
    }

    /// Numbers the rows of a piece and writes them. The inner error is the game's.
    fn take(
        &mut self,
        current: &mut Current,
        piece: &Piece,
        rows: &mut [u8],
        narrowed: &mut Vec<u8>,
    ) -> Result<Result<(), FormatError>> {
        let mut number = || -> Result<(u32, Vec<u8>), FormatError> {
            let run = u32::try_from(self.standing.runs);
            let run =
                run.map_err(|_| FormatError::new(Kind::TooLarge, "more than 2^32 games: run ids have 32 bits"))?;
            current.game.join(piece, rows)?;
            let names = current.game.valuations().names();
            let ids = names.iter().map(|name| self.types.add(name)).collect::<Result<_, FormatError>>()?;
            Ok((run, ids))
        };
        let (run, ids) = match number() {
            Ok(numbered) => numbered,
            Err(e) => return Ok(Err(e)),
        };
        let same = ids.iter().enumerate().all(|(was, is)| was == usize::from(*is));
        for row in rows.as_chunks_mut::<ALIGNED_BYTES>().0 {
            row[at::RUN_ID..][..4].copy_from_slice(&run.to_le_bytes());
            if !same {
                row[at::VALUATION_TYPE] = ids[usize::from(row[at::VALUATION_TYPE])];
            }
        }
        match self.form {
            RowForm::Aligned => self.writer.write(rows)?,
            RowForm::Packed => {
                narrowed.resize(rows.len() / ALIGNED_BYTES * self.form.bytes(), 0);
                narrow(rows, narrowed)?;
                self.writer.write(narrowed)?;
            }
        }
        Ok(Ok(()))
    }

    /// The game is whole: it becomes a run. The inner error is the game's.
    fn end(&mut self, current: &Current, end: End, log: &str) -> Result<Result<(), FormatError>> {
        let End { sidecar, sidecar_text, identity } = end;
        if i64::try_from(sidecar.score).is_err() {
            let detail = format!("score {}; the database holds 63 bits", sidecar.score);
            return Ok(Err(FormatError::new(Kind::OutOfRange, detail)));
        }
        let summary = current.game.clone().finish(&sidecar);
        let remarked = summary.remarks.iter().map(|remark| (log.to_owned(), remark.to_string()));
        self.standing.remarks.extend(remarked.map(|(file, detail)| Remarked { file, detail }));
        let id = self.standing.runs;
        self.metadata.put_run(&Run {
            id,
            seed: Some(sidecar.seed),
            steps: summary.rows,
            max_score: sidecar.score,
            highest_tile: sidecar.max_tile.into(),
        })?;
        self.metadata.put_extra(&Extra {
            run_id: id,
            first_row: current.first_row,
            source: log.to_owned(),
            stored_bytes: identity.bytes,
            stored_xxh3: identity.xxh3,
            sidecar: sidecar_text,
        })?;
        self.standing.runs += 1;
        self.standing.sources.add(1, identity.bytes);
        Ok(Ok(()))
    }

    /// Forgets what came of a game so far.
    fn back(&mut self, current: Current) -> Result<()> {
        self.types.truncate(current.types);
        self.writer.rewind(current.mark)
    }

    /// A game cannot be taken: as the policy has it, but for a file that cannot be read.
    fn refuse(&mut self, current: Current, file: &str, e: FormatError) -> Result<()> {
        self.back(current)?;
        if self.options.on_error == OnError::Raise || is_unreadable(&e) {
            self.checkpoint()?;
            let shown = self.options.input.join(file).display().to_string();
            return Err(e.moved_to(shown).into());
        }
        self.standing.skip(Skipped::new(file, &e));
        Ok(())
    }

    /// Makes everything so far durable, together with where the job stands.
    pub(super) fn checkpoint(&mut self) -> Result<()> {
        self.writer.sync()?;
        self.checkpoint = self.writer.rows();
        self.standing.names = format!("{:032x}", self.names.digest128());
        self.standing.complete = self.writer.complete().to_vec();
        self.standing.open_rows = self.writer.open_rows();
        self.standing.valuations = self.types.names().to_vec();
        let standing = serde_json::to_string(&self.standing);
        let standing = standing.map_err(|e| Error::State(format!("it cannot be written: {e}")))?;
        self.metadata.put_progress(&standing)?;
        self.metadata.commit()
    }

    /// Completes the staged files. With the manifest, which comes last, nothing remains but to publish them.
    pub(super) fn finish(mut self) -> Result<(Staging, Standing, Vec<RowFile>)> {
        let files = self.writer.finish()?;
        self.metadata.force()?;
        stage(&self.staging, row_files::VALUATION_TYPES, &self.types.to_json())?;
        stage_quarantine(self.options, &self.staging, &self.standing.skipped)?;
        let mut made = Made::default();
        Metadata::open(self.staging.path(pack::METADATA))?.extras(&mut |extra| {
            if extra.run_id >= self.standing.runs_before {
                made.add(&extra.source, extra.stored_xxh3, extra.stored_bytes);
            }
            Ok(())
        })?;
        let said =
            Step::new(if self.standing.append { "append" } else { "pack" }).with("layout", layout_name(self.form));
        let manifest = Manifest {
            format: manifest::FORMAT.to_owned(),
            version: manifest::VERSION,
            writer: lineage::WRITER.to_owned(),
            layout: layout_name(self.form).to_owned(),
            rows: files.iter().map(|file| file.rows).sum(),
            runs: self.standing.runs,
            shard_rows: self.standing.shard_rows,
            files: files.clone(),
            sources: self.standing.sources.clone(),
            skipped: self.standing.skipped.clone(),
            remarks: self.standing.remarks.clone(),
            lineage: match &self.told {
                Some(told) => made.joined(told, said),
                None => made.finish(self.options, self.standing.append, said),
            },
        };
        let manifest = manifest.to_json()?;
        let place = |file: &RowFile| {
            let staged = self.staging.path(&file.name);
            if staged.exists() { staged } else { self.options.before().join(&file.name) }
        };
        let paths: Vec<PathBuf> = files.iter().map(place).collect();
        let (folder, types) = (self.staging.path(""), &self.types);
        match &self.options.grows {
            Some(before) => pack::opening::write_grown(before, &folder, &paths, types, &manifest)?,
            None => pack::opening::write(&folder, &paths, types, &manifest)?,
        }
        stage(&self.staging, pack::MANIFEST, &manifest)?;
        self.metadata.shorten()?;
        self.metadata.finish_anew()?;
        Ok((self.staging, self.standing, files))
    }
}

impl Assembly<'_> {
    /// Appends the pack of a share.
    pub(super) fn append(&mut self, part: &Part, games: u64, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let Some(folder) = &part.pack else { return Ok(()) };
        let corrupt = |name: &str, detail: &str| -> Error {
            FormatError::new(Kind::Corrupt, detail).in_source(folder.join(name).display().to_string()).into()
        };
        let again = "the pack of this share is damaged; remove the folder of the share and make it again";
        let manifest = Manifest::read(folder)?.ok_or_else(|| corrupt(pack::MANIFEST, again))?;
        let files =
            shards::list(folder)?.into_iter().map(|shard| Ok(RowsOf::open(shard)?)).collect::<Result<Vec<_>>>()?;
        let ids = self.types.unify(&valuations(folder)?).map_err(|e| e.in_source(folder.display().to_string()))?;
        let (first_run, first_row) = (self.standing.runs, self.writer.rows());
        if u32::try_from(first_run + manifest.runs).is_err() {
            return Err(Error::config("output", "more than 2^32 games: run ids have 32 bits; make several packs"));
        }
        let mut hashes: Vec<Xxh3> = files.iter().map(|_| Xxh3::new()).collect();
        let (mut stored, mut rows, mut narrowed) = (Vec::new(), Vec::new(), Vec::new());
        for block in blocks(&files) {
            if self.options.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            files[block.file].read(block.first, block.rows, &mut stored, &mut rows)?;
            hashes[block.file].update(&stored);
            for row in rows.as_chunks_mut::<ALIGNED_BYTES>().0 {
                let run = [row[at::RUN_ID], row[at::RUN_ID + 1], row[at::RUN_ID + 2], row[at::RUN_ID + 3]];
                let run = first_run + u64::from(u32::from_le_bytes(run));
                let id = ids.get(usize::from(row[at::VALUATION_TYPE]));
                let (Ok(run), Some(id)) = (u32::try_from(run), id) else { return Err(corrupt(pack::MANIFEST, again)) };
                row[at::RUN_ID..][..4].copy_from_slice(&run.to_le_bytes());
                row[at::VALUATION_TYPE] = *id;
            }
            match self.form {
                RowForm::Aligned => self.writer.write(&rows)?,
                RowForm::Packed => {
                    narrowed.resize(rows.len() / ALIGNED_BYTES * self.form.bytes(), 0);
                    narrow(&rows, &mut narrowed)?;
                    self.writer.write(&narrowed)?;
                }
            }
            let skipped = self.standing.skipped.len() as u64;
            progress(Progress { done: self.standing.runs, games, rows: self.writer.rows(), skipped });
        }
        let hashes = hashes.iter().map(|hash| format!("{:032x}", hash.digest128()));
        if !hashes.eq(manifest.files.iter().map(|file| file.xxh3_128.clone())) {
            return Err(corrupt(pack::MANIFEST, again));
        }
        let metadata = Metadata::open(folder.join(pack::METADATA))?;
        metadata.runs(&mut |run| self.metadata.put_run(&Run { id: first_run + run.id, ..run }))?;
        metadata.extras(&mut |extra| {
            self.standing.sources.add(1, extra.stored_bytes);
            let (run_id, first_row) = (first_run + extra.run_id, first_row + extra.first_row);
            self.metadata.put_extra(&Extra { run_id, first_row, ..extra })
        })?;
        self.standing.runs += manifest.runs;
        Ok(())
    }
}

/// The log that belongs to a sidecar.
fn log_of(sidecar: &str) -> String {
    steps_name(sidecar).unwrap_or_default()
}
