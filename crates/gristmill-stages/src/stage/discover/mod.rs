//! A Store -> numbered files: those of the first scan in key order, then what is new, replaced or moved.
//! `search` looks and listens; `registry` judges what counts once.

mod registry;
mod search;

pub use search::{Search, run};
