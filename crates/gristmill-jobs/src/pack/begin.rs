//! The options and what lies in the output -> where packing starts: empty, after a kill, or after existing files; and how it ends.
//! One for packs of every layout, which says what it has to say of its own. Refuses before anything is changed, and says what to do.

use std::path::Path;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack::manifest::Skipped;
use gristmill_engine::pack::metadata::progress_of;
use gristmill_engine::pack::{MANIFEST, METADATA, QUARANTINE, STAGING};
use gristmill_engine::store::publish::{self, Found, Staging};
use gristmill_format::{Error as FormatError, Kind};
use serde::de::DeserializeOwned;

use super::{Existing, OnError, PackOptions, Packed, Progress};

/// What one layout of packs says to a job that writes it.
pub(super) trait Layout {
    /// Where a job stands.
    type Standing: DeserializeOwned;

    /// Names of the files of a pack in a folder.
    ///
    /// Errors: `Path`.
    fn files(folder: &Path) -> Result<Vec<String>>;

    /// Whether the files in a folder that is not empty are those of a pack in another layout.
    fn is_other(folder: &Path) -> Result<bool>;

    /// A file that a standing names, and that no pack has.
    fn stranger(standing: &Self::Standing) -> Option<&str>;

    /// Closes what an interrupted job had completed; whether it adds to the pack that is there.
    ///
    /// Errors: those of the files.
    fn close(staging: &Staging) -> Result<bool>;

    /// Files in the folder of a pack that no longer fit it, since games were added.
    ///
    /// Errors: `Path`.
    fn stale(_: &Path) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// Games that were found, and how a pack is made of them.
pub(super) trait Games: Sized {
    /// The layout of the pack.
    type Layout: Layout;
    /// The pack in the making.
    type Making<'a>: Making;

    /// Refuses options that do not go with these games, and games that nothing can be made of.
    ///
    /// Errors: `Config` with the option; `Format` with the place.
    fn check(&self, options: &PackOptions) -> Result<()>;

    /// What packing would begin with.
    ///
    /// Errors: what cannot be counted.
    fn planned(&self, options: &PackOptions) -> Result<Packed>;

    /// The pack as it is, where nothing is left to do.
    ///
    /// Errors: those of its manifest.
    fn complete(&self, options: &PackOptions) -> Result<Packed>;

    /// Sets everything up in the staging: after the `standing` of a killed job, or after the pack that is there.
    ///
    /// Errors: `Config` for options that do not go with what is there; `State` for other games; those of the files.
    fn begin<'a>(&self, options: &'a PackOptions, from: Start<Standing<Self>>) -> Result<Self::Making<'a>>;

    /// Takes all games in, and says how many there were.
    ///
    /// Errors: those of the games; `Stopped`. What came before can be resumed.
    fn take(self, making: &mut Self::Making<'_>, progress: &mut dyn FnMut(Progress)) -> Result<u64>;
}

/// Where a job on these games stands.
pub(super) type Standing<G> = <<G as Games>::Layout as Layout>::Standing;

/// A pack in the making.
pub(super) trait Making {
    /// Games that this job took, by what it did before it was interrupted too.
    fn taken(&self) -> u64;

    /// Whether games are added to an existing pack.
    fn appends(&self) -> bool;

    /// Its staging, and what was left out.
    fn unmade(self) -> (Staging, Vec<Skipped>);

    /// Completes the staged files. With the manifest, which comes last, nothing remains but to publish them.
    ///
    /// Errors: those of the files.
    fn complete(self) -> Result<(Staging, Packed)>;
}

/// Packs games, with options that were checked.
///
/// Errors: as `pack` of the room above.
pub(super) fn pack<G: Games>(options: &PackOptions, games: G, progress: &mut dyn FnMut(Progress)) -> Result<Packed> {
    games.check(options)?;
    fits::<G::Layout>(options)?;
    let pack = options.output.display().to_string();
    if options.dry_run {
        return Ok(Packed { pack, dry_run: true, ..games.planned(options)? });
    }
    match made(options, games, progress)? {
        Made::Whole(packed) => Ok(packed),
        Made::Nothing(staging, _, skipped) => nothing_taken(options, staging, &skipped),
    }
}

/// Packs some games of a job, which are in order: that not one of them can be taken is no fault of theirs.
///
/// Errors: as [`pack`].
pub(super) fn part<G: Games>(options: &PackOptions, games: G, progress: &mut dyn FnMut(Progress)) -> Result<Packed> {
    games.check(options)?;
    match made(options, games, progress)? {
        Made::Whole(packed) => Ok(packed),
        Made::Nothing(staging, games, skipped) => {
            staging.discard()?;
            Ok(Packed { games, skipped, ..Packed::default() })
        }
    }
}

/// What a commit of shares asks and writes while it makes its pack.
pub(super) trait Commit {
    /// Whether another process published this pack; asked once no other process can.
    fn is_published(&self) -> Result<bool>;

