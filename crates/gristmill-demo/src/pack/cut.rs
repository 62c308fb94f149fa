//! Records -> rows of what is small, and pieces of what is large, each once: a frame that stacks share, or that is the next
//! observation of one step and the observation of another, is one piece. Nothing is compressed here.

use std::collections::{HashMap, HashSet};

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Field, Layout, Scalar};
use xxhash_rust::xxh3::xxh3_128;

use super::header::{Cut, Place};

/// Fields of at most this many bytes are in the row.
const SMALL: usize = 256;

/// Maximum number of pieces of a field.
const MOST_PIECES: usize = 64;

/// A trajectory, cut.
pub(super) struct Pieces {
    pub(super) fields: Vec<Place>,
    /// Rows, back to back, of `row` bytes each.
    pub(super) rows: Vec<u8>,
    pub(super) row: usize,
    pub(super) pools: Vec<Pool>,
}

/// Pieces of one size, each once.
pub(super) struct Pool {
    /// Bytes of a piece, and of an element in it.
    pub(super) piece: usize,
    pub(super) unit: usize,
    pub(super) bytes: Vec<u8>,
}

/// Cuts `records` of `layout`.
///
/// Errors: `Unsupported` naming a field of records within records.
pub(super) fn cut(layout: &Layout, records: &[u8]) -> Result<Pieces> {
    let fields: Vec<(&Field, Scalar)> =
        layout.fields().iter().map(|field| Ok((field, scalar(field)?))).collect::<Result<_>>()?;
    let mut groups: Vec<(Vec<usize>, &str)> = Vec::new();
    for (i, (field, scalar)) in fields.iter().enumerate().filter(|(_, (field, _))| field.bytes() > SMALL) {
        let name = field.name.strip_prefix("next_").unwrap_or(&field.name);
        let like = |other: usize| fields[other].1 == *scalar && fields[other].0.shape == field.shape;
        match groups.iter_mut().find(|(members, known)| *known == name && like(members[0])) {
            Some((members, _)) => members.push(i),
            None => groups.push((vec![i], name)),
        }
    }
    let mut cut = Pieces { fields: Vec::new(), rows: Vec::new(), row: 0, pools: Vec::new() };
    let mut numbers: Vec<Vec<u32>> = vec![Vec::new(); fields.len()];
    let mut ways = vec![(0, Cut::First, 1); fields.len()];
    for (members, _) in &groups {
        let group: Vec<&Field> = members.iter().map(|i| fields[*i].0).collect();
        let (way, pieces, pool, found) = best(&group, fields[members[0]].1.size(), records, layout.size());
        cut.pools.push(pool);
        for (member, found) in members.iter().zip(found) {
            ways[*member] = (cut.pools.len() as u16, way, pieces);
            numbers[*member] = found;
        }
    }
    for ((field, scalar), (run, way, pieces)) in fields.iter().zip(&ways) {
        let (offset, bytes, at, unit) =
            (field.offset as u32, field.bytes() as u32, cut.row as u32, scalar.size() as u32);
        cut.fields.push(Place { offset, bytes, at, run: *run, cut: *way, unit });
        cut.row += if *run == 0 { field.bytes() } else { 4 * pieces };
    }
    // A row of nothing is no row.
    cut.row = cut.row.max(1);
    let frames = records.len() / layout.size();
    cut.rows.resize(frames * cut.row, 0);
    for (frame, (row, record)) in
        cut.rows.chunks_exact_mut(cut.row).zip(records.chunks_exact(layout.size())).enumerate()
    {
        for ((place, (field, _)), (numbers, (.., pieces))) in
            cut.fields.iter().zip(&fields).zip(numbers.iter().zip(&ways))
        {
            let to = &mut row[place.at as usize..];
            if place.run == 0 {
                to[..field.bytes()].copy_from_slice(&record[field.offset..][..field.bytes()]);
                continue;
            }
            let numbers = &numbers[frame * pieces..][..*pieces];
            to.as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(to, number)| *to = number.to_le_bytes());
        }
    }
    Ok(cut)
}

