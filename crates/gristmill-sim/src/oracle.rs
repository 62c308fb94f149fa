//! Which row stands where in each batch, and what is in it: by docs/format/order.md, lanes.md, journal.md and bulletformat.md
//! alone. Sequential, slow and obvious; nothing here calls gristmill, and what no page says is a fault of the pages.

mod draws;
pub mod packs;
pub mod rows;

use std::collections::{BTreeMap, VecDeque};

use draws::{Draws, at, key, of, perm};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A board, as it is stored.
pub type Board = [u8; 32];

/// A file: its name below the directory and its chunks. One that is refused as a whole has none.
#[derive(Debug, Clone)]
pub struct File {
    /// Its id in the journal, where there is one.
    pub id: u64,
    /// Name below the directory.
    pub name: String,
    /// The boards of each chunk; none for a bad one.
    pub chunks: Vec<Option<Vec<Board>>>,
}

impl File {
    /// The file with these bytes (bulletformat.md).
    pub fn of(name: &str, bytes: &[u8]) -> Self {
        let (boards, rest) = bytes.as_chunks::<32>();
        let whole = if rest.is_empty() { boards } else { &[] };
        // Of what is no board, only a wrong result occurs here.
        let chunk = |boards: &[Board]| boards.iter().all(|board| board[26] < 3).then(|| boards.to_vec());
        File { id: 0, name: name.to_owned(), chunks: whole.chunks(256).map(chunk).collect() }
    }

    /// What it is known by: the last part of its name.
    pub fn key(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}

/// The digest of a file of boards (journal.md): its identity, and where its chunks lie.
pub fn digest(bytes: &[u8]) -> u64 {
    let first = bytes.len().min(8192);
    let ends = [&bytes[..first], &bytes[first.max(bytes.len().saturating_sub(8192))..]].concat();
    let mut all = xxh3_64(&ends).to_le_bytes().to_vec();
    for (chunk, boards) in bytes.chunks(8192).enumerate() {
        all.extend([8192 * chunk as u64, boards.len() as u64].map(u64::to_le_bytes).concat());
        all.push(0);
    }
    xxh3_64(&all)
}

/// A file that came later, as the journal has it.
#[derive(Debug, Clone)]
pub struct Later {
    /// Of which lane.
    pub lane: u64,
    /// The draw before which it was taken in.
    pub at: u64,
    /// The id of the file that it replaces.
    pub old: Option<u64>,
    /// The file.
    pub file: File,
}

/// A directory: the files of its first scan in any order, and those that came later in the order of the journal.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    /// Those of the first scan.
    pub first: Vec<File>,
    /// Those that came later.
    pub later: Vec<Later>,
}

/// What decides a stream.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Root of all draws.
    pub seed: u64,
    /// Chunks of the window; without it whole passes, in order.
    pub pool: Option<u64>,
    /// `least`, `slope` and `power` of a window that grows up to that.
    pub law: Option<[f64; 3]>,
    /// The rate limit, by which draws and files wait for each other: `samples_per_insert`, `min_size_to_sample`, `min_diff`, `max_diff`.
    pub limit: Option<[f64; 4]>,
    /// How many passes.
    pub epochs: u64,
    /// Share of the frames of each use; one of it and `count`.
    pub rate: Option<f32>,
    /// How many frames of each use.
    pub count: Option<u64>,
    /// Rows of the reservoir.
    pub reservoir: u64,
    /// Number of lanes.
    pub lanes: u64,
    /// Number of ranks that share the lanes, and the rank that gets the rows of this stream.
    pub ranks: (u64, u64),
    /// Rows of a batch of this rank.
    pub batch: usize,
    /// Weights of two directories in the join.
    pub weights: [f64; 2],
}

/// A pass over the frames of a chunk of which each use gives a share.
struct Pass {
    /// The use with which it begins.
    first: u64,
    draws: Draws,
    carried: f64,
    /// Frames that the pass before gave.
    passed: Vec<bool>,
}

/// A name in natural order: runs of digits as numbers, all else byte by byte.
fn natural(key: &str) -> Vec<(u8, u128)> {
    let number = |run: &[u8]| run.iter().fold(0, |number, digit| number * 10 + u128::from(digit - b'0'));
    let part = |run: &[u8]| if run[0].is_ascii_digit() { (b'0', number(run)) } else { (run[0], 0) };
    key.as_bytes().chunk_by(|a, b| a.is_ascii_digit() && b.is_ascii_digit()).map(part).collect()
}

