//! A folder -> its demonstrations in order, each trajectory packed: data sets one after another, their trajectories by many
//! threads. A data set is in memory, at its place in a shard, or, where it is larger, in columns beside the pack meanwhile.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_engine::chunks::codec::Codec;
use gristmill_engine::chunks::is_pack;
use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::demos::{self, Demonstrations, DemosOptions, shards};
use gristmill_engine::kinds::demo::columns::facts;
use gristmill_engine::kinds::demo::{Demo, name as name_of};
use gristmill_engine::pack::manifest::Skipped;
use gristmill_engine::store::Residence;
use gristmill_engine::store::files::{is_folder, len};
use gristmill_engine::table::FrameTable;
use gristmill_format::demo::budget::MAX_BYTES;
use gristmill_format::demo::form::ReadOptions;
use gristmill_format::demo::pack::{About, Blocks, PACKED, PackedTrajectory, Trajectory, content, pack};
use gristmill_format::demo::trajectory::End;
use gristmill_format::detect::Format;
use gristmill_format::layout::Layout;
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, Result};

use super::assemble::{Assembly, Game};
use super::games::{below, worst};
use super::{Finds, Input};
use crate::files::{self, Closed, Found};
use crate::in_order::InOrder;
use crate::pack::{Existing, PackOptions};
use crate::shares::Unit;
use crate::work::Opened;

/// The name of this form in what [`Packed`](crate::pack::Packed) says.
pub(in super::super) const LABEL: &str = "demonstration chunks";

/// The demonstrations below a folder.
pub(in super::super) struct Demos {
    sets: Vec<Set>,
    skipped: Vec<Skipped>,
    fault: Option<Error>,
    /// The layout of the pack that is added to.
    layout: Option<Arc<Layout>>,
}

/// A data set: what it is called, and where it is.
struct Set {
    name: String,
    place: Place,
}

enum Place {
    /// One file.
    File(PathBuf),
    /// A folder of shards, which are one data set.
    Shards(PathBuf),
    /// Trajectories that are packed already.
    Packed(Closed),
}

/// A data set that is open.
enum Open {
    /// With the folder of its columns, which goes when it is closed.
    Files {
        demos: Box<Demonstrations>,
        _columns: Option<Columns>,
    },
    Packed(Opened),
}

impl Demos {
    /// Lists the demonstrations below the input, in order of name; none where there are games of something else, or nothing.
    ///
    /// Errors: `Io` for a folder that does not exist; the errors of the pack that is added to.
    pub(in super::super) fn list(options: &PackOptions) -> gristmill_engine::Result<Option<Self>> {
        let root = &options.input;
        let listing = files::list(root)?;
        let mut found = Demos { sets: Vec::new(), skipped: Vec::new(), fault: None, layout: None };
        let mut folders: Vec<PathBuf> = Vec::new();
        for closed in listing.files {
            let path = PathBuf::from(closed.path());
            let folder = path.parent().map(Path::to_owned).unwrap_or_default();
            let name = below(root, closed.path());
            let place = match closed.format() {
                Some(Format::Demonstrations) if is_folder(root)? && shards(&folder)?.contains(&path) => {
                    if folders.contains(&folder) {
                        continue;
                    }
                    folders.push(folder.clone());
                    let name = below(root, &folder.display().to_string());
                    found.sets.push(Set { name, place: Place::Shards(folder) });
                    continue;
                }
                Some(Format::Demonstrations) => Place::File(path),
                Some(Format::Chunks) => match closed.open() {
                    Found::File(opened) if opened.source.describe().format == PACKED => Place::Packed(closed),
                    Found::Fault(e) => {
                        found.skipped.push(Skipped::new(&name, &e));
                        worst(&mut found.fault, e);
                        continue;
                    }
                    _ => return Ok(None),
                },
                Some(_) => return Ok(None),
                None => continue,
            };
            found.sets.push(Set { name, place });
        }
        for unlisted in listing.unlisted {
            let detail =
                format!("{} files or folders could not be read; the latest: {}", unlisted.count, unlisted.latest);
            let e = Error::new(Kind::Io(std::io::ErrorKind::Other), detail);
            found.skipped.push(Skipped::new(&below(root, &root.display().to_string()), &e));
            worst(&mut found.fault, e);
        }
        let adds = matches!(options.existing, Existing::Append | Existing::Resume) && is_pack(options.before())?;
        if adds && let Ok(pack) = ChunkPack::open(options.before(), Residence::Mapped) {
            found.layout = Some(Arc::new(pack.layout().clone()));
        }
        Ok((!found.sets.is_empty()).then_some(found))
    }

