//! Marks of the packs that are merged -> those of the new pack: what all of them marked by one rule, under the new numbers of
//! the frames; and every other mark in words. Asks no rule again, and carries none whose answer would be another now.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::marks::{self, Fit, rule};
use gristmill_engine::pack_table::PackTable;
use gristmill_engine::runtime::intervals::Intervals;
use gristmill_format::Kind;
use gristmill_format::container::marks::{Mark, Origin};

/// A pack that has frames, and where they go.
pub(super) struct Source {
    pub(super) pack: Arc<dyn PackTable>,
    /// Frames that are taken: the first, the one after the last, and what the first is in the new pack; in order.
    pub(super) places: Vec<(u64, u64, u64)>,
}

/// What becomes of the marks.
#[derive(Default)]
pub(super) struct Plan {
    sources: Vec<Source>,
    /// Name, and how its frames were found.
    carried: BTreeMap<String, (Origin, String)>,
    /// Why others are not carried.
    lost: Vec<String>,
}

impl Plan {
    /// Looks at the marks of all packs. `changed` are columns, as [`rule::columns`] names them, that have other values in the
    /// new pack, or none.
    ///
    /// Errors: `Path`.
    pub(super) fn of(sources: Vec<Source>, changed: &[&str]) -> Result<Self> {
        let mut names = BTreeSet::new();
        for source in &sources {
            names.extend(marks::names(source.pack.folder())?);
        }
        let mut plan = Plan { sources, ..Plan::default() };
        for name in names {
            match plan.found_by(&name, changed) {
                Ok(found) => _ = plan.carried.insert(name, found),
                Err(why) => plan.lost.push(format!("mark `{name}` is not carried: {why}")),
            }
        }
        Ok(plan)
    }

    /// How the frames of a mark were found in all packs alike, or why it cannot be carried.
    fn found_by(&self, name: &str, changed: &[&str]) -> Result<(Origin, String), String> {
        let mut found: Option<((Origin, String), &Path)> = None;
        for Source { pack, .. } in &self.sources {
            let (pack, folder) = (&**pack, pack.folder());
            let shown = folder.display();
            let mark = marks::read(pack, name).map_err(|e| match e {
                Error::Format(e) if e.kind() == Kind::Missing => format!("{shown} has none of this name"),
                e => e.to_string(),
            })?;
            if mark.origin == Origin::Duplicates {
                return Err(
                    "games may come again that were in one pack only; `gristmill dedup --mark` finds them".into()
                );
            }
            match marks::fit(pack, &mark) {
                Fit::Fits => {}
                Fit::Grown => {
                    return Err(format!(
                        "{shown} has grown since; `gristmill mark {shown} {name} --update` extends it"
                    ));
                }
                Fit::Foreign | Fit::Damaged => return Err(format!("that in {shown} is of another pack")),
            }
            match &found {
                Some((by, first)) if (by.0, &by.1) != (mark.origin, &mark.rule) => {
                    return Err(format!("{} and {shown} have different rules for it", first.display()));
                }
                _ => found = Some(((mark.origin, mark.rule), folder)),
            }
        }
        let ((origin, rule), _) = found.ok_or("no pack has frames")?;
        if origin == Origin::Rule {
            self.sources.iter().try_for_each(|source| lasting(source, &rule, changed))?;
        }
        Ok((origin, rule))
    }

    /// Names of the marks that are carried.
    pub(super) fn names(&self) -> Vec<String> {
        self.carried.keys().cloned().collect()
    }

    /// Why others are not.
    pub(super) fn lost(&self) -> &[String] {
        &self.lost
    }

    /// Their files, by their names in the folder of a pack.
    pub(super) fn files(&self) -> impl Iterator<Item = String> {
        self.carried.keys().map(|name| marks::file_name(name))
    }

    /// Writes the marks of `new`, the pack that was made, one after another.
    ///
    /// Errors: as [`marks::rows`] for one that was changed meanwhile; `Path`.
    pub(super) fn write(&self, new: &dyn PackTable) -> Result<()> {
        let frames = new.total();
        let Some(identity) = new.identity_of(frames) else { return Ok(()) };
        for (name, (origin, rule)) in &self.carried {
            let mut rows = Intervals::default();
            for Source { pack, places } in &self.sources {
                renumber(&marks::rows(&**pack, name)?, places, &mut rows);
            }
            let rows = marks::bitmap(&rows);
            let mark = Mark { origin: *origin, rule: rule.clone(), frames, identity, rows };
            marks::write(new.folder(), name, &mark)?;
        }
        Ok(())
    }
}

/// Whether a rule says the same of each frame before and after; else why not.
fn lasting(source: &Source, rule: &str, changed: &[&str]) -> Result<(), String> {
    let remedy = "`gristmill mark` asks it of the new pack";
    let columns = rule::columns(&source.pack, rule).map_err(|e| e.to_string())?;
    let Some(columns) = columns else {
        return Err(format!("its rule compares games (SELECT), and there are others now; {remedy}"));
    };
    match changed.iter().find(|column| columns.contains(**column)) {
        None => Ok(()),
        Some(column) => Err(format!("its rule asks for `{column}`, which the new pack has otherwise; {remedy}")),
    }
}

/// Adds the rows that are taken, under their new numbers.
fn renumber(rows: &Intervals, places: &[(u64, u64, u64)], to: &mut Intervals) {
    let mut places = places.iter().peekable();
    for (start, end) in rows.iter() {
        while places.next_if(|place| place.1 <= start).is_some() {}
        while let Some(&&(first, behind, new)) = places.peek().filter(|place| place.0 < end) {
            let (from, until) = (start.max(first), end.min(behind));
            to.push(new + (from - first), new + (until - first));
            if behind > end {
                break;
            }
            places.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_where_their_frames_go() {
        let mut rows = Intervals::default();
        for (start, end) in [(0, 3), (5, 6), (8, 20), (22, 23), (40, 41)] {
            rows.push(start, end);
        }
        let places = [(2, 9, 100), (10, 12, 107), (15, 22, 109), (22, 30, 116)];
        let mut to = Intervals::default();
        renumber(&rows, &places, &mut to);
        let taken = |row: u64| {
            let place = places.iter().find(|place| (place.0..place.1).contains(&row))?;
            Some(place.2 + row - place.0)
        };
        let expected: Vec<u64> = rows.iter().flat_map(|(start, end)| start..end).filter_map(taken).collect();
        assert_eq!(to.iter().flat_map(|(start, end)| start..end).collect::<Vec<_>>(), expected);
        assert_eq!(expected.len(), 11);
    }
}
