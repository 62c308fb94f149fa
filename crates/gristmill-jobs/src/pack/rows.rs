//! Packs of rows that shares made -> the rows of one pack, in the order of the shares: runs and names of valuations numbered through.
//! Holds every file against the hash of its manifest.

use gristmill_engine::error::Result;

use super::assemble::{Assembly, Standing};
use super::begin::{self, Games, Start};
use super::discover::Discovered;
use super::join::{Part, told};
use super::start::{self, Rows};
use super::{PackOptions, Packed, Progress};

/// Shares of rows, in order.
pub(super) struct RowParts(pub(super) Vec<Part>);

impl Games for RowParts {
    type Layout = Rows;
    type Making<'a> = Assembly<'a>;

    fn check(&self, _: &PackOptions) -> Result<()> {
        Ok(())
    }

    fn planned(&self, _: &PackOptions) -> Result<Packed> {
        Ok(Packed::default())
    }

    fn complete(&self, options: &PackOptions) -> Result<Packed> {
        start::complete(options)
    }

    fn begin<'a>(&self, options: &'a PackOptions, from: Start<Standing>) -> Result<Assembly<'a>> {
        let Start::Fresh(staging) = from else { return begin::refuse(options, "an interrupted job is here") };
        let halves = self.0.first().map(|part| part.said.whole.clone()).unwrap_or_default();
        let found = Discovered { halves, ..Discovered::default() };
        let told = Some(told(&self.0));
        Ok(Assembly { told, ..start::begun(options, &found, staging, Standing::default())? })
    }

    fn take(self, making: &mut Assembly<'_>, progress: &mut dyn FnMut(Progress)) -> Result<u64> {
        let games = self.0.iter().map(|part| part.said.games).sum();
        for part in self.0 {
            making.append(&part, games, progress)?;
            part.said.skipped.into_iter().for_each(|skipped| making.standing.skip(skipped));
            making.standing.remarks.extend(part.said.remarks);
        }
        Ok(games)
    }
}
