//! A job that changes files -> every disk that a crash of it may leave, and what the next process makes of each. The job runs for
//! real, in a process whose system calls are recorded; a crash is what the record allows. Judges by the pages and by equal bytes.

mod games;
pub mod log;
mod record;
pub mod run;
pub mod scenario;
pub mod task;
mod trace;
mod tree;
