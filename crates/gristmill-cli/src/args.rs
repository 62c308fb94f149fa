//! Words on the command line -> typed options. No command is run here, and nothing is read.

pub(crate) mod address;
pub(crate) mod bench;
pub(crate) mod convert;
pub(crate) mod dedup;
pub(crate) mod demos;
pub(crate) mod doctor;
pub(crate) mod elsewhere;
pub(crate) mod manner;
pub(crate) mod mark;
pub(crate) mod pack;
pub(crate) mod page;
pub(crate) mod pictures;
pub(crate) mod places;
pub(crate) mod plan;
pub(crate) mod reports;
pub(crate) mod rewrite;
pub(crate) mod river;
pub(crate) mod shares;
pub(crate) mod shell;
pub(crate) mod stats;
pub(crate) mod tokenizer;
pub(crate) mod view;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use bench::Bench;
use convert::Convert;
use dedup::Dedup;
use doctor::Doctor;
use elsewhere::Elsewhere;
use manner::Shared;
use mark::Mark;
use pack::{Checksum, Clean, Merge, Pack, Recover, Values};
use pictures::Pictures;
use places::{VerifyRun, When, Xray};
use plan::Plan;
use reports::Reporting;
use rewrite::{Filter, Rescore, Split};
use river::River;
use shares::{Commit, Shares};
use shell::{Completions, Man};
use stats::Stats;
use tokenizer::Tokenizer;
use view::View;

