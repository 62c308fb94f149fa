//! The gristmill command: words in, one command run, an exit code out.

mod args;
mod cmd;
mod failure;
mod report;
mod stopping;
mod top;

use std::process::ExitCode;

use clap::Parser;

use args::tokenizer::Tokenizer;
use args::{Cli, Command, Generate};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Generate(Generate::Chess(args)) => cmd::generate::chess::run(&args),
        Command::Generate(Generate::G2048(args)) => cmd::generate::g2048::run(&args),
        Command::Inspect(args) => cmd::inspect::run(&args),
        Command::Pack(args) => cmd::pack::run(&args),
        Command::Merge(args) => cmd::merge::run(&args),
        Command::Values(args) => cmd::values::run(&args),
        Command::Verify(args) => cmd::verify::run(&args),
        Command::Stats(args) => cmd::stats::run(&args),
        Command::Rescore(args) => cmd::rescore::run(&args),
        Command::Filter(args) => cmd::filter::run(&args),
        Command::Split(args) => cmd::split::run(&args),
        Command::Convert(args) => cmd::convert::run(&args),
        Command::Feed(args) => cmd::feed::run(&args),
        Command::Bench(args) => cmd::bench::run(&args),
        Command::Tokenizer(Tokenizer::Fit(args)) => cmd::tokenizer::fit(&args),
        Command::Top(args) => cmd::top::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                report::note(&format!("gristmill: {message}"));
            }
            failure.code()
        }
    }
}
