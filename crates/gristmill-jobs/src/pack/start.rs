//! Games of 2048 that were found -> a pack of rows: from where [`begin`](super::begin) says, to the files that are published.
//! Refuses before anything is changed, and says what to do.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::holdings::Holdings;
use gristmill_engine::kinds::{self, Kind as Game, Way};
use gristmill_engine::names::is_pack;
use gristmill_engine::pack::manifest::{Manifest, Skipped};
use gristmill_engine::pack::metadata::{Metadata, MetadataWriter};
use gristmill_engine::pack::open::valuations;
use gristmill_engine::pack::shards;
use gristmill_engine::pack::valuation::ValuationTypes;
use gristmill_engine::pack::writer::{RowWriter, hash_rows};
use gristmill_engine::pack::{self, layout_name, layout_of, values};
use gristmill_engine::row_files;
use gristmill_engine::store::files::{is_file, len};
use gristmill_engine::store::publish::Staging;
use gristmill_format::{Error as FormatError, Kind};
use xxhash_rust::xxh3::Xxh3;

use super::assemble::{Assembly, Standing};
use super::begin::{self, Games, Layout, Making, Start};
use super::discover::Discovered;
use super::flow::{Flow, Work};
use super::game::Identity;
use super::{Existing, OnError, PackOptions, Packed, Progress, is_unreadable};
use crate::kinds::offers;
use crate::sidecar;

impl Games for Discovered {
    type Layout = Rows;
    type Making<'a> = Assembly<'a>;

    fn check(&self, options: &PackOptions) -> Result<()> {
        let unreadable = self.faults.iter().find(|e| is_unreadable(e));
        let first = self.faults.first().filter(|_| options.on_error == OnError::Raise);
        match unreadable.or(first) {
            _ if self.sidecars.is_empty() => Err(nothing(options, self).into()),
            Some(e) => Err(e.clone().into()),
            None if !options.weigh.is_empty() => Err(Error::config("weigh", "only positions of chess weigh")),
            None => of_rows().map_or(Ok(()), |kind| offers(kind.name(), options.codec)),
        }
    }

    fn planned(&self, options: &PackOptions) -> Result<Packed> {
        Ok(dry_run(options, self))
    }

    fn complete(&self, options: &PackOptions) -> Result<Packed> {
        complete(options)
    }

    fn begin<'a>(&self, options: &'a PackOptions, from: Start<Standing>) -> Result<Assembly<'a>> {
        match from {
            Start::Fresh(staging) => begun(options, self, staging, Standing::default()),
            Start::After(staging) => {
                let (staging, standing, known) = after(options, staging)?;
                Ok(Assembly { known, ..begun(options, self, staging, standing)? })
            }
            Start::From(staging, standing) => {
                let before = standing.append.then(|| known(options.before(), standing.runs_before));
                let known = before.transpose()?.unwrap_or_default();
                Ok(Assembly { known, ..resumed(options, staging, *standing, self)? })
            }
            Start::Nothing => Err(nothing(options, self).into()),
        }
    }

    fn take(self, making: &mut Assembly<'_>, progress: &mut dyn FnMut(Progress)) -> Result<u64> {
        let (sidecars, options) = (Arc::<[String]>::from(self.sidecars), making.options);
        let known = std::mem::take(&mut making.known);
        let work = Work { root: options.input.clone(), sidecars: sidecars.clone(), first: making.standing.done, known };
        let mut flow = Flow::start(work, options.workers, options.stop.clone())?;
        making.run(&sidecars, &mut flow, progress)?;
        Ok(sidecars.len() as u64)
    }
}

