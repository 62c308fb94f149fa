//! A file of demonstrations -> what is wrong with its trajectories: fields, order, ends, spaces, values.
//! What cannot be read at all was found when the file was opened.

use gristmill_format::demo::form::DemoFile;
use gristmill_format::demo::space::Space;
use gristmill_format::demo::trajectory::Trajectories;
use gristmill_format::demo::value::Extra;
use gristmill_format::layout::{DType, Field, Layout, Scalar};
use gristmill_format::source::ChunkSource;
use gristmill_format::{Error, Kind};

use crate::work::{Fault, Verification};

/// What every demonstration has is there.
const FIELDS: &str = "fields";
/// Frames are stored in order of time, and none is missing.
const FRAME: &str = "frame";
/// What follows a step is the observation of the next, unless something ended between them.
const NEXT_OBS: &str = "next_obs";
/// What was cut has an end.
const TRUNCATED: &str = "truncated";
/// Actions and rewards are finite numbers.
const FINITE: &str = "finite";
/// Actions are in the space that the shard names.
const ACTION_SPACE: &str = "action_space";
/// Observations have the type and shape of the space that the shard names.
const OBSERVATION_SPACE: &str = "observation_space";

const RULES: [&str; 7] = [FIELDS, FRAME, NEXT_OBS, TRUNCATED, FINITE, ACTION_SPACE, OBSERVATION_SPACE];

/// Checks all trajectories of a file.
pub(super) fn verify(path: &str, file: &DemoFile, keep: usize, found: &mut Verification) {
    found.chunks += file.len() as u64;
    check((path, 0), file, None, keep, found);
}

/// Checks the trajectory of a pack that is chunk `chunk` of its file. Its frames continue the count.
pub(super) fn verify_packed(path: &str, one: &DemoFile, chunk: usize, keep: usize, found: &mut Verification) {
    let all = one.trajectories();
    let scalar = |field: &Field| match field.dtype {
        DType::Scalar(scalar, _) => Some(scalar),
        DType::Record(_) => None,
    };
    let field = all.layout().and_then(|layout| layout.field("frame"));
    let first = field.and_then(scalar).zip(all.field(0, "frame")).and_then(|(scalar, bytes)| scalar.number(bytes));
    check((path, chunk), one, first.map(|first| first - 1.0), keep, found);
}

fn check(
    (path, first): (&str, usize),
    file: &DemoFile,
    mut number: Option<f64>,
    keep: usize,
    found: &mut Verification,
) {
    let all = file.trajectories();
    found.will_check(RULES);
    found.checked += all.frames() as u64;
    let Some(layout) = all.layout() else { return };
    let mut judge = Judge { path, all, layout, keep, found, at: At::default() };
    judge.fields(file);
    judge.spaces(file);
    if file.shuffled() {
        let detail = "frames are stored in another order than that of time, which `frame` gives: readers that take them as \
                      they come mix trajectories up; `gristmill convert` puts them in order";
        judge.file(FRAME, detail.to_owned());
    }
    let pairs = pairs(layout);
    let actions = file.meta().map(|meta| &meta.action_space);
    for trajectory in 0..file.len() {
        let Some(span) = all.span(trajectory) else { continue };
        for frame in span.clone() {
            judge.at = At { trajectory: first + trajectory, step: frame - span.start, frame };
            number = judge.sequence(number);
            judge.values();
            if frame + 1 < span.end {
                judge.next(&pairs);
            }
            if let Some(space) = actions {
                judge.action(space);
            }
        }
    }
}

/// Observations and those of the step after, by field.
fn pairs(layout: &Layout) -> Vec<(&Field, &Field)> {
    let pair = |next: &'_ Field| {
        let now = layout.field(next.name.strip_prefix("next_")?)?;
        (now.shape == next.shape && now.dtype == next.dtype).then_some(now)
    };
    layout.fields().iter().filter_map(|next| Some((pair(next)?, next))).collect()
}

/// Where a step is.
#[derive(Clone, Copy, Default)]
struct At {
    trajectory: usize,
    step: usize,
    /// Among all of the file.
    frame: usize,
}

struct Judge<'a> {
    path: &'a str,
    all: &'a Trajectories,
    layout: &'a Layout,
    keep: usize,
    found: &'a mut Verification,
    at: At,
}

