//! The files of the runtime that lock, the locks of the model, and stand-ins for clocks.

#[path = "../../crates/gristmill-runtime/src/runtime/arena.rs"]
pub mod arena;
#[path = "../../crates/gristmill-runtime/src/runtime/handoff.rs"]
pub mod handoff;
#[path = "../../crates/gristmill-runtime/src/runtime/scheduler.rs"]
pub mod scheduler;
#[path = "../../crates/gristmill-runtime/src/runtime/sheet.rs"]
pub mod sheet;

/// In the place of those of this machine. No wait ends by its time, so that a lost wake-up is a deadlock, which a model finds.
pub(crate) mod sync {
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use shuttle::thread;
}

mod metrics {
    /// Measures nothing.
    #[derive(Debug, Default)]
    pub(crate) struct Load;

    impl Load {
        pub(crate) fn lasting<R>(&self, work: impl FnOnce() -> R) -> R {
            work()
        }

        pub(crate) fn nanos(&self) -> u64 {
            0
        }
    }
}

mod cores {
    /// What a thread got of the cores: not measured.
    #[derive(Debug, Default)]
    pub struct Spent;

    pub(crate) fn spent() -> Spent {
        Spent
    }
}
