//! The locks, atomics and threads of hand-off, scheduler, sheets, arena, results in order and twins: those of this machine.
//! `models/` compiles the same files, without twins, with those of a model, which tries the orders in which threads can meet.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
pub(crate) use std::thread;
