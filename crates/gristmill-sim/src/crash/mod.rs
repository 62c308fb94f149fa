//! A job that changes files -> every disk that a crash of it may leave, and what the next process makes of each. The job runs for
//! real, in a process whose system calls are recorded; a crash is what the record allows. Judges by the pages and by equal bytes.

pub mod disturbed;
pub mod facts;
mod games;
pub mod kept;
pub mod log;
pub mod process;
mod record;
pub mod run;
pub mod scenario;
pub mod task;
mod trace;
pub mod training;
mod tree;
pub mod twins;
