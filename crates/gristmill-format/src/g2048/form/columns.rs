//! A record of some form <-> the step that it tells, with what the form does not say left at a value that means so.
//! Records are those of [`Form::layout`]; `Conform` makes them of what files have.

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Layout;

use super::Form;
use crate::g2048::board::{Board, MAX_PACKED_RANK, Packed};
use crate::g2048::row::{ALIGNED_BYTES, StepRow};

/// The move of a step whose move is not known.
pub const NO_MOVE: u8 = 255;

/// One step of a game, from a row of any form.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Step {
    /// Which game; `row.run_id` has its low 32 bits.
    pub run_id: u64,
    /// The rest. What is not known: move [`NO_MOVE`], all else 0.
    pub row: StepRow,
}

/// Which form rows have, and which of the fields that it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    form: Form,
    moves: bool,
    values: bool,
    legal: bool,
}

impl Columns {
    /// Those of step rows: all.
    pub const STEPS: Columns = Columns { form: Form::Steps, moves: true, values: true, legal: true };

    /// Those of records of this layout.
    ///
    /// Errors: as [`Form::of`].
    pub fn of(layout: &Layout) -> Result<Self> {
        let form = Form::of(layout)?;
        let has = |name: &str| form.layout().field(name).is_some() && layout.field(name).is_some();
        Ok(Columns {
            form,
            moves: has("move_dir") || has("move"),
            values: has("branch_evs") || has("ev_values"),
            legal: has("ev_legal"),
        })
    }

    /// The form.
    pub fn form(self) -> Form {
        self.form
    }

    /// The step of a record of [`Form::layout`]. Where a form has values and does not say which of them are legal, the
    /// finite ones are.
    ///
    /// Errors: `WrongSize`; `OutOfRange` for a rank above 16.
    pub fn step(self, record: &[u8]) -> Result<Step> {
        let mut held = [0; ALIGNED_BYTES];
        let (run_id, row) = self.aligned(record, &mut held)?;
        Ok(Step { run_id, row: StepRow::from_aligned(row) })
    }

    /// What [`Columns::step`] returns: which game, and the rest as an aligned step row. That is the record itself, or it is put into `held`.
    ///
    /// Errors: as [`Columns::step`].
    #[inline]
    pub fn aligned<'a>(
        self,
        record: &'a [u8],
        held: &'a mut [u8; ALIGNED_BYTES],
    ) -> Result<(u64, &'a [u8; ALIGNED_BYTES])> {
        match (self.form, <&[u8; ALIGNED_BYTES]>::try_from(record)) {
            (Form::Steps, Ok(row)) => Ok((StepRow::from_aligned(row).run_id.into(), row)),
            _ => {
                let step = self.step_of_any(record)?;
                *held = step.row.to_aligned();
                Ok((step.run_id, held))
            }
        }
    }

    fn step_of_any(self, record: &[u8]) -> Result<Step> {
        if record.len() != self.form.layout().size() {
            let detail = format!("a record of {} bytes, expected {}", record.len(), self.form.layout().size());
            return Err(Error::new(Kind::WrongSize, detail));
        }
        let mut step = match self.form {
            Form::Legacy => self.legacy(record),
            _ => self.exponents(record)?,
        };
        step.row.run_id = step.run_id as u32;
        if !self.moves {
            step.row.move_dir = NO_MOVE;
        }
        if self.values && !self.legal {
            let finite = step.row.branch_evs.iter().enumerate().map(|(i, value)| u8::from(value.is_finite()) << i);
            step.row.ev_legal = finite.sum();
        }
        Ok(step)
    }

    fn legacy(self, record: &[u8]) -> Step {
        let row = StepRow {
            step_index: u16::from_le_bytes(bytes(record, 30)).into(),
            board: u64::from_le_bytes(bytes(record, 0)),
            move_dir: record[8],
            ev_legal: record[9],
            branch_evs: values(record, 10),
            ..StepRow::default()
        };
        Step { run_id: u32::from_le_bytes(bytes(record, 26)).into(), row }
    }

    fn exponents(self, record: &[u8]) -> Result<Step> {
        let exps: [u8; 16] = bytes(record, 12);
        if let Some(cell) = exps.iter().position(|rank| *rank > MAX_PACKED_RANK) {
            let detail = format!("cell {cell} has exponent {}, expected 0 to {MAX_PACKED_RANK}", exps[cell]);
            return Err(Error::new(Kind::OutOfRange, detail));
        }
        let Packed { board, mask } = Board::new(exps)?.pack();
        let step_index = u32::from_le_bytes(bytes(record, 8));
        let mut row = StepRow { step_index, board, tile_65536_mask: mask, ..StepRow::default() };
        if self.form == Form::Exponents {
            [row.move_dir, row.ev_legal, row.valuation_type, row.max_rank] = bytes(record, 28);
            row.seed = u32::from_le_bytes(bytes(record, 32));
            row.board_eval = i32::from_le_bytes(bytes(record, 36));
            row.branch_evs = values(record, 40);
        }
        Ok(Step { run_id: u64::from_le_bytes(bytes(record, 0)), row })
    }
}

