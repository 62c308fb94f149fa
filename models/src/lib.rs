//! The runtime's hand-off, scheduler, sheets, arena and results in order, as they are, over the locks of a model.
//! What they need besides stands here as little as it can; `tests/` says what must hold in every order of threads.

#[path = "../../crates/gristmill-runtime/src/in_order.rs"]
pub mod in_order;
pub mod runtime;

/// Errors as those files make them.
pub mod error {
    /// One of them.
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
    /// Whether the process is about to end: never, in a model.
    pub(crate) fn ended() -> bool {
        false
    }
}
