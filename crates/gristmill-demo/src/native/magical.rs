//! One pickled MAGICAL demonstration -> frames, as they are or as the low-resolution stacks that agents see.
//! A whole factor of area interpolation is a mean of squares, halves rounded to even.

use gristmill_bytes::container::pickle::{Id, Node, Pickle, PickleLimits, parse};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Scalar;

use super::Semantics;
use super::episode::{Episode, Fields, done_at_the_end};
use super::object::{cut_by_limit, frames, infos, wanted};
use crate::budget::Budget;
use crate::frames::{Frames, shrink};
use crate::trajectory::{End, Trajectories};

/// Side of the pictures that agents see.
const SIDE: usize = 96;

/// What is made of the two views, allocentric and egocentric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Magical {
    /// Both as they are, as `obs.allo` and `obs.ego`.
    Raw,
    /// `LoResCHW4E`: the last four egocentric frames, channels first `(12, 96, 96)`.
    LoResChw4E,
    /// `LoRes4E`: the same, channels last.
    LoRes4E,
    /// `LoRes4A`: the last four allocentric frames, channels last.
    LoRes4A,
    /// `LoRes3EA`: one allocentric frame, then three egocentric ones, channels last.
    LoRes3Ea,
    /// `LoResStack`: both views, four frames each, channels last, as `obs.allo` and `obs.ego`.
    LoResStack,
}

impl Magical {
    /// The form that MAGICAL calls `name`; the empty name is [`Magical::Raw`].
    ///
    /// Errors: `Missing`, naming those there are.
    pub fn parse(name: &str) -> Result<Magical> {
        Ok(match name {
            "" => Magical::Raw,
            "LoResCHW4E" => Magical::LoResChw4E,
            "LoRes4E" => Magical::LoRes4E,
            "LoRes4A" => Magical::LoRes4A,
            "LoRes3EA" => Magical::LoRes3Ea,
            "LoResStack" => Magical::LoResStack,
            _ => {
                let detail = format!(
                    "no preprocessor is called `{name}`; known are LoResCHW4E, LoRes4E, LoRes4A, LoRes3EA, LoResStack"
                );
                return Err(Error::new(Kind::Missing, detail));
            }
        })
    }
}

/// What a file of one demonstration holds beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// Name of the environment, such as `MoveToRegion-Demo-v0`.
    pub env_name: String,
    /// The demonstrator's score.
    pub score: f64,
}

/// Reads the unpacked bytes of a `.pkl.gz`. `remove_null` leaves out the steps whose action is 0: in the strict form the last
/// step that is kept ends the episode, in the compatible one its end goes with the step that had it.
///
/// Errors: what the unpickler says; `Missing`, `WrongSize`, `Unsupported` for sides that are no multiple of 96, `Empty` where
/// no step is kept, `TooLarge` beyond `max` bytes.
pub fn magical(
    bytes: &[u8],
    form: Magical,
    remove_null: bool,
    semantics: Semantics,
    max: usize,
) -> Result<(Trajectories, About)> {
    let pickle = parse(bytes, &PickleLimits { max_bytes: max })?;
    let root = pickle.root();
    let env_name = pickle.text(wanted(&pickle, root, "env_name")?).unwrap_or_default().to_owned();
    let score = match pickle.node(wanted(&pickle, root, "score")?) {
        Node::Float(score) => *score,
        _ => f64::NAN,
    };
    let [acts, obs, rews, said] = fields(&pickle, wanted(&pickle, root, "trajectory")?)?;
    let budget = Budget::new(max);
    let acts = frames(&pickle, acts, "acts", &budget)?;
    let steps = acts.len();
    let views = views(&pickle, obs, form, &budget)?;
    if views.iter().any(|(_, frames)| frames.len() != steps + 1) {
        let detail = format!("{steps} actions and {} observations; expected one more", views[0].1.len());
        return Err(Error::new(Kind::WrongSize, detail));
    }
    let end = if cut_by_limit(&pickle, Some(said)) { End::Truncated } else { End::Terminated };
    let strict = semantics == Semantics::Strict;
    let mut episode = Episode {
        obs: views.into_iter().map(|(name, frames)| (format!("obs{name}"), frames)).collect(),
        next_obs: None,
        acts,
        rews: strict.then(|| frames(&pickle, rews, "rews", &budget)).transpose()?,
        infos: if strict { infos(&pickle, said, &budget)? } else { None },
        dones: done_at_the_end(steps),
        end,
    };
    if remove_null {
        without_null_actions(&mut episode, semantics)?;
    }
    let mut all = Trajectories::new(max);
    episode.add(semantics, &mut all)?;
    all.end(End::Truncated);
    Ok((all, About { env_name, score }))
}

/// The four fields of a trajectory tuple.
fn fields(pickle: &Pickle<'_>, id: Id) -> Result<[Id; 4]> {
    let args = match pickle.node(id) {
        Node::Object(object) => object.args.as_slice(),
        _ => pickle.items(id).unwrap_or_default(),
    };
    args.try_into().map_err(|_| {
        let detail = format!("a trajectory of {} fields; expected acts, obs, rews, infos", args.len());
        Error::new(Kind::WrongSize, detail)
    })
}

