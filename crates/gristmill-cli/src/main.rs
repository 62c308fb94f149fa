//! The gristmill command: words in, one command run, an exit code out.

mod args;
mod cmd;
mod failure;
mod handover;
mod report;
mod stopping;
mod top;

use std::process::ExitCode;

use clap::Parser;

use args::tokenizer::Tokenizer;
use args::{Cli, Command, Generate};
use gristmill_engine::runtime::pages::Pages;

/// Large buffers go back to the system when they are freed, so that bounds of memory hold.
#[global_allocator]
static ALLOCATOR: Pages = Pages;

fn main() -> ExitCode {
    stopping::survive_limits();
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let done = if handover::is_meant(&words) { handover::run(words) } else { run().map(|()| ExitCode::SUCCESS) };
    done.unwrap_or_else(|failure| {
        if let Some(message) = failure.message() {
            report::note(&format!("gristmill: {message}"));
        }
        failure.code()
    })
}

fn run() -> failure::Result<()> {
    match Cli::parse().command {
        Command::Generate(Generate::Random) => handover::run(vec!["generate".into(), "random".into()]).map(drop),
        Command::Generate(Generate::Chess(args)) => cmd::generate::chess::run(&args),
        Command::Generate(Generate::G2048(args)) => cmd::generate::g2048::run(&args),
        Command::Inspect(args) => cmd::inspect::run(&args),
        Command::Pack(args) => cmd::pack::run(&args),
        Command::Merge(args) => cmd::merge::run(&args),
        Command::Recover(args) => cmd::recover::run(&args),
        Command::Values(args) => cmd::values::run(&args),
        Command::Checksum(args) => cmd::checksum::run(&args),
        Command::Dedup(args) => cmd::dedup::run(&args),
        Command::Mark(args) => cmd::mark::run(&args),
        Command::Verify(args) => cmd::verify::run(&args),
        Command::VerifyRun(args) => cmd::verify_run::run(&args),
        Command::Xray(args) => cmd::xray::run(&args),
        Command::Stats(args) => cmd::stats::run(&args),
        Command::Rescore(args) => cmd::rescore::run(&args),
        Command::Filter(args) => cmd::filter::run(&args),
        Command::Split(args) => cmd::split::run(&args),
        Command::Convert(args) => cmd::convert::run(&args),
        Command::Feed(args) => cmd::feed::run(&args),
        Command::Bench(args) => cmd::bench::run(&args),
        Command::Tokenizer(Tokenizer::Fit(args)) => cmd::tokenizer::fit(&args),
        Command::Top(args) => cmd::top::run(&args),
        Command::InstallLczero => handover::run(vec![handover::INSTALL.into()]).map(drop),
    }
}
