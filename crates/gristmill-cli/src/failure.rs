//! Errors of the engine and the operating system -> one message and one exit code.

use std::io;
use std::process::ExitCode;

/// Why a command did not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was asked for something that cannot be: exit code 2.
    Usage(String),
    /// It failed: exit code 1.
    Failed(String),
    /// It ran and found faults, which are already reported: exit code 1.
    Faults,
    /// It did its work and left out what could not be taken: exit code 3.
    LeftOut(String),
    /// Nobody reads the output any more: exit code 0, without a word.
    NoReader,
}

/// `Result` with [`Failure`].
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// The exit code that tells it.
    pub(crate) fn code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Failed(_) | Failure::Faults => ExitCode::FAILURE,
            Failure::LeftOut(_) => ExitCode::from(3),
            Failure::NoReader => ExitCode::SUCCESS,
        }
    }

    /// What to say, if anything.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Failure::Usage(text) | Failure::Failed(text) | Failure::LeftOut(text) => Some(text),
            Failure::Faults | Failure::NoReader => None,
        }
    }
}

impl From<gristmill_engine::Error> for Failure {
    fn from(e: gristmill_engine::Error) -> Self {
        match e {
            gristmill_engine::Error::Config { .. } => Failure::Usage(e.to_string()),
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