/// Observations by the suffix of their field, one more than there are steps.
fn views(pickle: &Pickle<'_>, obs: Id, form: Magical, budget: &Budget) -> Result<Fields> {
    let list = pickle.items(obs).ok_or_else(|| Error::new(Kind::Unsupported, "`obs` is no list of dictionaries"))?;
    let view = |name: &str| -> Result<Frames> {
        let mut all: Option<Frames> = None;
        for (t, id) in list.iter().enumerate() {
            let place = |e: Error| e.in_frame(t);
            let array = pickle.get(*id, name).and_then(|id| pickle.array(id));
            let array = array.ok_or_else(|| place(Error::new(Kind::Missing, format!("no picture `{name}`"))))?;
            let &[height, width, channels] = array.shape.as_slice() else {
                return Err(place(Error::new(Kind::WrongSize, format!("`{name}` of shape {:?}", array.shape))));
            };
            let pixels =
                array.c_order(pickle).filter(|_| height == width && array.element.scalar() == Some(Scalar::U8));
            let pixels = pixels.ok_or_else(|| {
                place(Error::new(Kind::WrongSize, format!("`{name}`: expected a square picture of uint8")))
            })?;
            let side = if form == Magical::Raw { height } else { SIDE };
            let shape = vec![side, side, channels];
            let all = all.get_or_insert_with(|| Frames { scalar: Scalar::U8, shape: shape.clone(), bytes: Vec::new() });
            if all.shape != shape {
                return Err(place(Error::new(
                    Kind::WrongSize,
                    format!("`{name}` changes its shape to {:?}", array.shape),
                )));
            }
            budget.take(side * side * channels).map_err(place)?;
            match form {
                Magical::Raw => all.bytes.extend_from_slice(&pixels),
                _ => shrink(&pixels, height, channels, SIDE, &mut all.bytes).map_err(place)?,
            }
        }
        all.ok_or_else(|| Error::new(Kind::Empty, "no observations"))
    };
    let last = |frames: &Frames| channels_last(&frames.channels_first()?.stacked(4, true)?);
    Ok(match form {
        Magical::Raw => vec![(".allo".to_owned(), view("allo")?), (".ego".to_owned(), view("ego")?)],
        Magical::LoResChw4E => vec![(String::new(), view("ego")?.channels_first()?.stacked(4, true)?)],
        Magical::LoRes4E => vec![(String::new(), last(&view("ego")?)?)],
        Magical::LoRes4A => vec![(String::new(), last(&view("allo")?)?)],
        Magical::LoRes3Ea => {
            let (allo, ego) = (view("allo")?.channels_first()?, view("ego")?.channels_first()?.stacked(3, true)?);
            let mut joined = Frames { scalar: Scalar::U8, shape: vec![12, SIDE, SIDE], bytes: Vec::new() };
            for t in 0..allo.len() {
                joined.bytes.extend_from_slice(allo.get(t));
                joined.bytes.extend_from_slice(ego.get(t));
            }
            vec![(String::new(), channels_last(&joined)?)]
        }
        Magical::LoResStack => {
            vec![(".allo".to_owned(), last(&view("allo")?)?), (".ego".to_owned(), last(&view("ego")?)?)]
        }
    })
}

/// Channels, height, width -> height, width, channels.
fn channels_last(frames: &Frames) -> Result<Frames> {
    // With (C, H·W, 1) for (H, W, C), turning channels first turns them last.
    let &[channels, height, width] = frames.shape.as_slice() else {
        return Err(Error::new(Kind::WrongSize, "expected channels, height, width"));
    };
    let flat = Frames { shape: vec![channels, 1, height * width], ..frames.clone() };
    Ok(Frames { shape: vec![height, width, channels], ..flat.channels_first()? })
}

fn without_null_actions(episode: &mut Episode, semantics: Semantics) -> Result<()> {
    let acts = &episode.acts;
    let kept: Vec<usize> = (0..acts.len()).filter(|t| acts.get(*t).iter().any(|b| *b != 0)).collect();
    if kept.is_empty() {
        return Err(Error::new(Kind::Empty, "every action is 0, and those steps are to be left out"));
    }
    let pick = |frames: &Frames| {
        let bytes = kept.iter().flat_map(|t| frames.get(*t)).copied().collect();
        Frames { scalar: frames.scalar, shape: frames.shape.clone(), bytes }
    };
    // What follows a step that is kept may be one that is not.
    let after = |(name, frames): &(String, Frames)| {
        let bytes = kept.iter().flat_map(|t| frames.get(*t + 1)).copied().collect();
        (format!("next_{name}"), Frames { scalar: frames.scalar, shape: frames.shape.clone(), bytes })
    };
    episode.next_obs = Some(episode.obs.iter().map(after).collect());
    for (_, frames) in &mut episode.obs {
        *frames = pick(frames);
    }
    episode.acts = pick(&episode.acts);
    episode.rews = episode.rews.as_ref().map(pick);
    episode.infos = episode.infos.as_ref().map(|all| kept.iter().filter_map(|t| all.get(*t).cloned()).collect());
    episode.dones = match semantics {
        Semantics::Strict => done_at_the_end(kept.len()),
        Semantics::Compat => kept.iter().map(|t| episode.dones[*t]).collect(),
    };
    Ok(())
}
