//! One frame as data: where it is, and what its kind shows of it.
//! Pure data; faces draw it.

pub(crate) mod chess;
pub(crate) mod demo;
mod g2048;
pub(crate) mod record;

use std::collections::BTreeMap;

use serde::Serialize;

pub use chess::{ChessView, MoveView, ValueRow};
pub use demo::{DemoView, ValueView};
pub use g2048::{BranchView, Step, StepView};
pub use record::{Cell, Record};

/// One frame as data, by task.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum FrameView {
    /// A chess position.
    Chess(Box<ChessView>),
    /// A step of a 2048 game.
    G2048(Box<StepView>),
    /// A step of a demonstration.
    Demo(Box<DemoView>),
    /// A frame of a kind that draws itself.
    Drawn(Box<DrawnView>),
}

/// A frame as its kind draws it.
#[derive(Debug, Clone, Serialize)]
pub struct DrawnView {
    /// Where it is.
    #[serde(flatten)]
    pub place: FramePlace,
    /// The picture, line by line.
    pub picture: Vec<String>,
    /// What else there is to say: names and values.
    pub facts: BTreeMap<&'static str, String>,
}

impl FrameView {
    /// Where the frame is.
    pub fn place(&self) -> &FramePlace {
        match self {
            FrameView::Chess(view) => &view.place,
            FrameView::G2048(view) => &view.place,
            FrameView::Demo(view) => &view.place,
            FrameView::Drawn(view) => &view.place,
        }
    }
}

/// Where a frame is.
#[derive(Debug, Clone, Serialize)]
pub struct FramePlace {
    /// Chunk in the file.
    pub chunk: usize,
    /// Frame in the chunk.
    pub frame: usize,
    /// Frames of the chunk.
    pub frames: usize,
    /// Name of the member, in a container.
    pub member: Option<String>,
    /// Every field as it is stored (after any upgrade to V6), where the frame was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Record>,
}
