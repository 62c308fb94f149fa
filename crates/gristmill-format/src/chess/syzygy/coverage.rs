//! Which tables are there -> which positions can be probed, and what a complete set lacks.
//! Looks at materials only; reads no table.

use std::collections::BTreeMap;
use std::fmt;

use super::material::Material;
use super::table::TableKind;

/// What a set of tables covers, found from the tables themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Men of the largest positions that there is a table of values for; 2 when there is none.
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

/// The coverage of tables by ordered material: whether there is one of each kind.
pub(super) fn coverage(here: &BTreeMap<Material, [bool; 2]>) -> Coverage {
    let men = |kind: usize| here.iter().filter(move |(_, tables)| tables[kind]).map(|(m, _)| m.men());
    let has = |m: Material, kind: TableKind| here.get(&m.ordered()).is_some_and(|tables| tables[kind as usize]);
    let all = Material::all_up_to(men(0).chain(men(1)).max().unwrap_or(2));
    let pairs = all.into_iter().flat_map(|m| TableKind::ALL.map(|kind| (m, kind)));
    Coverage {
        most_men: men(TableKind::Wdl as usize).max().unwrap_or(2),
        tables: [0, 1].map(|kind| men(kind).count()),
        missing: pairs.filter(|(m, kind)| !has(*m, *kind)).collect(),
    }
}
