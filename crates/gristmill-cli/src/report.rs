//! The only file that prints: results to stdout, everything else to stderr.
//! A reader that went away (a closed pipe) ends the command quietly; it is never a panic.

pub(crate) mod bench;
pub(crate) mod certificate;
pub(crate) mod converting;
pub(crate) mod demonstrations;
pub(crate) mod diagnosis;
pub(crate) mod distribution;
pub(crate) mod distributions;
pub(crate) mod duplicates;
pub(crate) mod flow;
pub(crate) mod inspection;
pub(crate) mod lineage;
pub(crate) mod marking;
pub(crate) mod packing;
pub(crate) mod page;
pub(crate) mod picture;
pub(crate) mod places;
pub(crate) mod reports;
pub(crate) mod rewriting;
pub(crate) mod shares;
pub(crate) mod verification;

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, RwLock};
use std::time::{Duration, Instant};

use gristmill_format::error::plain;
use gristmill_jobs::meter::{Meter, peak_rss};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ratatui::crossterm::terminal;
use serde::Serialize;

use crate::args::manner::{Color, Shared};
use crate::failure::Failure;

/// How much to print, and in what form.
static MANNER: RwLock<Option<Shared>> = RwLock::new(None);

/// Whether a document was printed: a failure after it prints no second one.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// What the command takes, from its beginning on.
static METER: LazyLock<Meter> = LazyLock::new(Meter::default);

/// Says from here on what the shared options ask for.
pub(crate) fn begin(shared: Shared) {
    LazyLock::force(&METER);
    if let Ok(mut manner) = MANNER.write() {
        *manner = Some(shared);
    }
}

fn manner() -> Shared {
    MANNER.read().ok().and_then(|manner| *manner).unwrap_or_default()
}

/// Says why the command did not end well: on stderr, and with `--json` on stdout, too, unless a document is there already.
pub(crate) fn failure(failure: &Failure) {
    let shared = manner();
    if let Some(message) = failure.message() {
        let name = if is_colored(io::stderr().is_terminal()) { "\x1b[1;31mgristmill:\x1b[0m" } else { "gristmill:" };
        let _ = writeln!(io::stderr().lock(), "{name} {}", lines(message));
    }
    if let Some(told) = failure.told().filter(|_| shared.json && !PRINTED.load(Ordering::Relaxed)) {
        let _ = json(&told);
    }
}

/// Says what the command took, where that is wanted.
pub(crate) fn took() {
    if manner().verbose {
        let now = METER.now();
        let memory = peak_rss().map(|peak| format!(", {} at most", bytes(peak))).unwrap_or_default();
        let version = env!("CARGO_PKG_VERSION");
        note(&format!("gristmill {version}: {:.2} s, {:.2} s of processor time{memory}", now.wall, now.cpu));
    }
}

/// Prints help, or the version.
pub(crate) fn help(text: &clap::Error) -> io::Result<()> {
    let text = text.render();
    let text = if is_colored(io::stdout().is_terminal()) { text.ansi().to_string() } else { text.to_string() };
    picture_out(&text)
}

/// Whether what goes to a terminal, or elsewhere, has colours.
fn is_colored(terminal: bool) -> bool {
    match manner().color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()),
    }
}

/// Whether text on stdout has colours.
pub(crate) fn is_colorful() -> bool {
    is_colored(io::stdout().is_terminal())
}

/// Whether to print notes beside the result.
fn is_quiet() -> bool {
    manner().quiet
}

/// Prints `value` as one line of JSON on stdout.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(value)?;
    PRINTED.store(true, Ordering::Relaxed);
    text_out(&text)
}

/// Prints `value` as JSON, or else as `text` says it to people, on stdout.
pub(crate) fn either<T: Serialize>(as_json: bool, value: &T, text: impl FnOnce(&T) -> String) -> io::Result<()> {
    if as_json { json(value) } else { text_out(&text(value)) }
}

/// Prints text, which may have several lines, on stdout. Names in it command no terminal.
pub(crate) fn text_out(text: &str) -> io::Result<()> {
    picture_out(&lines(text))
}

