//! What is known of a set without its environment -> the two spaces of a shard: from options, from the benchmark, else from
//! the data. Remarks name what is unknown; options that contradict the data are refused.

use gristmill_engine::error::Result;
use gristmill_format::demo::space::Space;
use gristmill_format::layout::{DType, Field, Layout, Scalar};
use gristmill_format::{Error as FormatError, Kind};

/// What users say of the spaces.
#[derive(Debug, Clone, Default)]
pub struct SpaceOptions {
    /// How many discrete actions there are.
    pub n_actions: Option<u32>,
    /// Lowest and highest value of an action.
    pub action_bounds: Option<(f64, f64)>,
    /// Lowest and highest value of an observation.
    pub obs_bounds: Option<(f64, f64)>,
    /// `RGB` or `GRAY`.
    pub color_space: Option<String>,
}

impl SpaceOptions {
    /// Whether no option is set.
    pub fn is_empty(&self) -> bool {
        let SpaceOptions { n_actions, action_bounds, obs_bounds, color_space } = self;
        n_actions.is_none() && action_bounds.is_none() && obs_bounds.is_none() && color_space.is_none()
    }
}

/// Discrete actions of the benchmarks whose environments all have the same.
fn known_actions(benchmark: &str) -> Option<u32> {
    match benchmark {
        "magical" => Some(18),
        "procgen" => Some(15),
        _ => None,
    }
}

/// Observation space, action space, and remarks about what was taken from the data.
///
/// Errors: `Format` of kind `Missing` where there are no single observations or no actions, `OutOfRange` for actions that are
/// not in the space, `Unsupported` for elements that have no space.
pub(super) fn spaces(
    layout: &Layout,
    acts: Option<(f64, f64)>,
    benchmark: &str,
    options: &SpaceOptions,
) -> Result<(Space, Space, Vec<String>)> {
    let mut remarks = Vec::new();
    let Some(obs) = layout.field("obs") else {
        let there: Vec<&str> = layout.fields().iter().map(|field| field.name.as_str()).collect();
        let detail = format!(
            "there is no `obs`, only {}; a shard needs one: of MAGICAL choose a preprocessor, of MineRL have the frames of the \
             video decoded (gristmill.load_dataset_dict in Python, then gristmill.demos.write_frames)",
            there.join(", ")
        );
        return Err(FormatError::new(Kind::Missing, detail).into());
    };
    let observation = boxed(obs, options.obs_bounds)?;
    if matches!(scalar(obs)?, Scalar::F16 | Scalar::F32 | Scalar::F64) && options.obs_bounds.is_none() {
        remarks.push(format!("the observation space is {observation}: no bounds were said"));
    }
    let Some((field, (low, high))) = layout.field("acts").zip(acts) else {
        return Err(FormatError::new(Kind::Missing, "there is no `acts`; a shard needs it").into());
    };
    let discrete = field.shape.is_empty() && is_whole(scalar(field)?) && options.action_bounds.is_none();
    let action = match discrete {
        true => {
            let n = options.n_actions.or(known_actions(benchmark));
            let from_data = high as i64 + 1;
            let n = n.map_or(from_data, i64::from);
            if low < 0.0 || high >= n as f64 {
                let detail = format!("actions from {low} to {high}; Discrete({n}) has 0 to {}", n - 1);
                return Err(FormatError::new(Kind::OutOfRange, detail).into());
            }
            if options.n_actions.is_none() && known_actions(benchmark).is_none() {
                remarks.push(format!(
                    "the action space is Discrete({n}) by the greatest action: no option says how many there are"
                ));
            }
            Space::Discrete { n, start: 0 }
        }
        false if options.n_actions.is_some() => {
            let detail = format!("actions of {} {:?} are not discrete ones", scalar(field)?.code(), field.shape);
            return Err(FormatError::new(Kind::OutOfRange, detail).into());
        }
        false => {
            let known = (benchmark == "dm_control").then_some((-1.0, 1.0));
            let bounds = options.action_bounds.or(known);
            if let Some((least, most)) = bounds.filter(|(least, most)| low < *least || high > *most) {
                let detail = format!("actions from {low} to {high}, beyond the bounds {least} and {most}");
                // Environments cut such actions themselves; what users say is meant.
                if options.action_bounds.is_some() {
                    return Err(FormatError::new(Kind::OutOfRange, detail).into());
                }
                remarks.push(detail);
            }
            let space = boxed(field, bounds)?;
            if bounds.is_none() {
                remarks.push(format!("the action space is {space}: no bounds were said"));
            }
            space
        }
    };
    Ok((observation, action, remarks))
}

