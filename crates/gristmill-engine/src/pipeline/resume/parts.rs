//! States of the ranks of one run -> the state of the whole: their lanes together, their files under common ids.
//! Takes no part for granted: parts of another moment, run or configuration are refused, lane by lane.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use gristmill_runtime::error::{Error, Result};

use crate::pipeline::draw::recorded::Recorded;
use crate::pipeline::resume::envelope;
use crate::pipeline::resume::journals::latest;
use crate::pipeline::resume::needed::both;
use crate::pipeline::resume::state::{ChainState, LoaderState, Part, compare, compared, of_version};

/// Puts parts together; one part, or one whole, stays what it is.
///
/// Errors: `State` for parts that do not belong together, with what differs.
pub(in crate::pipeline) fn whole(parts: Vec<LoaderState>) -> Result<LoaderState> {
    let mut parts = parts.into_iter();
    let Some(mut whole) = parts.next() else { return Err(Error::State("it has no parts".into())) };
    let first = whole.part;
    let mut common: BTreeMap<String, Common> = BTreeMap::new();
    let mut known: Vec<Known> = vec![Known::of(&whole)];
    for mut part in parts {
        fits(&whole, &part)
            .map_err(|what| Error::State(format!("{} and {}: {what}", named(first), named(part.part))))?;
        known.push(Known::of(&part));
        for (loader, files) in &part.files {
            let of = || Common::of(whole.files.get(loader).cloned().unwrap_or_default());
            let common = common.entry(loader.clone()).or_insert_with(of);
            let (mut ids, mut named) = (HashMap::new(), Named::default());
            files.iter().for_each(|file| named.add(file, common, true));
            for file in files {
                let id = common.add(file, &ids, &named);
                ids.insert(file.id, id);
            }
            ids.retain(|own, id| own != id);
            part.outputs.values_mut().for_each(|output| renumber(output, &ids));
            if let Some(known) = known.last_mut() {
                known.renumber(&ids);
            }
        }
        let marks = std::mem::take(&mut whole.journals);
        whole.journals = latest(marks.into_iter().chain(part.journals));
        let needed = std::mem::take(&mut whole.oldest_needed);
        whole.oldest_needed = needed
            .into_iter()
            .filter_map(|(loader, own)| Some((part.oldest_needed.remove(&loader)?, own, loader)))
            .map(|(other, own, loader)| (loader, both(own, other)))
            .collect();
        for (alias, output) in part.outputs {
            whole.outputs.entry(alias).and_modify(|all| all.lanes.extend(output.lanes));
        }
    }
    whole.files.extend(common.into_iter().map(|(loader, common)| (loader, common.files())));
    if known.len() > 1 {
        whole.part = None;
        wait_for_others(&mut whole, &known);
    }
    Ok(whole)
}

/// States of all ranks of one run, as JSON text -> the state of the whole. Where it is the same for every rank, as of rows by
/// number, it is that one.
///
/// Errors: `State` for what is no state, parts that do not belong together, and a rank that is not there.
pub fn merge_states(states: &[String]) -> Result<String> {
    let read = |text: &String| serde_json::from_str(text).map_err(|e| Error::State(e.to_string()));
    let values: Vec<serde_json::Value> = states.iter().map(read).collect::<Result<_>>()?;
    let Some(first) = values.first() else { return Err(Error::State("no states are given".into())) };
    if !envelope::has_parts(first) {
        let mut differences = Vec::new();
        values.iter().for_each(|other| compare("", first, other, &mut differences));
        values.iter().try_for_each(envelope::check)?;
        return if differences.is_empty() { Ok(first.to_string()) } else { Err(Error::State(differences.join("; "))) };
    }
    let parts: Vec<LoaderState> = values.into_iter().map(of_version).collect::<Result<_>>()?;
    if let Some(Part { world_size, .. }) = parts[0].part {
        let has =
            |rank: u32| parts.iter().any(|p| p.part.is_some_and(|p| (p.rank, p.world_size) == (rank, world_size)));
        if let Some(rank) = (0..world_size).find(|rank| !has(*rank)) {
            return Err(Error::State(format!("rank {rank} of {world_size} is not among them")));
        }
    }
    whole(parts)?.to_json()
}