/// A row: number of the directory, then in it of the file, of the chunk and of the frame.
pub type Row = (usize, usize, usize, usize);

/// A chunk of a window.
#[derive(Clone, Copy)]
struct Held {
    id: u64,
    file: usize,
    chunk: usize,
    uses: u64,
    undrawn: bool,
    gone: bool,
}

/// What one directory gives: files of the first scan, `first` of them, and then those that came later.
struct Input<'a> {
    /// Of the directory, from 0.
    number: usize,
    files: &'a [File],
    later: &'a [Later],
    first: usize,
}

/// The name of a stage of the directory with this number, from 0.
pub fn named(stage: &str, number: usize) -> String {
    if number == 0 { stage.to_owned() } else { format!("{stage}_{}", number + 1) }
}

impl Stream {
    fn stage(&self, name: &str, lane: u64) -> u64 {
        let key = key(self.seed, name);
        if self.lanes > 1 { of(key, "lane", lane) } else { key }
    }

    fn share(&self, size: u64, lane: u64) -> u64 {
        size / self.lanes + u64::from(lane < size % self.lanes)
    }

    fn own(&self, file: &File, chunk: usize, lane: u64) -> bool {
        let name = [file.key().as_bytes(), &[0], &(chunk as u64).to_le_bytes()].concat();
        self.lanes == 1 || xxh3_64_with_seed(&name, 1) % self.lanes == lane
    }

    /// The lanes of this rank.
    fn lanes(&self) -> impl Iterator<Item = u64> + use<> {
        let (ranks, rank) = self.ranks;
        (0..self.lanes).filter(move |lane| lane % ranks == rank)
    }

    fn has_chunk(&self, file: &File, lane: u64) -> bool {
        (0..file.chunks.len()).any(|chunk| self.own(file, chunk, lane))
    }

    /// Whether a file has a chunk in a lane of this rank.
    pub fn takes(&self, file: &File) -> bool {
        self.lanes().any(|lane| self.has_chunk(file, lane))
    }

    /// Whether each lane of this rank has a chunk of these files.
    pub fn feeds(&self, files: &[File]) -> bool {
        self.lanes().all(|lane| files.iter().any(|file| self.has_chunk(file, lane)))
    }

    /// Returns whether the limit allows draw `d` of a lane that counts `chunks` chunks.
    fn allows(&self, chunks: usize, d: u64) -> bool {
        let (v, chunks) = (self.lanes as f64, chunks as f64);
        self.limit.is_none_or(|[each, size, min, _]| chunks >= size / v && chunks * each - (d + 1) as f64 >= min / v)
    }

    /// Returns whether the limit lets a lane that counts `chunks` chunks take in a file before draw `d`.
    fn admits(&self, chunks: usize, d: u64) -> bool {
        let (v, chunks) = (self.lanes as f64, chunks as f64);
        self.limit.is_none_or(|[each, size, _, max]| chunks < size / v || (chunks + 1.0) * each - d as f64 <= max / v)
    }

    /// Frames of a use of a chunk with `n` of them. `passes`: where the passes of each chunk stand, since each begins where the one before ends.
    fn frames(&self, key: u64, n: u64, used: u64, passes: &mut BTreeMap<u64, Pass>) -> Vec<usize> {
        if let Some(count) = self.count {
            let count = count.min(n);
            let place = |q: u64| perm(of(key, "pass", q / n), n)(q % n) as usize;
            return (used * count..(used + 1) * count).map(place).collect();
        }
        let f = f64::from(self.rate.unwrap_or(1.0));
        if f >= 1.0 {
            return (0..n as usize).collect();
        }
        let first = || Pass { first: 0, draws: at(key, 0), carried: f, passed: vec![false; n as usize] };
        // The use with which a pass begins also has frames of the pass before.
        let mut pass = passes.remove(&key).filter(|pass| pass.first < used).unwrap_or_else(first);
        let mut given = Vec::new();
        loop {
            let (mut draws, wanted) = (pass.draws.clone(), (used - pass.first) as f64);
            let whole = ((1.0 - pass.carried) / f + 1.0).trunc();
            let left = 1.0 - (pass.carried + (whole - 1.0) * f);
            let mut next = vec![false; n as usize];
            for frame in (0..n as usize).filter(|frame| !pass.passed[*frame]) {
                let t = ((draws.unit() - pass.carried) / f + 1.0).trunc();
                if t == wanted {
                    given.push(frame);
                }
                next[frame] = t >= whole;
            }
            if wanted < whole {
                passes.insert(key, pass);
                return given;
            }
            pass = Pass { first: pass.first + whole as u64, draws, carried: f - left, passed: next };
        }
    }

