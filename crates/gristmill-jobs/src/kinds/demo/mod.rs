//! Demonstrations: their trajectories held against what they say of themselves, their steps drawn by field, and counted.

mod checks;
mod signs;

use gristmill_engine::error::Result;
use gristmill_format::Result as FormatResult;
use gristmill_format::demo::KIND;
use gristmill_format::demo::form::DemoFile;
use gristmill_format::demo::pack::Blocks;
use gristmill_format::layout::Layout;

use crate::work::drawn::demo;
use crate::work::{Counting, Decoded, Fault, FramePlace, FrameView, Opened, Signs, Storing, Verification, Work};

pub(super) struct Demo;

/// What each codec makes of the blocks of a trajectory.
impl From<Storing> for Blocks {
    fn from(codec: Storing) -> Self {
        match codec {
            Storing::Zstd => Blocks::Compressed,
            Storing::Raw => Blocks::Plain,
        }
    }
}

impl Work for Demo {
    fn name(&self) -> &'static str {
        KIND
    }

    fn verify_whole(&self, file: &Opened, keep: usize, found: &mut Verification) -> bool {
        let Some(demo) = &file.demo else { return false };
        checks::verify(&file.path, demo, keep, found);
        true
    }

    fn verify(&self, one: &Decoded<'_>, keep: usize, found: &mut Verification) {
        let (path, key) = (&one.file.path, &one.file.source.describe().key);
        match DemoFile::of_packed(key, one.stored, one.chunk) {
            Ok(trajectory) => checks::verify_packed(path, &trajectory, one.i, keep, found),
            Err(e) => found.add(keep, Fault::new(&e.in_chunk(one.i).in_source(path))),
        }
    }

    fn signs_whole(&self, file: &Opened, signs: &mut Signs) -> bool {
        let Some(demo) = &file.demo else { return false };
        signs::of((&file.path, 0), demo, signs);
        true
    }

    fn signs(&self, one: &Decoded<'_>, signs: &mut Signs) -> FormatResult<()> {
        let trajectory = DemoFile::of_packed(&one.file.source.describe().key, one.stored, one.chunk)?;
        signs::of((&one.file.path, one.i), &trajectory, signs);
        Ok(())
    }

    fn packed(&self, file: &Opened, most: usize) -> Option<(u64, u64)> {
        signs::packed(file.demo.as_ref()?, file.size, most)
    }

    fn codecs(&self) -> &'static [Storing] {
        &[Storing::Zstd, Storing::Raw]
    }

    fn view(&self, place: FramePlace, layout: Option<&Layout>, record: &[u8]) -> FormatResult<FrameView> {
        Ok(FrameView::Demo(Box::new(demo::view(place, layout, record))))
    }

    fn count(&self, file: &Opened, counting: &mut dyn Counting) -> Result<()> {
        counting.demos(file);
        Ok(())
    }
}
