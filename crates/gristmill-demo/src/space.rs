//! Observation and action spaces of Gym and Gymnasium, from pickles in every form they were kept in -> plain descriptions.
//! Compares spaces as datasets are compared before they are mixed; makes no environment and calls nothing.

use gristmill_bytes::container::pickle::{Class, Id, Node, Object, Pickle, Space as Kept};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Scalar;

use crate::budget::Budget;
use crate::value::Value;

/// How deep spaces may lie within spaces.
const MAX_DEPTH: usize = 16;

/// Maximum number of bytes that a space may take with all those within it: a pickle may have one of them many times.
const MAX_BYTES: usize = 1 << 30;

/// A space. Bounds of boxes are in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub enum Space {
    /// Arrays between two bounds.
    Box {
        /// Element type.
        dtype: Scalar,
        /// Shape.
        shape: Vec<usize>,
        /// Lowest value of each element.
        low: Vec<f64>,
        /// Highest value of each element.
        high: Vec<f64>,
    },
    /// The integers `start .. start + n`.
    Discrete {
        /// How many.
        n: i64,
        /// The first.
        start: i64,
    },
    /// Several discrete choices.
    MultiDiscrete {
        /// How many of each.
        nvec: Vec<i64>,
    },
    /// Vectors of bits.
    MultiBinary {
        /// Shape.
        shape: Vec<i64>,
    },
    /// Named spaces, in order.
    Dict(Vec<(String, Space)>),
    /// Spaces in order.
    Tuple(Vec<Space>),
    /// Texts of bounded length.
    Text {
        /// Shortest.
        min_length: i64,
        /// Longest.
        max_length: i64,
    },
}

impl Space {
    /// The space that a pickled value is: an instance with its state, or a class with its arguments.
    ///
    /// Errors: `Unsupported` for what is no space, `Missing` for an attribute that it lacks, `TooLarge` beyond 1 GiB.
    pub fn of_pickle(pickle: &Pickle<'_>, id: Id) -> Result<Space> {
        space(pickle, id, 0, &Budget::new(MAX_BYTES))
    }

    /// Whether data of both can be mixed: as `==`, bounds compared as closely as `numpy.allclose` does.
    pub fn matches(&self, other: &Space) -> bool {
        match (self, other) {
            (Space::Box { shape, low, high, .. }, Space::Box { shape: s, low: l, high: h, .. }) => {
                shape == s && close(low, l) && close(high, h)
            }
            (Space::Dict(a), Space::Dict(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|((n, one), (m, two))| n == m && one.matches(two))
            }
            (Space::Tuple(a), Space::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(one, two)| one.matches(two))
            }
            (one, two) => one == two,
        }
    }
}

impl std::fmt::Display for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Space::Box { dtype, shape, low, high } => {
                let least = low.iter().copied().fold(f64::INFINITY, f64::min);
                let most = high.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                write!(f, "Box({least}, {most}, {shape:?}, {})", dtype.code())
            }
            Space::Discrete { n, start: 0 } => write!(f, "Discrete({n})"),
            Space::Discrete { n, start } => write!(f, "Discrete({n}, start={start})"),
            Space::MultiDiscrete { nvec } => write!(f, "MultiDiscrete({nvec:?})"),
            Space::MultiBinary { shape } => write!(f, "MultiBinary({shape:?})"),
            Space::Dict(spaces) => {
                write!(f, "Dict(")?;
                for (i, (name, space)) in spaces.iter().enumerate() {
                    write!(f, "{}{name}: {space}", if i > 0 { ", " } else { "" })?;
                }
                write!(f, ")")
            }
            Space::Tuple(spaces) => {
                write!(f, "Tuple(")?;
                for (i, space) in spaces.iter().enumerate() {
                    write!(f, "{}{space}", if i > 0 { ", " } else { "" })?;
                }
                write!(f, ")")
            }
            Space::Text { min_length, max_length } => write!(f, "Text({min_length}, {max_length})"),
        }
    }
}

/// `numpy.allclose` with its default tolerances; infinities are close to themselves.
fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x == y || (x - y).abs() <= 1e-8 + 1e-5 * y.abs())
}

fn space(pickle: &Pickle<'_>, id: Id, depth: usize, budget: &Budget) -> Result<Space> {
    let unknown = |what: &str| Error::new(Kind::Unsupported, format!("expected a space, found a {what}"));
    if depth > MAX_DEPTH {
        return Err(Error::new(Kind::Unsupported, format!("spaces nested deeper than {MAX_DEPTH}")));
    }
    budget.take(size_of::<(String, Space)>())?;
    let Node::Object(object) = pickle.node(id) else { return Err(unknown(pickle.type_name(id))) };
    let Class::Space(kind) = object.class else { return Err(unknown(object.class.name())) };
    let state = State { pickle, object, name: object.class.name(), budget };
    Ok(match kind {
        Kept::Box => boxed(&state)?,
        Kept::Discrete => Space::Discrete {
            n: state.int(&["n"])?,
            start: state.find(&["start"]).and_then(|start| pickle.int(start)).unwrap_or(0),
        },
        Kept::MultiDiscrete => Space::MultiDiscrete { nvec: state.ints("nvec")? },
        Kept::MultiBinary => Space::MultiBinary { shape: state.ints("n")? },
        Kept::Dict => {
            let spaces = state.get(&["spaces"])?;
            let Node::Dict(_, pairs) = pickle.node(spaces) else { return Err(state.wrong("spaces")) };
            let named = pairs.iter().map(|(name, value)| {
                let name = pickle.text(*name).ok_or_else(|| state.wrong("spaces"))?;
                budget.take(name.len())?;
                Ok((name.to_owned(), space(pickle, *value, depth + 1, budget)?))
            });
            Space::Dict(named.collect::<Result<_>>()?)
        }
        Kept::Tuple => {
            let spaces = state.get(&["spaces"])?;
            let items = pickle.items(spaces).ok_or_else(|| state.wrong("spaces"))?;
            Space::Tuple(items.iter().map(|item| space(pickle, *item, depth + 1, budget)).collect::<Result<_>>()?)
        }
        Kept::Text => Space::Text { min_length: state.int(&["min_length"])?, max_length: state.int(&["max_length"])? },
    })
}