/// The words of a command.
#[derive(Debug, Parser)]
#[command(name = "gristmill", version = env!("GRISTMILL_VERSION"), max_term_width = 100, subcommand_required = true)]
#[command(
    after_help = "Exit codes: 0 all is well, 1 something failed or a check found faults, 2 wrong usage, 3 done, but something was \
left out (pack), 130 stopped by Ctrl-C.\n\nWith --json a command prints one single-line JSON document on stdout, of what it did \
or of why it failed; all else goes to stderr. `gristmill COMMAND --help` has options and examples."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) shared: Shared,
    #[command(flatten)]
    pub(crate) elsewhere: Elsewhere,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write games of a simple player: data for a machine that has none.
    #[command(subcommand)]
    Generate(Generate),
    /// Show what a file or directory holds: format, counts, layout, and a picture of one frame.
    Inspect(Inspect),
    /// Show a pack, a file or a folder of games in a browser: tables, boards, pictures, curves.
    View(View),
    /// Pack a folder of chess games, raw 2048 logs or demonstrations for random access.
    Pack(Pack),
    /// Join the shares of a job (`pack --share`) into its output, as one process would have made it.
    Commit(Commit),
    /// Show which shares of a job are done, running, failed or missing.
    Shares(Shares),
    /// Run jobs on a Ray cluster; done by the Python package.
    #[command(subcommand)]
    Ray(Ray),
    /// Merge several packs into one.
    Merge(Merge),
    /// Finish or undo what a killed job left in a pack or folder, and print which.
    Recover(Recover),
    /// Remove what a killed job left in a bucket, and list it.
    Clean(Clean),
    /// Compute rewards and discounted returns for the rows of a 2048 pack, and write them beside the rows.
    Values(Values),
    /// Make checksums for a pack of 2048 rows that has none; loaders then check the rows that they read.
    Checksum(Checksum),
    /// Mark the frames of a pack that a rule accepts; list, extend and remove marks.
    Mark(Mark),
    /// Find and mark the repeated games of a pack, mirror images included.
    Dedup(Dedup),
    /// Check every frame of files and directories; list the faults and exit with 1 if there are any.
    Verify(Verify),
    /// Prove from the ledgers of a run that it delivered each row exactly once; else name the rows and exit with 1.
    VerifyRun(VerifyRun),
    /// Show which game and frame each row of any past or future batch is.
    Xray(Xray),
    /// Show in which passes and batches the rows of a game of a pack were or will be fed.
    When(When),
    /// Certify a shuffle before the run: what an epoch is made of, and how its batches compare with those of a perfect shuffle.
    Plan(Plan),
    /// Examine data that people bring: what it is, faults with their places and remedies, duplicates, leakage, sizes, time.
    Doctor(Doctor),
    /// Show distributions: results, lengths, men, weights, policies; as text, as JSON, as a page of plots.
    Stats(Stats),
    /// Rescore chess games: results and plies left from tablebases, policies, blunders, input format, V6 to V7.
    Rescore(Rescore),
    /// Write metadata of a pack (Croissant) and a dataset card beside its files; done by the Python package, which knows the
    /// options.
    #[command(after_help = "Examples:\n  gristmill describe chess-pack --license CC0-1.0")]
    Describe(Handed),
    /// Keep the chess games that break no rule.
    Filter(Filter),
    /// Split chess games or trajectories into folders by weight; each always into the same one.
    Split(Split),
    /// Change the form of data: versions and containers of games, forms of rows, shards and arrays of demonstrations.
    Convert(Convert),
    /// Run a loader: take batches as fast as it makes them, and show its throughput.
    Feed(Feed),
    /// Measure throughput and this machine, show each stage as a share of its limit, and name the bottleneck.
    Bench(Bench),
    /// Fit tokenizers of 2048 rows.
    #[command(subcommand)]
    Tokenizer(Tokenizer),
    /// Watch a running loader: every stage and queue, live.
    Top(Top),
    /// Print the script that completes the words of this program in a shell.
    Completions(Completions),
    /// Write the manual pages of all commands to a folder.
    Man(Man),
    /// Let the programs of the Lc0 trainer run on this loader; done by the Python package, which knows the options.
    #[command(after_help = "Examples:\n  gristmill install-lczero .venv --dry-run\n  gristmill install-lczero .venv")]
    InstallLczero(Handed),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Legal chess games as records of Leela Chess Zero.
    Chess(GenerateChess),
    /// Raw logs of 2048 games, played by expectimax on the line heuristic.
    #[command(name = "2048")]
    G2048(GenerateG2048),
    /// Demonstrations by random play in real environments; done by the Python package, which knows the options.
    #[command(after_help = "Examples:\n  gristmill generate random --env CartPole-v1 random.tar.zst --seed 1")]
    Random(Handed),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Ray {
    /// Pack a folder by tasks of a Ray cluster, one for each share; done by the Python package, which knows the options.
    #[command(after_help = "Examples:\n  gristmill ray pack games pack --shares 400")]
    Pack(Handed),
    /// Rescore chess games by tasks of a Ray cluster, one for each share; done by the Python package, which knows the options.
    #[command(after_help = "Examples:\n  gristmill ray rescore games rescored --syzygy tables --shares 400")]
    Rescore(Handed),
    /// Keep the chess games that break no rule, by tasks of a Ray cluster, one for each share; done by the Python package, which knows
    /// the options.
    #[command(after_help = "Examples:\n  gristmill ray filter games good --shares 400")]
    Filter(Handed),
    /// Convert chess games, file by file, by tasks of a Ray cluster, one for each share; done by the Python package, which knows the
    /// options.
    #[command(after_help = "Examples:\n  gristmill ray convert games v7 --version 7 --shares 400")]
    Convert(Handed),
    /// Split chess games into folders, by tasks of a Ray cluster, one for each share; done by the Python package, which knows the options.
    #[command(after_help = "Examples:\n  gristmill ray split games parts --into train:9,test:1 --shares 400")]
    Split(Handed),
    /// Check every frame of games or a pack into a report, by tasks of a Ray cluster, one for each share; done by the Python package,
    /// which knows the options.
    #[command(after_help = "Examples:\n  gristmill ray verify games report.json --shares 400")]
    Verify(Handed),
    /// Count what games or a pack hold into a report, by tasks of a Ray cluster, one for each share; done by the Python package, which
    /// knows the options.
    #[command(after_help = "Examples:\n  gristmill ray stats games report.json --shares 400")]
    Stats(Handed),
    /// Find games of a pack that are the same into a report, by tasks of a Ray cluster, one for each share; done by the Python package,
    /// which knows the options.
    #[command(after_help = "Examples:\n  gristmill ray dedup pack report.json --mark again --shares 400")]
    Dedup(Handed),
    /// Mark frames of a pack that a rule accepts, by tasks of a Ray cluster, one for each share; done by the Python package, which knows
    /// the options.
    #[command(after_help = "Examples:\n  gristmill ray mark pack late --rule 'plies_left < 20' --shares 400")]
    Mark(Handed),
}

