//! The files of the runtime that take locks, the locks of the model, and stand-ins for clocks.

#[path = "../../crates/gristmill-runtime/src/runtime/arena.rs"]
pub mod arena;
#[path = "../../crates/gristmill-runtime/src/runtime/handoff.rs"]
pub mod handoff;
#[path = "../../crates/gristmill-runtime/src/runtime/scheduler.rs"]
pub mod scheduler;
#[path = "../../crates/gristmill-runtime/src/runtime/sheet.rs"]
pub mod sheet;

/// Replaces the locks and threads of the machine. No wait ends by its time. So a lost wake-up is a deadlock, and a model finds it.
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

mod pinned {
    /// No model has a GPU.
    #[derive(Debug)]
    pub struct Pin;

    impl Pin {
        /// # Safety
        /// None is needed: nothing is pinned.
        pub unsafe fn new(_: *mut u8, _: usize, _: i32) -> std::io::Result<Pin> {
            Err(std::io::ErrorKind::Unsupported.into())
        }
    }
}

mod cores {
    /// Time that a thread had on the cores. A model does not measure it.
    #[derive(Debug, Default)]
    pub struct Spent;

    pub(crate) fn spent() -> Spent {
        Spent
    }

    /// Threads of a model run in the order that shuttle tries.
    pub(crate) fn give_way() {}
}