impl Making for Assembly<'_> {
    fn taken(&self) -> u64 {
        self.standing.runs - self.standing.runs_before
    }

    fn appends(&self) -> bool {
        self.standing.append
    }

    fn unmade(self) -> (Staging, Vec<Skipped>) {
        (self.staging, self.standing.skipped)
    }

    fn complete(self) -> Result<(Staging, Packed)> {
        let layout = layout_name(self.form);
        let (staging, standing, files) = self.finish()?;
        let packed = Packed {
            layout,
            known: standing.known,
            runs: standing.runs,
            rows: files.iter().map(|file| file.rows).sum(),
            files: files.len() as u64,
            skipped: standing.skipped[standing.skipped_before..].to_vec(),
            remarks: standing.remarks[standing.remarks_before..].to_vec(),
            ..Packed::default()
        };
        Ok((staging, packed))
    }
}

/// The kind whose packs are rows.
fn of_rows() -> Option<&'static dyn Game> {
    kinds::packable().find_map(|(kind, way)| matches!(way, Way::Rows).then_some(kind))
}

fn nothing(options: &PackOptions, found: &Discovered) -> FormatError {
    let detail = match found.faults.first() {
        Some(e) => format!("no games could be found: {}", e.detail()),
        None => {
            let holds = Holdings::of(&options.input);
            let told = match holds.has_games() || holds.has_logs() {
                true => String::new(),
                false => format!(": it {}", holds.told(&options.input)),
            };
            format!("no games here{told}; expected {}", kinds::files())
        }
    };
    let kind = found.faults.first().map_or(Kind::Missing, FormatError::kind);
    FormatError::new(kind, detail).in_source(options.input.display().to_string())
}

/// What packing would begin with.
fn dry_run(options: &PackOptions, found: &Discovered) -> Packed {
    let mut planned = Packed {
        layout: layout_name(options.layout.unwrap_or_default()),
        games: found.sidecars.len() as u64,
        runs: found.sidecars.len() as u64,
        skipped: left_out(options, found),
        ..Packed::default()
    };
    for name in &found.sidecars {
        match sidecar::read(&options.input.join(name)) {
            Ok((sidecar, _)) => planned.rows = planned.rows.saturating_add(sidecar.num_moves),
            Err(e) => {
                planned.runs -= 1;
                planned.skipped.push(Skipped::new(name, &e));
            }
        }
    }
    planned.files = options.shard_rows.map_or(1, |most| planned.rows.div_ceil(most).max(1));
    planned
}

/// What discovery could not make a game of, with paths below the input.
pub(super) fn left_out(options: &PackOptions, found: &Discovered) -> Vec<Skipped> {
    let below = |e: &FormatError| {
        let source = e.place().source.clone().unwrap_or_default();
        let below = Path::new(&source).strip_prefix(&options.input).map(|path| path.display().to_string());
        Skipped::new(below.as_deref().unwrap_or(&source), e)
    };
    found.faults.iter().map(below).chain(found.halves.iter().cloned()).collect()
}

/// Packs of rows, as a job writes them.
pub(super) struct Rows;

impl Layout for Rows {
    type Standing = Standing;

    fn files(folder: &Path) -> Result<Vec<String>> {
        pack::files(folder)
    }

    fn is_other(folder: &Path) -> Result<bool> {
        Ok(is_pack(folder)?)
    }

    fn stranger(standing: &Standing) -> Option<&str> {
        standing.complete.iter().map(|file| &*file.name).find(|name| !is_name(name))
    }

    fn close(staging: &Staging) -> Result<bool> {
        let mut metadata = MetadataWriter::open(staging.path(pack::METADATA))?;
        let standing = metadata.progress()?.map(|text| begin::parse::<Rows>(&text)).transpose()?;
        // Where no progress is noted, the database was finished as well: the manifest says whether files stay.
        let append = match standing {
            Some(standing) => standing.append,
            None if staging.job() == Existing::Append.job() => true,
            None => Manifest::read(&staging.path(""))?.is_some_and(|staged| {
                let staged_too = |name: &str| staging.path(name).exists();
                staged.files.iter().any(|file| !staged_too(&file.name))
            }),
        };
        metadata.shorten()?;
        metadata.finish_anew()?;
        Ok(append)
    }