impl Ray {
    /// The word of the job.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Ray::Pack(_) => "pack",
            Ray::Rescore(_) => "rescore",
            Ray::Filter(_) => "filter",
            Ray::Convert(_) => "convert",
            Ray::Verify(_) => "verify",
            Ray::Stats(_) => "stats",
            Ray::Split(_) => "split",
            Ray::Dedup(_) => "dedup",
            Ray::Mark(_) => "mark",
        }
    }
}

/// The words of a command of the Python package: what it shares with the others.
#[derive(Debug, Args)]
pub(crate) struct Handed {
    /// Print what would be written, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill generate chess games --games 1000 --seed 1\n  \
gristmill generate chess tars --games 1000 --seed 1 --tar --games-per-tar 100\n  \
gristmill generate chess games --games 500 --seed 1 --first 1001 --interval 0.5")]
pub(crate) struct GenerateChess {
    /// Folder to write to; made if it does not exist.
    pub(crate) out: PathBuf,
    /// How many games to write.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) games: u64,
    /// Seed; the same seed gives the same bytes [default: random, and printed].
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Number of the first game; to continue an earlier run, its last number plus one.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) first: u64,
    /// Write tars of many games, named by the hour, instead of one .gz per game.
    #[arg(long)]
    pub(crate) tar: bool,
    /// Games in each tar.
    #[arg(long, value_name = "N", default_value_t = 100, requires = "tar", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) games_per_tar: u64,
    /// Version of the records.
    #[arg(long, value_name = "V", value_enum, default_value = "6")]
    pub(crate) version: RecordVersion,
    /// Cut games after N plies; the side that is far ahead wins, else it is a draw.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) plies_max: u32,
    /// Wait SECONDS after each file, to imitate self-play.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) interval: Option<f64>,
    /// Replace existing files.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Print what would be written, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill generate 2048 logs --games 100 --seed 1\n  \
gristmill generate 2048 logs --games 100 --seed 1 --first 100 --depth 2\n  gristmill pack logs pack")]
pub(crate) struct GenerateG2048 {
    /// Folder to write to; made if it does not exist.
    pub(crate) out: PathBuf,
    /// How many games to write; each is a .jsonl.gz and a sidecar.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) games: u64,
    /// Base seed: game n has the seed S + n; the same seed gives the same bytes [default: random, and printed].
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Number of the first game; to continue an earlier run, its last number plus one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) first: u64,
    /// How many new tiles the player looks ahead; each takes about twenty times longer and plays better.
    #[arg(long, value_name = "D", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=7))]
    pub(crate) depth: u32,
    /// Cut games after N moves.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) moves_max: Option<u64>,
    /// Level of compression.
    #[arg(long, value_name = "L", default_value_t = 6, value_parser = clap::value_parser!(u8).range(0..=12))]
    pub(crate) level: u8,
    /// Threads that play; never changes a byte [default: the number of cores].
    #[arg(short = 'j', long, alias = "workers", value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Replace existing files.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Print what would be written, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill inspect games\n  gristmill inspect pack --frame 100000\n  \
gristmill inspect steps --run 17 --step 240\n  gristmill inspect games/training.7.gz --frame 30\n  \
gristmill inspect games.tar --chunk 3 --frame 0 --json | jq .frame.record\n  \
gristmill inspect demos.tar.zst --png strips --field obs --field next_obs")]
pub(crate) struct Inspect {
    /// File or directory.
    pub(crate) path: PathBuf,
    /// Chunk (game) to show, counted from 0.
    #[arg(long, value_name = "I")]
    pub(crate) chunk: Option<usize>,
    /// Frame (position, step) to show, counted from 0: of that chunk, else of a file's first one, of a pack over all its games.
    #[arg(long, value_name = "J")]
    pub(crate) frame: Option<usize>,
    /// Run of a pack of 2048 to show a step of, by its id.
    #[arg(long, value_name = "ID", conflicts_with_all = ["chunk", "frame"])]
    pub(crate) run: Option<u64>,
    /// Step of that run, counted from 0.
    #[arg(long, value_name = "N", requires = "run", default_value_t = 0)]
    pub(crate) step: u64,
    /// Show the layout of the records.
    #[arg(long)]
    pub(crate) layout: bool,
    /// Show every field of the record.
    #[arg(long)]
    pub(crate) record: bool,
    /// Show how a pack, or a folder that a job wrote, was made: jobs, options, and input games.
    #[arg(long, conflicts_with_all = ["chunk", "frame", "run", "layout", "record"])]
    pub(crate) lineage: bool,
    /// Draw the board with letters instead of chess symbols.
    #[arg(long)]
    pub(crate) ascii: bool,
    #[command(flatten)]
    pub(crate) pictures: Pictures,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill verify games more.tar\n  \
gristmill verify pack --share 1/400 --output report.json\n  \
gristmill verify games --json | jq -r '.faults[] | [.file, .rule // .kind] | @tsv'")]
pub(crate) struct Verify {
    /// Files, packs, and directories of them.
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Folder of the games that one pack was made of: lists those whose records the pack does not hold bit for bit.
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reporting: Reporting,
    /// List at most N faults; all are counted.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) max_faults: usize,
    /// Worker threads; never changes what is found [default: the number of cores].
    #[arg(short = 'j', long, alias = "workers", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill feed games --top\n  gristmill feed games --batches 100 --json\n  \
gristmill feed new:0.7 old:0.3 --pool 50000 --reservoir 100000 --batch-size 1024 --seed 1\n  \
gristmill feed games --epochs 1 --split train:9,test:1 --output test --out batches\n  \
gristmill feed games --metrics 9100      (then, elsewhere: gristmill top 9100)\n  \
gristmill feed games --dry-run > loader.toml && gristmill feed loader.toml")]
pub(crate) struct Feed {
    #[command(flatten)]
    pub(crate) river: River,
    /// Worker threads; never changes a batch [default: the number of cores].
    #[arg(short = 'j', long, alias = "workers", value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Stop after N batches.
    #[arg(long, value_name = "N")]
    pub(crate) batches: Option<u64>,
    /// Take only this output [default: all in turn].
    #[arg(long, value_name = "ALIAS")]
    pub(crate) output: Option<String>,
    /// Write every batch into this folder, one .npy file per tensor.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace files in that folder.
    #[arg(long, requires = "out")]
    pub(crate) overwrite: bool,
    /// Serve metrics for Prometheus and `gristmill top` at this address: PORT of this machine, or HOST:PORT (port 0: any
    /// free one, named on stderr).
    #[arg(long, value_name = "ADDR", value_parser = address::parse)]
    pub(crate) metrics: Option<String>,
    /// File with the token that readers of the metrics must send; needed where other machines can reach them
    /// [default: the variable GRISTMILL_TOKEN].
    #[arg(long, value_name = "FILE", requires = "metrics")]
    pub(crate) token_file: Option<PathBuf>,
    /// Show the live view of `gristmill top` while it runs.
    #[arg(long, conflicts_with_all = ["json", "dry_run"])]
    pub(crate) top: bool,
    /// Refuse to run unless the shuffle is at least this good, as `gristmill plan` measures it: none, weak, fair or good.
    #[arg(long, value_name = "LEVEL", value_parser = plan::level)]
    pub(crate) require: Option<gristmill_plans::certificate::Level>,
    /// Print the configuration as TOML and, if it cannot run here, why not; run nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout at the end.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill feed games --metrics 9100 &\n  gristmill top\n  \
gristmill top trainer:9100 --token-file token\n  gristmill top 9100 --once --json")]
pub(crate) struct Top {
    /// Where the loader serves its metrics: HOST:PORT, PORT or a URL.
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:9100", value_parser = address::parse)]
    pub(crate) address: String,
    /// File with the token that the loader requires [default: the variable GRISTMILL_TOKEN].
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Print the status once, and end.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print the loader's status document as one line of JSON.
    #[arg(long, requires = "once")]
    pub(crate) json: bool,
}

/// The record versions that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordVersion {
    /// 8356 bytes, as self-play writes today.
    #[value(name = "6")]
    V6,
    /// 8396 bytes, with short-term values and the next two moves.
    #[value(name = "7")]
    V7,
}

/// A finite number of seconds from 0 to a day.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0 to 86400".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn seconds_are_finite() {
        assert_eq!(seconds("0.5"), Ok(0.5));
        assert!(["-1", "nan", "inf", "soon", "1e9"].into_iter().all(|text| seconds(text).is_err()));
    }
}
