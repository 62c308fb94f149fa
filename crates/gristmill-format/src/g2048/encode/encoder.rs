//! The 2048 `Encoder`: step rows -> exponents, and the targets of one of four tasks.
//! Each row is shown in the symmetry that its random bits say; `board_eval` is recomputed where that changes it.

use std::ops::Range;

use gristmill_bytes::encode::{Encoder, Row, TensorSpec};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};

use super::augment::{Augment, DRAWS};
use super::binner::Binner;
use super::symmetry::Symmetry;
use super::tokenizer::{Branches, Tokenizer, Valuation};
use super::valued::{ValueTargets, Valued};
use crate::g2048::board::{Board, Packed};
use crate::g2048::form::{Columns, Step};
use crate::g2048::heuristic;
use crate::g2048::row::{ALIGNED_BYTES, StepRow};

/// Element type of whole-number tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Element {
    /// 64-bit, as existing training code expects.
    #[default]
    I64,
    /// 32-bit.
    I32,
    /// 8-bit: an eighth of the bytes; refused where a class is above 255.
    U8,
}

impl Element {
    fn scalar(self) -> Scalar {
        match self {
            Element::I64 => Scalar::I64,
            Element::I32 => Scalar::I32,
            Element::U8 => Scalar::U8,
        }
    }
}

/// What a row's targets are.
#[derive(Debug, Clone)]
pub enum Target {
    /// None: exponents with the row's `run_id` and `step_index`.
    Steps,
    /// `branch_values` and the move that was made.
    HardMove,
    /// `branch_values`, their bins, and which branches have a value.
    BinnedEv(Binner),
    /// Classes of the four branches by a fitted tokenizer.
    Tokens(Classes),
}

/// Fields that say the same in different forms of rows, one of which is needed.
type Need = &'static [&'static str];

const BOARD: Need = &["board", "exps"];
const VALUES: Need = &["branch_evs", "ev_values"];
const MOVE: Need = &["move_dir", "move"];

/// Targets by name, with the fields that each needs.
const NEEDS: [(&str, &[Need]); 4] = [
    ("steps", &[BOARD]),
    ("hard_move", &[BOARD, VALUES, MOVE]),
    ("binned_ev", &[BOARD, VALUES]),
    ("tokens", &[BOARD, &["branch_evs"], &["ev_legal"], MOVE, &["board_eval"], &["valuation_type"]]),
];

impl Target {
    /// Its name, and the fields that it needs.
    fn needs(&self) -> (&'static str, &'static [Need]) {
        NEEDS[match self {
            Target::Steps => 0,
            Target::HardMove => 1,
            Target::BinnedEv(_) => 2,
            Target::Tokens(_) => 3,
        }]
    }
}

/// A tokenizer, and which kind of valuation each id of a pack stands for.
#[derive(Debug, Clone)]
pub struct Classes {
    tokenizer: Tokenizer,
    names: Vec<String>,
    kinds: Vec<Option<Valuation>>,
}

impl Classes {
    /// Classes of rows whose ids stand for `names`, in order of id.
    pub fn new(tokenizer: Tokenizer, names: &[impl AsRef<str>]) -> Self {
        let names: Vec<String> = names.iter().map(|name| name.as_ref().to_owned()).collect();
        let kinds = kinds(&tokenizer, &names);
        Classes { tokenizer, names, kinds }
    }

    /// The same with the ids that the reference's training code takes by mistake: `tuple10` 1 and `tuple11` 2, where
    /// its packer writes them the other way round. For comparison with models trained so, only.
    #[must_use]
    pub fn with_swapped_tuple_ids(mut self) -> Self {
        self.names = ["search", "tuple10", "tuple11"].map(String::from).to_vec();
        self.kinds = kinds(&self.tokenizer, &self.names);
        self
    }

    fn kind(&self, id: u8) -> Result<Valuation> {
        if let Some(Some(kind)) = self.kinds.get(usize::from(id)) {
            return Ok(*kind);
        }
        let detail = match self.names.get(usize::from(id)) {
            Some(name) => format!(
                "valuation `{name}` has no bins in the tokenizer; leave such rows out with a filter on valuation, or \
                 use an encoder that takes any: hard_move, steps"
            ),
            None => format!("valuation id {id}, of which `valuation_types.json` knows nothing: {:?}", self.names),
        };
        Err(Error::new(Kind::OutOfRange, detail))
    }
}