/// What one part knew of.
struct Known {
    lanes: BTreeSet<u32>,
    files: BTreeSet<u64>,
}

impl Known {
    fn of(part: &LoaderState) -> Self {
        let lanes = part.outputs.values().flat_map(|output| output.lanes.keys().copied());
        Known { lanes: lanes.collect(), files: part.files.values().flatten().map(|file| file.id).collect() }
    }

    fn renumber(&mut self, ids: &HashMap<u64, u64>) {
        self.files = self.files.iter().map(|id| ids.get(id).copied().unwrap_or(*id)).collect();
    }
}

fn named(part: Option<Part>) -> String {
    part.map_or("a whole".to_owned(), |Part { rank, world_size }| format!("the part of rank {rank} of {world_size}"))
}

fn fits(whole: &LoaderState, part: &LoaderState) -> std::result::Result<(), String> {
    let mut differences = Vec::new();
    compare("", &compared(&whole.config), &compared(&part.config), &mut differences);
    if whole.seed != part.seed {
        differences.push(format!("seeds {} and {}", whole.seed, part.seed));
    }
    if !whole.outputs.keys().eq(part.outputs.keys()) {
        differences.push("other outputs".to_owned());
    }
    for (alias, one) in &whole.outputs {
        let Some(other) = part.outputs.get(alias) else { continue };
        if one.batch != other.batch {
            let text = "save all ranks after the same step";
            differences
                .push(format!("output `{alias}` before batch {} and before batch {}: {text}", one.batch, other.batch));
        }
        if one.skipped != other.skipped {
            differences.push(format!("output `{alias}` left out other batches"));
        }
        if let Some(lane) = one.lanes.keys().find(|lane| other.lanes.contains_key(lane)) {
            differences.push(format!("both have lane {lane} of output `{alias}`"));
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.join("; ")) }
}

/// Files under ids that all who know them agree on.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Common {
    files: BTreeMap<u64, Recorded>,
    /// Ids of the versions of each name and size, oldest first.
    ids: HashMap<(String, u64), Vec<u64>>,
    /// Those of which a journal says what was first read.
    told: HashSet<u64>,
}

impl Common {
    pub(in crate::pipeline) fn of(files: Vec<Recorded>) -> Self {
        let mut common = Common::default();
        files.into_iter().for_each(|file| common.insert(file));
        common
    }

    fn insert(&mut self, file: Recorded) {
        self.ids.entry((file.name.clone(), file.size)).or_default().push(file.id);
        self.files.insert(file.id, file);
    }

    /// The common id of a file in another part, whose other files have the common `ids` already: the one it has here,
    /// else its own while that is free. Of several versions under one name and size it is the one of that id, or of that time.
    /// A file that the part has as it is here is no other file of the part, and one that it has here under the same id least of all: another may
    /// have had its name, size and time before.
    pub(in crate::pipeline) fn add(&mut self, file: &Recorded, ids: &HashMap<u64, u64>, named: &Named) -> u64 {
        let versions = self.ids.get(&(file.name.clone(), file.size)).map_or(&[][..], Vec::as_slice);
        if let Some(id) = ids.get(&file.id).filter(|id| versions.contains(id)) {
            return *id;
        }
        let taken: BTreeSet<u64> = if versions.is_empty() { BTreeSet::new() } else { ids.values().copied().collect() };
        let is_free = |id: &&u64| !taken.contains(id) && (**id == file.id || !named.own.contains(id));
        let free: Vec<u64> = versions.iter().filter(is_free).copied().collect();
        let of_time = |id: &&u64| self.files[id].is_untouched(file.mtime, file.version.as_deref());
        let own = free.iter().find(|id| **id == file.id);
        let known = own.filter(of_time).or_else(|| free.iter().find(of_time));
        // Where there are no versions, it is that file, even if it was touched in between.
        let touched = own.or(free.first().filter(|_| versions.len() == 1)).filter(|id| !named.all.contains(id));
        if let Some(id) = known.or(touched) {
            return *id;
        }
        let next = || self.files.last_key_value().map_or(0, |(last, _)| last + 1);
        let id = if self.files.contains_key(&file.id) { next() } else { file.id };
        self.insert(Recorded { id, ..file.clone() });
        id
    }