    /// At most `most` chunks in the order of their draws, with their use.
    fn draws(&self, input: &Input<'_>, lane: u64, most: usize) -> Vec<(usize, usize, u64)> {
        let Input { files, later, first, .. } = *input;
        let chunks = |file: usize| (0..files[file].chunks.len()).filter(move |c| self.own(&files[file], *c, lane));
        let all: Vec<(usize, usize)> = (0..first).flat_map(|f| chunks(f).map(move |c| (f, c))).collect();
        let Some(pool) = self.pool else {
            let passes = (0..self.epochs).flat_map(|e| all.iter().map(move |(f, c)| (*f, *c, e % 65536)));
            return passes.take(most).collect();
        };
        let full = self.share(pool, lane) as usize;
        let size = |came: usize| match self.law {
            Some([least, slope, power]) => {
                let least = least / self.lanes as f64;
                let growth = (came as f64 / least).max(1.0).powf(power) - 1.0;
                ((least * (1.0 + slope * growth / power)) as usize).clamp(1, full)
            }
            None => full,
        };
        let mut came = all.len();
        let held = |file: usize, chunk| Held { id: files[file].id, file, chunk, uses: 0, undrawn: true, gone: false };
        let mut window: VecDeque<Held> = all.iter().map(|(f, c)| held(*f, *c)).collect();
        let shrink =
            |window: &mut VecDeque<Held>, came| window.drain(..window.len().saturating_sub(size(came))).for_each(drop);
        shrink(&mut window, came);
        // The chunks that the limit counts. At the start: those of the files in the window, or with a law all chunks that came.
        let oldest = window.front().map_or(first, |oldest| oldest.file);
        let mut counted = all.iter().filter(|(file, _)| self.law.is_some() || *file >= oldest).count();
        let (mut drawn, mut coming) = (Vec::new(), later.iter().enumerate().filter(|(_, l)| l.lane == lane).peekable());
        let key = self.stage(&named("pool", input.number), lane);
        for d in 0..most as u64 {
            while let Some((n, file)) = coming.next_if(|(_, later)| later.at <= d) {
                if !self.admits(counted, file.at) {
                    return drawn;
                }
                window.iter_mut().filter(|held| Some(held.id) == file.old).for_each(|held| held.gone = true);
                let new: Vec<Held> = chunks(first + n).map(|chunk| held(first + n, chunk)).collect();
                (came, counted) = (came + new.len(), counted + new.len());
                window.extend(new);
                shrink(&mut window, came);
            }
            if !window.iter().any(|held| held.undrawn && !held.gone) {
                window.iter_mut().for_each(|held| held.undrawn = true);
            }
            let open: Vec<usize> = (0..window.len()).filter(|i| window[*i].undrawn && !window[*i].gone).collect();
            if open.is_empty() || !self.allows(counted, d) {
                break;
            }
            let one = &mut window[open[at(key, d).below(open.len() as u64) as usize]];
            drawn.push((one.file, one.chunk, one.uses % 65536));
            (one.undrawn, one.uses) = (false, one.uses + 1);
        }
        drawn
    }

    /// Rows of one input of a lane, with as many draws as give more than `most`.
    fn input(&self, input: &Input<'_>, lane: u64, most: usize) -> Vec<Row> {
        // A draw gives a row at least once in a while; of those that give none there is a bounded number. Mostly fewer are enough.
        let (mut tried, enough) = (16, 64 * most + 4096);
        let (mut passes, unpack) = (BTreeMap::new(), key(self.seed, &named("unpack", input.number)));
        loop {
            tried = enough.min(tried * 4);
            let (draws, mut rows) = (self.draws(input, lane, tried), Vec::new());
            for &(number, chunk, used) in &draws {
                let file = &input.files[number];
                let Some(boards) = &file.chunks[chunk] else { continue };
                let key = of(unpack, file.key(), chunk as u64);
                let frames = self.frames(key, boards.len() as u64, used, &mut passes);
                rows.extend(frames.into_iter().map(|frame| (input.number, number, chunk, frame)));
            }
            if rows.len() > most || draws.len() < tried || tried == enough {
                return rows;
            }
        }
    }

