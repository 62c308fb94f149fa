//! A path -> what it is: format, counts, layout, and one frame drawn.
//! Reads every chunk once to count its frames; judges nothing, which is what `verify` does.

use std::collections::BTreeMap;
use std::path::Path;

use gristmill_format::chess::{Board, Frame, policy};
use gristmill_format::layout::{DType, Layout};
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind};
use serde::Serialize;

use super::files::{self, Found, Opened};
use crate::error::Result;

/// How many moves of a frame are shown.
const MOVES_SHOWN: usize = 8;

/// What is at a path.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Inspection {
    /// The path.
    pub path: String,
    /// Format of the file, such as `lc0.gz`; for a directory the format of its files, or `mixed`.
    pub format: String,
    /// Sort key: the file name; absent for a directory.
    pub key: Option<String>,
    /// Data files.
    pub files: u64,
    /// Files that are of no known format.
    pub skipped: u64,
    /// Size of the data files in bytes.
    pub size: u64,
    /// Chunks, bad ones included.
    pub chunks: u64,
    /// Frames of the good chunks.
    pub frames: u64,
    /// Chunks that cannot be decoded.
    pub bad_chunks: u64,
    /// What is wrong with the first of those, or with the first file that cannot be opened.
    pub first_fault: Option<String>,
    /// Files by format.
    pub formats: BTreeMap<&'static str, u64>,
    /// The records, once one was decoded.
    pub layout: Option<LayoutView>,
    /// The frame that was asked for.
    pub frame: Option<FrameView>,
}

/// A layout as data.
#[derive(Debug, Clone, Serialize)]
pub struct LayoutView {
    /// Bytes of a record.
    pub size: usize,
    /// NumPy's description of the dtype.
    pub descr: String,
    /// The fields in order.
    pub fields: Vec<FieldView>,
}

/// One field of a layout.
#[derive(Debug, Clone, Serialize)]
pub struct FieldView {
    /// Name.
    pub name: String,
    /// NumPy's type string, such as `<f4`; of a nested record its description.
    pub dtype: String,
    /// Shape within one record.
    pub shape: Vec<usize>,
    /// Byte offset.
    pub offset: usize,
}

/// One frame as data.
#[derive(Debug, Clone, Serialize)]
pub struct FrameView {
    /// Chunk in the file.
    pub chunk: usize,
    /// Frame in the chunk.
    pub frame: usize,
    /// Frames of the chunk.
    pub frames: usize,
    /// Name of the member, in a container.
    pub member: Option<String>,
    /// Record version, after any upgrade.
    pub version: u32,
    /// Stored value of the input format.
    pub input_format: u32,
    /// The position.
    pub fen: String,
    /// The position drawn with chess symbols, and with letters.
    #[serde(skip)]
    pub drawings: [String; 2],
    /// Side to move: `white` or `black`.
    pub side: &'static str,
    /// Plies since the last capture or pawn move.
    pub rule50: u8,
    /// How many moves are legal.
    pub legal_moves: usize,
    /// The most visited moves, most visited first.
    pub moves: Vec<MoveView>,
    /// The move played and the best move; absent where the data has none.
    pub played: Option<String>,
    /// See `played`.
    pub best: Option<String>,
    /// Rows of expected result, draw probability and plies left; `null` where unknown.
    pub values: Vec<ValueRow>,
    /// Search visits.
    pub visits: u32,
    /// Divergence of visits from policy, in nats.
    pub policy_kld: f32,
    /// Whether the best move is proven, the game was cut, adjudicated, the frame is marked as deleted.
    pub flags: Vec<&'static str>,
}

/// One legal move.
#[derive(Debug, Clone, Serialize)]
pub struct MoveView {
    /// In UCI letters as White sees the board; castling is king takes rook.
    pub uci: String,
    /// Policy index.
    pub index: u16,
    /// Share of the visits.
    pub share: f32,
}

/// One row of values, as the side to move sees it.
#[derive(Debug, Clone, Serialize)]
pub struct ValueRow {
    /// `result`, `best`, `played`, `orig`, `root` or `st`.
    pub name: &'static str,
    /// Expected result.
    pub q: f32,
    /// Draw probability.
    pub d: f32,
    /// Plies left.
    pub m: f32,
}

/// Inspects the file or directory at `path`; `frame` is the (chunk, frame) of a file to show. Without it the
/// first frame of a good first chunk is shown.
///
/// Errors: `Format` when a file cannot be opened, or the frame asked for is not there or cannot be drawn.
pub fn inspect(path: &Path, frame: Option<(usize, usize)>) -> Result<Inspection> {
    let mut seen = Inspection { path: path.display().to_string(), ..Inspection::default() };
    if path.is_dir() {
        if frame.is_some() {
            let detail = "a directory has no chunk of its own; name one of its files";
            return Err(Error::new(Kind::Missing, detail).in_source(&seen.path).into());
        }
        files::walk(path, &mut |found| {
            seen.add(found)?;
            Ok(())
        })?;
    } else {
        let file = match files::file(path) {
            Found::File(file) => file,
            Found::Fault(e) => return Err(e.into()),
            Found::Other | Found::Unlisted { .. } => return Err(Error::new(Kind::UnknownFormat, "no data").into()),
        };
        let key = file.source.describe().key.clone();
        seen.frame = match frame {
            Some((chunk, at)) => Some(view(&file, chunk, at)?),
            None => view(&file, 0, 0).ok(),
        };
        seen.add(Found::File(file))?;
        seen.key = Some(key);
    }
    seen.format = match seen.formats.len() {
        0 => "none".to_owned(),
        1 => seen.formats.keys().next().copied().unwrap_or_default().to_owned(),
        _ => "mixed".to_owned(),
    };
    Ok(seen)
}

