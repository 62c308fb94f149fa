//! Locks, atomics and threads of the standard library. Hand-off, scheduler, sheets, arena, results in order and twins use them.
//! `models/` compiles the same files, except twins, with locks, atomics and threads of a model. The model tries the orders in which
//! threads can meet.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
pub(crate) use std::thread;
