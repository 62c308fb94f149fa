//! Trajectories -> what no rule forbids and no sound recording has: black or frozen pictures, ends that nothing marks, frozen
//! actions, another scale. Keeps a hash of each trajectory, and no picture.

use std::collections::BTreeMap;
use std::ops::Range;

use gristmill_format::demo::form::DemoFile;
use gristmill_format::demo::pack::{About, Blocks, Trajectory, content, pack};
use gristmill_format::demo::trajectory::{End, Trajectories};
use gristmill_format::demo::value::Extra;
use gristmill_format::layout::{DType, Field, Scalar};
use gristmill_format::source::ChunkSource;
use gristmill_format::{Error, Kind};
use xxhash_rust::xxh3::xxh3_64;

use crate::work::{Fault, Met, Signs};

/// Trajectories end with a mark, or say that they were cut.
const NO_END: &str = "no_end";
/// Pictures show something.
const BLACK: &str = "black";
/// Observations are finite numbers.
const FINITE: &str = "finite";
/// Observations change from step to step.
const FROZEN_FRAMES: &str = "frozen_frames";

/// The name that the members of a frame share: it says where the frame lies.
const KEY: &str = "__key__";

/// A trajectory of fewer steps than this may show one picture.
const STILL: usize = 8;

/// Notes the signs of all trajectories of a file, whose first is chunk `first`.
pub(super) fn of((path, first): (&str, usize), file: &DemoFile, signs: &mut Signs) {
    let all = file.trajectories();
    let Some(layout) = all.layout() else { return };
    signs.layout.get_or_insert_with(|| layout.to_descr());
    let seen = layout.fields().iter().filter(|field| is_seen(&field.name));
    let seen: Vec<(&Field, Scalar)> = seen.filter_map(|field| Some((field, scalar(field)?))).collect();
    for (i, (_, end)) in all.ends().iter().enumerate() {
        let Some(span) = all.span(i).filter(|span| !span.is_empty()) else { continue };
        let mut one = One { path, all, span, chunk: first + i, signs };
        one.known();
        one.end(*end);
        seen.iter().for_each(|(field, scalar)| one.pictures(field, *scalar));
        one.values();
    }
}

/// Whether a field is what the agent saw; what it saw next is the same again.
fn is_seen(name: &str) -> bool {
    name == "obs" || name.strip_prefix("obs").is_some_and(|rest| rest.starts_with(['.', '_']))
}

fn scalar(field: &Field) -> Option<Scalar> {
    match field.dtype {
        DType::Scalar(scalar, _) => Some(scalar),
        DType::Record(_) => None,
    }
}

/// One trajectory.
struct One<'a, 'b> {
    path: &'a str,
    all: &'a Trajectories,
    span: Range<usize>,
    chunk: usize,
    signs: &'b mut Signs,
}

impl One<'_, '_> {
    fn fault(&mut self, rule: &'static str, step: usize, detail: String) {
        let e = Error::new(Kind::OutOfRange, detail).in_frame(step).in_chunk(self.chunk).in_source(self.path);
        self.signs.add(Fault { rule: Some(rule), ..Fault::new(&e) });
    }

    /// Who it is: its records, but for the numbers of its frames, which depend on what lies before it.
    fn known(&mut self) {
        let Some(layout) = self.all.layout() else { return };
        let size = layout.size();
        let mut records = vec![0; size * self.span.len()];
        if self.all.copy_records(self.span.clone(), &mut records).is_err() {
            return;
        }
        if let Some(number) = layout.field("frame") {
            let place = number.offset..number.offset + number.bytes();
            records.chunks_exact_mut(size).for_each(|record| record[place.clone()].fill(0));
        }
        let key = content(&records, &beside(self.all, &self.span));
        self.signs.games.push(Met {
            key,
            image: 0,
            records: xxh3_64(&records),
            chunk: self.chunk as u64,
            member: None,
        });
    }

    fn end(&mut self, end: End) {
        let last = self.span.end - 1;
        let marked = |name: &str| self.all.field(last, name).is_some_and(|bytes| bytes.iter().any(|b| *b != 0));
        if end == End::Truncated && !marked("dones") && !marked("truncated") {
            let step = last - self.span.start;
            self.fault(
                NO_END,
                step,
                "the last step has neither `dones` nor `truncated`: the episode goes on elsewhere".into(),
            );
        }
    }

