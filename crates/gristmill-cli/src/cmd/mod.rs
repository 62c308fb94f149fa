//! One file per command: typed options -> a job of the engine -> its data to the report.

pub(crate) mod generate;
