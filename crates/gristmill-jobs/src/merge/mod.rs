//! Packs -> one pack: rows one after another, runs renumbered, names of valuations unified, sessions kept. Packs of whole
//! games are joined file by file.
//! Deletes inputs only where an option says so, once the new pack is durable and was read back.

mod beside;
mod block;
mod chunks;
pub(super) mod danger;
mod input;
mod marks;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::config::parse;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::lineage::{self, Step};
use gristmill_engine::names::is_pack;
use gristmill_engine::pack::manifest::{self, Manifest, Remarked, RowFile, Sources};
use gristmill_engine::pack::metadata::{Metadata, MetadataWriter, progress_of};
use gristmill_engine::pack::open::RowPack;
use gristmill_engine::pack::valuation::ValuationTypes;
use gristmill_engine::pack::values::Made;
use gristmill_engine::pack::writer::{RowWriter, hash_rows};
use gristmill_engine::pack::{self, layout_name, shards};
use gristmill_engine::row_files;
use gristmill_engine::store::Residence;
use gristmill_engine::store::place::{resolved, writable};
use gristmill_engine::store::publish::{self, Found, Staging};
use gristmill_format::g2048::RowForm;
use gristmill_format::{Error as FormatError, Kind};
use serde::{Deserialize, Serialize};

use self::beside::{Carried, CutFiles};
use self::block::{Block, BlockReader, Merged as Taken};
use self::input::Input;
use super::in_order::InOrder;
use super::meter::{Meter, peak_rss};

/// What the job is called in its staging.
const JOB: &str = "merge";

/// What to merge, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MergeOptions {
    /// The packs, in the order in which their rows follow each other.
    pub inputs: Vec<PathBuf>,
    /// Folder of the new pack; made when it does not exist.
    pub output: PathBuf,
    /// Form of the rows.
    #[serde(deserialize_with = "pack::read_layout")]
    pub layout: RowForm,
    /// Rows of every file but the last; none for one file.
    pub shard_rows: Option<u64>,
    /// Worker threads, from 1 on. Changes no byte of the pack.
    pub workers: usize,
    /// Whether a pack in the output is replaced.
    pub overwrite: bool,
    /// Whether the inputs are deleted in the end.
    pub delete_inputs: bool,
    /// Look at the packs only, and write nothing.
    pub dry_run: bool,
    /// Set from another thread to end early.
    #[serde(skip)]
    pub stop: Arc<AtomicBool>,
}

impl Default for MergeOptions {
    /// What JSON starts from: no folders.
    fn default() -> Self {
        MergeOptions::new(Vec::new(), "")
    }
}

impl MergeOptions {
    /// Reads the options from JSON; what is absent has its default, and what is unknown is refused with the nearest
    /// known one.
    ///
    /// Errors: `Config`.
    pub fn from_json(text: &str) -> Result<Self> {
        parse::from_json(text)
    }

