//! One file per command: typed options -> a job of the engine -> its data to the report.

pub(crate) mod bench;
pub(crate) mod checksum;
pub(crate) mod clean;
pub(crate) mod commit;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod dedup;
pub(crate) mod feed;
pub(crate) mod filter;
pub(crate) mod generate;
pub(crate) mod inspect;
pub(crate) mod man;
pub(crate) mod mark;
pub(crate) mod merge;
mod notation;
pub(crate) mod pack;
mod page;
pub(crate) mod plan;
pub(crate) mod recover;
pub(crate) mod rescore;
pub(crate) mod shares;
pub(crate) mod split;
pub(crate) mod stats;
pub(crate) mod tokenizer;
pub(crate) mod top;
pub(crate) mod values;
pub(crate) mod verify;
pub(crate) mod verify_run;
pub(crate) mod view;
pub(crate) mod when;
pub(crate) mod xray;

mod delivery;
mod demos;
pub(crate) mod doctor;
mod rewrite;
mod river;