    /// Looks at an observation in all steps: whether it is black, or frozen, and how large its numbers are.
    fn pictures(&mut self, field: &Field, scalar: Scalar) {
        let of = |frame: usize| self.all.field(frame, &field.name).unwrap_or_default();
        let picture = field.shape.len() >= 2;
        let first = of(self.span.start);
        let frozen = self.span.len() >= STILL && self.span.clone().all(|frame| of(frame) == first);
        let black = picture && self.span.clone().all(|frame| of(frame).iter().all(|b| *b == 0));
        for frame in [self.span.start, self.span.start + self.span.len() / 2, self.span.end - 1] {
            let bytes = of(frame);
            let numbers = bytes.chunks_exact(scalar.size().max(1)).filter_map(|one| scalar.number(one));
            let ends = numbers.filter(|n| n.is_finite()).fold(None, |ends: Option<(f64, f64)>, n| {
                Some(ends.map_or((n, n), |(low, high)| (low.min(n), high.max(n))))
            });
            if let Some((low, high)) = ends {
                self.signs.scale(&field.name, low);
                self.signs.scale(&field.name, high);
            }
        }
        let steps = self.span.len();
        let float = matches!(scalar, Scalar::F16 | Scalar::F32 | Scalar::F64);
        let is_odd = |frame: &usize| {
            let numbers = of(*frame).chunks_exact(scalar.size()).filter_map(|one| scalar.number(one));
            numbers.into_iter().any(|number| !number.is_finite())
        };
        if let Some(frame) = self.span.clone().find(|frame| float && is_odd(frame)) {
            let detail = format!("`{}` holds a number that is not finite, here first", field.name);
            self.fault(FINITE, frame - self.span.start, detail);
        }
        if black {
            self.fault(BLACK, 0, format!("`{}` is black in all {steps} steps: every byte is 0", field.name));
        } else if frozen {
            self.fault(FROZEN_FRAMES, 0, format!("`{}` is the same in all {steps} steps", field.name));
        }
    }

    /// Actions, and rewards that are all nothing: others may be the same in every step of a task.
    fn values(&mut self) {
        for frame in self.span.clone() {
            if let Some(bytes) = self.all.field(frame, "acts") {
                self.signs.value("acts", bytes, || shown(self.all, "acts", bytes));
            }
            if let Some(bytes) = self.all.field(frame, "rews") {
                // A constant reward is that of a task that lasts; none at all is a sign.
                self.signs.always("rews", bytes.iter().all(|b| *b == 0), "0");
            }
        }
    }
}

/// How many bytes of a file of `size` bytes its first trajectories are, and how many of a pack: of at most `most` bytes of
/// records. None where they cannot be packed.
pub(super) fn packed(file: &DemoFile, size: u64, most: usize) -> Option<(u64, u64)> {
    let all = file.trajectories();
    let layout = all.layout()?.clone();
    let form = file.describe().format.to_owned();
    let about = About { layout: layout.clone(), form, facts: Vec::new(), metadata: None };
    let (mut frames, mut bytes) = (0, 0);
    for (i, (_, end)) in all.ends().iter().enumerate() {
        let span = all.span(i)?;
        let mut records = vec![0; span.len().checked_mul(layout.size()).filter(|bytes| *bytes <= most)?];
        all.copy_records(span.clone(), &mut records).ok()?;
        let (extras, mut out) = (beside(all, &span), Vec::new());
        let trajectory = Trajectory { about: &about, records: &records, extras: &extras, end: *end };
        pack(&trajectory, Blocks::default(), &mut out).ok()?;
        (frames, bytes) = (frames + span.len() as u64, bytes + out.len() as u64);
        if frames as usize * layout.size() >= most {
            break;
        }
    }
    (frames > 0).then(|| ((size as f64 * frames as f64 / all.frames() as f64) as u64, bytes))
}

/// What travels beside the records of some frames, but for the names of their members.
fn beside(all: &Trajectories, span: &Range<usize>) -> BTreeMap<String, Vec<(usize, Extra)>> {
    let named = all.extras().iter().filter(|(name, _)| *name != KEY);
    let of_span = named.map(|(name, values)| {
        let of_span = values.iter().filter(|(frame, _)| span.contains(frame));
        (name.clone(), of_span.map(|(frame, value)| (frame - span.start, value.clone())).collect::<Vec<_>>())
    });
    of_span.filter(|(_, values)| !values.is_empty()).collect()
}

/// The first numbers of a field.
fn shown(all: &Trajectories, name: &str, bytes: &[u8]) -> String {
    let field = all.layout().and_then(|layout| layout.field(name));
    let Some(scalar) = field.and_then(scalar) else { return String::new() };
    let numbers = bytes.chunks_exact(scalar.size().max(1)).take(4).filter_map(|one| scalar.number(one));
    let numbers: Vec<String> = numbers.map(|n| n.to_string()).collect();
    numbers.join(", ")
}