/// What each name is the name of, where the tokenizer was fitted to it.
fn kinds(tokenizer: &Tokenizer, names: &[String]) -> Vec<Option<Valuation>> {
    let known = |name: &String| Valuation::named(name).filter(|kind| tokenizer.bins(*kind).is_some());
    names.iter().map(known).collect()
}

/// Encodes rows of one form; step rows of 48 bytes where nothing else is said.
#[derive(Debug, Clone)]
pub struct StepEncoder {
    columns: Columns,
    valued: Option<Valued>,
    target: Target,
    augment: Augment,
    element: Element,
    nibbles: bool,
    on_device: bool,
    specs: Vec<TensorSpec>,
}

/// Bytes of a row of `board_nibbles`: cell `i` is the upper (even `i`) or lower half of byte `i / 2`; then the mask of 65536
/// tiles, bit `i % 8` of byte `8 + i / 8`. Their nibble is 15.
pub const NIBBLES_BYTES: usize = 10;

impl StepEncoder {
    /// An encoder of exponents and `target`.
    ///
    /// Errors: `Unsupported` for classes that do not fit the element type.
    pub fn new(target: Target, augment: Augment, element: Element) -> Result<Self> {
        let int = element.scalar();
        let tokens = TensorSpec::new("tokens", int, &[16]);
        let values = TensorSpec::new("branch_values", Scalar::F32, &[4]);
        let (specs, classes) = match &target {
            Target::Steps => {
                let ids = ["run_id", "step_index"].map(|name| TensorSpec::new(name, Scalar::I64, &[]));
                (Vec::from_iter([tokens].into_iter().chain(ids)), 0)
            }
            Target::HardMove => (vec![tokens, values, TensorSpec::new("move_targets", int, &[])], 4),
            Target::BinnedEv(binner) => {
                let bins = TensorSpec::new("branch_bin_targets", int, &[4]);
                let mask = TensorSpec::new("branch_mask", Scalar::Bool, &[4]);
                (vec![tokens, values, bins, mask], binner.count())
            }
            Target::Tokens(classes) => {
                (vec![tokens, TensorSpec::new("targets", int, &[4])], classes.tokenizer.num_classes())
            }
        };
        if element == Element::U8 && classes > 256 {
            let detail = format!("{classes} classes do not fit 8 bits; take i32 or i64");
            return Err(Error::new(Kind::Unsupported, detail));
        }
        Ok(StepEncoder {
            columns: Columns::STEPS,
            valued: None,
            target,
            augment,
            element,
            nibbles: false,
            on_device: false,
            specs,
        })
    }

    /// The same with `board_nibbles` u8 `[10]` in the place of `tokens`.
    #[must_use]
    pub fn nibbles(mut self) -> Self {
        self.specs[0] = TensorSpec::new("board_nibbles", Scalar::U8, &[NIBBLES_BYTES]);
        self.nibbles = true;
        self
    }

    /// The same encoder without turned rows. It adds `symmetry_draws` i32 `[6]` after the board: a device draws the symmetries and turns
    /// the rows.
    ///
    /// Errors: `Unsupported` for classes: the heuristic of the turned board decides them.
    pub fn drawn_on_device(mut self) -> Result<Self> {
        if matches!(self.target, Target::Tokens(_)) {
            let detail = "classes of a tokenizer depend on the heuristic of the turned board, which a device does not have; \
                          draw on the host, or take another target";
            return Err(Error::new(Kind::Unsupported, detail));
        }
        if self.augment.draws() {
            self.specs.insert(1, TensorSpec::new("symmetry_draws", Scalar::I32, &[DRAWS]));
            self.on_device = true;
        }
        Ok(self)
    }

    /// The same with `value_targets`, for rows that have a value after their own fields, by the name that `targets` has.
    ///
    /// Errors: none that rows could cause.
    pub fn valued(mut self, targets: ValueTargets) -> Result<Self> {
        let valued = Valued::new(targets, self.columns.form().layout())?;
        self.specs.truncate(self.specs.len() - usize::from(self.valued.is_some()));
        self.specs.push(valued.spec());
        self.valued = Some(valued);
        Ok(self)
    }

    /// The same, without values, for rows that have these columns.
    #[must_use]
    pub fn reading(mut self, columns: Columns) -> Self {
        self.specs.truncate(self.specs.len() - usize::from(self.valued.is_some()));
        StepEncoder { columns, valued: None, ..self }
    }