fn scalar(field: &Field) -> Result<Scalar> {
    match field.dtype {
        DType::Scalar(scalar, _) => Ok(scalar),
        DType::Record(_) => {
            Err(Error::new(Kind::Unsupported, format!("field `{}`: records within records", field.name)))
        }
    }
}

/// The way to cut some fields of one shape that leaves the fewest bytes: how, into how many pieces, which, and their numbers
/// for each field.
fn best(fields: &[&Field], unit: usize, records: &[u8], size: usize) -> (Cut, usize, Pool, Vec<Vec<u32>>) {
    let shape = &fields[0].shape;
    let (first, last) = (shape.first().copied().unwrap_or(1), shape.last().copied().unwrap_or(1));
    let several = |n: usize| shape.len() > 1 && (2..=MOST_PIECES).contains(&n);
    let ways = [(Cut::First, first), (Cut::Last, last)].into_iter().filter(|(_, pieces)| several(*pieces));
    let mut found: Option<(Cut, usize, Pool, Vec<Vec<u32>>)> = None;
    for (way, pieces) in ways {
        let least = found.as_ref().map_or_else(|| distinct(fields, records, size), |(.., pool, _)| pool.bytes.len());
        // Pictures stay whole unless much of them comes again.
        let most = least / 10 * 7;
        let (pool, numbers) = collect(fields, (way, pieces), unit, records, size, most);
        if pool.bytes.len() < most {
            found = Some((way, pieces, pool, numbers));
        }
    }
    found.unwrap_or_else(|| {
        let (pool, numbers) = collect(fields, (Cut::First, 1), unit, records, size, usize::MAX);
        (Cut::First, 1, pool, numbers)
    })
}

/// Returns the bytes of all values of `fields` in `records`, and counts equal values once. A record has `size` bytes.
fn distinct(fields: &[&Field], records: &[u8], size: usize) -> usize {
    let values = records.chunks_exact(size).flat_map(|record| fields.iter().map(|field| value(field, record)));
    values.map(xxh3_128).collect::<HashSet<u128>>().len() * fields[0].bytes()
}

fn value<'a>(field: &Field, record: &'a [u8]) -> &'a [u8] {
    &record[field.offset..][..field.bytes()]
}

/// Cuts the values of `fields` into pieces. Returns the pool of distinct pieces, and for each field the numbers of its pieces, record
/// by record. Stops after the record with which the pool reaches `most` bytes; later records then have no numbers.
fn collect(
    fields: &[&Field],
    (way, pieces): (Cut, usize),
    unit: usize,
    records: &[u8],
    size: usize,
    most: usize,
) -> (Pool, Vec<Vec<u32>>) {
    let piece = fields[0].bytes() / pieces;
    let mut pool = Pool { piece, unit, bytes: Vec::new() };
    let mut numbers = vec![Vec::with_capacity(records.len() / size * pieces); fields.len()];
    let mut known: HashMap<u128, u32> = HashMap::new();
    let mut held = Vec::with_capacity(piece);
    for record in records.chunks_exact(size) {
        for (field, numbers) in fields.iter().zip(&mut numbers) {
            let value = value(field, record);
            for i in 0..pieces {
                let bytes = match way {
                    Cut::First => &value[i * piece..][..piece],
                    Cut::Last => {
                        held.clear();
                        match unit {
                            1 => held.extend((0..piece).map(|at| value[at * pieces + i])),
                            _ => value.chunks_exact(unit).skip(i).step_by(pieces).for_each(|one| held.extend(one)),
                        }
                        &held
                    }
                };
                let next = (pool.bytes.len() / piece) as u32;
                let number = *known.entry(xxh3_128(bytes)).or_insert(next);
                let there = &pool.bytes[number as usize * piece..];
                let number = if there.is_empty() || there[..piece] != *bytes {
                    pool.bytes.extend_from_slice(bytes);
                    next
                } else {
                    number
                };
                numbers.push(number);
            }
        }
        if pool.bytes.len() >= most {
            break;
        }
    }
    (pool, numbers)
}
