//! A struct of options -> what another value of each does to a stream, said where the option is declared and nowhere else.
//! Knows no option by name.

/// What another value of an option does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It changes batches, or what a state holds: a state of another value is refused.
    Batches,
    /// It never changes a batch: speed, bounds, reports.
    Speed,
    /// It says where things lie and when they are looked for; what is there counts, not where.
    Place,
    /// A state says it by itself, or must not depend on it: it is compared apart, if at all.
    Apart,
    /// It is a table of options of its own.
    Table(&'static [Opt]),
}

/// One option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opt {
    /// Its name in a configuration.
    pub name: &'static str,
    /// What another value does.
    pub effect: Effect,
}

/// A struct of options, as `options!` declares one.
pub trait Options {
    /// All of them, in order.
    const OPTIONS: &'static [Opt];
}

impl<T: Options> Options for Option<T> {
    const OPTIONS: &'static [Opt] = T::OPTIONS;
}

impl<T: Options> Options for Vec<T> {
    const OPTIONS: &'static [Opt] = T::OPTIONS;
}

/// Takes out of `value` what it says of options with one of these effects, in tables within tables, too.
pub fn without(options: &[Opt], effects: &[Effect], value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| without(options, effects, item)),
        serde_json::Value::Object(fields) => {
            for Opt { name, effect } in options {
                if effects.contains(effect) {
                    fields.remove(*name);
                } else if let (Effect::Table(inner), Some(value)) = (effect, fields.get_mut(*name)) {
                    without(inner, effects, value);
                }
            }
        }
        _ => {}
    }
}

/// Declares a struct whose fields say, before their names, what another value of them does: `batches`, `speed`, `place`,
/// `apart` or `table`.
macro_rules! options {
    (
        $(#[$about:meta])*
        pub struct $name:ident { $($(#[$of:meta])* $effect:ident $field:ident: $kind:ty,)* }
    ) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$of])* pub $field: $kind,)*
        }

        impl $crate::options::Options for $name {
            const OPTIONS: &'static [$crate::options::Opt] = &[$($crate::options::Opt {
                name: stringify!($field),
                effect: $crate::options::effect!($effect $kind),
            },)*];
        }
    };
}

/// The effect that a word of [`options!`] means.
macro_rules! effect {
    (batches $kind:ty) => {
        $crate::options::Effect::Batches
    };
    (speed $kind:ty) => {
        $crate::options::Effect::Speed
    };
    (place $kind:ty) => {
        $crate::options::Effect::Place
    };
    (apart $kind:ty) => {
        $crate::options::Effect::Apart
    };
    (table $kind:ty) => {
        $crate::options::Effect::Table(<$kind as $crate::options::Options>::OPTIONS)
    };
}

pub(crate) use {effect, options};

#[cfg(test)]
#[allow(unreachable_pub, reason = "structs of options are public where users set them")]
mod tests {
    use serde_json::json;

    use super::*;

    options! {
        /// A queue.
        #[derive(Debug, Default)]
        pub struct Queue {
            /// Its name.
            batches name: String,
            /// How long.
            speed capacity: usize,
        }
    }

    options! {
        /// A stage.
        #[derive(Debug, Default)]
        pub struct Stage {
            /// How many.
            speed threads: Option<usize>,
            /// How large.
            batches size: u64,
            /// Where from.
            place folder: String,
            /// Where to.
            table output: Vec<Queue>,
        }
    }

    #[test]
    fn what_a_field_says_of_itself_decides_what_is_left() {
        let mut value = json!({"threads": 2, "size": 3, "folder": "x", "output": [{"name": "a", "capacity": 4}]});
        without(Stage::OPTIONS, &[Effect::Speed], &mut value);
        assert_eq!(value, json!({"size": 3, "folder": "x", "output": [{"name": "a"}]}));
        without(Stage::OPTIONS, &[Effect::Place], &mut value);
        assert_eq!(value, json!({"size": 3, "output": [{"name": "a"}]}));
        let of = Stage { size: 1, ..Stage::default() };
        assert_eq!((of.size, of.threads, of.folder.len(), of.output.len()), (1, None, 0, 0));
        assert_eq!(Queue::default().capacity + Queue::default().name.len(), 0);
    }
}
