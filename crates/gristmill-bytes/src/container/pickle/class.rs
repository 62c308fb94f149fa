//! The list of what a pickle may name: every module and name that means data, and what it means.
//! A closed table. What is not on it is refused by name; nothing here or anywhere else can be called.

/// What a listed name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// `numpy.ndarray`.
    NdArray,
    /// `numpy.dtype`.
    DType,
    /// The maker of empty arrays whose contents follow.
    Reconstruct,
    /// The maker of NumPy scalars.
    NumpyScalar,
    /// The maker of arrays over a buffer (protocol 5).
    FromBuffer,
    /// `codecs.encode`, which older protocols spell bytes with.
    Encode,
    /// `copyreg._reconstructor`, which protocols 0 and 1 spell instances with.
    Reconstructor,
    /// A builtin container or number, or one of `collections`.
    Builtin(Builtin),
    /// The maker of a space from its class and arguments, in shard metadata.
    Inflate,
    /// A space of Gym or Gymnasium.
    Space(Space),
    /// The colour space of a dataset.
    ColorSpace,
    /// A trajectory with attributes: `obs`, `acts`, `infos`, perhaps `rews` and `terminal`.
    Trajectory,
    /// A trajectory as a named tuple: `acts`, `obs`, `rews`, `infos`.
    TrajectoryTuple,
    /// Some part of a random generator's state: kept, and of no meaning here.
    Random,
}

/// Builtin types that can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the type it names")]
pub enum Builtin {
    Object,
    Bytes,
    ByteArray,
    Complex,
    Dict,
    FrozenSet,
    Int,
    Float,
    List,
    Set,
    Str,
    Tuple,
    OrderedDict,
    DefaultDict,
    Deque,
}

/// The kinds of space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the space it names")]
pub enum Space {
    Box,
    Discrete,
    MultiDiscrete,
    MultiBinary,
    Dict,
    Tuple,
    Text,
}

impl Class {
    /// What `module` and `name` mean, if they are on the list.
    pub(super) fn find(module: &str, name: &str) -> Option<Class> {
        let class = match (module, name) {
            ("numpy", "ndarray") => Class::NdArray,
            ("numpy", "dtype") => Class::DType,
            ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => Class::Reconstruct,
            ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar") => Class::NumpyScalar,
            ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => Class::FromBuffer,
            ("_codecs", "encode") => Class::Encode,
            ("copyreg" | "copy_reg", "_reconstructor") => Class::Reconstructor,
            ("builtins" | "__builtin__", name) => Class::Builtin(builtin(name)?),
            ("collections", "OrderedDict") => Class::Builtin(Builtin::OrderedDict),
            ("collections", "defaultdict") => Class::Builtin(Builtin::DefaultDict),
            ("collections", "deque") => Class::Builtin(Builtin::Deque),
            ("il_representations.envs.utils", "_inflate_object") => Class::Inflate,
            ("imitation.augment.color", "ColorSpace") => Class::ColorSpace,
            ("imitation.data.types", "Trajectory" | "TrajectoryWithRew") => Class::Trajectory,
            ("milbench.baselines.saved_trajectories", "MILBenchTrajectory")
            | ("imitation.util.rollout", "Trajectory")
            | ("magical.saved_trajectories", "MAGICALTrajectory") => Class::TrajectoryTuple,
            ("numpy.random._pickle", "__randomstate_ctor" | "__generator_ctor" | "__bit_generator_ctor")
            | ("numpy.random._mt19937", "MT19937")
            | ("numpy.random._pcg64", "PCG64")
            | ("numpy.random.bit_generator", "SeedSequence" | "__pyx_unpickle_SeedSequence") => Class::Random,
            _ => Class::Space(space(module, name)?),
        };
        Some(class)
    }

    /// A name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Class::NdArray => "ndarray",
            Class::DType => "dtype",
            Class::Reconstruct | Class::NumpyScalar | Class::FromBuffer => "a NumPy constructor",
            Class::Encode => "codecs.encode",
            Class::Reconstructor => "copyreg._reconstructor",
            Class::Builtin(_) => "a builtin type",
            Class::Inflate => "_inflate_object",
            Class::Space(Space::Box) => "Box",
            Class::Space(Space::Discrete) => "Discrete",
            Class::Space(Space::MultiDiscrete) => "MultiDiscrete",
            Class::Space(Space::MultiBinary) => "MultiBinary",
            Class::Space(Space::Dict) => "Dict",
            Class::Space(Space::Tuple) => "Tuple",
            Class::Space(Space::Text) => "Text",
            Class::ColorSpace => "ColorSpace",
            Class::Trajectory => "Trajectory",
            Class::TrajectoryTuple => "a trajectory tuple",
            Class::Random => "a random state",
        }
    }
}

fn builtin(name: &str) -> Option<Builtin> {
    Some(match name {
        "object" => Builtin::Object,
        "bytes" => Builtin::Bytes,
        "bytearray" => Builtin::ByteArray,
        "complex" => Builtin::Complex,
        "dict" => Builtin::Dict,
        "frozenset" => Builtin::FrozenSet,
        "int" | "long" => Builtin::Int,
        "float" => Builtin::Float,
        "list" => Builtin::List,
        "set" => Builtin::Set,
        "str" | "unicode" => Builtin::Str,
        "tuple" => Builtin::Tuple,
        _ => return None,
    })
}

/// A space, under the module names of both libraries.
fn space(module: &str, name: &str) -> Option<Space> {
    let file = module.strip_prefix("gymnasium.spaces.").or_else(|| module.strip_prefix("gym.spaces."))?;
    Some(match (file, name) {
        ("box", "Box") => Space::Box,
        ("discrete", "Discrete") => Space::Discrete,
        ("multi_discrete", "MultiDiscrete") => Space::MultiDiscrete,
        ("multi_binary", "MultiBinary") => Space::MultiBinary,
        ("dict", "Dict") => Space::Dict,
        ("tuple", "Tuple") => Space::Tuple,
        ("text", "Text") => Space::Text,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_mean_data_are_found() {
        assert_eq!(Class::find("numpy._core.multiarray", "scalar"), Some(Class::NumpyScalar));
        assert_eq!(Class::find("gym.spaces.text", "Text"), Some(Class::Space(Space::Text)));
        assert_eq!(Class::find("__builtin__", "set"), Some(Class::Builtin(Builtin::Set)));
        for (module, name) in [
            ("posix", "system"),
            ("builtins", "eval"),
            ("builtins", "getattr"),
            ("numpy", "load"),
            ("numpy.core.multiarray", "fromfile"),
            ("gym.spaces.box", "Dict"),
            ("gym.spaces", "Box"),
            ("torch._utils", "_rebuild_tensor_v2"),
        ] {
            assert_eq!(Class::find(module, name), None, "{module} {name}");
        }
    }
}
