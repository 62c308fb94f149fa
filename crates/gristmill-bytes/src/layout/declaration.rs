//! `obs:u8[64,64,3]` <-> a field as people declare it: name, type and the shape of a row. One table has the words of types.

use super::Scalar;

/// The words of the types that fields are declared with.
const WORDS: [(&str, Scalar); 14] = [
    ("bool", Scalar::Bool),
    ("i8", Scalar::I8),
    ("i16", Scalar::I16),
    ("i32", Scalar::I32),
    ("i64", Scalar::I64),
    ("u8", Scalar::U8),
    ("u16", Scalar::U16),
    ("u32", Scalar::U32),
    ("u64", Scalar::U64),
    ("f16", Scalar::F16),
    ("f32", Scalar::F32),
    ("f64", Scalar::F64),
    ("c64", Scalar::C64),
    ("c128", Scalar::C128),
];

/// A field as it is declared: `name`, `name:type`, `name[shape]` or `name:type[shape]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration<'a> {
    /// The name; it is not empty.
    pub name: &'a str,
    /// The type, where one is said.
    pub scalar: Option<Scalar>,
    /// The shape of a row, where one is said.
    pub shape: Option<Vec<usize>>,
}

impl<'a> Declaration<'a> {
    /// Reads a declaration; `None` for what is none, or has a type that no field has.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (head, shape) = match text.strip_suffix(']') {
            Some(rest) => {
                let (head, dims) = rest.rsplit_once('[')?;
                let dims = dims.split(',').map(|dim| dim.trim().parse().ok());
                (head, Some(dims.collect::<Option<Vec<usize>>>()?))
            }
            None => (text, None),
        };
        let (name, scalar) = match head.rsplit_once(':') {
            Some((name, word)) => (name, Some(WORDS.iter().find(|(known, _)| *known == word)?.1)),
            None => (head, None),
        };
        (!name.is_empty()).then_some(Declaration { name, scalar, shape })
    }

    /// Writes the declaration of a field with this type and shape; `None` for a type that has no word.
    pub fn write(name: &str, scalar: Scalar, shape: &[usize]) -> Option<String> {
        let (word, _) = WORDS.iter().find(|(_, known)| *known == scalar)?;
        let dims: Vec<String> = shape.iter().map(usize::to_string).collect();
        let dims = if dims.is_empty() { String::new() } else { format!("[{}]", dims.join(",")) };
        Some(format!("{name}:{word}{dims}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read_as_they_are_written() {
        for (_, scalar) in WORDS {
            for shape in [&[][..], &[7], &[64, 64, 3]] {
                let text = Declaration::write("a:b[0]", scalar, shape).unwrap();
                let shape = (!shape.is_empty()).then(|| shape.to_vec());
                assert_eq!(
                    Declaration::parse(&text),
                    Some(Declaration { name: "a:b[0]", scalar: Some(scalar), shape })
                );
            }
        }
        let bare = |name, shape| Some(Declaration { name, scalar: None, shape });
        assert_eq!(Declaration::parse("planes"), bare("planes", None));
        assert_eq!(Declaration::parse("planes[22, 9,9]"), bare("planes", Some(vec![22, 9, 9])));
        for text in ["", ":u8", "[3]", "a:", "a:u9", "a:u8[3][4]", "a[]", "a[-1]", "a[3,]", "a:u8[3", "a]"] {
            assert_eq!(Declaration::parse(text), None, "{text}");
        }
        assert_eq!(Declaration::write("a", Scalar::Text(3), &[]), None);
        assert_eq!(Declaration::write("a", Scalar::Bf16, &[]), None);
    }
}