    /// A file by its common id.
    pub(in crate::pipeline) fn get(&self, id: u64) -> Option<&Recorded> {
        self.files.get(&id)
    }

    /// Notes what a journal says was first read of a file.
    pub(in crate::pipeline) fn read(&mut self, id: u64, digest: u64) {
        self.told.insert(id);
        if let Some(file) = self.files.get_mut(&id) {
            *file = file.clone().read(digest);
        }
    }

    /// What was first read of files, by their ids, where no journal says so.
    pub(in crate::pipeline) fn untold(&self) -> Vec<(u64, String)> {
        let untold = self.files.values().filter(|file| !self.told.contains(&file.id));
        untold.filter_map(|file| Some((file.id, file.bytes.clone()?))).collect()
    }

    /// All of them, in order of id.
    pub(in crate::pipeline) fn files(self) -> Vec<Recorded> {
        self.files.into_values().collect()
    }
}

/// The common files that a part names with their name, size and time.
#[derive(Debug, Clone, Default)]
pub(in crate::pipeline) struct Named {
    all: HashSet<u64>,
    /// Those that it names by their common ids.
    own: HashSet<u64>,
}

impl Named {
    /// Notes a file of the part. `numbered`: by the ids that the part has at its beginning.
    pub(in crate::pipeline) fn add(&mut self, file: &Recorded, common: &Common, numbered: bool) {
        let versions = common.ids.get(&(file.name.clone(), file.size)).map_or(&[][..], Vec::as_slice);
        let is_it = |id: &&u64| common.files[id].is_untouched(file.mtime, file.version.as_deref());
        for id in versions.iter().filter(is_it) {
            self.all.insert(*id);
            self.own.extend((numbered && *id == file.id).then_some(file.id));
        }
    }

    /// The part has other ids from here on, those of `files`.
    pub(in crate::pipeline) fn renumber(&mut self, files: &[Recorded], common: &Common) {
        self.own.clear();
        files.iter().for_each(|file| self.add(file, common, true));
    }
}

fn renumber(output: &mut ChainState, ids: &HashMap<u64, u64>) {
    let new = |id: &mut u64| *id = ids.get(id).copied().unwrap_or(*id);
    for lane in output.lanes.values_mut() {
        lane.held_mut().flat_map(|held| &mut held.sources).for_each(new);
        for branch in &mut lane.branches {
            branch.drawer.iter_mut().flat_map(|drawer| &mut drawer.sources).for_each(new);
            for admission in &mut branch.admissions {
                new(&mut admission.id);
                admission.old.iter_mut().for_each(new);
            }
            for (id, old) in branch.waiting.iter_mut().chain(&mut branch.gone) {
                new(id);
                old.iter_mut().for_each(new);
            }
        }
    }
}