impl Judge<'_> {
    /// A fault of the file as a whole.
    fn file(&mut self, rule: &'static str, detail: String) {
        let e = Error::new(Kind::OutOfRange, detail).in_source(self.path);
        self.found.add(self.keep, Fault { rule: Some(rule), ..Fault::new(&e) });
    }

    /// A fault of the current step.
    fn step(&mut self, rule: &'static str, detail: String) {
        let At { trajectory, step, frame } = self.at;
        let mut e = Error::new(Kind::OutOfRange, detail).in_frame(step).in_chunk(trajectory).in_source(self.path);
        if let Some(key) = self.key(frame) {
            e = e.in_member(key);
        }
        self.found.add(self.keep, Fault { rule: Some(rule), ..Fault::new(&e) });
    }

    /// What the members of a frame share.
    fn key(&self, frame: usize) -> Option<String> {
        let keys = self.all.extras().get("__key__")?;
        match &keys[keys.binary_search_by_key(&frame, |(t, _)| *t).ok()?].1 {
            Extra::Text(key) => Some(key.clone()),
            _ => None,
        }
    }

    fn bytes(&self, field: &Field, frame: usize) -> &[u8] {
        self.all.field(frame, &field.name).unwrap_or_default()
    }

    fn numbers(&self, field: &Field) -> impl Iterator<Item = f64> {
        let scalar = match field.dtype {
            DType::Scalar(scalar, _) => scalar,
            DType::Record(_) => Scalar::Void(1),
        };
        let bytes = self.bytes(field, self.at.frame);
        bytes.chunks_exact(scalar.size().max(1)).filter_map(move |one| scalar.number(one))
    }

    /// Demonstrations have observations, actions and ends; ordinary shards hold what they hold.
    fn fields(&mut self, file: &DemoFile) {
        let form = file.describe().format;
        if form == "demo.shard" && file.meta().is_none() {
            return;
        }
        let there = |name: &str| {
            let is = |field: &str| {
                field == name || field.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', '_']))
            };
            self.layout.fields().iter().any(|field| is(&field.name))
        };
        // The pictures of a MineRL recording are in its video.
        let wanted = ["obs", "acts", "dones"].into_iter().filter(|name| *name != "obs" || form != "demo.minecraft");
        let missing: Vec<&str> = wanted.filter(|name| !there(name)).collect();
        if !missing.is_empty() {
            self.file(FIELDS, format!("no frame has `{}`", missing.join("`, `")));
        }
    }

    fn spaces(&mut self, file: &DemoFile) {
        let Some((meta, obs)) = file.meta().zip(self.layout.field("obs")) else { return };
        let Space::Box { dtype, shape, .. } = &meta.observation_space else { return };
        if obs.shape != *shape || !matches!(obs.dtype, DType::Scalar(scalar, _) if scalar == *dtype) {
            let found = match &obs.dtype {
                DType::Scalar(scalar, _) => scalar.code(),
                DType::Record(_) => "records".to_owned(),
            };
            let detail = format!("`obs` is {found} {:?}; the space is {}", obs.shape, meta.observation_space);
            self.file(OBSERVATION_SPACE, detail);
        }
    }

    /// The number of the frame follows that of the one before, or starts again where shards were joined.
    fn sequence(&mut self, before: Option<f64>) -> Option<f64> {
        let field = self.layout.field("frame").filter(|field| field.shape.is_empty())?;
        let number = self.numbers(field).next()?;
        let expected = before.map_or(0.0, |before| before + 1.0);
        if number != expected && number != 0.0 {
            self.step(FRAME, format!("frame {number}, expected {expected}: frames are missing, or not in order"));
        }
        Some(number)
    }

    fn values(&mut self) {
        for name in ["acts", "rews"] {
            let Some(field) = self.layout.field(name) else { continue };
            let odd = self.numbers(field).find(|number| !number.is_finite());
            if let Some(odd) = odd {
                self.step(FINITE, format!("`{name}` holds {odd}"));
            }
        }
        let flag = |name: &str| self.all.field(self.at.frame, name).map(|bytes| bytes.iter().any(|b| *b != 0));
        if flag("truncated") == Some(true) && flag("dones") == Some(false) {
            self.step(TRUNCATED, "`truncated` without `dones`: what was cut continues in the next step".to_owned());
        }
    }

    fn next(&mut self, pairs: &[(&Field, &Field)]) {
        for (now, next) in pairs {
            if self.bytes(next, self.at.frame) != self.bytes(now, self.at.frame + 1) {
                let detail = format!(
                    "`{}` is not `{}` of the step that follows, and `dones` marks no end between them: the border of a \
                     fragment, or stacks made apart from each other",
                    next.name, now.name
                );
                self.step(NEXT_OBS, detail);
            }
        }
    }

    fn action(&mut self, space: &Space) {
        let Some(field) = self.layout.field("acts") else { return };
        let out = |low: f64, high: f64, n: f64| !(low..=high).contains(&n);
        let odd = match space {
            Space::Discrete { n, start } if field.shape.is_empty() => {
                self.numbers(field).find(|a| out(*start as f64, (start + n - 1) as f64, *a))
            }
            Space::Box { shape, low, high, .. } if field.shape == *shape => {
                let mut bounds = low.iter().zip(high);
                self.numbers(field).find(|a| bounds.next().is_some_and(|(low, high)| out(*low, *high, *a)))
            }
            Space::Discrete { .. } | Space::Box { .. } => {
                // One word for all steps: they have one shape.
                if self.at.frame == 0 {
                    self.step(ACTION_SPACE, format!("`acts` has shape {:?}; the space is {space}", field.shape));
                }
                return;
            }
            _ => return,
        };
        if let Some(odd) = odd.filter(|odd| odd.is_finite()) {
            self.step(ACTION_SPACE, format!("the action {odd} is not in {space}"));
        }
    }
}