fn boxed(state: &State<'_, '_>) -> Result<Space> {
    let pickle = state.pickle;
    let (low, high) = (state.get(&["low"])?, state.get(&["high"])?);
    let (low, high) = (state.array(low, "low")?, state.array(high, "high")?);
    let dtype = match pickle.node(state.get(&["dtype"])?) {
        Node::DType(element) => element.scalar(),
        _ => None,
    };
    if low.0 != high.0 || low.2.len() != high.2.len() {
        return Err(state.wrong("high"));
    }
    Ok(Space::Box { dtype: dtype.unwrap_or(low.1), shape: low.0, low: low.2, high: high.2 })
}

/// The attributes of a space: what it was built with, or what its constructor was given.
struct State<'a, 'b> {
    pickle: &'a Pickle<'b>,
    object: &'a Object,
    name: &'static str,
    budget: &'a Budget,
}

impl State<'_, '_> {
    fn find(&self, names: &[&str]) -> Option<Id> {
        let state = self.object.state?;
        names.iter().find_map(|name| self.pickle.get(state, name))
    }

    fn get(&self, names: &[&str]) -> Result<Id> {
        let detail = || format!("a {} without `{}`", self.name, names[0]);
        self.find(names).ok_or_else(|| Error::new(Kind::Missing, detail()))
    }

    fn wrong(&self, attribute: &str) -> Error {
        Error::new(Kind::Unsupported, format!("`{attribute}` of a {} is not what it should be", self.name))
    }

    fn int(&self, names: &[&str]) -> Result<i64> {
        self.pickle.int(self.get(names)?).ok_or_else(|| self.wrong(names[0]))
    }

    /// A number, a tuple of numbers or an array of them.
    fn ints(&self, name: &str) -> Result<Vec<i64>> {
        let id = self.get(&[name])?;
        if let Some(n) = self.pickle.int(id) {
            return Ok(vec![n]);
        }
        if let Some(items) = self.pickle.items(id) {
            self.budget.take(size_of_val(items))?;
            return items.iter().map(|item| self.pickle.int(*item).ok_or_else(|| self.wrong(name))).collect();
        }
        Ok(self.array(id, name)?.2.into_iter().map(|value| value as i64).collect())
    }

    /// Shape, type and values of an array of numbers.
    fn array(&self, id: Id, name: &str) -> Result<(Vec<usize>, Scalar, Vec<f64>)> {
        match Value::of_pickle(self.pickle, id, &[])? {
            Value::Array { scalar, shape, bytes } => {
                self.budget.take(8 * (bytes.len() / scalar.size().max(1)))?;
                let values = bytes.chunks_exact(scalar.size().max(1)).map(|one| scalar.number(one));
                let values = values.collect::<Option<Vec<_>>>().ok_or_else(|| self.wrong(name))?;
                Ok((shape, scalar, values))
            }
            Value::Extra(_) => Err(self.wrong(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_bytes::container::pickle::{PickleLimits, parse};

    fn read(bytes: &[u8]) -> Result<Space> {
        let pickle = parse(bytes, &PickleLimits::default()).unwrap();
        Space::of_pickle(&pickle, pickle.root())
    }

    #[test]
    fn discrete_spaces_of_both_forms() {
        let instance = b"cgym.spaces.discrete\nDiscrete\n)\x81}(U\x01nK\x06ub.";
        let inflated = b"cil_representations.envs.utils\n_inflate_object\ncgymnasium.spaces.discrete\nDiscrete\n}(U\x01nK\x06u\x86R.";
        for bytes in [&instance[..], inflated] {
            assert_eq!(read(bytes).unwrap(), Space::Discrete { n: 6, start: 0 });
        }
        assert_eq!(read(b"cgym.spaces.discrete\nDiscrete\n)\x81}b.").unwrap_err().kind(), Kind::Missing);
        assert_eq!(read(b"}.").unwrap_err().kind(), Kind::Unsupported);
    }

    #[test]
    fn boxes_match_within_tolerance_and_shape() {
        let unit = |high: f64, n: usize| Space::Box {
            dtype: Scalar::F32,
            shape: vec![n],
            low: vec![0.0; n],
            high: vec![high; n],
        };
        assert!(unit(1.0, 2).matches(&unit(1.0 + 1e-9, 2)));
        assert!(unit(f64::INFINITY, 2).matches(&unit(f64::INFINITY, 2)));
        assert!(!unit(1.0, 2).matches(&unit(1.1, 2)) && !unit(1.0, 2).matches(&unit(1.0, 3)));
        assert!(!unit(1.0, 1).matches(&Space::Discrete { n: 1, start: 0 }));
        assert_eq!(unit(1.0, 3).to_string(), "Box(0, 1, [3], f4)");
    }
}
