//! The options that every command has, the groups that the help of the program shows, and the parser with both. Runs nothing.

use std::ffi::OsString;
use std::fmt::Write;

use clap::builder::StyledStr;
use clap::builder::styling::Style;
use clap::{Arg, Args, ColorChoice, Command, CommandFactory, FromArgMatches, ValueEnum};

use super::Cli;

/// What the program is, in a line.
const HEADLINE: &str = "Game records in, shuffled training batches out: fast, reproducible, resumable.";

/// The commands, by task.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Look at data", &["inspect", "view", "doctor", "verify", "stats"]),
    (
        "Make data",
        &[
            "generate",
            "pack",
            "commit",
            "shares",
            "ray",
            "merge",
            "convert",
            "split",
            "filter",
            "rescore",
            "values",
            "checksum",
            "mark",
            "dedup",
            "describe",
            "tokenizer",
            "recover",
            "clean",
        ],
    ),
    ("Feed a trainer", &["plan", "feed", "bench", "top", "install-lczero"]),
    ("Trace rows", &["xray", "when", "verify-run"]),
    ("Set up a shell", &["completions", "man"]),
];

/// Where the shared options stand in the help of a command.
const HEADING: &str = "Options of every command";

/// The options of every command.
#[derive(Debug, Clone, Copy, Default, Args)]
#[group(skip)]
pub(crate) struct Shared {
    /// Print one line of JSON on stdout; for a failure, one with the reason.
    #[arg(long, global = true, help_heading = HEADING)]
    pub(crate) json: bool,
    /// Print only results, warnings and errors.
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = HEADING)]
    pub(crate) quiet: bool,
    /// Print the time, processor time and memory that the command used, at the end.
    #[arg(short, long, global = true, help_heading = HEADING)]
    pub(crate) verbose: bool,
    /// Use colours; `auto`: on a terminal, unless NO_COLOR is set.
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto", global = true, help_heading = HEADING)]
    pub(crate) color: Color,
}

/// When colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

impl Shared {
    /// What the words ask for, as far as that shows before they are understood: a refusal of words follows it.
    pub(crate) fn glance(words: &[OsString]) -> Self {
        let mut shared = Shared::default();
        let mut words = words.iter().map_while(|word| word.to_str().filter(|word| *word != "--"));
        while let Some(word) = words.next() {
            match word {
                "--json" => shared.json = true,
                "-q" | "--quiet" => shared.quiet = true,
                "-v" | "--verbose" => shared.verbose = true,
                _ => {
                    let joined = word.strip_prefix("--color=");
                    let when = joined.or_else(|| (word == "--color").then(|| words.next()).flatten());
                    shared.color = when.and_then(|when| Color::from_str(when, false).ok()).unwrap_or(shared.color);
                }
            }
        }
        shared
    }
}

/// The words, without the name of the program, understood.
///
/// Errors: clap's, help and version among them.
pub(crate) fn parse(words: &[OsString], color: Color) -> Result<Cli, clap::Error> {
    let choice = match color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    };
    let name = std::iter::once(OsString::from("gristmill"));
    let matches = command().color(choice).try_get_matches_from(name.chain(words.iter().cloned()))?;
    Cli::from_arg_matches(&matches)
}

/// The program with all its commands.
pub(crate) fn command() -> Command {
    let command = Cli::command().about(HEADLINE).mut_subcommands(threaded);
    let groups = groups(&command);
    command.help_template(groups)
}

/// Gives every command that works with one thread the option all the same: one is never more than was allowed.
fn threaded(command: Command) -> Command {
    if command.has_subcommands() {
        return command.mut_subcommands(threaded);
    }
    if command.get_arguments().any(|arg| arg.get_id() == "threads") {
        return command;
    }
    let threads = Arg::new("threads").short('j').long("threads").alias("workers").value_name("N");
    let number = clap::value_parser!(u16).range(1..=256);
    command
        .arg(threads.value_parser(number).help("At most N threads; this command works with one").help_heading(HEADING))
}

/// The help of the program: its commands in groups.
fn groups(command: &Command) -> StyledStr {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let styled = |style: Style, text: &str| format!("{style}{text}{style:#}");
    let mut out = "{about}\n\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        let _ = writeln!(out, "\n{}", styled(header, &format!("{title}:")));
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            let pad = " ".repeat(16_usize.saturating_sub(name.len()));
            let _ = writeln!(out, "  {}{pad}{}", styled(literal, name), about.unwrap_or_default());
        }
    }
    let _ = write!(out, "\n{}\n{{options}}{{after-help}}", styled(header, "Options:"));
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command that runs something, with the words that lead to it.
    fn leaves(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            let path = format!("{path} {}", sub.get_name());
            if sub.has_subcommands() {
                leaves(sub, &path, found);
            } else {
                found.push((path, sub.clone()));
            }
        }
    }

    fn all() -> Vec<(String, Command)> {
        let mut command = command();
        command.build();
        let mut found = Vec::new();
        leaves(&command, "gristmill", &mut found);
        found
    }

    #[test]
    fn every_command_has_the_shared_options_and_examples() {
        let all = all();
        assert!(all.len() > 20);
        for (path, command) in all {
            let arg = |name: &str| command.get_arguments().find(|arg| arg.get_id() == name);
            for (name, short) in
                [("json", None), ("quiet", Some('q')), ("verbose", Some('v')), ("threads", Some('j')), ("color", None)]
            {
                let arg = arg(name).unwrap_or_else(|| panic!("{path} has no --{name}"));
                assert_eq!((arg.get_long(), arg.get_short()), (Some(name), short), "{path}");
                assert!(!arg.is_hide_set(), "{path}: --{name} is hidden");
            }
            assert!(command.get_arguments().all(|arg| arg.get_long() != Some("workers")), "{path} says --workers");
            let aliases = arg("threads").and_then(|arg| arg.get_all_aliases()).unwrap_or_default();
            assert!(aliases.contains(&"workers"), "{path}: --workers is still understood");
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(examples.contains("Example") && examples.contains(&path), "{path} has no example: {examples}");
        }
    }

    #[test]
    fn what_writes_can_run_dry() {
        const READERS: [&str; 7] = ["verify", "top", "view", "verify-run", "when", "completions", "shares"];
        for (path, command) in all() {
            let reads = READERS.iter().any(|name| path == format!("gristmill {name}"));
            let dry = command.get_arguments().any(|arg| arg.get_long() == Some("dry-run"));
            assert!(reads != dry, "{path}: --dry-run {dry}");
        }
    }

    #[test]
    fn there_is_one_headline() {
        for (file, text) in [
            ("README.md", include_str!("../../../../README.md")),
            ("pyproject.toml", include_str!("../../../../pyproject.toml")),
            ("command/__init__.py", include_str!("../../../../python/gristmill/command/__init__.py")),
        ] {
            assert!(text.contains(HEADLINE.trim_end_matches('.')), "{file} has another headline");
        }
    }

    #[test]
    fn groups_have_every_command_once() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let command = command();
        let mut known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        known.sort_unstable();
        assert_eq!(grouped, known);
    }

    #[test]
    fn a_glance_sees_what_a_refusal_must_follow() {
        let glance = |text: &str| Shared::glance(&text.split(' ').map(OsString::from).collect::<Vec<_>>());
        let seen = glance("feed x --json --color always -q");
        assert!(seen.json && seen.quiet && seen.color == Color::Always);
        let seen = glance("feed --color=never -- --json --color always");
        assert!(!seen.json && seen.color == Color::Never);
        assert!(glance("feed --color").color == Color::Auto);
    }
}