    /// Values and vectors of the rows.
    fn stale(folder: &Path) -> Result<Vec<String>> {
        let values = values::names(folder)?.into_iter().filter(|name| row_files::is_values(name));
        Ok(values.chain(row_files::listed(folder, row_files::is_vectors)?).collect())
    }
}

/// The pack as it is.
pub(super) fn complete(options: &PackOptions) -> Result<Packed> {
    let Some(manifest) = Manifest::read(options.folder_of(pack::MANIFEST))? else {
        return begin::refuse(options, "there is nothing to resume, and the pack has no manifest");
    };
    Ok(Packed {
        layout: layout_of(&manifest.layout).map_or("", layout_name),
        games: manifest.sources.logs,
        runs: manifest.runs,
        rows: manifest.rows,
        files: manifest.files.len() as u64,
        resumed: manifest.runs,
        ..Packed::default()
    })
}

/// The pack in the making, which this job begins.
pub(super) fn begun<'a>(
    options: &'a PackOptions,
    found: &Discovered,
    staging: Staging,
    mut standing: Standing,
) -> Result<Assembly<'a>> {
    if !standing.append {
        standing.layout = layout_name(options.layout.unwrap_or_default()).to_owned();
        standing.shard_rows = options.shard_rows;
        standing.valuations = ValuationTypes::default().names().to_vec();
    }
    left_out(options, found).into_iter().for_each(|skipped| standing.skip(skipped));
    let mut assembly = assemble(options, staging, standing, Xxh3::new())?;
    assembly.checkpoint()?;
    assembly.staging.keep();
    Ok(assembly)
}

/// Sets everything up as `standing` says.
fn assemble(options: &PackOptions, staging: Staging, standing: Standing, names: Xxh3) -> Result<Assembly<'_>> {
    let form = layout_of(&standing.layout).unwrap_or_default();
    let asked = options.layout.is_some_and(|asked| asked != form);
    if asked || options.shard_rows.is_some_and(|asked| Some(asked) != standing.shard_rows) {
        let rows = standing.shard_rows.map_or("one file".to_owned(), |rows| format!("files of {rows} rows"));
        let message =
            format!("the pack has the layout {} and {rows}; leave --layout and --shard-rows out", standing.layout);
        return Err(Error::config("layout", message));
    }
    let folder = staging.path("");
    let complete = standing.complete.clone();
    let writer = RowWriter::resume(&folder, form, standing.shard_rows, complete, standing.open_rows)?;
    let metadata = MetadataWriter::open(staging.path(pack::METADATA))?;
    let text = serde_json::to_string(&standing.valuations).unwrap_or_default();
    let types = ValuationTypes::parse(&text)?;
    let checkpoint = writer.rows();
    let known = HashSet::new();
    let told = None;
    Ok(Assembly { options, staging, form, writer, metadata, types, standing, names, checkpoint, known, told })
}

/// Resumes an interrupted job, if the games that it took are still there.
fn resumed<'a>(
    options: &'a PackOptions,
    staging: Staging,
    standing: Standing,
    found: &Discovered,
) -> Result<Assembly<'a>> {
    let mut names = Xxh3::new();
    for name in found.sidecars.iter().take(standing.done) {
        names.update(name.as_bytes());
        names.update(b"\n");
    }
    let changed = |what: &str| {
        let advice = "; pack it from the start with --overwrite";
        Err(Error::State(format!("{what} in {} since the job was interrupted{advice}", options.input.display())))
    };
    if found.sidecars.len() < standing.done || format!("{:032x}", names.digest128()) != standing.names {
        return changed("games were added, removed or renamed");
    }
    let mut resized = None;
    Metadata::open(staging.path(pack::METADATA))?.extras(&mut |extra| {
        let there = || matches!(len(&options.input.join(&extra.source)), Ok(Some(len)) if len == extra.stored_bytes);
        if extra.run_id >= standing.runs_before && !there() {
            resized.get_or_insert(extra.source);
        }
        Ok(())
    })?;
    if let Some(log) = resized {
        return changed(&format!("the log {log} has changed"));
    }
    assemble(options, staging, standing, names)
}

