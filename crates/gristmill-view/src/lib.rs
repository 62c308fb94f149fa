//! A pack, a file or a folder of games, or a running loader -> web pages of it, made here whole and served by the one thread that calls.
//! Changes nothing, asks nothing of a network, and shows nothing but what lies under the opened path.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod assets;
mod database;
mod draw;
mod html;
mod pages;
mod run;
mod site;
mod url;
pub mod watch;

pub use site::{Unseen, View};
