//! Steps in order -> files of rows in the wanted form, with their vectors. Rows are put together here, byte by byte.

use std::path::{Path, PathBuf};

use gristmill_engine::error::Result;
use gristmill_engine::pack::array::{ArrayFile, ArrayKind};
use gristmill_engine::pack::manifest::RowFile;
use gristmill_engine::pack::recorder::{SHARD_MAX_STEPS, shard_name, vectors_kind};
use gristmill_engine::pack::shards;
use gristmill_engine::pack::writer::RowWriter;
use gristmill_engine::row_files;
use gristmill_format::container::npy::Spelling;
use gristmill_format::g2048::RowForm;
use gristmill_format::g2048::form::{Form, Step, normalised};
use gristmill_format::g2048::row::{ALIGNED_BYTES, PACKED_BYTES, narrowed};
use gristmill_format::layout::{Conform, DType, Field, Layout, Order, Scalar};

use super::plan::{Plan, packed};
use super::source::{EMBEDDING, NORMALISED};
use super::{ConvertOptions, To};

/// Files that are being written.
pub(super) struct Target {
    to: To,
    own: Conform,
    normalise: bool,
    /// The id of values that are shares of a step already.
    shares: Option<u8>,
    record: Vec<u8>,
    files: Files,
}

enum Files {
    Steps(Box<RowWriter>),
    Arrays(Box<Arrays>),
}

/// Arrays of one kind of rows, and of vectors beside them.
struct Arrays {
    folder: PathBuf,
    to: To,
    kind: ArrayKind,
    vectors: Option<ArrayKind>,
    most: Option<u64>,
    open: Option<(ArrayFile, Option<ArrayFile>)>,
    complete: u64,
}

impl Target {
    /// Files in `folder`.
    ///
    /// Errors: `Format` for fields that make no record.
    pub(super) fn new(folder: &Path, plan: &Plan, options: &ConvertOptions) -> Result<Self> {
        let to = options.to;
        let files = match to {
            To::Aligned48 => Files::Steps(Box::new(RowWriter::new(folder, RowForm::Aligned, options.shard_rows))),
            To::Packed46 => Files::Steps(Box::new(RowWriter::new(folder, RowForm::Packed, options.shard_rows))),
            _ => Files::Arrays(Box::new(Arrays {
                folder: folder.to_owned(),
                to,
                kind: ArrayKind {
                    dtype: DType::Record(record(plan, to)?),
                    row_shape: Vec::new(),
                    spelling: if to == To::Exponents { Spelling::NumPy } else { Spelling::Spaced },
                },
                vectors: plan.vector.filter(|_| to == To::SelfPlay).map(vectors_kind),
                most: options.shard_rows.or((to == To::SelfPlay).then_some(SHARD_MAX_STEPS)),
                open: None,
                complete: 0,
            })),
        };
        let own = Conform::new(to.form().layout(), &plan.own)?;
        let (normalise, shares) = (plan.normalise, plan.types.id(NORMALISED));
        Ok(Target { to, own, normalise, shares, record: Vec::new(), files })
    }

    /// Appends a step with the fields that are carried, and its vector.
    ///
    /// Errors: `Path`.
    pub(super) fn write(&mut self, step: &Step, others: &[u8], vector: &[u8]) -> Result<()> {
        let mut step = *step;
        if self.normalise && Some(step.row.valuation_type) != self.shares {
            step.row.branch_evs = normalised(step.row.branch_evs, step.row.ev_legal, step.row.move_dir);
        }
        self.record.clear();
        self.to.form().write(&step, &mut self.record);
        match &mut self.files {
            Files::Steps(writer) => match (self.to, self.record.first_chunk::<ALIGNED_BYTES>()) {
                (To::Packed46, Some(aligned)) => writer.write(&narrowed(aligned) as &[u8; PACKED_BYTES]),
                _ => writer.write(&self.record),
            },
            Files::Arrays(arrays) => {
                let mut row = vec![0; arrays.kind.row_bytes()];
                let own = row.len() - others.len() - if self.to == To::Exponents { vector.len() } else { 0 };
                self.own.record(&self.record, &mut row[..own]);
                row[own..own + others.len()].copy_from_slice(others);
                row[own + others.len()..].copy_from_slice(if self.to == To::Exponents { vector } else { &[] });
                arrays.append(&row, vector)
            }
        }
    }

    /// Completes the files; what the manifest of a pack says of them, or how many there are.
    ///
    /// Errors: `Path`.
    pub(super) fn finish(self) -> Result<(Vec<RowFile>, u64)> {
        match self.files {
            Files::Steps(writer) => {
                let files = writer.finish()?;
                let count = files.len() as u64;
                Ok((files, count))
            }
            Files::Arrays(mut arrays) => {
                if arrays.open.is_none() && arrays.complete == 0 {
                    arrays.begin()?;
                }
                arrays.close()?;
                Ok((Vec::new(), arrays.complete))
            }
        }
    }
}

impl Arrays {
    fn name(&self) -> String {
        match (self.to, self.most) {
            (To::SelfPlay, _) => shard_name(self.complete + 1),
            (_, Some(_)) => shards::name(self.complete as usize),
            (_, None) => row_files::SINGLE.to_owned(),
        }
    }

    fn begin(&mut self) -> Result<()> {
        let name = self.name();
        let vectors = self.vectors.clone();
        let vectors = vectors
            .map(|kind| ArrayFile::create(&self.folder.join(row_files::beside(&name, row_files::VECTORS)), kind));
        self.open = Some((ArrayFile::create(&self.folder.join(name), self.kind.clone())?, vectors.transpose()?));
        Ok(())
    }

    fn append(&mut self, row: &[u8], vector: &[u8]) -> Result<()> {
        if self.open.is_none() {
            self.begin()?;
        }
        let Some((rows, vectors)) = &mut self.open else { return Ok(()) };
        rows.append(row)?;
        if let Some(vectors) = vectors {
            vectors.append(vector)?;
        }
        if Some(rows.rows()) == self.most { self.close() } else { Ok(()) }
    }

    fn close(&mut self) -> Result<()> {
        if let Some((mut rows, vectors)) = self.open.take() {
            rows.complete()?;
            vectors.map(|mut vectors| vectors.complete()).transpose()?;
            self.complete += 1;
        }
        Ok(())
    }
}

/// The record of a form with what is carried after it.
fn record(plan: &Plan, to: To) -> Result<Layout> {
    let vector = plan.vector.filter(|_| to.form() == Form::Exponents).map(|size| Field {
        name: EMBEDDING.to_owned(),
        dtype: DType::Scalar(Scalar::F32, Order::Little),
        shape: vec![size],
        offset: 0,
    });
    Ok(packed(plan.own.fields().iter().chain(&plan.others).chain(&vector))?)
}