    /// What the targets are.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// How many classes a target may have: moves, bins, or those of the tokenizer; 0 without targets.
    pub fn num_classes(&self) -> usize {
        match &self.target {
            Target::Steps => 0,
            Target::HardMove => 4,
            Target::BinnedEv(binner) => binner.count(),
            Target::Tokens(classes) => classes.tokenizer.num_classes(),
        }
    }

    /// Writes row `i` of the board.
    #[inline]
    fn put_board(&self, board: &Board, i: usize, out: &mut [u8]) {
        if self.nibbles {
            let Packed { board, mask } = board.pack();
            let row = &mut out[i * NIBBLES_BYTES..][..NIBBLES_BYTES];
            row[..8].copy_from_slice(&board.to_be_bytes());
            row[8..].copy_from_slice(&mask.to_le_bytes());
        } else {
            self.put(out, i, board.ranks());
        }
    }

    /// Writes row `i` of the targets; `board` is what is shown of the step.
    fn targets(&self, step: &Step, board: &Board, symmetry: Symmetry, i: usize, out: &mut [&mut [u8]]) -> Result<()> {
        let Step { run_id, row: step } = step;
        match (&self.target, out) {
            (Target::Steps, [run, index]) => {
                let run_id = i64::try_from(*run_id);
                let run_id = run_id.map_err(|_| Error::new(Kind::OutOfRange, "a run_id beyond 63 bits"))?;
                run[i * 8..][..8].copy_from_slice(&run_id.to_le_bytes());
                index[i * 8..][..8].copy_from_slice(&i64::from(step.step_index).to_le_bytes());
            }
            (Target::HardMove, [values, moves]) => {
                put_values(values, i, symmetry.branches(step.branch_evs));
                if step.move_dir > 3 {
                    let detail = format!("move {}, expected 0 (up) to 3 (right)", step.move_dir);
                    return Err(Error::new(Kind::OutOfRange, detail));
                }
                self.put(moves, i, &[symmetry.direction(step.move_dir)]);
            }
            (Target::BinnedEv(binner), [values, bins, mask]) => {
                let branches = symmetry.branches(step.branch_evs);
                put_values(values, i, branches);
                self.put(bins, i, &branches.map(|value| binner.bin(value)));
                let legal = symmetry.directions(step.ev_legal);
                mask[i * 4..][..4].copy_from_slice(&[0, 1, 2, 3].map(|bit| legal >> bit & 1));
            }
            (Target::Tokens(classes), [targets]) => {
                let kind = classes.kind(step.valuation_type)?;
                let board_eval = match kind {
                    Valuation::Search if symmetry.is_identity() => Some(step.board_eval),
                    Valuation::Search => Some(heuristic::board_eval(board)?),
                    _ => None,
                };
                let chosen = step.move_dir;
                let row = Branches {
                    values: symmetry.branches(step.branch_evs),
                    legal: symmetry.directions(step.ev_legal),
                    chosen: if chosen < 4 { symmetry.direction(chosen) } else { chosen },
                    board_eval,
                };
                self.put(targets, i, &classes.tokenizer.classes(kind, &row)?);
            }
            _ => return Err(Error::new(Kind::WrongSize, "another number of output slices than tensors")),
        }
        Ok(())
    }

    #[inline]
    fn put<const N: usize>(&self, out: &mut [u8], i: usize, values: &[impl Copy + Into<u16>; N]) {
        match self.element {
            Element::I64 => put(out, i, values, |value| i64::from(value.into()).to_le_bytes()),
            Element::I32 => put(out, i, values, |value| i32::from(value.into()).to_le_bytes()),
            Element::U8 => put(out, i, values, |value| [value.into() as u8]),
        }
    }
}

/// Writes row `i` of a tensor. The loop over one slice is what a compiler does several elements at a time.
#[inline]
fn put<T: Copy, const N: usize, const BYTES: usize>(
    out: &mut [u8],
    i: usize,
    values: &[T; N],
    bytes: impl Fn(T) -> [u8; BYTES],
) {
    let row = out[i * N * BYTES..][..N * BYTES].as_chunks_mut().0;
    row.iter_mut().zip(values).for_each(|(out, value)| *out = bytes(*value));
}

