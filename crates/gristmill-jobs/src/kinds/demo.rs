//! Demonstrations: their trajectories held against what they say of themselves, their steps drawn by field, and counted.

use gristmill_engine::error::Result;
use gristmill_format::Result as FormatResult;
use gristmill_format::demo::KIND;
use gristmill_format::demo::source::DemoFile;
use gristmill_format::layout::Layout;

use super::{Decoded, Work};
use crate::files::Opened;
use crate::inspect::{FramePlace, FrameView, demo};
use crate::stats::Counting;
use crate::verify::{self, Fault, Verification};

pub(super) struct Demo;

impl Work for Demo {
    fn name(&self) -> &'static str {
        KIND
    }

    fn verify_whole(&self, file: &Opened, keep: usize, found: &mut Verification) -> bool {
        let Some(demo) = &file.demo else { return false };
        verify::demo::verify(&file.path, demo, keep, found);
        true
    }

    fn verify(&self, one: &Decoded<'_>, keep: usize, found: &mut Verification) {
        let (path, key) = (&one.file.path, &one.file.source.describe().key);
        match DemoFile::of_packed(key, one.stored, one.chunk) {
            Ok(trajectory) => verify::demo::verify_packed(path, &trajectory, one.i, keep, found),
            Err(e) => found.add(keep, Fault::new(&e.in_chunk(one.i).in_source(path))),
        }
    }

    fn view(&self, place: FramePlace, layout: Option<&Layout>, record: &[u8]) -> FormatResult<FrameView> {
        Ok(FrameView::Demo(Box::new(demo::view(place, layout, record))))
    }

    fn count(&self, file: &Opened, counting: &mut Counting) -> Result<()> {
        counting.demos(file);
        Ok(())
    }
}
