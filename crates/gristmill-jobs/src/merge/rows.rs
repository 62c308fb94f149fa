//! Packs of rows -> one: rows one after another, runs renumbered, names of valuations unified, sessions kept.
//! Values, vectors and marks go along where all packs have them alike; what does not is named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::lineage::{self, Step};
use gristmill_engine::names::is_pack;
use gristmill_engine::pack::manifest::{self, Manifest, Remarked, RowFile, Sources};
use gristmill_engine::pack::metadata::{Metadata, MetadataWriter};
use gristmill_engine::pack::open::{RowPack, valuations};
use gristmill_engine::pack::valuation::ValuationTypes;
use gristmill_engine::pack::values::Made;
use gristmill_engine::pack::writer::{RowWriter, hash_rows};
use gristmill_engine::pack::{self, layout_name, shards};
use gristmill_engine::row_files;
use gristmill_engine::store::Residence;
use gristmill_engine::store::publish::{self, Staging};

use super::beside::{self, Carried, CutFiles};
use super::block::{self, Block, BlockReader, Merged as Taken};
use super::input::{self, Input};
use super::{MergeOptions, Merged, marks, unlike};
use crate::in_order::InOrder;

/// Packs of rows that are merged.
pub(super) struct Merging<'a> {
    options: &'a MergeOptions,
    inputs: Arc<[Input]>,
    types: ValuationTypes,
    carried: Carried,
    marks: marks::Plan,
    runs: u64,
    /// The files that were staged: those of rows, and those beside them.
    written: (Vec<RowFile>, Vec<RowFile>),
}

impl<'a> Merging<'a> {
    /// Opens the packs.
    ///
    /// Errors: `Config` for more runs than ids; `Format` with the file.
    pub(super) fn new(options: &'a MergeOptions) -> Result<Self> {
        let mut types = ValuationTypes::default();
        let mut inputs = Vec::new();
        for (i, path) in options.inputs.iter().enumerate() {
            // The first pack keeps its ids.
            inputs.push(Input::open(path, if i == 0 { None } else { Some(&mut types) })?);
            if i == 0 {
                types = inputs[0].types.clone();
            }
        }
        let mut runs = 0;
        for input in &mut inputs {
            input.first_run = runs;
            runs += input.runs.len() as u64;
        }
        if u32::try_from(runs).is_err() {
            return Err(Error::config("packs", format!("{runs} runs together; run ids have 32 bits")));
        }
        let carried = Carried::of(&inputs);
        let marks = marks_of(&inputs, &carried)?;
        let (inputs, written) = (inputs.into(), Default::default());
        Ok(Merging { options, inputs, types, carried, marks, runs, written })
    }

    fn rows(&self) -> u64 {
        self.inputs.iter().map(Input::rows).sum()
    }
}

