//! The bytes of a shard (`.npz`) -> rows as records, back to back, in chunks: shards have no games.
//! Compares every size with the bound before it allocates, and each member with the others.

use std::sync::Arc;

use gristmill_bytes::container::npy::Header;
use gristmill_bytes::container::npz::Npz;
use gristmill_bytes::container::packed::check_room;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Order};
use gristmill_bytes::plain::Whole;
use gristmill_bytes::source::{Chunk, ChunkSource, Description, Limits, ReadAt, Span, read_span};

use super::KIND;
use super::form::{Form, MOST_MEMBERS, PLANES};
use super::row::check;

/// The name of the format.
pub const FORMAT: &str = "katago.npz";

/// The ending of shards. Other files have it, too; [`is_shard`] decides by the members.
pub const ENDING: &str = ".npz";

/// Most bytes of a shard, stored and as rows, by default.
pub const MAX_BYTES: usize = 2 << 30;

/// Rows of a chunk. The last chunk of a shard may have fewer, and so may chunks of large rows.
pub const TOGETHER: usize = 256;

/// Most bytes of a chunk.
const MOST_CHUNK: usize = 4 << 20;

/// Bytes of a member that hold its header.
const HEAD: usize = 4096;

/// Bytes at the end of a file that are searched for the names of its members.
const TAIL: u64 = 64 << 10;

