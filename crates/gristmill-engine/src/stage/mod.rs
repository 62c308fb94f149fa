//! The steps of the river in flow order, each `what goes in -> what comes out`. No stage knows another.

pub mod discover; // a Store -> numbered files: those of the first scan, then what changes
pub mod load; // numbered files -> chunk sources
