//! Which tables are there -> which positions can be probed, and what a complete set lacks.
//! Looks at materials only; reads no table.

use std::collections::BTreeMap;
use std::fmt;

use super::material::Material;
use super::table::TableKind;

/// What a set of tables covers, found from the tables themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Men of the largest positions that can be probed; 2 when there is no table.
    pub most_men: usize,
    /// Tables that are there, by kind.
    pub tables: [usize; 2],
    /// Tables that a complete set of as many men has and this one lacks.
    pub missing: Vec<(Material, TableKind)>,
}

impl Coverage {
    /// Whether every position of up to `most_men` men without castling rights can be probed.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }
}

impl fmt::Display for Coverage {
    /// Such as `35 WDL and 35 DTZ tables of up to 4 men`, and what is missing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [wdl, dtz] = self.tables;
        write!(f, "{wdl} WDL and {dtz} DTZ tables of up to {} men", self.most_men)?;
        if self.missing.is_empty() {
            return Ok(());
        }
        write!(f, "; {} of a complete set are missing: ", self.missing.len())?;
        for (i, (material, kind)) in self.missing.iter().take(6).enumerate() {
            write!(f, "{}{material}.{}", if i > 0 { ", " } else { "" }, kind.extension())?;
        }
        if self.missing.len() > 6 { write!(f, ", ...") } else { Ok(()) }
    }
}

/// What is there of one material.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Present {
    /// By kind.
    pub(super) tables: [bool; 2],
    /// Whether values of its positions can be found, captures and promotions included.
    pub(super) wdl: bool,
}

impl Present {
    /// Whether plies to the next capture or pawn move can be found.
    pub(super) fn dtz(self) -> bool {
        self.wdl && self.tables[TableKind::Dtz as usize]
    }
}

/// Finds, for each of `here` (ordered materials), whether all that one move can make of it is covered too.
pub(super) fn close(here: &mut BTreeMap<Material, Present>) {
    // A move leaves fewer men, or as many with fewer pawns.
    let mut order: Vec<Material> = here.keys().copied().collect();
    order.sort_by_key(|m| (m.men(), m.pawns().iter().sum::<u8>()));
    for material in order {
        let covered = |m: Material| m == Material::BARE || here.get(&m.ordered()).is_some_and(|p| p.wdl);
        let wdl = here[&material].tables[0] && material.after_one_move().into_iter().all(covered);
        if let Some(present) = here.get_mut(&material) {
            present.wdl = wdl;
        }
    }
}

/// The coverage of `here`, whose closure is known.
pub(super) fn coverage(here: &BTreeMap<Material, Present>) -> Coverage {
    let count = |kind: usize| here.values().filter(|p| p.tables[kind]).count();
    let most = here.keys().map(|m| m.men()).max().unwrap_or(2);
    let has = |m: Material, kind: TableKind| here.get(&m.ordered()).is_some_and(|p| p.tables[kind as usize]);
    let all = Material::all_up_to(most);
    let pairs = all.into_iter().flat_map(|m| TableKind::ALL.map(|kind| (m, kind)));
    Coverage {
        most_men: here.iter().filter(|(_, p)| p.wdl).map(|(m, _)| m.men()).max().unwrap_or(2),
        tables: [count(0), count(1)],
        missing: pairs.filter(|(m, kind)| !has(*m, *kind)).collect(),
    }
}
