//! Errors of the engine and the operating system -> one message and one exit code.

use std::error::Error;
use std::io;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

use serde::Serialize;

/// Why a command did not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for something impossible: exit code 2.
    Usage(String),
    /// It failed: exit code 1.
    Failed(String),
    /// It ran, and found and reported faults: exit code 1.
    Faults,
    /// It finished and left out bad games: exit code 3.
    LeftOut(String),
    /// Ctrl-C or SIGTERM ended it; the text says what is left to do, if anything: exit code 130.
    Stopped(Option<String>),
    /// The reader of the output has gone: exit code 0, without a message.
    NoReader,
}

/// `Result` with [`Failure`].
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The exit code of a command that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// What a failure is in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Told<'a> {
    ok: bool,
    error: Fault<'a>,
}

#[derive(Debug, Serialize)]
struct Fault<'a> {
    kind: &'static str,
    exit_code: u8,
    message: &'a str,
}

impl Failure {
    /// A stop, with this message.
    pub(crate) fn stopped(left: impl Into<String>) -> Self {
        Failure::Stopped(Some(format!("stopped; {}", left.into())))
    }

    /// The number of the exit code.
    fn number(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Failed(_) | Failure::Faults => 1,
            Failure::LeftOut(_) => 3,
            Failure::Stopped(_) => INTERRUPTED,
            Failure::NoReader => 0,
        }
    }

    /// The exit code that tells it.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.number())
    }

    /// What to say, if anything.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Failure::Usage(text) | Failure::Failed(text) | Failure::LeftOut(text) => Some(text),
            Failure::Stopped(text) => text.as_deref(),
            Failure::Faults | Failure::NoReader => None,
        }
    }

    /// It as JSON, if there is something to say.
    pub(crate) fn told(&self) -> Option<Told<'_>> {
        let kind = match self {
            Failure::Usage(_) => "usage",
            Failure::Failed(_) | Failure::Faults => "failed",
            Failure::LeftOut(_) => "left_out",
            Failure::Stopped(_) => "stopped",
            Failure::NoReader => return None,
        };
        // Of wrong words the advice and the usage that follow are for people.
        let message = self.message()?;
        let message = message.split("\n\nUsage:").next().unwrap_or(message).trim_end();
        Some(Told { ok: false, error: Fault { kind, exit_code: self.number(), message } })
    }
}

impl From<gristmill_engine::Error> for Failure {
    fn from(e: gristmill_engine::Error) -> Self {
        match e {
            gristmill_engine::Error::Config { .. } => Failure::Usage(e.to_string()),
            gristmill_engine::Error::Stopped => Failure::Stopped(Some("stopped".to_owned())),
            _ => Failure::Failed(e.to_string()),
        }
    }
}

impl From<gristmill_format::Error> for Failure {
    fn from(e: gristmill_format::Error) -> Self {
        Failure::Failed(e.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::NoReader,
            _ => Failure::Failed(format!("cannot write the result: {e}")),
        }
    }
}

impl From<clap::Error> for Failure {
    fn from(e: clap::Error) -> Self {
        let mut text = e.render().to_string();
        if let Some((why, plain)) = e.source().and_then(expected) {
            text = text.replacen(&why, plain, 1);
        }
        Failure::Usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
    }
}

/// What the standard library says of a word that is no number, and what a user expects to read.
fn expected(why: &(dyn Error + 'static)) -> Option<(String, &'static str)> {
    let whole = why.downcast_ref::<ParseIntError>().map(|e| match e.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "expected a smaller number",
        _ => "expected a whole number, such as 1000",
    });
    let plain = whole.or_else(|| why.is::<ParseFloatError>().then_some("expected a number, such as 0.5"))?;
    Some((why.to_string(), plain))
}
