//! The words of `inspect` that draw demonstrations -> typed options.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// How observations are drawn.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pictures of demonstrations")]
pub(crate) struct Pictures {
    /// Write film strips: one into a file that ends in .png, else one for each trajectory (or --chunk) and field into this
    /// folder.
    #[arg(long, value_name = "OUT")]
    pub(crate) png: Option<PathBuf>,
    /// Replace existing pictures.
    #[arg(long, requires = "png")]
    pub(crate) overwrite: bool,
    /// Draw, print which pictures would be written, and write none.
    #[arg(long, requires = "png")]
    pub(crate) dry_run: bool,
    /// Field to draw; may be given again [default: obs].
    #[arg(long = "field", value_name = "NAME")]
    pub(crate) fields: Vec<String>,
    /// Steps in a strip, evenly spaced.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) strip: u16,
    /// Which frames of a stack to draw.
    #[arg(long, value_name = "WHICH", value_enum, default_value = "newest")]
    pub(crate) stack: Stack,
    /// Meaning of the channels [default: that of the metadata, else rgb where their number is a multiple of 3].
    #[arg(long, value_name = "C", value_enum)]
    pub(crate) colors: Option<Colors>,
    /// Draw in the terminal.
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub(crate) pictures: When,
}

/// Which frames of a stack are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stack {
    /// The last.
    Newest,
    /// All, the oldest on top.
    All,
}

/// Colours of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colors {
    /// Three channels each.
    Rgb,
    /// One channel each.
    Gray,
}

/// When pictures are drawn in the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// Where stdout is a terminal that shows 24-bit colours.
    Auto,
    /// In any case.
    Always,
    /// Never.
    Never,
}
