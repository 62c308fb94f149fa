//! What a pack was made of -> its lineage: the games that were taken, what made them, and what was there before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gristmill_engine::lineage::{Step, Taken, name_of, of_folder};
use serde::{Deserialize, Serialize};

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

    /// What the folders of these games tell.
    pub(super) fn told(&self, input: &Path) -> Told {
        let folders = std::iter::once("").chain(self.folders.iter().map(String::as_str));
        let steps = |folder: &str| left_in(&if folder.is_empty() { input.to_owned() } else { input.join(folder) });
        let folders = folders.filter_map(|folder| Some((folder.to_owned(), steps(folder)?))).collect();
        Told { name: name_of(input), folders }
    }

    /// The lineage of the pack of shares that told this.
    pub(super) fn joined(self, told: &Told, said: Step) -> Vec<Step> {
        let folders = std::iter::once("").chain(self.folders.iter().map(String::as_str));
        let from = folders.filter_map(|folder| told.folders.get(folder).cloned()).collect();
        let sources = Some(self.taken.named(told.name.clone()));
        vec![Step { sources, ..said.made_from(from) }]
    }

    /// The lineage of the pack; `append` extends that of the pack in the output.
    pub(crate) fn finish(self, options: &PackOptions, append: bool, said: Step) -> Vec<Step> {
        let mut steps = match append {
            true => of_folder(options.before()).unwrap_or_else(|| vec![Step::unrecorded()]),
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

/// What a share says of the folders of its games, so that a commit need not see them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Told {
    /// The name of the input, without the folders around it.
    pub(super) name: String,
    /// By folder below the input, the empty one being itself: the lineage of those that have one.
    pub(super) folders: BTreeMap<String, Vec<Step>>,
}

/// The lineage, or an `unrecorded` step where there is none.
pub(crate) fn known_of(path: &Path) -> Vec<Step> {
    left_in(path).unwrap_or_else(|| vec![Step::unrecorded()])
}
