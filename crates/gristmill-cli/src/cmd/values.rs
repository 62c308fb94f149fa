//! `values`: a pack in, rewards and returns of its rows beside them.

use gristmill_jobs::values::{self, ValuesOptions};

use crate::args::pack::Values;
use crate::failure::Result;
use crate::report::{self, packing};
use crate::stopping;

pub(crate) fn run(args: &Values) -> Result<()> {
    let mut options = ValuesOptions::new(&args.pack);
    options.output.clone_from(&args.out);
    (options.gamma, options.reward_scale, options.epsilon) = (args.gamma, args.reward_scale, args.epsilon);
    options.workers = args.threads.map_or(options.workers, usize::from);
    options.overwrite = args.overwrite;
    options.dry_run = args.dry_run;
    options.stop = stopping::flag()?;
    let mut progress = None;
    let valued = values::values(&options, &mut |done, all| {
        progress.get_or_insert_with(|| report::Progress::new(all, "rows", !args.json)).at(done, "");
    });
    if let Some(progress) = progress {
        progress.end();
    }
    let valued = valued?;
    if args.json {
        return Ok(report::json(&valued)?);
    }
    Ok(report::text_out(&packing::valued(&valued))?)
}