    /// Notes the manifest, before it is published.
    fn note(&self, manifest: &Path) -> Result<()>;
}

/// Makes the pack of shares, over what is in the output; none where it is published already.
///
/// Errors: as [`pack`]; those of `commit`.
pub(super) fn join<G: Games>(
    options: &PackOptions,
    games: G,
    commit: &dyn Commit,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<Packed>> {
    fits::<G::Layout>(options)?;
    let pack = options.output.display().to_string();
    let Start::Fresh(staging) = choose::<G::Layout>(options)? else {
        return refuse(options, "an interrupted job is here");
    };
    match commit.is_published() {
        Ok(false) => {}
        published => {
            staging.discard()?;
            return published.map(|_| None);
        }
    }
    let mut making = games.begin(options, Start::Fresh(staging))?;
    let found = games.take(&mut making, progress)?;
    if making.taken() == 0 {
        let (staging, skipped) = making.unmade();
        return nothing_taken(options, staging, &skipped);
    }
    let (staging, packed) = making.complete()?;
    commit.note(&staging.path(MANIFEST))?;
    publish_over::<G::Layout>(&options.output, staging, false)?;
    Ok(Some(Packed { pack, games: found, ..packed }))
}

/// What came of games.
enum Made {
    /// A pack, in its place.
    Whole(Packed),
    /// Nothing: how many games were found, and which were left out.
    Nothing(Staging, u64, Vec<Skipped>),
}

fn made<G: Games>(options: &PackOptions, games: G, progress: &mut dyn FnMut(Progress)) -> Result<Made> {
    let pack = options.output.display().to_string();
    let mut making = match choose::<G::Layout>(options)? {
        Start::Nothing => return Ok(Made::Whole(Packed { pack, ..games.complete(options)? })),
        start => games.begin(options, start)?,
    };
    let resumed = making.taken();
    let found = games.take(&mut making, progress)?;
    let (fresh, append) = (making.taken(), making.appends());
    if fresh == 0 && !append {
        let (staging, skipped) = making.unmade();
        return Ok(Made::Nothing(staging, found, skipped));
    }
    let (staging, packed) = making.complete()?;
    let mut stale = Vec::new();
    if fresh == 0 {
        staging.discard()?;
    } else {
        publish_over::<G::Layout>(&options.output, staging, append)?;
        if append {
            stale = G::Layout::stale(options.before())?;
        }
    }
    Ok(Made::Whole(Packed { pack, games: found, resumed, stale, ..packed }))
}

/// Where packing starts.
pub(super) enum Start<S> {
    /// With an empty staging.
    Fresh(Staging),
    /// After the games of the existing pack; nothing is cleared yet.
    After(Staging),
    /// Where an interrupted job stood.
    From(Staging, Box<S>),
    /// Nowhere: the pack is complete.
    Nothing,
}

/// What an interrupted job left.
enum Left<S> {
    /// Everything is staged: only publishing is left.
    Complete,
    /// What was written up to here.
    At(Box<S>),
}

const THERE: &str = "there is a pack already; --overwrite replaces it, --append adds what is new";
const OTHER: &str = "there is a pack of something else; take another folder, or remove it first";
const NOT_THERE: &str = "there is no pack to add to; leave --append out";

/// Refuses what the output rules out.
pub(super) fn refuse<T>(options: &PackOptions, message: &str) -> Result<T> {
    Err(Error::config("output", format!("{}: {message}", options.before().display())))
}

/// Refuses options that the output, with no job on it, rules out.
fn fits<L: Layout>(options: &PackOptions) -> Result<()> {
    let there = !L::files(options.before())?.is_empty();
    match options.existing {
        // Files of a pack that is published in part are judged when all of them are there.
        _ if publish::is_interrupted(&options.output, STAGING) => Ok(()),
        _ if there && L::is_other(options.before())? => refuse(options, OTHER),
        _ if publish::is_staged(&options.output, STAGING) => Ok(()),
        Existing::Refuse if there => refuse(options, THERE),
        Existing::Append if !there => refuse(options, NOT_THERE),
        _ => Ok(()),
    }
}

/// Chooses where to start.
///
/// Errors: `Config` in `output`; `State` for a job of another version; those of the files.
fn choose<L: Layout>(options: &PackOptions) -> Result<Start<L::Standing>> {
    let (mut staging, found) = Staging::open(&options.output, STAGING, options.existing.job())?;
    let there = !L::files(options.before())?.is_empty();
    if found == Found::Published && there && L::is_other(options.before())? {
        return refuse(options, OTHER);
    }
    let left = left::<L>(&staging)?;
    let existing = match (options.existing, found, &left) {
        // The interrupted job had not begun: its options apply now.
        (Existing::Resume, Found::Unfinished, None) => options.again(&staging, there)?,
        (existing, ..) => existing,
    };
    match (existing, left) {
        (Existing::Resume, Some(Left::Complete)) => {
            publish_left::<L>(&options.output, staging)?;
            Ok(Start::Nothing)
        }
        (Existing::Resume, Some(Left::At(standing))) => Ok(Start::From(staging, standing)),
        (Existing::Resume, None) if there => {
            staging.discard()?;
            Ok(Start::Nothing)
        }
        (Existing::Refuse | Existing::Append, _) if found == Found::Published => {
            refuse(options, "an interrupted job was completed there now; look at it, then say --overwrite or --append")
        }
        (Existing::Refuse | Existing::Append, Some(_)) => refuse(
            options,
            "an interrupted job is here; --resume resumes it, --abandon gives it up, --overwrite starts again",
        ),
        (Existing::Refuse, None) if there => refuse(options, THERE),
        (Existing::Append, None) if !there => refuse(options, NOT_THERE),
        (Existing::Append, None) => Ok(Start::After(staging)),
        (Existing::Refuse | Existing::Resume, None) | (Existing::Overwrite, _) => {
            staging.clear(existing.job())?;
            Ok(Start::Fresh(staging))
        }
    }
}

fn left<L: Layout>(staging: &Staging) -> Result<Option<Left<L::Standing>>> {
    if !Existing::packs(staging) || !staging.path(METADATA).exists() {
        return Ok(None);
    }
    staging.owned()?;
    if staging.path(MANIFEST).exists() {
        return Ok(Some(Left::Complete));
    }
    let Some(text) = progress_of(&staging.path(METADATA))? else { return Ok(None) };
    Ok(Some(Left::At(Box::new(parse::<L>(&text)?))))
}

/// Reads where an interrupted job stood.
///
/// Errors: `State` for one of another version, or that names files which no pack has.
pub(super) fn parse<L: Layout>(text: &str) -> Result<L::Standing> {
    let other = |e| Error::State(format!("the interrupted job was of another version: {e}"));
    let standing: L::Standing = serde_json::from_str(text).map_err(other)?;
    match L::stranger(&standing) {
        Some(file) => Err(Error::State(format!("`{}` is no file of a pack", file.escape_debug()))),
        None => Ok(standing),
    }
}

/// Publishes what an interrupted job had completed.
///
/// Errors: those of the files.
pub(super) fn publish_left<L: Layout>(output: &Path, staging: Staging) -> Result<()> {
    let append = L::close(&staging)?;
    publish_over::<L>(output, staging, append)
}

/// Publishes a pack, in place of what the new one has no use for.
///
/// Errors: those of the files.
fn publish_over<L: Layout>(output: &Path, staging: Staging, append: bool) -> Result<()> {
    let mut outdated = L::files(output)?;
    outdated.retain(|name| !append || name.ends_with("-wal") || name.ends_with("-shm"));
    staging.publish(&outdated)
}

/// The error where no game could be taken; the staging goes.
///
/// Errors: `Format` of kind `Empty`, with the first that was left out.
fn nothing_taken<T>(options: &PackOptions, staging: Staging, skipped: &[Skipped]) -> Result<T> {
    let first = skipped.first().map(|s| format!("; the first, {}: {}: {}", s.file, s.kind, s.detail));
    staging.discard()?;
    let e = FormatError::new(Kind::Empty, format!("not one game could be taken{}", first.unwrap_or_default()));
    Err(e.in_source(options.input.display().to_string()).into())
}

/// Stages a file of the pack.
///
/// Errors: those of the file.
pub(super) fn stage(staging: &Staging, name: &str, text: &str) -> Result<()> {
    publish::write_whole(&staging.path(name), &[text.as_bytes()])
}

/// Stages the list of what was left out, where the options want one.
///
/// Errors: those of the file.
pub(super) fn stage_quarantine(options: &PackOptions, staging: &Staging, skipped: &[Skipped]) -> Result<()> {
    if options.on_error != OnError::Quarantine {
        return Ok(());
    }
    let lines = skipped.iter().map(|skipped| Ok(serde_json::to_string(skipped)? + "\n"));
    let lines: serde_json::Result<String> = lines.collect();
    stage(staging, QUARANTINE, &lines.map_err(|e| Error::State(format!("the report cannot be written: {e}")))?)
}
