//! Files that a saved state needs and that are gone -> a refusal that names them all or, by choice, what goes without.
//! A file that goes missing later is a bad chunk like any other.

use std::collections::{BTreeMap, BTreeSet};

use gristmill_runtime::error::{Error, Result};

use crate::pipeline::chain::Chain;
use crate::pipeline::draw::drawer::{Admission, DrawerState};
use crate::pipeline::resume::state::{ChainState, HeldRows};

/// What is done where files that a state needs are gone or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// The state is refused, with their names (the default).
    #[default]
    Refuse,
    /// Their chunks are empty whenever they are drawn, and their rows leave the reservoir. All other draws stay what they
    /// were.
    Skip,
    /// Their bytes are in the spill folder of the config; what is not there either is refused.
    Spill,
}

/// A file that a run does without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vanished {
    /// Its name below its directory.
    pub name: String,
    /// Gone, or how it differs.
    pub why: String,
    /// Its chunks that could still be drawn.
    pub chunks: u64,
    /// Its rows that the reservoirs held.
    pub rows: u64,
}

/// Names that a refusal spells out.
const NAMED: usize = 8;

/// The sources of a chain's state that are missing: branch and id, with what is lost.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Lost(pub(in crate::pipeline) BTreeMap<(usize, u64), Vanished>);

impl Lost {
    /// Looks for every file that the saved draws and reservoirs of a chain's own lanes name.
    pub(in crate::pipeline) fn of(chain: &Chain, state: &ChainState) -> Self {
        let inner = chain.lock();
        let inputs = chain.plan.inputs();
        let mut lost = Lost::default();
        let mut looked = BTreeSet::new();
        for (l, plan) in chain.plan.lanes.iter().enumerate() {
            let Some(saved) = state.lanes.get(&plan.lane.map_or(0, |lane| lane.index)) else { continue };
            let mut miss = |b: usize, id: u64, chunks: u64, rows: u64| {
                let roster = &inner.branches[b].roster;
                if looked.insert((b, id))
                    && let Some((name, why)) = roster.lacks(id)
                {
                    lost.0.insert((b, id), Vanished { name, why, chunks: 0, rows: 0 });
                }
                if let Some(found) = lost.0.get_mut(&(b, id)) {
                    (found.chunks, found.rows) = (found.chunks + chunks, found.rows + rows);
                }
            };
            for (input, saved) in saved.branches.iter().enumerate().take(inputs) {
                let b = l * inputs + input;
                let replaced = saved.admissions.iter().filter(|admission| admission.at <= saved.head);
                let replaced: BTreeSet<u64> = replaced.filter_map(|admission| admission.old).collect();
                let drawn = saved.drawer.iter().flat_map(DrawerState::live);
                let admitted = saved.admissions.iter().map(|Admission { id, chunks, .. }| (*id, u64::from(*chunks)));
                for (id, chunks) in drawn.chain(admitted) {
                    miss(b, id, if replaced.contains(&id) { 0 } else { chunks }, 0);
                }
            }
            let held = saved.held().flat_map(HeldRows::rows).flatten();
            for (input, from) in held.filter(|(input, _)| (*input as usize) < inputs) {
                miss(l * inputs + input as usize, from.source, 0, 1);
            }
        }
        lost
    }

    /// Whether a source is among them.
    pub(in crate::pipeline) fn has(&self, branch: usize, id: u64) -> bool {
        self.0.contains_key(&(branch, id))
    }

    /// By file, since several lanes and inputs may want the same; without those of which nothing can be drawn any more.
    pub(in crate::pipeline) fn by_file(&self) -> Vec<Vanished> {
        let mut files: BTreeMap<String, Vanished> = BTreeMap::new();
        for one in self.0.values().filter(|one| one.chunks + one.rows > 0).cloned() {
            match files.get_mut(&one.name) {
                Some(all) => (all.chunks, all.rows) = (all.chunks + one.chunks, all.rows + one.rows),
                None => drop(files.insert(one.name.clone(), one)),
            }
        }
        files.into_values().collect()
    }

