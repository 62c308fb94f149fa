//! Which folder may name which, in every crate: one table of all folders, without a default, and no circle in it; nor one of
//! files that stand in different folders.
//! Looks at paths in running code; tests may name what they test with.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{SourceFile, report, rust};
use crate::rooms_of::HOUSES;

/// A crate: where its sources are, and each of its folders (or files beside its door) with those that it may name.
pub(crate) struct House {
    pub(crate) source: &'static str,
    pub(crate) rooms: &'static [(&'static str, &'static [&'static str])],
}

/// What may be taken at the door of a crate from within it: the words for what went wrong.
const DOOR: [&str; 2] = ["Error", "Result"];

impl House {
    fn files(&self) -> impl Iterator<Item = &'static SourceFile> {
        rust(self.source).filter(|file| !file.is_test())
    }

    /// The room of a module: the row of the table that has most of its path.
    fn room(&self, module: &[String]) -> Option<&'static str> {
        let within = |room: &str| room.split('/').enumerate().all(|(i, part)| module.get(i).is_some_and(|m| m == part));
        self.rooms.iter().map(|(room, _)| *room).filter(|room| within(room)).max_by_key(|room| room.len())
    }

    /// Every arrow from a file to a module of the same crate: file, line, the path that it names.
    fn arrows(&self) -> impl Iterator<Item = (&'static SourceFile, usize, Vec<String>)> {
        let modules: BTreeSet<Vec<String>> = self.files().map(SourceFile::module).collect();
        self.files().flat_map(move |file| {
            let known = modules.clone();
            let inside =
                move |path: &Vec<String>| path.first().is_some_and(|first| known.contains(&vec![first.clone()]));
            file.paths().into_iter().filter(move |(_, path)| inside(path)).map(move |(line, path)| (file, line, path))
        })
    }
}

#[test]
fn each_folder_names_those_of_its_row_alone() {
    let mut breaches = Vec::new();
    for house in HOUSES {
        let (mut used, mut there) = (BTreeSet::new(), BTreeSet::new());
        for file in house.files() {
            let module = file.module();
            match house.room(&module) {
                Some(room) => there.extend([room]),
                None if module.is_empty() => {}
                None => breaches.push(format!("{}: say in `rooms_of.rs` which folders it may name", file.path)),
            }
        }
        for (file, line, path) in house.arrows() {
            let (Some(from), Some(to)) = (house.room(&file.module()), house.room(&path)) else { continue };
            let allowed = house.rooms.iter().find(|(room, _)| *room == from).map_or(&[][..], |(_, arrows)| arrows);
            used.insert((from, to));
            if from != to && !allowed.contains(&to) {
                breaches.push(format!("{}:{line}: `{}`: `{from}` must not name `{to}`", file.path, path.join("::")));
            }
        }
        for (room, arrows) in house.rooms {
            if !there.contains(room) {
                breaches.push(format!("{}{room}: there is none; strike it from `rooms_of.rs`", house.source));
            }
            let idle = arrows.iter().filter(|to| !used.contains(&(*room, **to)));
            breaches.extend(idle.map(|to| format!("{}{room}: names no `{to}`: strike the arrow", house.source)));
        }
    }
    report("One table says which folder names which; a new folder has a row in it.", breaches);
}

#[test]
fn inside_a_crate_its_door_is_used_for_errors_alone() {
    let mut breaches = Vec::new();
    for house in HOUSES {
        for file in house.files().filter(|file| !file.module().is_empty()) {
            for (line, path) in file.paths() {
                let first = path.first().map_or("", String::as_str);
                let own = file.text.lines().nth(line - 1).is_some_and(|text| text.contains(&format!("crate::{first}")));
                if first.starts_with(char::is_uppercase) && own && !DOOR.contains(&first) {
                    breaches.push(format!("{}:{line}: `crate::{first}`: name the folder that it is in", file.path));
                }
            }
        }
    }
    report("An arrow shows where it leads.", breaches);
}

#[test]
fn no_folders_stand_in_a_circle() {
    let mut breaches = Vec::new();
    for house in HOUSES {
        let graph = house.rooms.iter().map(|(room, arrows)| (*room, arrows.iter().copied().collect())).collect();
        breaches.extend(circles(&graph).iter().map(|circle| format!("{}: {}", house.source, circle.join(", "))));
    }
    report("Folders look one way.", breaches);
}

#[test]
fn no_files_of_different_folders_stand_in_a_circle() {
    let mut breaches = Vec::new();
    for house in HOUSES {
        let files: BTreeMap<Vec<String>, &'static str> =
            house.files().map(|file| (file.module(), file.path.as_str())).collect();
        let mut graph: BTreeMap<&'static str, BTreeSet<&'static str>> = BTreeMap::new();
        for (file, _, path) in house.arrows() {
            let to = (1..=path.len()).rev().find_map(|parts| files.get(&path[..parts]));
            let to = to.filter(|to| **to != file.path);
            graph.entry(&file.path).or_default().extend(to);
        }
        let module = |path: &str| files.iter().find(|(_, file)| **file == path).map(|(module, _)| module.clone());
        for circle in circles(&graph) {
            let rooms: BTreeSet<_> = circle.iter().map(|path| module(path).and_then(|m| house.room(&m))).collect();
            if rooms.len() > 1 {
                breaches.push(circle.join(", "));
            }
        }
    }
    report("No circle of files spans folders.", breaches);
}

/// The circles of a graph: its nodes that reach each other, where that are several.
fn circles(graph: &BTreeMap<&'static str, BTreeSet<&'static str>>) -> Vec<Vec<&'static str>> {
    let reached = |from: &'static str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(node) = open.pop() {
            open.extend(graph.get(node).into_iter().flatten().copied().filter(|next| seen.insert(*next)));
        }
        seen
    };
    let from: BTreeMap<&str, BTreeSet<&str>> = graph.keys().map(|node| (*node, reached(node))).collect();
    let (mut found, mut told) = (Vec::new(), BTreeSet::new());
    for (node, there) in &from {
        let back = |other: &&&'static str| from.get(**other).is_some_and(|theirs| theirs.contains(node));
        let circle: Vec<&'static str> = there.iter().filter(back).copied().collect();
        if circle.len() > 1 && told.insert(circle.clone()) {
            found.push(circle);
        }
    }
    found
}

#[test]
fn circles_are_found() {
    let arrows = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("f", "f")];
    let mut graph: BTreeMap<&'static str, BTreeSet<&'static str>> = BTreeMap::new();
    for (from, to) in arrows {
        graph.entry(from).or_default().insert(to);
    }
    assert_eq!(circles(&graph), [["a", "b", "c"]]);
}