    /// Merges `inputs` into `output` as the defaults have it: one file of 48-byte rows, one worker per core.
    pub fn new(inputs: Vec<PathBuf>, output: impl Into<PathBuf>) -> Self {
        MergeOptions {
            inputs,
            output: output.into(),
            layout: RowForm::default(),
            shard_rows: None,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            overwrite: false,
            delete_inputs: false,
            dry_run: false,
            stop: Arc::default(),
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Merged {
    /// The folder of the new pack.
    pub pack: String,
    /// `aligned48` or `packed46`; of packs of whole games what their chunks hold.
    pub layout: &'static str,
    /// Packs that went in.
    pub packs: u64,
    /// Runs in the new pack.
    pub runs: u64,
    /// Its rows.
    pub rows: u64,
    /// Its files of rows or games.
    pub files: u64,
    /// Games that a pack before had already, and that were passed over; of packs of whole games.
    pub known: u64,
    /// What lies beside its rows, as beside those of all packs: `values`, `embeddings`.
    pub carried: Vec<&'static str>,
    /// Names of the marks that it has, since all packs have them by the same rule.
    pub marks: Vec<String>,
    /// What lies beside the rows of some pack and is not carried, marks included, and why.
    pub lost: Vec<String>,
    /// Folders of packs that were deleted.
    pub deleted: Vec<String>,
    /// What was left in these folders, since it was no part of a pack.
    pub left: Vec<String>,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// How long it took by the clock.
    pub seconds: f64,
    /// How long all threads worked.
    pub cpu_seconds: f64,
    /// Peak resident memory of the process, in bytes; `None` where the system does not say.
    pub peak_rss: Option<u64>,
}

/// Merges packs. `progress` gets the number of rows written, and of all rows, now and then.
///
/// Errors: `Config` for options that are dangerous or make no sense, before anything is written; `Format` with file
/// and row for packs that are damaged, contradict their database, or hold other rows; `Path`; `Stopped`. After an
/// error the inputs and what was in the output are as they were.
pub fn merge(options: &MergeOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<Merged> {
    // As the reference has it: 0 is no bound.
    let options = &MergeOptions { shard_rows: options.shard_rows.filter(|rows| *rows > 0), ..options.clone() };
    if options.workers == 0 || options.workers > 256 {
        return Err(Error::config("workers", format!("{} threads; expected 1 to 256", options.workers)));
    }
    if options.inputs.len() < 2 {
        return Err(Error::config("packs", "expected two packs or more"));
    }
    let inputs = options.inputs.iter().map(|input| Ok(resolved(input)?.into_owned()));
    if options.delete_inputs {
        options.inputs.iter().try_for_each(|input| writable(input, "delete_inputs").map(drop))?;
    }
    let (inputs, output) = (inputs.collect::<Result<_>>()?, writable(&options.output, "output")?.into_owned());
    let options = &MergeOptions { inputs, output, ..options.clone() };
    danger::check(&options.inputs, &options.output)?;
    let meter = Meter::default();
    let before = meter.now();
    let merged = match chunks::are_chunks(&options.inputs)? {
        true => chunks::merge(options, progress)?,
        false => checked(options, progress)?,
    };
    let now = meter.now();
    Ok(Merged { seconds: now.wall - before.wall, cpu_seconds: now.cpu - before.cpu, peak_rss: peak_rss(), ..merged })
}

/// Merges, with options that were checked.
fn checked(options: &MergeOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<Merged> {
    let mut types = ValuationTypes::default();
    let mut inputs = Vec::new();
    for (i, path) in options.inputs.iter().enumerate() {
        // The first pack keeps its ids.
        inputs.push(Input::open(path, if i == 0 { None } else { Some(&mut types) })?);
        if i == 0 {
            types = inputs[0].types.clone();
        }
    }
    let mut first_run = 0;
    for input in &mut inputs {
        input.first_run = first_run;
        first_run += input.runs.len() as u64;
    }
    if u32::try_from(first_run).is_err() {
        return Err(Error::config("packs", format!("{first_run} runs together; run ids have 32 bits")));
    }
    let rows: u64 = inputs.iter().map(Input::rows).sum();
    let carried = Carried::of(&inputs);
    let marks = marks_of(&inputs, &carried)?;
    let merged = Merged {
        pack: options.output.display().to_string(),
        layout: layout_name(options.layout),
        packs: inputs.len() as u64,
        runs: first_run,
        rows,
        files: options.shard_rows.map_or(1, |most| rows.div_ceil(most).max(1)),
        carried: carried.names(),
        marks: marks.names(),
        lost: carried.lost.iter().map(|(_, why)| why.clone()).chain(marks.lost().iter().cloned()).collect(),
        dry_run: options.dry_run,
        ..Merged::default()
    };
    if options.dry_run {
        return Ok(merged);
    }
    let staging = stage(options, &pack::files(&options.output)?, !is_pack(&options.output))?;
    let inputs: Arc<[Input]> = inputs.into();
    // The inputs are all there: where this fails, the staging goes.
    let files = write(options, &staging, &inputs, (&types, &carried), progress)?;
    if !marks.names().is_empty() {
        marks.write(&RowPack::open(&staging.path(""), Residence::Mapped)?)?;
    }
    let mut outdated = pack::files(&options.output)?;
    outdated.extend(row_files::listed(&options.output, row_files::is_vectors)?);
    outdated.extend(gristmill_engine::marks::files(&options.output)?);
    staging.publish(&outdated)?;
    let (deleted, left) = if options.delete_inputs {
        verify(options, &files, first_run)?;
        delete(&options.inputs, &carried, &marks)?
    } else {
        Default::default()
    };
    Ok(Merged { deleted, left, ..merged })
}

/// What becomes of the marks of these packs.
fn marks_of(inputs: &[Input], carried: &Carried) -> Result<marks::Plan> {
    let mut changed = vec!["frame.frame", "frame.game_id", "frame.run_id", "game.id"];
    if !inputs.iter().all(Input::keeps_names) {
        changed.push("frame.valuation_type");
    }
    if carried.values.is_none() {
        changed.extend(["frame.reward", "frame.return_raw", "frame.return_scaled"]);
    }
    let (mut sources, mut first, mut any) = (Vec::new(), 0, false);
    for input in inputs.iter().filter(|input| input.rows() > 0) {
        any |= !gristmill_engine::marks::names(&input.path)?.is_empty();
        sources.push((input, first));
        first += input.rows();
    }
    if !any {
        return Ok(marks::Plan::default());
    }
    let open = |(input, first): (&Input, u64)| -> Result<marks::Source> {
        let pack = Arc::new(RowPack::open(&input.path, Residence::Mapped)?);
        Ok(marks::Source { pack, places: vec![(0, input.rows(), first)] })
    };
    marks::Plan::of(sources.into_iter().map(open).collect::<Result<_>>()?, &changed)
}

/// The staging in the output, empty; `files` are those of a pack that is there, in the layout of the new one where it `is_ours`.
fn stage(options: &MergeOptions, files: &[String], is_ours: bool) -> Result<Staging> {
    let refuse = |message: &str| Err(Error::config("output", format!("{}: {message}", options.output.display())));
    // Half of a pack is finished first.
    let there = !publish::is_interrupted(&options.output, pack::STAGING) && !files.is_empty();
    if there && !is_ours {
        return refuse("there is a pack of something else; take another folder, or remove it first");
    }
    if there && !options.overwrite {
        return refuse("there is a pack already; --overwrite replaces it");
    }
    let (mut staging, found) = Staging::open(&options.output, pack::STAGING, JOB)?;
    if found == Found::Published && !options.overwrite {
        return refuse("an interrupted job was completed there now; --overwrite replaces the pack");
    }
    // A merge that was killed left nothing that is worth more than its inputs; a job of packing did.
    if !options.overwrite && progress_of(&staging.path(pack::METADATA))?.is_some() {
        return refuse("an interrupted job of `pack` is there; --overwrite gives it up");
    }
    staging.clear(JOB)?;
    Ok(staging)
}

/// Stages the new pack.
fn write(
    options: &MergeOptions,
    staging: &Staging,
    inputs: &Arc<[Input]>,
    (types, carried): (&ValuationTypes, &Carried),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Written> {
    let rows = inputs.iter().map(Input::rows).sum();
    let mut writer = RowWriter::new(&staging.path(""), options.layout, options.shard_rows);
    let mut metadata = MetadataWriter::open(staging.path(pack::METADATA))?;
    let mut merged = Sources::default();
    let blocks: Arc<[Block]> = block::all(inputs).into();
    let reader = Arc::new(BlockReader::new(inputs.clone(), options.layout, carried.values.is_some()));
    let mut values = CutFiles::of_values(&staging.path(""), options.shard_rows);
    let (work, listed) = (reader.clone(), blocks.clone());
    let mut flow = InOrder::start(options.workers, blocks.len(), options.stop.clone(), move |i| work.read(&listed[i]))
        .map_err(|e| Error::path(&options.output, &e))?;
    let mut rest = blocks.iter().peekable();
    for (i, input) in inputs.iter().enumerate() {
        let mut tally = input::Tally::new(input, writer.rows());
        while let Some(block) = rest.next_if(|block| block.input == i) {
            let Some(taken) = flow.next()? else { break };
            let Taken { bytes, values: valued, stored, runs } = taken?;
            tally.add(block.of.file, &stored, &runs);
            writer.write(&bytes)?;
            values.append(&valued)?;
            reader.recycle([bytes, valued, stored]);
            progress(writer.rows(), rows);
        }
        merged.merged.push(tally.finish(input, &mut metadata)?);
    }
    drop(flow);
    for (i, input) in inputs.iter().enumerate() {
        input.put_session(i, &inputs[..i], &mut metadata)?;
        if let Some(manifest) = &input.manifest {
            merged.add(manifest.sources.logs, manifest.sources.stored_bytes);
        }
    }
    metadata.finish()?;
    let (files, mut beside) = (writer.finish()?, values.finish()?);
    if let Some(by) = &carried.values {
        let of = |input: &Input| input.beside.lineage();
        let with_rows = inputs.iter().filter(|input| input.rows() > 0);
        let lineage = Step::new("merge").made_from(with_rows.map(of).collect());
        let made = Made::new(by, beside.clone(), vec![lineage]);
        publish::write_whole(&staging.path(row_files::VALUES_MADE), &[made.to_json()?.as_bytes()])?;
    }
    if let Some(size) = carried.vectors {
        beside.extend(beside::vectors(inputs, size, &staging.path(""), options.shard_rows)?);
    }
    let not_carried =
        carried.lost.iter().map(|(file, detail)| Remarked { file: (*file).to_owned(), detail: detail.clone() });
    let manifests = || inputs.iter().filter_map(|input| input.manifest.as_ref());
    let manifest = Manifest {
        format: manifest::FORMAT.to_owned(),
        version: manifest::VERSION,
        writer: lineage::WRITER.to_owned(),
        layout: layout_name(options.layout).to_owned(),
        rows,
        runs: inputs.iter().map(|input| input.runs.len() as u64).sum(),
        shard_rows: options.shard_rows,
        files: files.clone(),
        sources: merged,
        skipped: manifests().flat_map(|manifest| manifest.skipped.clone()).collect(),
        remarks: manifests().flat_map(|manifest| manifest.remarks.clone()).chain(not_carried).collect(),
        lineage: vec![lineage(options, inputs)],
    };
    publish::write_whole(&staging.path(row_files::VALUATION_TYPES), &[types.to_json().as_bytes()])?;
    publish::write_whole(&staging.path(pack::MANIFEST), &[manifest.to_json()?.as_bytes()])?;
    Ok(Written { rows: files, beside })
}

/// How the merged pack came to be.
fn lineage(options: &MergeOptions, inputs: &[Input]) -> Step {
    let of = |input: &Input| match &input.manifest {
        Some(manifest) if !manifest.lineage.is_empty() => manifest.lineage.clone(),
        _ => vec![Step::unrecorded().with("rows", input.rows())],
    };
    Step::new("merge").with("layout", layout_name(options.layout)).made_from(inputs.iter().map(of).collect())
}

/// The files that were staged.
struct Written {
    rows: Vec<RowFile>,
    /// Those of what lies beside the rows.
    beside: Vec<RowFile>,
}

/// Reads the published pack back: every row by its hash, the number of runs, and the names.
fn verify(options: &MergeOptions, files: &Written, runs: u64) -> Result<()> {
    let wrong = |path: &Path, detail: &str| {
        let detail = format!("{detail}; the inputs were kept");
        Err(FormatError::new(Kind::Corrupt, detail).in_source(path.display().to_string()).into())
    };
    for (shard, file) in shards::list(&options.output)?.iter().zip(&files.rows) {
        let hash = hash_rows(&shard.path, shard.offset, shard.rows * options.layout.bytes() as u64)?;
        if shard.rows != file.rows || format!("{hash:032x}") != file.xxh3_128 {
            return wrong(&shard.path, "what was read back is not what was written");
        }
    }
    if let Some(path) = beside::read_back(&options.output, &files.beside)? {
        return wrong(&path, "what was read back is not what was written");
    }
    let path = options.output.join(pack::METADATA);
    if Metadata::open(&path)?.run_count()? != runs {
        return wrong(&path, "what was read back is not what was written");
    }
    let path = options.output.join(row_files::VALUATION_TYPES);
    let text = fs::read_to_string(&path).map_err(|e| Error::path(&path, &e))?;
    ValuationTypes::parse(&text)?;
    Ok(())
}

/// Deletes the files of packs but those that were not carried, and their folders where nothing else is in them.
fn delete(packs: &[PathBuf], carried: &Carried, marks: &marks::Plan) -> Result<(Vec<String>, Vec<String>)> {
    let (mut deleted, mut left) = (Vec::new(), Vec::new());
    for folder in packs {
        let names = pack::files(folder)?.into_iter().chain(row_files::listed(folder, row_files::is_vectors)?);
        left.extend(clear(folder, names.filter(|name| carried.holds(name)), marks)?);
        deleted.push(folder.display().to_string());
    }
    Ok((deleted, left))
}

/// Deletes the files of these names in a folder and the marks that were carried, and the folder where nothing else is in it;
/// what is.
fn clear(folder: &Path, names: impl IntoIterator<Item = String>, marks: &marks::Plan) -> Result<Vec<String>> {
    for name in names {
        let path = folder.join(name);
        fs::remove_file(&path).map_err(|e| Error::path(path, &e))?;
    }
    gristmill_engine::marks::own_folder(folder)?;
    marks.files().try_for_each(|name| publish::withdraw(&folder.join(name)))?;
    // It stays where other marks are in it.
    let _left = fs::remove_dir(folder.join(gristmill_engine::marks::FOLDER));
    let others = fs::read_dir(folder).map_err(|e| Error::path(folder, &e))?;
    let others: Vec<String> = others.flatten().map(|entry| entry.path().display().to_string()).collect();
    if others.is_empty() {
        fs::remove_dir(folder).map_err(|e| Error::path(folder, &e))?;
    }
    Ok(others)
}
