//! `top`: documents of a running loader -> a live screen. Knows no stage by name: what a loader publishes is drawn.
//!
//! | file | does |
//! |---|---|
//! | `address` | words -> where the loader is, and the token |
//! | `attach` | asks the loader again and again, in a thread of its own |
//! | `history` | totals of some moments -> rates |
//! | `headline` | a document -> who waits for whom, and what limits |
//! | `help` | what the view shows and which keys it knows, in words |
//! | `rows` | a document -> the rows of the table, as data |
//! | `screen` | what is shown now; keys change it |
//! | `draw` | the screen -> cells of a terminal |
//! | `numbers` | numbers -> short texts |
//! | `terminal` | takes the terminal, and gives it back |

pub(crate) mod attach;
mod draw;
mod headline;
mod help;
mod history;
mod numbers;
mod rows;
pub(crate) mod screen;
pub(crate) mod terminal;

pub(crate) use draw::text;

#[cfg(test)]
mod tests;
