//! Records of 2048 in any form -> which form it is, and their steps; and steps back into records.
//!
//! | form | its rows have |
//! |---|---|
//! | [`Form::Steps`] | all fields of a step row, in any order: packs |
//! | [`Form::SelfPlay`] | `exps` and `step_idx`: what an engine recorded while a model played |
//! | [`Form::Legacy`] | `board`, neither its mask nor its value; a move and values, or not |
//! | [`Form::Exponents`] | `exps` and `step_index`, and whatever else is known of a step |

mod columns;
mod legacy;

use std::sync::{Arc, LazyLock};

pub use columns::{Columns, NO_MOVE, Step};
pub use legacy::normalised;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};

type Fields = &'static [(&'static str, Scalar, &'static [usize])];

const SELF_PLAY: Fields = &[("run_id", Scalar::U64, &[]), ("step_idx", Scalar::U32, &[]), ("exps", Scalar::U8, &[16])];

const LEGACY: Fields = &[
    ("board", Scalar::U64, &[]),
    ("move", Scalar::U8, &[]),
    ("ev_legal", Scalar::U8, &[]),
    ("ev_values", Scalar::F32, &[4]),
    ("run_id", Scalar::U32, &[]),
    ("step_index", Scalar::U16, &[]),
];

const EXPONENTS: Fields = &[
    ("run_id", Scalar::U64, &[]),
    ("step_index", Scalar::U32, &[]),
    ("exps", Scalar::U8, &[16]),
    ("move_dir", Scalar::U8, &[]),
    ("ev_legal", Scalar::U8, &[]),
    ("valuation_type", Scalar::U8, &[]),
    ("max_rank", Scalar::U8, &[]),
    ("seed", Scalar::U32, &[]),
    ("board_eval", Scalar::I32, &[]),
    ("branch_evs", Scalar::F32, &[4]),
];

/// What kind of rows a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Step rows, as packs have them.
    Steps,
    /// Boards of self-play, version 1: no moves, no values.
    SelfPlay,
    /// Rows of legacy expectimax packs.
    Legacy,
    /// Boards as exponents, joined with what is known of each step.
    Exponents,
}

impl Form {
    /// All of them.
    pub const ALL: [Form; 4] = [Form::Steps, Form::SelfPlay, Form::Legacy, Form::Exponents];

    /// Its name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Form::Steps => "steps",
            Form::SelfPlay => "self-play",
            Form::Legacy => "legacy",
            Form::Exponents => "exponents",
        }
    }

    /// The form of records of this layout, by the names of its fields.
    ///
    /// Errors: `Unsupported` for what is none of them, with what it looks like.
    pub fn of(layout: &Layout) -> Result<Self> {
        let has = |name: &str| layout.field(name).is_some();
        let found = || layout.fields().iter().map(|field| &*field.name).collect::<Vec<_>>().join(", ");
        let refuse = |detail: String| Err(Error::new(Kind::Unsupported, detail));
        let form = match (has("exps"), has("board")) {
            (true, true) => {
                return refuse(format!("rows with `exps` and `board`: which of them is meant? They have {}", found()));
            }
            (true, false) if has("step_idx") => Form::SelfPlay,
            (true, false) => Form::Exponents,
            (false, true) if has("branch_evs") && !has("board_eval") => {
                return refuse(
                    "an early pack without `board_eval`: its moves and values are in the order up, right, down, left, \
                     not up, down, left, right; pack the raw logs again"
                        .to_owned(),
                );
            }
            (false, true) if !["board_eval", "tile_65536_mask", "branch_evs", "move_dir"].into_iter().any(has) => {
                Form::Legacy
            }
            _ => Form::Steps,
        };
        match form.needed().find(|name| !has(name)) {
            None => Ok(form),
            Some(missing) => {
                refuse(format!("no rows of 2048: {} rows have a field `{missing}`, these {}", form.name(), found()))
            }
        }
    }

    /// The fields without which it is not this form.
    fn needed(self) -> Box<dyn Iterator<Item = &'static str>> {
        match self {
            Form::Steps => Box::new(crate::g2048::row::layout_aligned().fields().iter().map(|field| &*field.name)),
            Form::SelfPlay => Box::new(["run_id", "step_idx", "exps"].into_iter()),
            Form::Legacy => Box::new(["run_id", "step_index", "board"].into_iter()),
            Form::Exponents => Box::new(["run_id", "step_index", "exps"].into_iter()),
        }
    }

    /// The layout that [`Columns`] reads and writes; files may have fewer, more and other orders of fields.
    pub fn layout(self) -> &'static Arc<Layout> {
        static PACKED: LazyLock<[Arc<Layout>; 3]> = LazyLock::new(|| {
            [SELF_PLAY, LEGACY, EXPONENTS]
                .map(|fields| Arc::new(Layout::packed(fields).expect("a constant list of distinct fields")))
        });
        match self {
            Form::Steps => crate::g2048::row::layout_aligned(),
            Form::SelfPlay => &PACKED[0],
            Form::Legacy => &PACKED[1],
            Form::Exponents => &PACKED[2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_descriptions_are_those_of_the_pages() {
        assert_eq!(Form::ALL.map(|form| form.layout().size()), [48, 28, 32, 56]);
        let descr = "[('run_id', '<u8'), ('step_idx', '<u4'), ('exps', '|u1', (16,))]";
        assert_eq!(Form::SelfPlay.layout().to_descr(), descr);
        let offsets: Vec<usize> = Form::Legacy.layout().fields().iter().map(|field| field.offset).collect();
        assert_eq!(offsets, [0, 8, 9, 10, 26, 30]);
    }

    #[test]
    fn forms_are_told_by_the_names_of_fields() {
        for form in Form::ALL {
            assert_eq!(Form::of(form.layout()).unwrap(), form);
        }
        let of = |descr: &str| Form::of(&Layout::parse_descr(descr).unwrap());
        assert_eq!(of("[('step_index', '<u2'), ('board', '<u8'), ('run_id', '<u4')]").unwrap(), Form::Legacy);
        // The branch of self-play rows that log moves too.
        let more = "[('run_id', '<u8'), ('step_idx', '<u4'), ('exps', '|u1', (16,)), ('move_dir', '|u1'), ('logp', '<f4', (4,))]";
        assert_eq!(of(more).unwrap(), Form::SelfPlay);
        for (descr, word) in [
            ("[('run_id', '<u4'), ('board', '<u8'), ('branch_evs', '<f4', (4,))]", "up, right, down, left"),
            ("[('run_id', '<u4'), ('board', '<u8'), ('exps', '|u1', (16,))]", "which of them"),
            ("[('board', '<u8'), ('step_index', '<u2')]", "`run_id`"),
            ("[('board', '<u8'), ('board_eval', '<i4'), ('run_id', '<u4')]", "`step_index`"),
            ("[('exps', '|u1', (16,))]", "`run_id`"),
            ("[('x', '<u4')]", "`run_id`"),
        ] {
            let e = of(descr).unwrap_err();
            assert!(e.kind() == Kind::Unsupported && e.detail().contains(word), "{e}");
        }
    }
}