    /// The refusal, if there are any.
    pub(in crate::pipeline) fn refuse(&self) -> Result<()> {
        let files = self.by_file();
        if files.is_empty() {
            return Ok(());
        }
        let named: Vec<String> = files.iter().take(NAMED).map(|file| format!("`{}` {}", file.name, file.why)).collect();
        let more = files.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let (chunks, rows): (u64, u64) =
            files.iter().fold((0, 0), |(chunks, rows), file| (chunks + file.chunks, rows + file.rows));
        Err(Error::State(format!(
            "{} of the files that it needs cannot be had: {}{more}. {chunks} chunks of the windows and {rows} rows of the \
             reservoirs are in them: put them back, or resume without them, with missing = \"skip\"",
            files.len(),
            named.join(", ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::loader::launch::tests::still::{Still, games, options};
    use crate::preset::{Lc0Preset, lc0};

    /// Branch, id, name, chunks, rows.
    fn lost(files: &[(usize, u64, &str, u64, u64)]) -> Lost {
        let one = |(branch, id, name, chunks, rows): &(usize, u64, &str, u64, u64)| {
            let (name, why, chunks, rows) = ((*name).to_owned(), "is gone".to_owned(), *chunks, *rows);
            ((*branch, *id), Vanished { name, why, chunks, rows })
        };
        Lost(files.iter().map(one).collect())
    }

    #[test]
    fn a_file_that_several_lanes_want_is_named_once_with_all_that_is_in_it() {
        let lost =
            lost(&[(0, 1, "a", 3, 2), (1, 1, "a", 4, 6), (0, 2, "b", 0, 5), (1, 3, "c", 0, 0), (0, 4, "d", 2, 0)]);
        assert!(lost.has(0, 2) && !lost.has(1, 2));
        let found: Vec<_> = lost.by_file().into_iter().map(|file| (file.name, file.chunks, file.rows)).collect();
        assert_eq!(found, [("a".to_owned(), 7, 8), ("b".into(), 0, 5), ("d".into(), 2, 0)], "nothing is drawn of `c`");
        let e = lost.refuse().unwrap_err().to_string();
        assert!(
            e.contains("3 of the files that it needs cannot be had: `a` is gone, `b` is gone, `d` is gone. "),
            "{e}"
        );
        assert!(e.contains(" 9 chunks of the windows and 13 rows of the reservoirs"), "{e}");
    }

    #[test]
    fn a_refusal_spells_out_eight_names() {
        super::Lost::default().refuse().unwrap();
        lost(&[(0, 3, "c", 0, 0)]).refuse().unwrap();
        for (files, more) in [(8, false), (9, true)] {
            let names: Vec<String> = (0..files).map(|i| format!("game{i}")).collect();
            let all: Vec<_> = names.iter().zip(0..).map(|(name, id)| (0, id, name.as_str(), 1, 0)).collect();
            let e = lost(&all).refuse().unwrap_err().to_string();
            assert!(e.contains("`game7` is gone") && !e.contains("game8"), "{e}");
            assert_eq!((e.contains(" more. "), e.contains(", and 1 more. ")), (more, more), "{e}");
        }
    }

    #[test]
    fn a_row_of_an_input_that_there_is_not_is_lost_nowhere() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        [&one, &two].into_iter().for_each(|folder| games(folder.path(), 1, 3, None));
        let reservoir =
            |folders: &[&std::path::Path]| lc0(&Lc0Preset { reservoir: Some(20), ..options(folders) }).unwrap();
        let original = Still::new(&reservoir(&[one.path(), two.path()]));
        original.search();
        original.batches(1);
        let state = original.chain().state();
        let inputs: BTreeSet<_> = state.lanes[&0].held().flat_map(HeldRows::rows).flatten().map(|row| row.0).collect();
        assert_eq!(inputs, [0, 1].into());
        let alone = Still::new(&reservoir(&[one.path()]));
        alone.search();
        assert!(alone.roster().ready() && Lost::of(alone.chain(), &state).by_file().is_empty());
    }
}