    /// What it is cut by: its data sets, each as long as its files.
    ///
    /// Errors: `Path` for a file that cannot be found.
    pub(in super::super) fn units(&self) -> gristmill_engine::Result<Vec<Unit>> {
        let of = |path: &Path| Ok::<u64, gristmill_engine::Error>(len(path)?.unwrap_or(0));
        let bytes = |place: &Place| match place {
            Place::File(path) => of(path),
            Place::Shards(folder) => {
                shards(folder)?.iter().try_fold(0, |sum: u64, path| Ok(sum.saturating_add(of(path)?)))
            }
            Place::Packed(closed) => Ok(closed.bytes()),
        };
        self.sets.iter().map(|set| Ok(Unit { name: set.name.clone(), bytes: bytes(&set.place)?, inputs: 1 })).collect()
    }

    /// Some of its data sets, and what was left out of all of them.
    pub(in super::super) fn some(self, range: Range<usize>) -> (Self, Vec<Skipped>) {
        let sets = self.sets.into_iter().take(range.end).skip(range.start).collect();
        (Demos { sets, skipped: Vec::new(), ..self }, self.skipped)
    }

    fn open(set: &Set, options: &PackOptions) -> gristmill_engine::Result<Open> {
        let path = match &set.place {
            Place::File(path) | Place::Shards(path) => path,
            Place::Packed(closed) => {
                return match closed.open() {
                    Found::File(opened) => Ok(Open::Packed(opened)),
                    Found::Fault(e) => Err(e.into()),
                    _ => Err(Error::new(Kind::Missing, "the file has gone since it was listed").into()),
                };
            }
        };
        let mut go_on = || !options.stop.load(Ordering::Relaxed);
        let read = |max_bytes| ReadOptions { max_bytes, ..ReadOptions::default() };
        let held = DemosOptions { read: read(options.held_bytes), ..DemosOptions::default() };
        match demos::open(path, &held, &mut go_on) {
            Err(gristmill_engine::Error::Format(e)) if e.kind() == Kind::TooLarge => {}
            opened => return Ok(Open::Files { demos: Box::new(opened?), _columns: None }),
        }
        let columns = columns_of(options);
        let spill = Some(columns.clone());
        let spilled = DemosOptions { read: read(MAX_BYTES), spill, ..DemosOptions::default() };
        let demos = Box::new(demos::open(path, &spilled, &mut go_on)?);
        Ok(Open::Files { demos, _columns: Some(Columns(columns)) })
    }
}

/// The folder beside the pack for the columns of a data set. The next job resumes from what a killed one left there, or
/// removes it.
fn columns_of(options: &PackOptions) -> PathBuf {
    let near = options.output.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let name = options.output.file_name().unwrap_or_default().to_string_lossy();
    near.join(format!(".{name}.columns"))
}

/// Columns that are open, and go when they are closed.
struct Columns(PathBuf);

