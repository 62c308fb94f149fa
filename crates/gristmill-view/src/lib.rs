//! A pack, a file or a folder of games, or a running loader -> web pages of it, made here whole and served by the one thread that calls.
//! Changes nothing, asks nothing of a network, and shows nothing but what lies under the opened path.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod assets;
mod beside;
mod database;
mod draw;
mod html;
mod pages;
mod run;
mod search;
mod site;
mod url;
pub mod watch;

pub use beside::Beside;
pub use site::{Unseen, View};

use gristmill_jobs::inspect::Shelf;

/// The game at a place of a shelf as HTML for notebooks, with its own style and without scripts.
///
/// Errors: why there is none, for people.
pub fn card(shelf: &Shelf, place: usize) -> Result<String, String> {
    pages::card(shelf, place).map_err(|fault| fault.text)
}

/// A position of chess as such HTML: by its FEN, with arrows for the moves (UCI) that share most, given in that order.
pub fn position_card(fen: &str, moves: &[(&str, f32)], title: &str) -> String {
    pages::position(fen, moves, title)
}
