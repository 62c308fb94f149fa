//! `doctor`: one report on data that people bring, and a page of it.

use gristmill_engine::store::publish::write_whole;
use gristmill_jobs::doctor::{DoctorOptions, doctor};

use crate::args::doctor::Doctor;
use crate::failure::{Failure, Result};
use crate::report::{self, diagnosis};
use crate::stopping;

pub(crate) fn run(args: &Doctor) -> Result<()> {
    if let Some(page) = args.html.as_deref().filter(|page| page.exists() && !args.overwrite) {
        let text = format!("{} is there already; --overwrite replaces it", page.display());
        return Err(Failure::Usage(text));
    }
    let mut options = DoctorOptions::new(args.path.clone());
    options.held_out.clone_from(&args.held_out);
    options.workers = args.threads.map_or(options.workers, usize::from);
    options.stop = stopping::flag()?;
    let mut progress = report::Progress::open_ended("files", !args.json);
    let found = doctor(&options, &mut |what, files| progress.at(files, what))?;
    progress.end();
    if let Some(page) = args.html.as_deref().filter(|_| !args.dry_run) {
        write_whole(page, &[diagnosis::html(&found).as_bytes()])?;
    }
    report::either(args.json, &found, diagnosis::text)?;
    if found.healthy { Ok(()) } else { Err(Failure::Faults) }
}
