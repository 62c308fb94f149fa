//! A folder of columns -> trajectories: any steps of any field, read from where they lie. Holds ends and metadata alone.
//! Refuses data that does not fit its manifest, and says that the folder must be rewritten.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_format::container::npy::Header;
use gristmill_format::demo::shard::ShardMeta;
use gristmill_format::demo::trajectory::End;
use gristmill_format::demo::value::Extra;
use gristmill_format::layout::Layout;
use gristmill_format::source::{ReadAt, Span, read_full, read_span};
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::store::open_file;

use super::data::Extras;
use super::manifest::{ENDS, METADATA, Manifest};
use super::origin::Origins;

/// Numbers in a row of the places of extras: frame, kind, first byte, bytes.
pub(super) const PLACE: usize = 4;

/// Bytes read at a time to be put into records.
const STEP: usize = 4 << 20;

/// Trajectories in columns.
pub(super) struct Columns {
    folder: PathBuf,
    manifest: Manifest,
    layout: Arc<Layout>,
    ends: Vec<(usize, End)>,
    meta: Option<ShardMeta>,
    /// One for each field of the layout.
    columns: Vec<Array>,
    /// Field, places and bytes.
    extras: Vec<(String, Array, Arc<dyn ReadAt>)>,
}

/// The data of a `.npy` file.
struct Array {
    from: Arc<dyn ReadAt>,
    offset: u64,
    rows: usize,
}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Columns({})", self.folder.display())
    }
}

impl Columns {
    /// Opens the columns in `folder`, which `manifest` is of.
    ///
    /// Errors, with the file: `Corrupt`, `WrongSize` and `Truncated` where it is not what the manifest says; `Io`.
    pub(super) fn open(folder: &Path, manifest: Manifest, max: usize) -> Result<Columns> {
        let layout = Layout::parse_descr(&manifest.layout)?;
        let mut columns = Vec::new();
        for field in layout.fields() {
            let file = manifest.columns.iter().find(|(name, _)| *name == field.name);
            let (_, file) = file.ok_or_else(|| Error::new(Kind::Missing, format!("no column `{}`", field.name)))?;
            columns.push(array(&folder.join(file), manifest.frames, field.bytes())?);
        }
        let ends = array(&folder.join(ENDS), usize::MAX, 16)?;
        let ends = ends.numbers(0..ends.rows, 2)?;
        let ends: Vec<(usize, End)> = ends
            .chunks_exact(2)
            .map(|end| (end[0], if end[1] == 1 { End::Truncated } else { End::Terminated }))
            .collect();
        let grows = ends.iter().zip(ends.iter().skip(1)).all(|(one, next)| one.0 < next.0);
        if !grows || ends.last().map_or(0, |(end, _)| *end) != manifest.frames {
            let at = folder.join(ENDS).display().to_string();
            return Err(Error::new(Kind::Corrupt, "the trajectories do not add up").in_source(at));
        }
        let meta = match manifest.metadata {
            true => {
                let mut bytes = Vec::new();
                read_span(&*open_file(&folder.join(METADATA))?, Span::WHOLE, max as u64, &mut bytes)?;
                Some(ShardMeta::parse(&bytes, max)?)
            }
            false => None,
        };
        let mut extras = Vec::new();
        for (name, stem) in &manifest.extras {
            let places = array(&folder.join(format!("{stem}.places.npy")), usize::MAX, 8 * PLACE)?;
            extras.push((name.clone(), places, open_file(&folder.join(format!("{stem}.bin")))?));
        }
        Ok(Columns { folder: folder.to_owned(), manifest, layout: Arc::new(layout), ends, meta, columns, extras })
    }

    pub(super) fn format(&self) -> &str {
        &self.manifest.format
    }

    pub(super) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    pub(super) fn ends(&self) -> &[(usize, End)] {
        &self.ends
    }

    pub(super) fn frames(&self) -> usize {
        self.manifest.frames
    }

    pub(super) fn meta(&self) -> Option<&ShardMeta> {
        self.meta.as_ref()
    }

    pub(super) fn about(&self) -> &[(String, String)] {
        &self.manifest.about
    }

    pub(super) fn origins(&self) -> &Origins {
        &self.manifest.origins
    }

    /// The file of a field.
    pub(super) fn file(&self, name: &str) -> Option<PathBuf> {
        self.manifest.columns.iter().find(|(field, _)| field == name).map(|(_, file)| self.folder.join(file))
    }

    /// Reads one field of some frames to the start of `out`.
    pub(super) fn read(&self, name: &str, frames: Range<usize>, out: &mut [u8]) -> Result<()> {
        let slot = self.layout.fields().iter().position(|field| field.name == name);
        let slot = slot.ok_or_else(|| Error::new(Kind::Missing, format!("there is no field `{name}`")))?;
        let size = self.layout.fields()[slot].bytes();
        self.columns[slot].read(frames.start * size, &mut out[..frames.len() * size])
    }

