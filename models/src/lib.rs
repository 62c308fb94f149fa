//! Compiles the runtime's hand-off, scheduler, sheets, arena and results in order, unchanged, with the locks of a model.
//! Small stand-ins replace what else these files need. `tests/` says what must hold in every order of threads.

#[path = "../../crates/gristmill-runtime/src/in_order.rs"]
pub mod in_order;
pub mod runtime;

/// The errors that the files of the runtime make.
pub mod error {
    /// An error of the runtime.
    #[derive(Debug)]
    pub enum Error {
        Config(String),
        Stage { stage: String, message: String },
        Stopped,
    }

    impl Error {
        pub(crate) fn config(field: &str, what: String) -> Self {
            Error::Config(format!("{field}: {what}"))
        }
    }

    pub type Result<T> = std::result::Result<T, Error>;
}

mod sql {
    /// Returns whether the process is about to end. In a model it never is.
    pub(crate) fn ended() -> bool {
        false
    }
}