/// Whether a file is a shard of KataGo: by the names of members at its end, or by its first member.
///
/// Errors: `Io`.
pub fn is_shard(from: &(impl ReadAt + ?Sized)) -> Result<bool> {
    let (len, mut bytes, name) = (from.len()?, Vec::new(), format!("{PLANES}.npy"));
    for (offset, most) in [(0, HEAD as u64), (len.saturating_sub(TAIL), TAIL)] {
        read_span(from, Span { offset, len: (len - offset).min(most) }, most, &mut bytes)?;
        if bytes.windows(name.len()).any(|window| window == name.as_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The number of rows of this size in a chunk.
pub fn together(size: usize) -> usize {
    (MOST_CHUNK / size.max(1)).clamp(1, TOGETHER)
}

/// The rows of a shard, in chunks.
#[derive(Debug)]
pub struct Shard {
    description: Description,
    form: Form,
    rows: usize,
    /// The rows, if they are in memory.
    kept: Option<Vec<u8>>,
}

impl Shard {
    /// Reads the shard `key` (a name without directory), and keeps its rows in memory.
    ///
    /// Errors: `TooLarge` beyond [`MAX_BYTES`]; as [`Shard::read`].
    pub fn open(key: &str, from: &dyn ReadAt) -> Result<Shard> {
        let mut stored = Vec::new();
        read_span(from, Span::WHOLE, MAX_BYTES as u64, &mut stored)?;
        let (shard, plain) = Shard::read(key, &stored, MAX_BYTES)?;
        Ok(Shard { kept: Some(plain), ..shard })
    }

    /// Reads the headers of the members of a shard: its form and its number of rows. Reads no row.
    ///
    /// Errors, with the member: as [`Npz::open`], [`Header::parse`] and [`Form::new`]; `WrongSize` where members have different
    /// numbers of rows; `Unsupported` for arrays in Fortran order; `TooLarge` beyond `max` bytes of rows.
    pub fn heads(key: &str, stored: &[u8], max: usize) -> Result<Shard> {
        Shard::described(key, &Npz::open(stored)?, max).map(|(shard, _)| shard)
    }

    fn described(key: &str, npz: &Npz<'_>, max: usize) -> Result<(Shard, Vec<Header>)> {
        if npz.names().len() > MOST_MEMBERS {
            let detail = format!("{} members; the bound is {MOST_MEMBERS}", npz.names().len());
            return Err(Error::new(Kind::TooLarge, detail));
        }
        let (mut head, mut members, mut headers) = (Vec::new(), Vec::new(), Vec::new());
        let mut rows: Option<(u64, &str)> = None;
        for name in npz.names() {
            let named = |e: Error| e.in_member(format!("{name}.npy"));
            npz.head(name, HEAD, &mut head)?;
            let header = Header::parse(&head).map_err(named)?;
            let (DType::Scalar(scalar, order), [count, shape @ ..]) = (header.dtype(), header.shape()) else {
                let detail = "no array of numbers with a row for each position";
                return Err(named(Error::new(Kind::Unsupported, detail)));
            };
            if *order == Order::Big && scalar.size() > 1 || header.fortran_order() && shape.iter().any(|dim| *dim > 1) {
                let detail =
                    "big-endian, or in the order of Fortran; write it again by numpy.ascontiguousarray, little-endian";
                return Err(named(Error::new(Kind::Unsupported, detail)));
            }
            match rows {
                Some((first, of)) if first != *count => {
                    return Err(named(Error::new(Kind::WrongSize, format!("{count} rows, `{of}` has {first}"))));
                }
                _ => rows = Some((*count, name)),
            }
            let shape = shape.iter().map(|dim| usize::try_from(*dim)).collect::<Result<Vec<_>, _>>();
            let shape = shape.map_err(|_| named(Error::new(Kind::TooLarge, "more than memory counts")))?;
            members.push((name.clone(), *scalar, shape));
            headers.push(header);
        }
        let form = Form::new(members)?;
        let rows = usize::try_from(rows.map_or(0, |(rows, _)| rows)).unwrap_or(usize::MAX);
        let size = form.layout().size();
        if rows.checked_mul(size).is_none_or(|bytes| bytes > max) {
            let detail = format!("{rows} rows of {size} bytes; the bound is {max} bytes: split the shard");
            return Err(Error::new(Kind::TooLarge, detail));
        }
        let description = Description { key: key.to_owned(), format: FORMAT, kind: KIND };
        Ok((Shard { description, form, rows, kept: None }, headers))
    }

    /// Reads a shard of at most `max` bytes of rows: its chunks, and the records in which they lie.
    ///
    /// Errors, with the member: as [`Shard::heads`] and [`Npz::read`]; `WrongSize` where a member has more or fewer bytes than its
    /// header says.
    pub fn read(key: &str, stored: &[u8], max: usize) -> Result<(Shard, Vec<u8>)> {
        let npz = Npz::open(stored)?;
        let (shard, headers) = Shard::described(key, &npz, max)?;
        let (size, mut member, mut records) = (shard.form.layout().size(), Vec::new(), Vec::new());
        for (name, header) in npz.names().iter().zip(&headers) {
            let most = usize::try_from(header.data_offset().saturating_add(header.data_bytes())).unwrap_or(max);
            let wrong = |found: String| {
                let detail = format!("{found} bytes, its header says {most}");
                Error::new(Kind::WrongSize, detail).in_member(format!("{name}.npy"))
            };
            // Inflates only as many bytes as the header says, which are within the bound.
            npz.read(name, most, &mut member).map_err(|e| match e.kind() {
                Kind::TooLarge => wrong("more".to_owned()),
                _ => e,
            })?;
            if member.len() != most {
                return Err(wrong(member.len().to_string()));
            }
            let field = shard.form.layout().field(name);
            let Some(field) = field.filter(|field| field.bytes() > 0) else { continue };
            // Only now: this member has the rows that its header says.
            records.resize(shard.rows * size, 0);
            let values = member.get(header.data_offset() as usize..).unwrap_or_default();
            for (record, value) in records.chunks_exact_mut(size).zip(values.chunks_exact(field.bytes())) {
                record[field.offset..][..value.len()].copy_from_slice(value);
            }
        }
        Ok((shard, records))
    }

    /// The form of its rows.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The first row of chunk `i`, and its number of rows.
    fn place(&self, i: usize) -> Option<(usize, usize)> {
        let many = together(self.form.layout().size());
        let first = i.checked_mul(many).filter(|first| *first < self.rows)?;
        Some((first, (self.rows - first).min(many)))
    }

    fn fill(&self, i: usize, bytes: &[u8], wanted: Option<&[u32]>, limits: &Limits, out: &mut Chunk) -> Result<()> {
        (out.frames, out.trailing) = (0, 0);
        out.bytes.clear();
        let size = self.form.layout().size();
        let missing = || Error::new(Kind::Missing, format!("there are {} chunks", self.len()));
        let (first, frames) = self.place(i).ok_or_else(missing)?;
        let bytes = match &self.kept {
            Some(rows) => rows.get(first * size..(first + frames) * size).unwrap_or_default(),
            None => bytes,
        };
        if bytes.len() != frames * size {
            let detail = format!("{} bytes, expected {frames} rows of {size}", bytes.len());
            return Err(Error::new(Kind::WrongSize, detail));
        }
        let many = wanted.map_or(frames, <[u32]>::len);
        let room = check_room(many, size, limits.max_chunk_bytes)?;
        out.bytes.reserve_exact(room);
        for n in 0..many {
            let frame = wanted.map_or(n, |rows| rows.get(n).map_or(frames, |row| *row as usize));
            let record = bytes.chunks_exact(size).nth(frame);
            let record = record.ok_or_else(|| Error::new(Kind::Missing, format!("frame {frame} of {frames}")))?;
            check(&self.form, record).map_err(|e| in_row(e, first + frame).in_frame(frame))?;
            out.bytes.extend_from_slice(record);
        }
        (out.layout, out.frames) = (Some(Arc::clone(self.form.layout())), many);
        Ok(())
    }
}

/// Adds the number of the row in its file to the error.
fn in_row(e: Error, row: usize) -> Error {
    let member = e.place().member.clone().unwrap_or_default();
    Error::new(e.kind(), format!("row {row} of the file: {}", e.detail())).in_member(member)
}

/// The shard in `stored`, as plain bytes with its chunks over them.
///
/// Errors: as [`Shard::read`].
pub fn whole(key: &str, stored: Vec<u8>, max: usize) -> Result<Whole> {
    let (shard, mut plain) = Shard::read(key, &stored, max)?;
    plain.shrink_to_fit();
    Ok(Whole { chunks: Arc::new(shard), plain: Box::new(plain), faults: Vec::new() })
}

impl ChunkSource for Shard {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn len(&self) -> usize {
        self.rows.div_ceil(together(self.form.layout().size()))
    }

    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)> {
        let ((first, frames), size) = (self.place(i)?, self.form.layout().size() as u64);
        let span = Span { offset: first as u64 * size, len: frames as u64 * size };
        Some((if self.kept.is_some() { Span { offset: 0, len: 0 } } else { span }, None))
    }

    fn frames(&self, i: usize) -> Option<usize> {
        self.place(i).map(|(_, frames)| frames)
    }

    fn decode(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        self.fill(i, bytes, None, limits, out).inspect_err(|_| out.frames = 0).map_err(|e| e.in_chunk(i))
    }

    fn decode_rows(&self, i: usize, rows: &[u32], bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<bool> {
        self.fill(i, bytes, Some(rows), limits, out).map(|()| true).map_err(|e| e.in_chunk(i))
    }
}
