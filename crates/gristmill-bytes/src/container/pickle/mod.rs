//! Pickles, protocols 0 to 5 -> plain values: numbers, texts, containers, NumPy arrays over the bytes as they lie, and a few
//! listed classes as data. Nothing is ever imported or called; any other name is refused.

mod class;
mod construct;
mod machine;
mod ndarray;
mod opcode;
mod pattern;
mod text;
mod value;
mod write;

pub use class::{Builtin, Class, Space};
pub use machine::{PickleLimits, parse, parse_prefix};
pub use ndarray::{Array, Data, Element};
pub use pattern::Pattern;
pub use value::{Blob, Id, Mapping, Node, Object, Pickle};
pub use write::PickleWriter;