impl Inspection {
    fn add(&mut self, found: Found) -> Result<()> {
        match found {
            Found::File(file) => self.file(&file),
            Found::Other => self.skipped += 1,
            Found::Fault(e) => self.fault(e.to_string()),
            Found::Unlisted { latest, .. } => self.fault(latest),
        }
        Ok(())
    }

    fn fault(&mut self, text: String) {
        self.first_fault.get_or_insert(text);
    }

    fn file(&mut self, file: &Opened) {
        self.files += 1;
        self.size += file.size;
        *self.formats.entry(file.source.describe().format).or_default() += 1;
        if let Some(fault) = file.source.faults().first() {
            self.fault(fault.clone().in_source(&file.path).to_string());
        }
        let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
        for i in 0..file.source.len() {
            self.chunks += 1;
            match file.fetch(i, &mut stored).and_then(|()| file.decode(i, &stored, &mut chunk)) {
                Ok(()) => {
                    self.frames += chunk.frames as u64;
                    if self.layout.is_none() {
                        self.layout = chunk.layout.as_deref().map(layout);
                    }
                }
                Err(e) => {
                    self.bad_chunks += 1;
                    self.fault(e.to_string());
                }
            }
        }
    }
}

fn layout(layout: &Layout) -> LayoutView {
    let field = |f: &gristmill_format::layout::Field| FieldView {
        name: f.name.clone(),
        dtype: match &f.dtype {
            DType::Scalar(scalar, order) => scalar.type_str(*order),
            DType::Record(inner) => inner.to_descr(),
        },
        shape: f.shape.clone(),
        offset: f.offset,
    };
    LayoutView { size: layout.size(), descr: layout.to_descr(), fields: layout.fields().iter().map(field).collect() }
}

fn view(file: &Opened, i: usize, at: usize) -> gristmill_format::Result<FrameView> {
    let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
    file.fetch(i, &mut stored)?;
    file.decode(i, &stored, &mut chunk)?;
    if at >= chunk.frames {
        let detail = format!("there is no frame {at}; the chunk has {}, counted from 0", chunk.frames);
        return Err(Error::new(Kind::Missing, detail).in_chunk(i).in_source(&file.path));
    }
    let placed = |e: Error| e.in_frame(at).in_chunk(i).in_source(&file.path);
    let frame = Frame::new(chunk.record(at)).map_err(placed)?;
    let board = Board::from_frame(&frame).map_err(placed)?;
    let uci = |index: u16| board.uci(index).unwrap_or_else(|| "?".to_owned());
    let mut moves: Vec<(u16, f32)> = (0..).zip(frame.probabilities()).filter(|(_, p)| *p >= 0.0).collect();
    let legal_moves = moves.len();
    moves.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    moves.truncate(MOVES_SHOWN);
    let searched = frame.visits() > 0;
    Ok(FrameView {
        chunk: i,
        frame: at,
        frames: chunk.frames,
        member: file.member(i).map(str::to_owned),
        version: frame.version(),
        input_format: frame.input_format_value(),
        fen: board.fen(),
        drawings: [board.draw(), board.draw_ascii()],
        side: if board.black_to_move { "black" } else { "white" },
        rule50: frame.rule50_count(),
        legal_moves,
        moves: moves.iter().map(|&(index, share)| MoveView { uci: uci(index), index, share }).collect(),
        played: (searched && policy::entry(frame.played_idx()).is_some()).then(|| uci(frame.played_idx())),
        best: (searched && policy::entry(frame.best_idx()).is_some()).then(|| uci(frame.best_idx())),
        values: values(frame),
        visits: frame.visits(),
        policy_kld: frame.policy_kld(),
        flags: flags(frame.invariance_info()),
    })
}

fn values(frame: Frame<'_>) -> Vec<ValueRow> {
    let row = |name, q, d, m| ValueRow { name, q, d, m };
    let mut rows = vec![
        row("result", frame.result_q(), frame.result_d(), frame.plies_left()),
        row("best", frame.best_q(), frame.best_d(), frame.best_m()),
        row("played", frame.played_q(), frame.played_d(), frame.played_m()),
        row("orig", frame.orig_q(), frame.orig_d(), frame.orig_m()),
        row("root", frame.root_q(), frame.root_d(), frame.root_m()),
    ];
    if frame.version() >= 7 {
        rows.push(row("st", frame.q_st(), frame.d_st(), f32::NAN));
    }
    rows
}

fn flags(bits: u8) -> Vec<&'static str> {
    let names = [(3, "best move proven"), (4, "maximum length"), (5, "adjudicated"), (6, "deleted")];
    names.iter().filter(|(bit, _)| bits & 1 << bit != 0).map(|(_, name)| *name).collect()
}