impl Form {
    /// Appends the record of [`Form::layout`] for `step`, as far as the form can hold it. Legacy boards have no rank
    /// above
    /// 15 and no `step_index` above 65535; the caller checks that first.
    pub fn write(self, step: &Step, out: &mut Vec<u8>) {
        let row = &step.row;
        match self {
            Form::Steps => out.extend(row.to_aligned()),
            Form::Legacy => {
                out.extend(row.board.to_le_bytes());
                out.extend([row.move_dir, row.ev_legal]);
                row.branch_evs.iter().for_each(|value| out.extend(value.to_le_bytes()));
                out.extend((step.run_id as u32).to_le_bytes());
                out.extend((row.step_index as u16).to_le_bytes());
            }
            Form::SelfPlay | Form::Exponents => {
                out.extend(step.run_id.to_le_bytes());
                out.extend(row.step_index.to_le_bytes());
                out.extend(row.decoded_board().ranks());
                if self == Form::Exponents {
                    out.extend([row.move_dir, row.ev_legal, row.valuation_type, row.max_rank]);
                    out.extend(row.seed.to_le_bytes());
                    out.extend(row.board_eval.to_le_bytes());
                    row.branch_evs.iter().for_each(|value| out.extend(value.to_le_bytes()));
                }
            }
        }
    }
}

/// `N` bytes of a record whose length was checked.
fn bytes<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    record.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

fn values(record: &[u8], at: usize) -> [f32; 4] {
    [0, 4, 8, 12].map(|i| f32::from_le_bytes(bytes(record, at + i)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use gristmill_bytes::layout::Conform;

    fn columns(form: Form) -> Columns {
        Columns::of(form.layout()).unwrap()
    }

    proptest! {
        /// Bytes of any form are a step or refused, and the step gives the same bytes.
        #[test]
        fn records_and_steps_are_one_to_one(record in prop::collection::vec(any::<u8>(), 56), low in any::<bool>()) {
            let mut record = record;
            if low {
                record.iter_mut().skip(12).take(16).for_each(|rank| *rank %= 17);
            }
            for form in Form::ALL {
                let record = &record[..form.layout().size()];
                let Ok(step) = columns(form).step(record) else {
                    prop_assert!(!low && matches!(form, Form::SelfPlay | Form::Exponents));
                    continue;
                };
                let mut out = Vec::new();
                form.write(&step, &mut out);
                let mut expected = record.to_vec();
                if form == Form::Steps {
                    expected[26..28].fill(0);
                }
                prop_assert_eq!(out, expected);
            }
        }
    }

    #[test]
    fn what_a_form_does_not_say_is_not_made_up() {
        let bare = Layout::parse_descr("[('step_index', '<u2'), ('board', '<u8'), ('run_id', '<u4')]").unwrap();
        let conform = Conform::new(&bare, Form::Legacy.layout()).unwrap();
        let mut record = [0xEE; 32];
        conform.record(&[5, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x20, 7, 0, 0, 0], &mut record);
        let step = Columns::of(&bare).unwrap().step(&record).unwrap();
        let row =
            StepRow { run_id: 7, step_index: 5, board: 0x2000_0000_0000_0010, move_dir: NO_MOVE, ..StepRow::default() };
        assert_eq!(step, Step { run_id: 7, row });
        let mut unsaid = Columns::of(Form::Legacy.layout()).unwrap();
        unsaid.legal = false;
        let mut record = [0; 32];
        record[18..22].copy_from_slice(&f32::NAN.to_le_bytes());
        assert_eq!(unsaid.step(&record).unwrap().row.ev_legal, 0b1011);
    }

    #[test]
    fn boards_that_no_row_can_hold_and_short_records_are_refused() {
        let mut record = [0; 28];
        record[12 + 5] = 17;
        let e = columns(Form::SelfPlay).step(&record).unwrap_err();
        assert!(e.kind() == Kind::OutOfRange && e.detail().contains("cell 5 has exponent 17"), "{e}");
        for form in Form::ALL {
            assert_eq!(columns(form).step(&record[..27]).unwrap_err().kind(), Kind::WrongSize);
        }
    }
}