impl Drop for Columns {
    fn drop(&mut self) {
        // What cannot be removed is no fault of the pack, and is tried again by the next job.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Open {
    fn len(&self) -> usize {
        match self {
            Open::Files { demos, .. } => demos.ends().len(),
            Open::Packed(opened) => opened.source.len(),
        }
    }

    /// What trajectory `i` is called, in a data set of this name.
    fn name(&self, set: &Set, i: usize) -> String {
        let Set { name: set, place } = set;
        match self {
            Open::Files { demos, .. } => match (demos.origin(i), place) {
                (Some((file, number)), Place::Shards(_)) => name_of(&format!("{set}/{file}"), number),
                (Some((_, number)), _) => name_of(set, number),
                (None, _) => format!("{set}/{i}"),
            },
            Open::Packed(opened) => format!("{set}/{}", opened.member(i).unwrap_or_default()),
        }
    }

    fn about(&self) -> Option<About> {
        let Open::Files { demos, .. } = self else { return None };
        let facts = if demos.meta().is_some() { Vec::new() } else { demos.about() };
        let metadata = demos.meta().map(|meta| meta.pickle.clone());
        Some(About { layout: demos.layout()?.clone(), form: demos.format().to_owned(), facts, metadata })
    }

    /// Packs trajectory `i`, whose records are to have `layout`. Without `blocks` one that is packed already stays as it is.
    fn pack(
        &self,
        i: usize,
        about: Option<&About>,
        layout: Option<&Layout>,
        blocks: Option<Blocks>,
    ) -> Result<(Arc<Layout>, Game)> {
        let fits = |found: &Arc<Layout>| match layout.filter(|layout| *layout != &**found) {
            Some(layout) => {
                let (one, two) = (layout.to_descr(), found.to_descr());
                Err(Error::new(Kind::WrongSize, format!("records of {two} in a pack of {one}; pack them apart")))
            }
            None => Ok(found.clone()),
        };
        let demos = match self {
            Open::Packed(opened) => {
                let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
                opened.fetch(i, &mut stored)?;
                opened.decode(i, &stored, &mut chunk)?;
                let packed = PackedTrajectory::new(&stored)?;
                let (about, records, extras) = (packed.about()?, chunk.records(), packed.extras(0..chunk.frames)?);
                let (layout, mut again) = (fits(&about.layout)?, Vec::new());
                if let Some(blocks) = blocks {
                    let trajectory = Trajectory { about: &about, records, extras: &extras, end: packed.end() };
                    pack(&trajectory, blocks, &mut again)?;
                }
                let game = Game {
                    frames: chunk.frames as u32,
                    stored_bytes: stored.len() as u64,
                    content: content(records, &extras),
                    facts: facts(&about, records, packed.end()),
                    packed: if blocks.is_some() { again } else { stored },
                    sums: Vec::new(),
                };
                return Ok((layout, game));
            }
            Open::Files { demos, .. } => demos,
        };
        let about = about.ok_or_else(|| Error::new(Kind::Empty, "there is no frame in it"))?;
        let (layout, span) = (fits(&about.layout)?, demos.span(i)?);
        let frames = u32::try_from(span.len());
        let frames = frames.map_err(|_| Error::new(Kind::TooLarge, "more frames than 32 bits count"))?;
        let bytes = span.len().checked_mul(layout.size()).filter(|bytes| *bytes <= MAX_BYTES);
        let bytes = bytes.ok_or_else(|| {
            let detail =
                format!("a trajectory of {frames} frames of {} bytes; the bound is {MAX_BYTES}", layout.size());
            Error::new(Kind::TooLarge, detail)
        })?;
        let mut records = vec![0; bytes];
        let extras = demos.records_with_extras(span, &mut records)?;
        let extras = extras.into_iter().filter(|(_, values)| !values.is_empty()).collect();
        let end = if cut(&layout, &records) { End::Truncated } else { demos.ends()[i].1 };
        let mut packed = Vec::new();
        let trajectory = Trajectory { about, records: &records, extras: &extras, end };
        pack(&trajectory, blocks.unwrap_or_default(), &mut packed)?;
        let stored_bytes =
            records.len() as u64 + extras.values().flatten().map(|(_, one)| one.len() as u64).sum::<u64>();
        let (content, facts) = (content(&records, &extras), facts(about, &records, end));
        Ok((layout, Game { packed, frames, stored_bytes, content, facts, sums: Vec::new() }))
    }
}

/// Whether the last step says itself that the trajectory was cut.
fn cut(layout: &Layout, records: &[u8]) -> bool {
    let last = records.len().checked_sub(layout.size());
    let field = layout.field("truncated").zip(last);
    field.is_some_and(|(field, last)| records[last + field.offset..][..field.bytes()].iter().any(|byte| *byte != 0))
}

impl Input for Demos {
    fn codec(&self) -> &'static dyn Codec {
        &Demo
    }

    fn label(&self) -> &'static str {
        LABEL
    }

    fn unusable(&self) -> (&[Skipped], Option<&Error>) {
        (&self.skipped, self.fault.as_ref())
    }

    fn count(&self, options: &PackOptions) -> gristmill_engine::Result<u64> {
        self.sets.iter().try_fold(0, |sum, set| match Demos::open(set, options) {
            Ok(open) => Ok(sum + open.len() as u64),
            // Unreadable data is left out, and reported, when it is packed.
            Err(gristmill_engine::Error::Format(_)) => Ok(sum),
            Err(e) => Err(e),
        })
    }

    fn feed(self: Box<Self>, assembly: &mut Assembly<'_>, found: &mut Finds<'_>) -> gristmill_engine::Result<u64> {
        let (options, mut layout, mut count) = (assembly.options, self.layout.clone(), 0);
        if options.existing != Existing::Resume {
            drop(Columns(columns_of(options)));
        }
        for set in &self.sets {
            let open = match Demos::open(set, options) {
                Ok(open) => Arc::new(open),
                Err(gristmill_engine::Error::Format(e)) => {
                    count += 1;
                    if !assembly.recall(&set.name)? {
                        assembly.take(&set.name, Err(e))?;
                    }
                    continue;
                }
                Err(e) => return Err(e),
            };
            let (len, about) = (open.len(), open.about());
            count += len as u64;
            let mut first = 0;
            while first < len && assembly.recall(&open.name(set, first))? {
                first += 1;
            }
            // The first trajectory of all decides what the others must be like.
            let known = layout.clone().or_else(|| about.as_ref().map(|about| about.layout.clone()));
            let (shared, expected) = (open.clone(), known.clone());
            let blocks = assembly.standing.codec.map(Blocks::from);
            let make = move |i: usize| shared.pack(first + i, about.as_ref(), expected.as_deref(), blocks);
            let started = InOrder::start(options.workers, len - first, options.stop.clone(), make);
            let mut flow = started.map_err(|e| gristmill_engine::Error::path(&options.input, &e))?;
            layout = known;
            for i in first.. {
                let Some(packed) = flow.next()? else { break };
                let name = open.name(set, i);
                let packed = packed.map(|(made, game)| {
                    layout.get_or_insert(made);
                    game
                });
                assembly.take(&name, packed)?;
                found(assembly, count);
            }
        }
        assembly.recalled()?;
        Ok(count)
    }
}
