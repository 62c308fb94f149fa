//! `mark`: a pack and a rule in, a mark beside the data; and the marks that there are.

use gristmill_engine::marks;
use gristmill_engine::selection;
use gristmill_engine::store::Residence;
use gristmill_jobs::mark::{self, MarkOptions, Which};

use crate::args::mark::Mark;
use crate::failure::Result;
use crate::report::{self, marking};
use crate::stopping;

pub(crate) fn run(args: &Mark) -> Result<()> {
    let pack = selection::open(&args.pack, Residence::Mapped)?;
    if args.list {
        let listed = marks::list(&*pack)?;
        return Ok(report::either(args.json, &listed, |listed| marking::listed(listed))?);
    }
    if let Some(name) = &args.remove {
        let there = marks::list(&*pack)?;
        if args.dry_run && there.iter().any(|mark| mark.name == *name) {
            return Ok(report::either(args.json, &there, |_| format!("{name} would be removed"))?);
        }
        marks::remove(&*pack, name)?;
        let listed = marks::list(&*pack)?;
        return Ok(report::either(args.json, &listed, |left| marking::removed(name, left.len()))?);
    }
    let mut options = MarkOptions::new(args.name.as_deref().unwrap_or_default());
    options.replace = args.overwrite;
    options.dry_run = args.dry_run;
    options.workers = args.threads.map_or(options.workers, usize::from);
    options.stop = stopping::flag()?;
    let mut bar = None;
    let mut progress = |done, all| {
        bar.get_or_insert_with(|| report::Progress::new(all, "frames", !args.json)).at(done, "");
    };
    if let (Some(share), Some(rule)) = (args.share, &args.rule) {
        let made = mark::share(&pack, rule, &options, share, &mut progress);
        if let Some(bar) = bar {
            bar.end();
        }
        return Ok(report::either(args.json, &made?, marking::shared)?);
    }
    let marked = match &args.rule {
        Some(rule) => mark::mark(&pack, &Which::Rule(rule.clone()), &options, &mut progress),
        None => mark::update(&pack, &options, &mut progress),
    };
    if let Some(bar) = bar {
        bar.end();
    }
    let marked = marked?;
    Ok(report::either(args.json, &marked, marking::marked)?)
}
