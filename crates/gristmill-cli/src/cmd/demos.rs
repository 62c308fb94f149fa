//! `convert` and `split` of demonstrations: shards, arrays, folders for each side.

use std::path::Path;

use gristmill_engine::Error;
use gristmill_format::demo::native::Semantics;
use gristmill_jobs::delivery::{Delivery, Earlier};
use gristmill_jobs::demos::{
    self as job, Choice, ConvertOptions, Converted, Phase, SpaceOptions, SplitOptions, SplitUp, TaskOptions,
    is_demonstrations,
};
use gristmill_jobs::shares::Share;

use super::delivery::deliver;
use super::shares::AGAIN_OF_SHARE;
use crate::args::convert::Convert;
use crate::args::demos::Demos;
use crate::args::pictures::Colors;
use crate::args::rewrite::Split;
use crate::failure::{Failure, Result};
use crate::report::{self, demonstrations};
use crate::stopping;

/// Whether demonstrations lie at `path`.
pub(super) fn lie_at(path: &Path) -> Result<bool> {
    Ok(is_demonstrations(path)?)
}

pub(super) fn convert(args: &Convert) -> Result<()> {
    let (words, rewriting) = (&args.demos, &args.rewriting);
    let options = ConvertOptions {
        input: rewriting.path.clone(),
        output: rewriting.out.clone(),
        task: task(words),
        spaces: SpaceOptions {
            n_actions: words.n_actions,
            action_bounds: words.action_bounds,
            obs_bounds: words.obs_bounds,
            color_space: words.color_space.map(|colors| {
                let name = if colors == Colors::Gray { "GRAY" } else { "RGB" };
                name.to_owned()
            }),
        },
        semantics: if words.compat { Semantics::Compat } else { Semantics::Strict },
        choice: Choice { n_traj: words.n_traj, sample: words.sample, shuffle: words.shuffle },
        seed: words.seed,
        level: words.level,
        max_frames: words.max_frames,
        files_per_shard: words.files_per_shard,
        share: rewriting.share,
        members: words.members.map(Into::into),
        overwrite: args.g2048.overwrite,
        dry_run: rewriting.dry_run,
        stop: stopping::flag()?,
    };
    let mut bar = Bar::new(!rewriting.json);
    let converted = job::convert(&options, &mut |phase| bar.at(phase));
    bar.end();
    let converted = converted.map_err(|e| stopped(e, options.share))?;
    self::converted(&converted, rewriting.json)
}

/// Says what came of a conversion, of its share or of its commit.
pub(super) fn converted(converted: &Converted, json: bool) -> Result<()> {
    Ok(report::either(json, converted, demonstrations::converted)?)
}

/// Says what came of a split, of its share or of its commit.
pub(super) fn split_up(split: &SplitUp, json: bool) -> Result<()> {
    Ok(report::either(json, split, demonstrations::split)?)
}

fn task(words: &Demos) -> TaskOptions {
    TaskOptions {
        config: words.config.clone(),
        benchmark: words.benchmark.clone(),
        task: words.task.clone(),
        magical_preproc: words.magical_preproc.clone(),
        remove_null_actions: words.remove_null_actions,
        frame_stack: words.frame_stack.map(u64::from),
    }
}

pub(super) fn split(args: &Split) -> Result<()> {
    let delivery = match args.rewriting.share {
        // The job puts a share beside its output itself, also in a bucket.
        Some(_) => Delivery::Here(args.rewriting.out.clone()),
        None => Delivery::to(&args.rewriting.out, Earlier::Removed, args.rewriting.dry_run)?,
    };
    let options = SplitOptions {
        input: args.rewriting.path.clone(),
        output: delivery.folder(),
        sides: args.into.clone(),
        fold: super::split::fold(args),
        members: args.members.map(Into::into).unwrap_or_default(),
        files_per_shard: args.files_per_shard,
        share: args.rewriting.share,
        dry_run: args.rewriting.dry_run,
        stop: stopping::flag()?,
    };
    let mut bar = Bar::new(!args.rewriting.json);
    let split = job::split(&options, &mut |phase| bar.at(phase));
    bar.end();
    let mut split = split.map_err(|e| stopped(e, options.share))?;
    if split.share.is_some() {
        return split_up(&split, args.rewriting.json);
    }
    let place = deliver(delivery, &options.stop, args.rewriting.json, "the same command begins again")?;
    split.out = options.sides.iter().map(|(name, _)| Path::new(&place).join(name)).collect();
    split_up(&split, args.rewriting.json)
}

fn stopped(e: Error, share: Option<Share>) -> Failure {
    match e {
        Error::Stopped if share.is_some() => Failure::stopped(AGAIN_OF_SHARE),
        Error::Stopped => Failure::stopped("the output is as it was"),
        e => e.into(),
    }
}

/// Files read, then frames written.
struct Bar {
    wanted: bool,
    reading: bool,
    shown: Option<report::Progress>,
}

impl Bar {
    fn new(wanted: bool) -> Self {
        Bar { wanted, reading: false, shown: None }
    }

    fn at(&mut self, phase: Phase) {
        let (reading, done, all, what) = match phase {
            Phase::Reading(done, all) => (true, done, all, "files read"),
            Phase::Writing(done, all) => (false, done, all, "frames"),
        };
        if self.reading != reading {
            self.end();
            self.reading = reading;
        }
        self.shown.get_or_insert_with(|| report::Progress::new(all, what, self.wanted)).at(done, "");
    }

    fn end(&mut self) {
        if let Some(shown) = self.shown.take() {
            shown.end();
        }
    }
}
