//! Why the river does not run: refused configurations, stages that failed, states that do not fit.
//! Names the stage and field; text for people is made here once, faces only choose exit codes and exception types.

use std::path::{Path, PathBuf};

use gristmill_format::error::plain;

/// `Result` with the engine's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// One refusal of the engine.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A configuration that cannot run; nothing was started.
    #[error("{}{message}", place(.at, .stage, .field))]
    Config {
        /// Line and column, from 1, in the text that was read, if it was read from one.
        at: Option<(usize, usize)>,
        /// Name of the stage, if the fault lies in one.
        stage: Option<String>,
        /// Name of the field within the stage or the root.
        field: Option<String>,
        /// What is wrong, what was expected, what to do.
        message: String,
    },
    /// Bytes that were refused, with file, member and offset.
    #[error("{0}")]
    Format(#[from] gristmill_format::Error),
    /// An encoder that needs what the records do not have; the message says which encoders fit.
    #[error("{0}")]
    Unfit(String),
    /// A stage cannot continue (for example every chunk of a pool is bad).
    #[error("stage `{stage}`: {message}")]
    Stage {
        /// Name of the stage.
        stage: String,
        /// What happened and what to do.
        message: String,
    },
    /// No output of the loader has this alias.
    #[error("no output is called `{alias}`; this loader has: {known}")]
    UnknownAlias {
        /// The requested alias.
        alias: String,
        /// The aliases there are, comma-separated.
        known: String,
    },
    /// A saved state does not fit this configuration or these files.
    #[error("the saved state does not fit: {0}")]
    State(String),
    /// A file or folder could not be read or written.
    #[error("{}: {message}", plain(&.path.display().to_string()))]
    Path {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's cause, for exit codes and exception types.
        kind: std::io::ErrorKind,
        /// What the operating system said.
        message: String,
    },
    /// A call that loaders of another kind answer; the message says which.
    #[error("{0}")]
    Unsupported(String),
    /// The loader was stopped.
    #[error("the loader was stopped")]
    Stopped,
    /// This process is a fork of the one that made the loader: its threads do not exist here.
    #[error(
        "this loader was made in process {made_in} and is used in a forked child ({used_in}); make it in the process that uses it"
    )]
    Forked {
        /// Process that made the loader.
        made_in: u32,
        /// Process that uses it.
        used_in: u32,
    },
}

impl Error {
    /// A configuration fault in a stage's field.
    pub fn field(stage: &str, field: &str, message: impl Into<String>) -> Self {
        Error::Config { at: None, stage: Some(stage.into()), field: Some(field.into()), message: message.into() }
    }

    /// A configuration fault in a stage as a whole.
    pub fn stage(stage: &str, message: impl Into<String>) -> Self {
        Error::Config { at: None, stage: Some(stage.into()), field: None, message: message.into() }
    }

    /// A configuration fault in a root field, or in the text itself when `field` is empty.
    pub fn config(field: &str, message: impl Into<String>) -> Self {
        let field = (!field.is_empty()).then(|| field.into());
        Error::Config { at: None, stage: None, field, message: message.into() }
    }

    /// The same fault, in a stage, if it is one of configuration that names none.
    #[must_use]
    pub fn in_stage(mut self, name: &str) -> Self {
        if let Error::Config { stage, .. } = &mut self {
            stage.get_or_insert_with(|| name.into());
        }
        self
    }

    /// The same fault, with the place of the state, if it is one of a state that does not name it.
    #[must_use]
    pub fn of_state(self, path: &Path) -> Self {
        let path = path.display().to_string();
        match self {
            Error::State(message) if !message.contains(&path) => Error::State(format!("{path}: {message}")),
            other => other,
        }
    }

    /// The same fault as one of reading, with its path where it has one.
    pub fn of_reading(self) -> gristmill_format::Error {
        use gristmill_format::{Error as Read, Kind};
        match self {
            Error::Format(e) => e,
            Error::Path { path, kind, message } => {
                Read::new(Kind::Io(kind), message).in_source(path.display().to_string())
            }
            other => Read::new(Kind::Io(std::io::ErrorKind::Other), other.to_string()),
        }
    }

    /// An operating-system error on a path.
    pub fn path(path: impl Into<PathBuf>, e: &std::io::Error) -> Self {
        Error::Path { path: path.into(), kind: e.kind(), message: e.to_string() }
    }
}

fn place(at: &Option<(usize, usize)>, stage: &Option<String>, field: &Option<String>) -> String {
    let at = at.map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default();
    match (stage, field) {
        (Some(stage), Some(field)) => format!("{at}stage `{stage}`, field `{field}`: "),
        (Some(stage), None) => format!("{at}stage `{stage}`: "),
        (None, Some(field)) => format!("{at}`{field}`: "),
        (None, None) => at,
    }
}