/// Prints text with the colours of pictures in it on stdout, as it is.
pub(crate) fn picture_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end_matches('\n'))?;
    out.flush()
}

/// Prints a note on stderr, unless --quiet; an error in writing is ignored. Control characters in names are escaped.
pub(crate) fn note(text: &str) {
    if is_quiet() {
        return;
    }
    let _ = writeln!(io::stderr().lock(), "{}", lines(text));
}

/// Warns on stderr.
pub(crate) fn warning(text: &str) {
    let _ = writeln!(io::stderr().lock(), "gristmill: {}", lines(text));
}

/// Text with control characters as their escapes, but for the ends of lines.
pub(crate) fn lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// How many columns a picture on stdout may have; nothing where stdout is no terminal that shows 24-bit colours.
pub(crate) fn canvas() -> Option<u16> {
    let said = |name: &str| std::env::var(name).unwrap_or_default();
    let full = matches!(said("COLORTERM").as_str(), "truecolor" | "24bit") || said("TERM").ends_with("-direct");
    (io::stdout().is_terminal() && full && is_colorful()).then(columns)
}

/// Columns of the terminal; 80 where they are unknown.
pub(crate) fn columns() -> u16 {
    terminal::size().map_or(80, |(columns, _)| columns)
}

/// How far a command is: a moving line on a terminal, now and then a plain line elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    plain: bool,
    /// Plain lines are written at these shares of the whole.
    next_share: u64,
}

impl Progress {
    /// Progress towards `len` things, called `what` in the plural. Silent unless `wanted`.
    pub(crate) fn new(len: u64, what: &'static str, wanted: bool) -> Self {
        let (terminal, wanted) = (io::stderr().is_terminal(), wanted && !is_quiet());
        let target = if wanted && terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(len), target);
        let style = ProgressStyle::with_template("{bar:30} {human_pos}/{human_len} {prefix}  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar, plain: wanted && !terminal, next_share: 1 }
    }

    /// Progress through an unknown number of things, called `what`. Silent unless `wanted`, and off a terminal.
    pub(crate) fn open_ended(what: &'static str, wanted: bool) -> Self {
        let progress = Progress::new(0, what, wanted);
        progress.bar.unset_length();
        let style = ProgressStyle::with_template("{spinner} {human_pos} {prefix}  {msg}");
        progress.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        progress
    }

    /// Says that `done` things are done, and something about them.
    pub(crate) fn at(&mut self, done: u64, about: &str) {
        self.bar.set_position(done);
        self.bar.set_message(plain(about).into_owned());
        let len = self.bar.length().unwrap_or(0);
        if self.plain && len >= 10 && done * 10 >= len * self.next_share {
            self.next_share = done * 10 / len + 1;
            note(format!("{done}/{len} {} {about}", self.bar.prefix()).trim_end());
        }
    }

    /// Takes the line away.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// A number of bytes for people, such as `3.2 MiB`.
pub(crate) fn bytes(n: u64) -> String {
    indicatif::HumanBytes(n).to_string()
}

/// What flows through a running loader: a line that is renewed on a terminal, a plain one now and then elsewhere.
#[derive(Debug)]
pub(crate) struct Ticker {
    bar: ProgressBar,
    plain: bool,
    every: Duration,
    last: Instant,
}

impl Ticker {
    /// A ticker; silent unless `wanted`.
    pub(crate) fn new(wanted: bool) -> Self {
        let (terminal, wanted) = (io::stderr().is_terminal(), wanted && !is_quiet());
        let target = if wanted && terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{spinner} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let every = Duration::from_millis(if terminal { 200 } else { 2000 });
        Ticker {
            bar,
            plain: wanted && !terminal,
            every: if wanted { every } else { Duration::MAX },
            last: Instant::now(),
        }
    }

    /// Whether it is time to say something again.
    pub(crate) fn is_due(&self) -> bool {
        self.last.elapsed() >= self.every
    }

    /// Says it.
    pub(crate) fn say(&mut self, text: &str) {
        self.last = Instant::now();
        self.bar.set_message(text.to_owned());
        self.bar.tick();
        if self.plain {
            note(text);
        }
    }

    /// Takes the line away.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
