//! What rows have and what a form can hold -> what would be lost, what would be made up, and which fields are written.
//! Decides before anything is written; writes nothing.

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack::valuation::ValuationTypes;
use gristmill_format::g2048::Form;
use gristmill_format::layout::{Field, Layout};

use super::source::{EMBEDDING, Facts, Join, NORMALISED, Source};
use super::{ConvertOptions, To};

/// The name of the valuation of rows without values.
const NO_VALUES: &str = "none";

/// How rows are converted.
pub(super) struct Plan {
    /// What the target has no room for.
    pub(super) lost: Vec<String>,
    /// What the target needs and the source does not say.
    pub(super) filled: Vec<String>,
    /// Names of valuations in the target.
    pub(super) types: ValuationTypes,
    /// The valuation of every row, where rows do not say theirs.
    pub(super) valuation: Option<u8>,
    /// Values become shares of their step, where their valuation does not say that they are.
    pub(super) normalise: bool,
    /// Runs are renumbered from 0.
    pub(super) renumber: bool,
    /// Whether rows are to be brought into order of their keys first.
    pub(super) sort: bool,
    /// Fields of the form that are written.
    pub(super) own: Layout,
    /// Fields that are carried as they are.
    pub(super) others: Vec<Field>,
    /// Numbers of the vector of each row.
    pub(super) vector: Option<usize>,
}

impl Plan {
    /// The plan of a conversion, whatever it would cost.
    ///
    /// Errors: `Config` for what no option can allow.
    pub(super) fn new(source: &Source, joins: &[Join], facts: &Facts, options: &ConvertOptions) -> Result<Self> {
        let to = options.to;
        let (mut lost, mut filled) = (Vec::new(), Vec::new());
        let mut types = source.types.clone();
        let mut valuation = None;
        if !source.has("valuation_type") {
            let name = if source.has("branch_evs") { NORMALISED } else { NO_VALUES };
            let wanted = to == To::Exponents && source.has("branch_evs") || to.form() == Form::Steps;
            valuation = if wanted { Some(types.add(name)?) } else { None };
        }
        if to != To::Exponents {
            if let Some(join) = joins.first() {
                let text = format!("{}: only `exponents` has room for fields of other files", join.path.display());
                return Err(Error::config("join", text));
            }
            lost.extend(source.others().into_iter().map(|field| format!("field `{}`", field.name)));
            if source.vectors.is_some() && to != To::SelfPlay {
                lost.push("the vectors of rows (embeddings)".to_owned());
            }
        }
        match to.form() {
            Form::Steps => {
                let needed = ["move_dir", "ev_legal", "branch_evs"].into_iter().filter(|field| !source.has(field));
                filled.extend(needed.map(|field| match field {
                    "move_dir" => "`move_dir`: 255, which is no move".to_owned(),
                    field => format!("`{field}`: 0"),
                }));
                if !source.has("seed") && source.runs.iter().all(|run| run.seed.is_none()) {
                    filled.push("`seed`: 0".to_owned());
                }
            }
            Form::SelfPlay => {
                let room = ["move_dir", "ev_legal", "branch_evs", "valuation_type"];
                lost.extend(room.into_iter().filter(|field| source.has(field)).map(|field| format!("field `{field}`")));
            }
            Form::Legacy => {
                let shares = types.id(NORMALISED);
                let mut used = facts.valuations.iter().zip(0u8..=255).filter(|(used, _)| **used);
                if source.has("valuation_type") && !used.all(|(_, id)| Some(id) == shares) {
                    lost.push("field `valuation_type`".to_owned());
                    if source.has("branch_evs") {
                        lost.push("the scale of `branch_evs`: only the shares within a step fit".to_owned());
                    }
                }
                if facts.rank() > 15 {
                    lost.push("tiles of 65536 and more: they become 32768".to_owned());
                }
                if facts.highest_step > u32::from(u16::MAX) {
                    lost.push(format!("`step_index` above 65535: it goes up to {}", facts.highest_step));
                }
            }
            Form::Exponents => {}
        }
        let unlisted = facts.runs.keys().filter(|id| source.runs.binary_search_by_key(id, |run| &run.id).is_err());
        let unlisted = unlisted.count();
        if unlisted > 0 && matches!(to.form(), Form::Steps | Form::Legacy) {
            filled.push(format!("scores and seeds of {unlisted} runs that `metadata.db` lacks: 0"));
        }
        let ids = facts.runs.keys().chain(source.runs.iter().map(|run| &run.id));
        let wide = ids.max().is_some_and(|id| u32::try_from(*id).is_err());
        if wide && !options.renumber && matches!(to.form(), Form::Steps | Form::Legacy) {
            let text = "run ids beyond 32 bits, which rows of this form do not have; --renumber counts them from 0";
            return Err(Error::config("renumber", text));
        }
        let own = own_fields(source, to, valuation.is_some())?;
        let others = if to == To::Exponents { others(&own, source, joins)? } else { Vec::new() };
        let vector = source.vectors.as_ref().map(super::source::Vectors::size);
        Ok(Plan {
            lost,
            filled,
            types,
            valuation,
            normalise: to == To::Legacy && source.has("valuation_type") && source.has("branch_evs"),
            renumber: options.renumber,
            sort: if to == To::Exponents { !facts.by_key } else { !facts.by_run },
            own,
            others,
            vector: vector.filter(|_| matches!(to, To::SelfPlay | To::Exponents)),
        })
    }