impl super::Merging for Merging<'_> {
    fn planned(&self) -> Merged {
        let (rows, lost) = (self.rows(), self.carried.lost.iter().map(|(_, why)| why.clone()));
        Merged {
            layout: layout_name(self.options.layout),
            runs: self.runs,
            rows,
            files: self.options.shard_rows.map_or(1, |most| rows.div_ceil(most).max(1)),
            carried: self.carried.names(),
            marks: self.marks.names(),
            lost: lost.chain(self.marks.lost().iter().cloned()).collect(),
            ..Merged::default()
        }
    }

    fn marks(&self) -> &marks::Plan {
        &self.marks
    }

    fn is_alike(&self, folder: &Path) -> Result<bool> {
        Ok(!is_pack(folder)?)
    }

    fn files(&self, folder: &Path) -> Result<Vec<String>> {
        let mut names = pack::files(folder)?;
        if !names.is_empty() {
            names.extend(row_files::listed(folder, row_files::is_vectors)?);
        }
        Ok(names)
    }

    fn holds(&self, name: &str) -> bool {
        self.carried.holds(name)
    }

    fn write(&mut self, staging: &Staging, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        let (inputs, carried) = (&self.inputs, &self.carried);
        let rows = inputs.iter().map(Input::rows).sum();
        let mut writer = RowWriter::new(&staging.path(""), self.options.layout, self.options.shard_rows);
        let mut metadata = MetadataWriter::open(staging.path(pack::METADATA))?;
        let mut merged = Sources::default();
        let blocks: Arc<[Block]> = block::all(inputs).into();
        let reader = Arc::new(BlockReader::new(inputs.clone(), self.options.layout, carried.values.is_some()));
        let mut values = CutFiles::of_values(&staging.path(""), self.options.shard_rows);
        let (work, listed) = (reader.clone(), blocks.clone());
        let mut flow = InOrder::start(self.options.workers, blocks.len(), self.options.stop.clone(), move |i| {
            work.read(&listed[i])
        })
        .map_err(|e| Error::path(&self.options.output, &e))?;
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
        metadata.shorten()?;
        metadata.finish_anew()?;
        let (files, mut beside) = (writer.finish()?, values.finish()?);
        if let Some(by) = &carried.values {
            let of = |input: &Input| input.beside.lineage();
            let with_rows = inputs.iter().filter(|input| input.rows() > 0);
            let lineage = Step::new("merge").made_from(with_rows.map(of).collect());
            let made = Made::new(by, beside.clone(), vec![lineage]);
            publish::write_whole(&staging.path(row_files::VALUES_MADE), &[made.to_json()?.as_bytes()])?;
        }
        if let Some(size) = carried.vectors {
            beside.extend(beside::vectors(inputs, size, &staging.path(""), self.options.shard_rows)?);
        }
        let not_carried =
            carried.lost.iter().map(|(file, detail)| Remarked { file: (*file).to_owned(), detail: detail.clone() });
        let manifests = || inputs.iter().filter_map(|input| input.manifest.as_ref());
        let manifest = Manifest {
            format: manifest::FORMAT.to_owned(),
            version: manifest::VERSION,
            writer: lineage::WRITER.to_owned(),
            layout: layout_name(self.options.layout).to_owned(),
            rows,
            runs: inputs.iter().map(|input| input.runs.len() as u64).sum(),
            shard_rows: self.options.shard_rows,
            files: files.clone(),
            sources: merged,
            skipped: manifests().flat_map(|manifest| manifest.skipped.clone()).collect(),
            remarks: manifests().flat_map(|manifest| manifest.remarks.clone()).chain(not_carried).collect(),
            lineage: vec![lineage(self.options, inputs)],
        };
        publish::write_whole(&staging.path(row_files::VALUATION_TYPES), &[self.types.to_json().as_bytes()])?;
        let manifest = manifest.to_json()?;
        let paths: Vec<PathBuf> = files.iter().map(|file| staging.path(&file.name)).collect();
        pack::opening::write(&staging.path(""), &paths, &self.types, &manifest)?;
        publish::write_whole(&staging.path(pack::MANIFEST), &[manifest.as_bytes()])?;
        self.written = (files, beside);
        Ok(self.written.0.len() as u64)
    }

    /// Every row by its hash, the number of runs, and the names.
    fn read_back(&self) -> Result<()> {
        let output = &self.options.output;
        let (rows, beside) = &self.written;
        for (shard, file) in shards::list(output)?.iter().zip(rows) {
            let hash = hash_rows(&shard.path, shard.offset, shard.rows * self.options.layout.bytes() as u64)?;
            if shard.rows != file.rows || format!("{hash:032x}") != file.xxh3_128 {
                return Err(unlike(&shard.path));
            }
        }
        if let Some(path) = beside::read_back(output, beside)? {
            return Err(unlike(&path));
        }
        let path = output.join(pack::METADATA);
        if Metadata::open(&path)?.run_count()? != self.runs {
            return Err(unlike(&path));
        }
        valuations(output).map(drop)
    }
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

/// How the merged pack came to be.
fn lineage(options: &MergeOptions, inputs: &[Input]) -> Step {
    let of = |input: &Input| match &input.manifest {
        Some(manifest) if !manifest.lineage.is_empty() => manifest.lineage.clone(),
        _ => vec![Step::unrecorded().with("rows", input.rows())],
    };
    Step::new("merge").with("layout", layout_name(options.layout)).made_from(inputs.iter().map(of).collect())
}
