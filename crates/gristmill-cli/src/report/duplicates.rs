//! Repeated games as text: a line for each, group by group, and how many they are. Prints nothing.

use std::fmt::Write;

use gristmill_jobs::dedup::{Duplicates, PartFound, Relation};

use super::{marking, shares};

/// The text of what was found, with the groups or without.
pub(crate) fn text(found: &Duplicates, groups: bool) -> String {
    let mut out = String::new();
    for group in found.groups.iter().filter(|_| groups) {
        let _ = writeln!(out, "{}", group.key);
        for game in &group.games {
            let relation = match game.relation {
                Relation::First => "first",
                Relation::Exact => "exact",
                Relation::Same => "same",
                Relation::Mirrored => "mirrored",
            };
            let _ = writeln!(out, "  {:<9} {:>9}  {}", relation, game.id, game.source.as_deref().unwrap_or_default());
        }
    }
    let Duplicates { pack, games, different, exact, same, mirrored, frames, .. } = found;
    let _ = write!(
        out,
        "{pack} has {different} different games among {games}: {exact} are there again to the byte, {same} recorded \
         otherwise, {mirrored} as images; {frames} frames of them"
    );
    if let Some(mark) = &found.mark {
        let _ = write!(out, "\n{}", marking::marked(mark));
    }
    out
}

/// The text of a share.
pub(crate) fn shared(made: &PartFound) -> String {
    shares::made(&made.share, made.dry_run, &format!("the keys of {} games", made.games), &made.folder)
}