/// Stages the part of the pack in the output that its addition continues.
fn after(options: &PackOptions, mut staging: Staging) -> Result<(Staging, Standing, HashSet<u128>)> {
    let before = options.before();
    let Some(manifest) = Manifest::read(before)? else {
        let text = "this pack has no manifest, so that its games are not known; `merge` it with a new pack";
        return begin::refuse(options, text);
    };
    staging.clear(Existing::Append.job())?;
    let place = |e: FormatError, name: &str| Error::from(e.in_source(before.join(name).display().to_string()));
    let known = known(before, manifest.runs)?;
    let Some(form) = layout_of(&manifest.layout) else {
        let e = FormatError::new(Kind::Unsupported, format!("layout `{}`", manifest.layout));
        return Err(place(e, pack::MANIFEST));
    };
    let there = shards::list(before)?;
    let same = there.len() == manifest.files.len()
        && there.iter().zip(&manifest.files).all(|(there, said)| {
            is_name(&said.name)
                && there.path.ends_with(&said.name)
                && there.rows == said.rows
                && there.layout == **form.layout()
        });
    if !same {
        let e =
            FormatError::new(Kind::Corrupt, "the files of rows are not those of the manifest; see `gristmill verify`");
        return Err(place(e, pack::MANIFEST));
    }
    if !is_file(&before.join(row_files::VALUATION_TYPES))? {
        let e = FormatError::new(Kind::Missing, "it is not there, so that the valuations of the rows are not known");
        return Err(place(e, row_files::VALUATION_TYPES));
    }
    let types = valuations(before)?;
    let mut standing = Standing {
        layout: manifest.layout,
        shard_rows: manifest.shard_rows,
        append: true,
        runs: manifest.runs,
        runs_before: manifest.runs,
        complete: manifest.files,
        valuations: types.names().to_vec(),
        sources: manifest.sources,
        skipped_before: manifest.skipped.len(),
        skipped: manifest.skipped,
        remarks_before: manifest.remarks.len(),
        remarks: manifest.remarks,
        ..Standing::default()
    };
    if let Some(last) = standing.complete.pop_if(|last| manifest.shard_rows != Some(last.rows)) {
        staging.bring(before, &last.name)?;
        let staged = staging.path(&last.name);
        let written = there.last().map(|there| hash_rows(&staged, there.offset, last.rows * form.bytes() as u64));
        if written.transpose()?.map(|hash| format!("{hash:032x}")).as_ref() != Some(&last.xxh3_128) {
            let e = FormatError::new(
                Kind::Corrupt,
                "the rows do not have the hash of the manifest; see `gristmill verify`",
            );
            return Err(place(e, &last.name));
        }
        standing.open_rows = last.rows;
    }
    staging.bring(before, pack::METADATA)?;
    Ok((staging, standing, known))
}

/// Whether a file of rows has such a name.
fn is_name(name: &str) -> bool {
    row_files::is_rows(name) && !name.contains('/')
}

/// Keys of the games in a pack of `runs` runs.
fn known(pack: &Path, runs: u64) -> Result<HashSet<u128>> {
    let path = pack.join(pack::METADATA);
    let metadata = Metadata::open(&path)?;
    let (mut known, mut count) = (HashSet::new(), 0);
    metadata.extras(&mut |extra| {
        count += 1;
        known.insert(Identity { bytes: extra.stored_bytes, xxh3: extra.stored_xxh3 }.key(&extra.sidecar));
        Ok(())
    })?;
    if count != runs || metadata.run_count()? != runs {
        let detail = format!(
            "the pack knows the logs of {count} of its {runs} games, so new ones cannot be recognized: `merge` a new pack"
        );
        return Err(FormatError::new(Kind::Missing, detail).in_source(path.display().to_string()).into());
    }
    Ok(known)
}
