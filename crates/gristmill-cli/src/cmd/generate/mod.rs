//! `generate`: one file for each game.

pub(crate) mod chess;
pub(crate) mod g2048;
