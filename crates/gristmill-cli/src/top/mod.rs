//! `top`: documents of a running loader -> a live screen. Knows no stage by name: what a loader publishes is drawn.
//! What documents say, rates and rows, is found in `gristmill-view`, whose page of a run says the same.
//!
//! | file | does |
//! |---|---|
//! | `attach` | hears the loader again and again, in a thread of its own |
//! | `help` | what the view shows and which keys it knows, in words |
//! | `screen` | what is shown now; keys change it |
//! | `draw` | the screen -> cells of a terminal |
//! | `terminal` | takes the terminal, and gives it back |

pub(crate) mod attach;
mod draw;
mod help;
pub(crate) mod screen;
pub(crate) mod terminal;

pub(crate) use draw::text;

#[cfg(test)]
mod tests;
