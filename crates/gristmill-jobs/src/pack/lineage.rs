//! What a pack was made of -> its lineage: the games that were taken, what made them, and what was there before.

use std::collections::BTreeSet;
use std::path::Path;

use gristmill_engine::lineage::{Step, Taken, of_folder};

use super::PackOptions;
use crate::rewrite::left_in;

/// At most this many folders are searched for jobs: data sets have some, raw drops a folder for each day.
const MOST_FOLDERS: usize = 4096;

/// Gathers the games of one job.
#[derive(Default)]
pub(crate) struct Made {
    taken: Taken,
    /// Folders above games, below the input.
    folders: BTreeSet<String>,
}

impl Made {
    /// A game that was taken: see [`Taken::add`].
    pub(crate) fn add(&mut self, path: &str, hash: u128, stored_bytes: u64) {
        self.taken.add(path, hash, stored_bytes);
        let mut above = path;
        while let Some((folder, _)) = above.rsplit_once('/') {
            if self.folders.len() == MOST_FOLDERS || !self.folders.insert(folder.to_owned()) {
                break;
            }
            above = folder;
        }
    }

    /// The lineage of the pack; `append` extends that of the pack in the output.
    pub(crate) fn finish(self, options: &PackOptions, append: bool, said: Step) -> Vec<Step> {
        let mut steps = match append {
            true => of_folder(&options.output).unwrap_or_else(|| vec![Step::unrecorded()]),
            false => Vec::new(),
        };
        let inputs =
            std::iter::once(options.input.clone()).chain(self.folders.iter().map(|folder| options.input.join(folder)));
        let from: Vec<Vec<Step>> = inputs.filter_map(|folder| left_in(&folder)).collect();
        let sources = Some(self.taken.finish(&options.input));
        steps.push(Step { sources, ..said.made_from(from) });
        steps
    }
}

/// The lineage, or an `unrecorded` step where there is none.
pub(crate) fn known_of(path: &Path) -> Vec<Step> {
    left_in(path).unwrap_or_else(|| vec![Step::unrecorded()])
}
