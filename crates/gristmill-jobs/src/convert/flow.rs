//! Rows in order -> the rows of the target: each with its partners, its id, what it does not say, and its vector.

use std::sync::Arc;

use gristmill_engine::error::Result;
use gristmill_engine::store::publish::Staging;
use gristmill_format::g2048::form::NO_MOVE;
use gristmill_format::layout::{Conform, Field, Layout};
use gristmill_format::{Error as FormatError, Kind};

use super::database::{self, Ids};
use super::order::{Ordered, spill};
use super::plan::{Plan, packed};
use super::source::{Facts, Join, Source, Vectors};
use super::stored::{BLOCK, Block, Key, Keys, Stored, Walk};
use super::target::Target;
use super::{To, Way};

/// Bytes of vectors that are read at a time.
const AHEAD: u64 = 1 << 20;

/// Fields that are carried from one kind of record to another.
struct Carry {
    conform: Conform,
    bytes: usize,
}

impl Carry {
    /// Those of `fields`; none where there are none.
    fn new(layout: &Layout, fields: &[Field]) -> Result<Option<Self>> {
        if fields.is_empty() {
            return Ok(None);
        }
        let to = packed(fields.iter())?;
        Ok(Some(Carry { conform: Conform::new(layout, &to)?, bytes: to.size() }))
    }

    fn append(&self, record: &[u8], out: &mut Vec<u8>) {
        let at = out.len();
        out.resize(at + self.bytes, 0);
        self.conform.record(record, &mut out[at..]);
    }
}

/// Rows that are joined, in order.
struct Partner<'a> {
    join: &'a Join,
    rows: Ordered,
    carry: Option<Carry>,
}

impl Partner<'_> {
    /// Appends the fields of the step of this key; whether there is such a step.
    fn append(&mut self, key: Key, out: &mut Vec<u8>) -> Result<bool> {
        while let Some((theirs, _, record)) = self.rows.peek()? {
            if theirs > key {
                break;
            }
            if theirs == key {
                self.carry.iter().for_each(|carry| carry.append(record, out));
            }
            self.rows.advance()?;
            if theirs == key {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Stages the result: how many rows and files it has, and what is odd about its runs.
///
/// Errors: `Path`; `Format` with file and row; `Stopped`.
pub(super) fn write(
    staging: &Staging,
    source: &Source,
    joins: &[Join],
    (plan, ids): (&Plan, &Ids),
    way: &mut Way<'_>,
) -> Result<(u64, u64, Vec<String>)> {
    let options = way.options;
    let mut rows = ordered(staging, (0, &source.stored, &source.keys), plan.sort, options.to == To::Exponents, way)?;
    let mut partners = Vec::new();
    for (i, join) in joins.iter().enumerate() {
        let sort = !by_key(&join.stored, &join.keys)?;
        let rows = ordered(staging, (i + 1, &join.stored, &join.keys), sort, true, way)?;
        partners.push(Partner { join, rows, carry: Carry::new(&join.stored.layout, &join.fields)? });
    }
    let own = if options.to == To::Exponents { source.others() } else { Vec::new() };
    let own = Carry::new(&source.stored.layout, &own)?;
    let mut target = Target::new(&staging.path(""), plan, options)?;
    let (mut record, mut scratch, mut others, mut vector) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut written, mut count, mut window) = (Facts::new(), 0u64, Window::default());
    'rows: while let Some((key, row, stored)) = rows.peek()? {
        record.clear();
        record.extend_from_slice(stored);
        rows.advance()?;
        count += 1;
        if count.is_multiple_of(BLOCK) {
            way.go(BLOCK)?;
        }
        others.clear();
        own.iter().for_each(|own| own.append(&record, &mut others));
        for partner in &mut partners {
            if !partner.append(key, &mut others)? {
                if options.inner {
                    continue 'rows;
                }
                let (path, (run, step)) = (partner.join.path.display(), key);
                let detail = format!("step {step} of run {run} is not in {path}; --inner leaves such steps out");
                return Err(source.stored.place(FormatError::new(Kind::Missing, detail), row).into());
            }
        }
        let mut step = source.step(key, row, &record, &mut scratch)?;
        step.run_id = ids.of(key.0);
        step.row.run_id = step.run_id as u32;
        step.row.valuation_type = plan.valuation.unwrap_or(step.row.valuation_type);
        if !source.has("seed") {
            let at = source.runs.binary_search_by_key(&key.0, |run| run.id);
            step.row.seed = at.ok().and_then(|at| source.runs[at].seed).unwrap_or(0) as u32;
        }
        if !source.has("move_dir") {
            step.row.move_dir = NO_MOVE;
        }
        vector.clear();
        match &source.vectors {
            Some(Vectors::Files(files)) if plan.vector.is_some() => window.read(files, row, &mut vector)?,
            Some(Vectors::Field(field)) if plan.vector.is_some() => {
                vector.extend_from_slice(&record[field.offset..][..field.bytes()]);
            }
            _ => {}
        }
        written.count(key.0, &step);
        target.write(&step, &others, &vector)?;
    }
    // What they sorted goes before everything that is staged is published.
    drop((rows, partners));
    let (files, count) = target.finish()?;
    let remarks = database::write(staging, (source, &written), (plan, ids), (options.to, options.shard_rows, &files))?;
    Ok((written.runs.values().map(|run| run.rows).sum(), count, remarks))
}

/// Vectors that were read ahead, while rows follow each other.
#[derive(Default)]
struct Window {
    first: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// Replaces `out` by the vector of a row.
    fn read(&mut self, files: &Stored, row: u64, out: &mut Vec<u8>) -> Result<()> {
        let size = files.layout.size();
        let behind = self.first + (self.bytes.len() / size) as u64;
        if row < self.first || row >= behind {
            let ahead = (AHEAD / size as u64).clamp(1, files.rows() - row);
            files.read(row, if row == behind { ahead } else { 1 }, &mut self.bytes)?;
            self.first = row;
        }
        out.extend_from_slice(&self.bytes[(row - self.first) as usize * size..][..size]);
        Ok(())
    }
}

/// Rows of table number `i` in the order that is needed.
fn ordered(
    staging: &Staging,
    (i, stored, keys): (usize, &Arc<Stored>, &Arc<Keys>),
    sort: bool,
    unique: bool,
    way: &mut Way<'_>,
) -> Result<Ordered> {
    if !sort {
        return Ok(Ordered::stored(stored, keys, unique));
    }
    way.all += stored.rows();
    Ordered::sorted(stored, keys, spill(&staging.path(""), i), &mut |rows| way.go(rows))
}

/// Whether rows lie in order of their keys.
fn by_key(stored: &Arc<Stored>, keys: &Arc<Keys>) -> Result<bool> {
    let (mut walk, mut block, mut last) = (Walk::new(stored, keys), Block::default(), None);
    while walk.next(&mut block)? {
        for key in &block.keys {
            if last.replace(*key).is_some_and(|last| last >= *key) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