/// A file that only some ranks knew of is yet to be taken in by the lanes of the others.
fn wait_for_others(whole: &mut LoaderState, known: &[Known]) {
    let branches = || whole.outputs.values().flat_map(|output| output.lanes.values()).flat_map(|lane| &lane.branches);
    let admitted = branches().flat_map(|branch| &branch.admissions).map(|admission| (admission.id, admission.old));
    let replaced: BTreeMap<u64, Option<u64>> =
        admitted.chain(branches().flat_map(|branch| branch.waiting.iter().copied())).collect();
    let all: BTreeSet<u64> = whole.files.values().flatten().map(|file| file.id).collect();
    for known in known {
        let missed: Vec<u64> = all.difference(&known.files).copied().collect();
        for output in whole.outputs.values_mut() {
            let own = output.lanes.iter_mut().filter(|(lane, _)| known.lanes.contains(lane));
            for branch in own.flat_map(|(_, lane)| &mut lane.branches) {
                // Before the first scan was in, there is nothing to wait for: all of it is found.
                if branch.drawer.is_some() || !known.files.is_empty() {
                    branch.waiting.extend(missed.iter().map(|id| (*id, replaced.get(id).copied().flatten())));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A part with one lane; it knows files by id and name, and draws from the first.
    fn part(rank: u32, files: &[(u64, &str)]) -> Value {
        let known: Vec<Value> = files.iter().map(|(id, name)| json!({"id": id, "name": name, "size": 5})).collect();
        let branch = json!({
            "head": 9, "taken": 0, "drawn": 9, "admissions": [{"at": 9, "id": files[1].0, "chunks": 1}],
            "drawer": {"at": 9, "sources": "AA", "chunks": "AQ"},
        });
        let reservoir = json!({"inputs": "", "sources": "", "rows": ""});
        let lane = json!({"join": [0, [1.0]], "reservoir_draws": 0, "reservoir": reservoir, "branches": [branch]});
        json!({
            "gristmill_state": 4, "of": "stream", "config": {}, "seed": 1, "part": {"rank": rank, "world_size": 2},
            "files": {"load": known}, "outputs": {"": {"batch": 3, "lanes": {rank.to_string(): lane}}},
        })
    }

    #[test]
    fn versions_of_one_name_and_size_keep_their_own_ids() {
        let file = |id, mtime: i64| {
            let file = json!({"id": id, "name": "a", "size": 5, "mtime": mtime});
            serde_json::from_value::<Recorded>(file).unwrap()
        };
        let mut common = Common::of(vec![file(0, 1), file(5, 2)]);
        let mut ids = HashMap::new();
        for (told, expected) in [((0, 1), 0), ((5, 2), 5), ((0, 1), 0), ((7, 3), 7)] {
            let id = common.add(&file(told.0, told.1), &ids, &Named::default());
            assert_eq!(id, expected, "{told:?}");
            ids.insert(told.0, id);
        }
        // Somebody else, who missed the first version, and numbered others.
        let mut ids = HashMap::new();
        for (told, expected) in [((3, 2), 5), ((0, 1), 0), ((7, 9), 7), ((8, 9), 8)] {
            let id = common.add(&file(told.0, told.1), &ids, &Named::default());
            assert_eq!(id, expected, "{told:?}");
            ids.insert(told.0, id);
        }
        let old = |id| serde_json::from_value::<Recorded>(json!({"id": id, "name": "a", "size": 5})).unwrap();
        let mut common = Common::of(vec![old(0), old(5)]);
        let mut ids = HashMap::new();
        for id in [0, 5] {
            let told = common.add(&old(id), &ids, &Named::default());
            ids.insert(id, told);
        }
        assert_eq!(ids, HashMap::from([(0, 0), (5, 5)]), "as older versions wrote them");
        let mut one = Common::of(vec![file(4, 1)]);
        assert_eq!(one.add(&file(0, 2), &HashMap::new(), &Named::default()), 4, "touched between two first scans");
        // A part that has seen the file before and after it was replaced, where the other saw it after that.
        let mut after = Common::of(vec![file(0, 2)]);
        let (part, mut named, mut ids) = ([file(0, 1), file(6, 2)], Named::default(), HashMap::new());
        part.iter().for_each(|file| named.add(file, &after, true));
        for (file, expected) in part.iter().zip([1, 0]) {
            let id = after.add(file, &ids, &named);
            assert_eq!(id, expected, "{file:?}");
            ids.insert(file.id, id);
        }
        // The same where both have one time, and the part knows the second by its id here.
        let mut after = Common::of(vec![file(6, 2)]);
        let (part, mut named, mut ids) = ([file(1, 2), file(6, 2)], Named::default(), HashMap::new());
        part.iter().for_each(|file| named.add(file, &after, true));
        for file in &part {
            let id = after.add(file, &ids, &named);
            assert_eq!(id, file.id, "{file:?}");
            ids.insert(file.id, id);
        }
    }

    #[test]
    fn files_get_common_ids_and_wait_for_the_lanes_that_did_not_know_them() {
        let parts = [part(0, &[(0, "a"), (1, "b")]), part(1, &[(0, "a"), (1, "c"), (2, "d")])];
        let whole = whole(parts.map(|part| serde_json::from_value(part).unwrap()).into()).unwrap();
        let files: Vec<(u64, &str)> = whole.files["load"].iter().map(|file| (file.id, file.name.as_str())).collect();
        assert_eq!(files, [(0, "a"), (1, "b"), (2, "c"), (3, "d")]);
        let lanes = &whole.outputs[""].lanes;
        let branch = |lane: u32| &lanes[&lane].branches[0];
        assert_eq!([0, 1].map(|lane| branch(lane).admissions[0].id), [1, 2], "b of the first part, c of the second");
        assert_eq!(branch(0).waiting, [(2, None), (3, None)]);
        assert_eq!(branch(1).waiting, [(1, None)]);
        assert_eq!(whole.part, None);
    }

    #[test]
    fn a_window_that_is_not_begun_waits_for_what_other_ranks_found_once_its_own_scan_is_in() {
        let files = [(0, "a"), (1, "b"), (2, "d")];
        let mut parts = [part(0, &files[..2]), part(1, &files), part(2, &files)];
        for rank in [0, 2] {
            let lane = parts[rank].pointer_mut(&format!("/outputs//lanes/{rank}/branches/0")).unwrap();
            lane.as_object_mut().unwrap().remove("drawer");
        }
        parts[2]["files"] = json!({});
        let whole = whole(parts.map(|part| serde_json::from_value(part).unwrap()).into()).unwrap();
        let waits = |lane: u32| &whole.outputs[""].lanes[&lane].branches[0].waiting;
        assert_eq!([0, 1, 2].map(waits), [&vec![(2, None)], &vec![], &vec![]]);
    }

    /// The text of a document, with its checksum.
    fn text(document: &Value) -> String {
        serde_json::to_string(document).and_then(gristmill_runtime::runtime::document::seal).unwrap()
    }

    #[test]
    fn a_part_alone_stays_what_it_is() {
        let alone = whole(vec![serde_json::from_value(part(1, &[(0, "a"), (1, "b")])).unwrap()]).unwrap();
        assert_eq!(alone.part.map(|part| (part.rank, part.world_size)), Some((1, 2)));
        assert_eq!(alone.outputs[""].lanes[&1].branches[0].waiting, []);
    }

    #[test]
    fn the_states_of_all_ranks_are_one_state() {
        let files = [(0, "a"), (1, "b")];
        let states = [0, 1].map(|rank| text(&part(rank, &files)));
        let merged: Value = serde_json::from_str(&merge_states(&states).unwrap()).unwrap();
        assert_eq!(merged["outputs"][""]["lanes"].as_object().unwrap().len(), 2);
        assert!(merged.get("part").is_none_or(Value::is_null));
        for (given, lacks) in [(0, 1), (1, 0)] {
            let e = merge_states(&states[given..=given]).unwrap_err().to_string();
            assert!(e.contains(&format!("rank {lacks} of 2 is not among them")), "{e}");
        }
        assert!(merge_states(&[]).unwrap_err().to_string().contains("no states"));
        assert!(merge_states(&["no JSON".into()]).is_err());
        // States of rows are the same on all ranks.
        let rows = |batch: u32| json!({"gristmill_state": 4, "of": "rows", "batch": batch});
        let same = merge_states(&[text(&rows(3)), text(&rows(3))]).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&same).unwrap()["batch"], 3);
        assert!(merge_states(&[text(&rows(3)), text(&rows(4))]).unwrap_err().to_string().contains("batch"));
        assert!(merge_states(&[rows(3).to_string()]).is_err(), "without its checksum");
    }

    #[test]
    fn parts_that_do_not_belong_together_are_told_with_what_differs() {
        let files = [(0, "a"), (1, "b")];
        let edited = |path: &str, value: Value| {
            let mut part = part(1, &files);
            *part.pointer_mut(path).unwrap() = value;
            part
        };
        let lanes = part(0, &files)["outputs"][""]["lanes"].clone();
        for (other, expected) in [
            (edited("/seed", 2.into()), "rank 0 of 2 and the part of rank 1 of 2: seeds 1 and 2"),
            (edited("/part", Value::Null), "rank 0 of 2 and a whole: "),
            (edited("/config", json!({"batch_size": 7})), "batch_size"),
            (edited("/outputs", json!({"other": {"batch": 3, "lanes": {}}})), "other outputs"),
            (edited("/outputs//batch", 4.into()), "before batch 3 and before batch 4"),
            (edited("/outputs//lanes", lanes.clone()), "both have lane 0 of output ``"),
        ] {
            let mut other = other;
            if other["part"].is_null() {
                other["seed"] = 2.into();
            }
            let parts = [part(0, &files), other].map(|part| serde_json::from_value(part).unwrap());
            let e = whole(parts.into()).unwrap_err().to_string();
            assert!(e.contains(expected), "{e}, expected {expected}");
        }
    }
}