/// Whether the space of actions would be that of the actions which come, since nothing else says how many there are.
pub(super) fn is_of_data(layout: &Layout, benchmark: &str, options: &SpaceOptions) -> bool {
    let is_discrete = |field: &Field| field.shape.is_empty() && scalar(field).is_ok_and(is_whole);
    let said = options.action_bounds.is_some() || options.n_actions.or(known_actions(benchmark)).is_some();
    !said && layout.field("acts").is_some_and(is_discrete)
}

fn scalar(field: &Field) -> Result<Scalar> {
    match field.dtype {
        DType::Scalar(scalar, _) => Ok(scalar),
        DType::Record(_) => {
            let detail = format!("`{}` holds records; expected numbers", field.name);
            Err(FormatError::new(Kind::Unsupported, detail).into())
        }
    }
}

fn is_whole(scalar: Scalar) -> bool {
    bounds_of(scalar).is_some() && scalar != Scalar::Bool
}

/// Least and greatest value of a whole number.
fn bounds_of(scalar: Scalar) -> Option<(f64, f64)> {
    let (bits, signed) = match scalar {
        Scalar::Bool => return Some((0.0, 1.0)),
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => (8 * scalar.size() as i32, false),
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => (8 * scalar.size() as i32 - 1, true),
        _ => return None,
    };
    let most = 2f64.powi(bits);
    Some((if signed { -most } else { 0.0 }, most - 1.0))
}

fn boxed(field: &Field, bounds: Option<(f64, f64)>) -> Result<Space> {
    let dtype = scalar(field)?;
    if matches!(dtype, Scalar::C64 | Scalar::C128 | Scalar::Bytes(_) | Scalar::Text(_) | Scalar::Void(_)) {
        let detail = format!("`{}` has elements of {}, which have no space", field.name, dtype.code());
        return Err(FormatError::new(Kind::Unsupported, detail).into());
    }
    let (low, high) = bounds.or(bounds_of(dtype)).unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    let n = field.count();
    Ok(Space::Box { dtype, shape: field.shape.clone(), low: vec![low; n], high: vec![high; n] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(acts: Scalar, shape: &[usize]) -> Layout {
        Layout::aligned(&[("obs", Scalar::U8, &[3, 4, 4]), ("acts", acts, shape)]).unwrap()
    }

    fn told(layout: &Layout, acts: (f64, f64), benchmark: &str, options: &SpaceOptions) -> String {
        match spaces(layout, Some(acts), benchmark, options) {
            Ok((obs, act, remarks)) => format!("{obs}; {act}; {} remarks", remarks.len()),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn spaces_come_from_options_benchmark_or_data() {
        let (whole, some) = (layout(Scalar::I64, &[]), SpaceOptions::default());
        let box_ = "Box(0, 255, [3, 4, 4], u1)";
        assert_eq!(told(&whole, (0.0, 5.0), "atari", &some), format!("{box_}; Discrete(6); 1 remarks"));
        assert_eq!(told(&whole, (0.0, 5.0), "magical", &some), format!("{box_}; Discrete(18); 0 remarks"));
        let nine = SpaceOptions { n_actions: Some(9), ..SpaceOptions::default() };
        assert_eq!(told(&whole, (0.0, 5.0), "atari", &nine), format!("{box_}; Discrete(9); 0 remarks"));
        assert!(told(&whole, (0.0, 9.0), "atari", &nine).contains("0 to 8"));
        assert!(told(&whole, (-1.0, 2.0), "atari", &some).contains("actions from -1 to 2"));
        let floats = layout(Scalar::F32, &[2]);
        assert_eq!(told(&floats, (-1.0, 1.0), "dm_control", &some), format!("{box_}; Box(-1, 1, [2], f4); 0 remarks"));
        assert_eq!(told(&floats, (-3.0, 1.0), "other", &some), format!("{box_}; Box(-inf, inf, [2], f4); 1 remarks"));
        assert!(told(&floats, (-3.0, 1.0), "dm_control", &some).ends_with("; Box(-1, 1, [2], f4); 1 remarks"));
        let two = SpaceOptions { action_bounds: Some((-2.0, 2.0)), ..SpaceOptions::default() };
        assert!(told(&floats, (-3.0, 1.0), "dm_control", &two).contains("beyond the bounds -2 and 2"));
        assert!(told(&floats, (0.0, 1.0), "other", &nine).contains("not discrete"));
        let blind = Layout::aligned(&[("acts", Scalar::I64, &[])]).unwrap();
        assert!(told(&blind, (0.0, 1.0), "minecraft", &some).contains("there is no `obs`"));
    }
}