fn put_values(out: &mut [u8], i: usize, values: [f32; 4]) {
    put(out, i, &values, f32::to_le_bytes);
}

impl Encoder for StepEncoder {
    fn input(&self) -> &Layout {
        self.valued.as_ref().map_or(self.columns.form().layout(), |valued| &valued.input)
    }

    /// The board, whichever program played on it and what a move was worth.
    fn position(&self) -> Vec<Range<usize>> {
        let board = ["board", "tile_65536_mask", "exps"].into_iter().filter_map(|name| self.input().field(name));
        let board: Vec<_> = board.map(|field| field.offset..field.offset + field.bytes()).collect();
        if board.is_empty() { std::iter::once(0..self.input().size()).collect() } else { board }
    }

    fn fits(&self, records: &Layout) -> Result<()> {
        let lacking = |needs: &[Need]| -> Vec<String> {
            let missing = needs.iter().filter(|need| need.iter().all(|name| records.field(name).is_none()));
            missing.filter_map(|need| need.first()).map(|name| format!("`{name}`")).collect()
        };
        let (name, needs) = self.target.needs();
        let missing = lacking(needs);
        let value = self.valued.as_ref().map(Valued::field);
        if missing.is_empty() && value.is_some_and(|name| records.field(name).is_none()) {
            let detail = "value_targets need values, and no values.npy lies beside these rows; `gristmill values PACK` \
                          makes it";
            return Err(Error::new(Kind::Unfit, detail));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let fitting: Vec<&str> =
            NEEDS.iter().filter(|(_, needs)| lacking(needs).is_empty()).map(|(name, _)| *name).collect();
        let advice = match &fitting[..] {
            [] => "no encoder of 2048 rows fits".to_owned(),
            some => format!("what fits them: {}", some.join(", ")),
        };
        let fields: Vec<&str> = records.fields().iter().map(|field| &*field.name).collect();
        let detail = format!(
            "{name} needs {}, which these rows do not have ({}); {advice}",
            missing.join(", "),
            fields.join(", ")
        );
        Err(Error::new(Kind::Unfit, detail))
    }

    fn draws(&self) -> bool {
        self.augment.draws()
    }

    fn outputs(&self) -> &[TensorSpec] {
        &self.specs
    }

    fn encode(&self, rows: &[Row<'_>], out: &mut [&mut [u8]]) -> Result<()> {
        let fits = out.len() == self.specs.len()
            && out.iter().zip(&self.specs).all(|(slice, spec)| slice.len() == rows.len() * spec.row_bytes());
        let [tokens, rest @ ..] = out else { return Err(Error::new(Kind::WrongSize, "no output slices")) };
        if !fits {
            let found: Vec<usize> = rest.iter().map(|slice| slice.len()).collect();
            let detail = format!("output slices of {} and {found:?} bytes for {} rows", tokens.len(), rows.len());
            return Err(Error::new(Kind::WrongSize, detail));
        }
        let (draws, rest) = rest.split_at_mut(usize::from(self.on_device));
        let split = rest.len() - usize::from(self.valued.is_some());
        let (targets, values) = rest.split_at_mut(split);
        let own = self.columns.form().layout().size();
        let mut held = [0; ALIGNED_BYTES];
        for (i, row) in rows.iter().enumerate() {
            let symmetry = match &mut *draws {
                [draws] => {
                    self.augment.write(row.bits, &mut draws[i * 4 * DRAWS..][..4 * DRAWS]);
                    Symmetry::IDENTITY
                }
                _ => self.augment.symmetry(row.bits.bits),
            };
            let (record, value) = row.record.split_at(own.min(row.record.len()));
            let mut put = || {
                let (run_id, row) = self.columns.aligned(record, &mut held)?;
                let step = Step { run_id, row: StepRow::from_aligned(row) };
                let (board, mask) = (step.row.board, step.row.tile_65536_mask);
                let board = Board::unpack(Packed { board: symmetry.board(board), mask: symmetry.cells(mask) });
                self.put_board(&board, i, tokens);
                self.targets(&step, &board, symmetry, i, targets)?;
                match (&self.valued, &mut *values) {
                    (Some(valued), [out]) => valued.put(value, i, out),
                    _ => Ok(()),
                }
            };
            let place = row.provenance;
            put().map_err(|e| e.in_frame(place.frame as usize).in_chunk(place.chunk as usize))?;
        }
        Ok(())
    }
}