    /// Reads the records of some frames to the start of `out`.
    pub(super) fn records(&self, frames: Range<usize>, out: &mut [u8]) -> Result<()> {
        let record = self.layout.size();
        let mut held = Vec::new();
        for (field, column) in self.layout.fields().iter().zip(&self.columns) {
            let size = field.bytes();
            let step = (STEP / size.max(1)).max(1);
            for from in frames.clone().step_by(step) {
                let count = step.min(frames.end - from);
                held.resize(count * size, 0);
                column.read(from * size, &mut held)?;
                let records = out[(from - frames.start) * record..].chunks_exact_mut(record);
                for (bytes, record) in held.chunks_exact(size.max(1)).zip(records) {
                    record[field.offset..field.offset + size].copy_from_slice(bytes);
                }
            }
        }
        Ok(())
    }

    /// What travels beside some frames; frames are counted from the first of them.
    pub(super) fn extras(&self, frames: Range<usize>) -> Result<Vec<(String, Extras)>> {
        self.extras.iter().map(|(name, places, bytes)| Ok((name.clone(), places.extras(&**bytes, &frames)?))).collect()
    }
}

/// A `.npy` file of `rows` rows of `size` bytes, or of however many it has (`usize::MAX`).
fn array(path: &Path, rows: usize, size: usize) -> Result<Array> {
    let place = |e: Error| e.in_source(path.display().to_string());
    let from = open_file(path)?;
    let len = from.len()?;
    let header = Header::read(&*from).map_err(place)?;
    let stored = header.data_bytes();
    let found = header.shape().first().map_or(0, |rows| usize::try_from(*rows).unwrap_or(usize::MAX));
    let expected = (found as u64).checked_mul(size as u64);
    if (rows != usize::MAX && found != rows) || expected != Some(stored) || header.data_offset() + stored != len {
        let detail = format!(
            "{found} rows in {len} bytes; expected {rows} of {size} bytes: remove the folder, and it is made again"
        );
        return Err(place(Error::new(Kind::WrongSize, detail)));
    }
    Ok(Array { offset: header.data_offset(), from, rows: found })
}

impl Array {
    fn read(&self, at: usize, out: &mut [u8]) -> Result<()> {
        let at = self.offset + at as u64;
        match read_full(&*self.from, at, out)? {
            done if done == out.len() => Ok(()),
            done => Err(Error::new(Kind::Truncated, "the column ends before").at_byte(at + done as u64)),
        }
    }

    /// Rows of `width` numbers.
    fn numbers(&self, rows: Range<usize>, width: usize) -> Result<Vec<usize>> {
        let mut bytes = vec![0; rows.len() * width * 8];
        self.read(rows.start * width * 8, &mut bytes)?;
        let number = |bytes: &[u8; 8]| usize::try_from(i64::from_le_bytes(*bytes)).unwrap_or(usize::MAX);
        Ok(bytes.as_chunks().0.iter().map(number).collect())
    }

    /// The first row that is not of a frame before `frame`: rows are in order of frames.
    fn first(&self, frame: usize) -> Result<usize> {
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = low.midpoint(high);
            if self.numbers(middle..middle + 1, PLACE)?[0] < frame {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    fn extras(&self, bytes: &dyn ReadAt, frames: &Range<usize>) -> Result<Extras> {
        let places = self.numbers(self.first(frames.start)?..self.first(frames.end)?, PLACE)?;
        let extra = |place: &[usize]| {
            let mut held = Vec::new();
            let span = Span { offset: place[2] as u64, len: place[3] as u64 };
            read_span(bytes, span, bytes.len()?, &mut held)?;
            let text = |held| String::from_utf8(held).map_err(|_| Error::new(Kind::Corrupt, "a text that is no UTF-8"));
            let extra = match place[1] {
                0 => Extra::Text(text(held)?),
                1 => Extra::Bytes(held),
                2 => Extra::Json(text(held)?),
                3 => Extra::Pickle(held),
                other => return Err(Error::new(Kind::Corrupt, format!("an extra of kind {other}"))),
            };
            let frame = place[0].checked_sub(frames.start);
            Ok((frame.ok_or_else(|| Error::new(Kind::Corrupt, "extras out of order"))?, extra))
        };
        places.chunks_exact(PLACE).map(extra).collect()
    }
}

/// The number that says what an extra is.
pub(super) fn kind(extra: &Extra) -> (i64, &[u8]) {
    match extra {
        Extra::Text(text) => (0, text.as_bytes()),
        Extra::Bytes(bytes) => (1, bytes),
        Extra::Json(text) => (2, text.as_bytes()),
        Extra::Pickle(bytes) => (3, bytes),
    }
}