    /// Rows of a lane as they are joined.
    fn joined(&self, inputs: &[Input<'_>], lane: u64, most: usize) -> Vec<Row> {
        let mut rows: Vec<_> = inputs.iter().map(|input| self.input(input, lane, most).into_iter()).collect();
        if let [only] = &mut rows[..] {
            return only.collect();
        }
        let (key, mut weights, mut joined) = (self.stage("join", lane), self.weights, Vec::new());
        while joined.len() <= most
            && let Some(input) = at(key, joined.len() as u64).choice(weights)
        {
            match rows[input].next() {
                Some(row) => joined.push(row),
                // A pool that gives no row gives none later, either.
                None if self.pool.is_some() => break,
                None => weights[input] = 0.0,
            }
        }
        joined
    }

    /// At most `most` rows of one lane.
    fn lane(&self, inputs: &[Input<'_>], lane: u64, most: usize) -> Vec<Row> {
        let size = self.share(self.reservoir, lane) as usize;
        let mut rows = self.joined(inputs, lane, most + size).into_iter();
        if size == 0 {
            return rows.take(most).collect();
        }
        let (key, mut given) = (self.stage("sample", lane), Vec::new());
        let mut held: Vec<Row> = rows.by_ref().take(size).collect();
        for row in rows.take(most) {
            let place = at(key, given.len() as u64).below(size as u64) as usize;
            given.push(std::mem::replace(&mut held[place], row));
        }
        while !held.is_empty() && self.pool.is_none() && given.len() < most {
            let place = at(key, given.len() as u64).below(held.len() as u64) as usize;
            given.push(held.swap_remove(place));
        }
        given
    }

    /// At most `most` rows of this rank. They name files by their number in the lists that are returned with them.
    pub fn rows(&self, directories: &[Directory], most: usize) -> (Vec<Row>, Vec<Vec<File>>) {
        let in_order = |directory: &Directory| {
            let mut files = directory.first.clone();
            files.sort_by_cached_key(|file| (natural(file.key()), file.key().to_owned(), file.name.clone()));
            files.extend(directory.later.iter().map(|later| later.file.clone()));
            files
        };
        let all: Vec<Vec<File>> = directories.iter().map(in_order).collect();
        // A lane that has no chunk of a first scan, of which others have some, ends the stream.
        let fails = |Directory { first, .. }: &Directory| {
            first.iter().any(|file| !file.chunks.is_empty()) && !self.feeds(first)
        };
        if directories.iter().any(fails) {
            return (Vec::new(), all);
        }
        let all_of = directories.iter().zip(&all).enumerate();
        let inputs: Vec<Input<'_>> = all_of
            .map(|(number, (Directory { first, later }, files))| Input { number, files, later, first: first.len() })
            .collect();
        // A rank takes rows from its lanes in turn, once each has filled its reservoir. All ranks have equally many lanes.
        let each = most.div_ceil((self.lanes / self.ranks.0) as usize);
        let lanes: Vec<Vec<Row>> = self.lanes().map(|lane| self.lane(&inputs, lane, each)).collect();
        let most = if self.reservoir > 0 && lanes.iter().any(Vec::is_empty) { 0 } else { most };
        let row = |i: usize| lanes[i % lanes.len()].get(i / lanes.len()).copied();
        ((0..most).map_while(row).collect(), all)
    }
}

/// What a batch of these boards has in its four columns (bulletformat.md), with `shown` rows.
pub fn columns(boards: &[Board], shown: usize) -> [Vec<u8>; 4] {
    let mut out: [Vec<u8>; 4] = Default::default();
    for board in boards {
        let occupied = u64::from_le_bytes(board[..8].try_into().unwrap_or_default());
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for (i, square) in (0..64i32).filter(|square| occupied >> square & 1 == 1).enumerate() {
            let man = i32::from(board[8 + i / 2] >> (4 * (i % 2)) & 15);
            let (sort, side) = (man & 7, man >> 3);
            own.push(384 * side + 64 * sort + square);
            other.push(384 * (1 - side) + 64 * sort + (square ^ 56));
        }
        for (column, mut features) in [(0, own), (1, other)] {
            features.resize(32, -1);
            out[column].extend(features.into_iter().flat_map(i32::to_le_bytes));
        }
        out[2].extend(f32::from(i16::from_le_bytes([board[24], board[25]])).to_le_bytes());
        out[3].extend((f32::from(board[26]) / 2.0).to_le_bytes());
    }
    for (column, size) in out.iter_mut().zip([128, 128, 4, 4]) {
        column.resize(shown * size, 0);
    }
    out
}
