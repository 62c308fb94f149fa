//! The gristmill command: words in, one command run, an exit code out.

mod args;
mod cmd;
mod failure;
mod handover;
mod report;
mod stopping;
mod top;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;

use args::manner::{self, Shared};
use args::tokenizer::Tokenizer;
use args::{Command, Generate};
use failure::{Failure, Result};
use gristmill_engine::runtime::pages::Pages;

/// Large buffers go back to the system when they are freed, so that bounds of memory hold.
#[global_allocator]
static ALLOCATOR: Pages = Pages;

fn main() -> ExitCode {
    stopping::survive_limits();
    let words = handover::verb_first(std::env::args_os().skip(1).collect());
    let shared = Shared::glance(&words);
    report::begin(shared);
    let done = if handover::is_meant(&words) { handover::run(words) } else { run(&words, shared) };
    report::took();
    done.unwrap_or_else(|failure| {
        report::failure(&failure);
        failure.code()
    })
}

fn run(words: &[OsString], shared: Shared) -> Result<ExitCode> {
    let cli = match manner::parse(words, shared.color) {
        Ok(cli) => cli,
        Err(e) if matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            report::help(&e)?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(e) if e.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            report::note(&e.render().to_string());
            return Err(Failure::Usage("expected a command".to_owned()));
        }
        Err(e) => return Err(e.into()),
    };
    report::begin(cli.shared);
    cli.elsewhere.begin();
    stopping::listen()?;
    command(cli.command).map(|()| ExitCode::SUCCESS)
}

fn command(command: Command) -> Result<()> {
    match command {
        Command::Generate(Generate::Random(_)) => handover::run(vec!["generate".into(), "random".into()]).map(drop),
        Command::Generate(Generate::Chess(args)) => cmd::generate::chess::run(&args),
        Command::Generate(Generate::G2048(args)) => cmd::generate::g2048::run(&args),
        Command::Inspect(args) => cmd::inspect::run(&args),
        Command::View(args) => cmd::view::run(&args),
        Command::Pack(args) => cmd::pack::run(&args),
        Command::Commit(args) => cmd::commit::run(&args),
        Command::Shares(args) => cmd::shares::run(&args),
        Command::Ray(job) => handover::run(vec!["ray".into(), job.name().into()]).map(drop),
        Command::Merge(args) => cmd::merge::run(&args),
        Command::Recover(args) => cmd::recover::run(&args),
        Command::Clean(args) => cmd::clean::run(&args),
        Command::Values(args) => cmd::values::run(&args),
        Command::Checksum(args) => cmd::checksum::run(&args),
        Command::Dedup(args) => cmd::dedup::run(&args),
        Command::Mark(args) => cmd::mark::run(&args),
        Command::Verify(args) => cmd::verify::run(&args),
        Command::VerifyRun(args) => cmd::verify_run::run(&args),
        Command::Xray(args) => cmd::xray::run(&args),
        Command::When(args) => cmd::when::run(&args),
        Command::Plan(args) => cmd::plan::run(&args),
        Command::Doctor(args) => cmd::doctor::run(&args),
        Command::Stats(args) => cmd::stats::run(&args),
        Command::Rescore(args) => cmd::rescore::run(&args),
        Command::Filter(args) => cmd::filter::run(&args),
        Command::Split(args) => cmd::split::run(&args),
        Command::Convert(args) => cmd::convert::run(&args),
        Command::Feed(args) => cmd::feed::run(&args),
        Command::Bench(args) => cmd::bench::run(&args),
        Command::Completions(args) => cmd::completions::run(&args),
        Command::Man(args) => cmd::man::run(&args),
        Command::Tokenizer(Tokenizer::Fit(args)) => cmd::tokenizer::fit(&args),
        Command::Top(args) => cmd::top::run(&args),
        Command::Describe(_) => handover::run(vec![handover::DESCRIBE.into()]).map(drop),
        Command::InstallLczero(_) => handover::run(vec![handover::INSTALL.into()]).map(drop),
    }
}