    /// Refuses what was not allowed.
    ///
    /// Errors: `Config` in `lossy` and in `defaults`, with all that it is about.
    pub(super) fn allow(&self, options: &ConvertOptions) -> Result<()> {
        let to = options.to.name();
        if !self.lost.is_empty() && !options.lossy {
            let text = format!("`{to}` has no room for {}; --lossy drops it", self.lost.join("; "));
            return Err(Error::config("lossy", text));
        }
        if !self.filled.is_empty() && !options.defaults {
            let text =
                format!("`{to}` needs fields that the input lacks; --defaults fills them: {}", self.filled.join("; "));
            return Err(Error::config("defaults", text));
        }
        Ok(())
    }
}

/// Fields of a form that rows get.
fn own_fields(source: &Source, to: To, valuation: bool) -> Result<Layout> {
    let all = to.form().layout();
    if matches!(to.form(), Form::Steps | Form::SelfPlay) {
        return Ok((**all).clone());
    }
    let has = |name: &str| match name {
        "move" | "move_dir" => source.has("move_dir"),
        "ev_values" | "branch_evs" => source.has("branch_evs"),
        "ev_legal" => source.has("ev_legal") || source.has("branch_evs"),
        "valuation_type" => valuation || source.has(name),
        "max_rank" | "seed" | "board_eval" => source.has(name),
        _ => true,
    };
    Ok(packed(all.fields().iter().filter(|field| has(&field.name)))?)
}

/// Fields of the source and of what is joined that are carried, each name once.
fn others(own: &Layout, source: &Source, joins: &[Join]) -> Result<Vec<Field>> {
    let mut all: Vec<Field> = source.others();
    for join in joins {
        for field in &join.fields {
            let taken = own.field(&field.name).is_some() || all.iter().any(|other| other.name == field.name);
            if taken || field.name == EMBEDDING {
                let text = format!("{}: its field `{}` is there already", join.path.display(), field.name);
                return Err(Error::config("join", text));
            }
            all.push(field.clone());
        }
    }
    Ok(all)
}

/// Fields one after the other, without gaps.
pub(super) fn packed<'a>(fields: impl Iterator<Item = &'a Field>) -> gristmill_format::Result<Layout> {
    let mut offset = 0;
    let placed: Vec<Field> = fields
        .map(|field| {
            let placed = Field { offset, ..field.clone() };
            offset += field.bytes();
            placed
        })
        .collect();
    Layout::new(placed, offset)
}
