//! `man`: the commands of this program -> a folder of manual pages, one for each.

use std::path::PathBuf;

use clap::Command;
use gristmill_engine::Error;
use gristmill_engine::store::publish::write_whole;
use serde::Serialize;

use crate::args::manner;
use crate::args::shell::Man;
use crate::failure::{Failure, Result};
use crate::report;

#[derive(Serialize)]
struct Paged {
    folder: PathBuf,
    pages: Vec<String>,
    dry_run: bool,
}

pub(crate) fn run(args: &Man) -> Result<()> {
    let mut program = manner::command();
    program.build();
    let mut pages = Vec::new();
    render(program, &mut pages)?;
    if !args.overwrite
        && let Some((name, _)) = pages.iter().find(|(name, _)| args.out.join(name).exists())
    {
        let path = args.out.join(name).display().to_string();
        return Err(Failure::Failed(format!("{path}: it is there already; --overwrite replaces it")));
    }
    if !args.dry_run {
        std::fs::create_dir_all(&args.out).map_err(|e| Error::path(&args.out, &e))?;
        for (name, page) in &pages {
            write_whole(&args.out.join(name), &[page])?;
        }
    }
    let pages = pages.into_iter().map(|(name, _)| name).collect();
    let done = Paged { folder: args.out.clone(), pages, dry_run: args.dry_run };
    Ok(report::either(args.json, &done, |done| {
        let verb = if done.dry_run { "would be written" } else { "written" };
        format!("{} pages {verb} to {}, such as {}", done.pages.len(), done.folder.display(), done.pages[0])
    })?)
}

/// The page of a command that was built, and of each below it.
fn render(command: Command, pages: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let below: Vec<Command> = command.get_subcommands().filter(|sub| sub.get_name() != "help").cloned().collect();
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.disable_help_subcommand(true)).render(&mut page)?;
    pages.push((format!("{name}.1"), page));
    below.into_iter().try_for_each(|sub| render(sub, pages))
}
