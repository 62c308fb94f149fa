//! A config's text -> where things stand in it: stage and field to line and column, and byte to stage and field.
//! The same for each form, of which it needs the tree of fields alone; what a field means is not known here.

use std::ops::Range;

use gristmill_runtime::error::Error;
use toml::de::{DeTable, DeValue};

use super::proto;

/// In what form a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// TOML.
    Toml,
    /// Protobuf text, of a whole training configuration or of the loader's message alone.
    Textproto,
}

/// A field as it stands in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) struct Field<'a> {
    pub(in crate::config) name: &'a str,
    /// From its name to the end of its value.
    pub(in crate::config) span: Range<usize>,
    /// The tokens of a plain value; empty for a message.
    pub(in crate::config) value: &'a str,
    /// The fields of a message.
    pub(in crate::config) fields: Vec<Field<'a>>,
}

impl<'a> Field<'a> {
    /// A string value without its quotes, escapes as they stand: enough to compare names with.
    pub(in crate::config) fn string(&self) -> &'a str {
        self.value.trim().trim_matches(['"', '\''])
    }
}

impl TextForm {
    /// The error with the line and column of its stage and field, or of the nearest thing around them that the text has.
    /// Any other error is left as it is, and one that has a line already.
    pub fn place(self, text: &str, error: Error) -> Error {
        match error {
            Error::Config { at: None, stage, field, message } => {
                let at = Some(self.position(text, stage.as_deref(), field.as_deref()));
                Error::Config { at, stage, field, message }
            }
            other => other,
        }
    }

    /// Line and column, from 1, of a stage's field, or of the nearest thing around it that the text has.
    pub fn position(self, text: &str, stage: Option<&str>, field: Option<&str>) -> (usize, usize) {
        let tree = self.fields(text);
        let fields = loader(&tree);
        let path: Vec<String> = field.into_iter().flat_map(|field| field.split('.')).map(str::to_owned).collect();
        let found = match stage {
            None => follow(fields, &path),
            Some(name) => fields
                .iter()
                .find(|field| field.name == "stage" && stage_name(field).unwrap_or_default() == name)
                .map(|stage| {
                    let mut levels = std::iter::once(stage).chain(&stage.fields);
                    levels.find_map(|level| follow(&level.fields, &path)).unwrap_or(stage)
                }),
        };
        line_and_column(text, found.map_or(0, |field| field.span.start))
    }

    /// A fault at a byte: its line and column, and the stage and field that it lies in.
    pub(super) fn fault(self, text: &str, offset: usize, message: String) -> Error {
        let tree = self.fields(text);
        let inside = |field: &&Field<'_>| field.span.contains(&offset);
        let stage = loader(&tree).iter().filter(|field| field.name == "stage").find(inside);
        let mut field = stage;
        while let Some(inner) = field.and_then(|field| field.fields.iter().find(inside)) {
            field = Some(inner);
        }
        let field = field.or_else(|| loader(&tree).iter().find(inside)).filter(|field| field.name != "stage");
        Error::Config {
            at: Some(line_and_column(text, offset)),
            stage: stage.and_then(stage_name).map(str::to_owned),
            field: field.map(|field| field.name.to_owned()),
            message,
        }
    }

    /// The fields of a text, as far as it can be parsed.
    fn fields(self, text: &str) -> Vec<Field<'_>> {
        match self {
            TextForm::Toml => table(text, DeTable::parse_recoverable(text).0.get_ref()),
            TextForm::Textproto => proto::text::fields(text).unwrap_or_default(),
        }
    }
}

/// The fields of a table in the order of the text; each table of an array is one, and spans hold what stands elsewhere.
fn table<'a>(text: &'a str, table: &DeTable<'_>) -> Vec<Field<'a>> {
    let mut found = Vec::new();
    for (key, value) in table {
        let name = text.get(key.span()).unwrap_or_default().trim_matches(['"', '\'']);
        let mut add = |start: usize, value: &toml::Spanned<DeValue<'_>>| {
            let fields = value.get_ref().as_table().map(|inner| self::table(text, inner)).unwrap_or_default();
            let end = fields.iter().map(|field| field.span.end).fold(value.span().end, usize::max);
            let plain = if value.get_ref().is_table() { "" } else { text.get(value.span()).unwrap_or_default() };
            found.push(Field { name, span: start..end, value: plain, fields });
        };
        match value.get_ref() {
            DeValue::Array(list) if list.iter().any(|value| value.get_ref().is_table()) => {
                list.iter().for_each(|value| add(value.span().start, value));
            }
            _ => add(key.span().start, value),
        }
    }
    found.sort_by_key(|field| field.span.start);
    found
}

/// The fields of the loader's message, in a text of either extent.
pub(super) fn loader<'t, 'a>(tree: &'t [Field<'a>]) -> &'t [Field<'a>] {
    tree.iter().find(|field| field.name == "data_loader").map_or(tree, |root| &root.fields)
}

fn stage_name<'a>(stage: &Field<'a>) -> Option<&'a str> {
    stage.fields.iter().find(|field| field.name == "name").map(Field::string)
}

/// The deepest field that a path of names and indices leads to.
pub(super) fn follow<'t, 'a>(fields: &'t [Field<'a>], path: &[String]) -> Option<&'t Field<'a>> {
    let (name, rest) = path.split_first()?;
    let mut named = fields.iter().filter(|field| field.name == name);
    let (found, rest) = match rest.split_first().and_then(|(index, rest)| Some((index.parse().ok()?, rest))) {
        Some((index, rest)) => (named.nth(index), rest),
        None => (named.next(), rest),
    };
    found.map(|found| follow(&found.fields, rest).unwrap_or(found))
}

/// Line and column of a byte, both from 1; the column counts characters.
pub(super) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        assert_eq!(line_and_column("é\nöx", 5), (2, 2));
    }

    #[test]
    fn stages_and_fields_have_their_places_in_toml() {
        let text = "output = [\"a\"]\n[[stage]]\nname = \"a\"\n[[stage]]\nname = 'b'\n[stage.join_positions]\n\
                    weight = [1]\n[stage.join_positions.output]\nname = 'x'\n\"queue_capacity\" = 0\n";
        let at = |stage, field| TextForm::Toml.position(text, stage, field);
        assert_eq!(at(None, Some("output")), (1, 1));
        assert_eq!(at(Some("a"), None), (2, 1));
        assert_eq!((at(Some("b"), None), at(Some("b"), Some("input"))), ((4, 1), (4, 1)));
        assert_eq!(at(Some("b"), Some("weight")), (7, 1));
        assert_eq!(at(Some("b"), Some("output.queue_capacity")), (10, 1));
        assert_eq!((at(Some("c"), None), at(None, Some("seed"))), ((1, 1), (1, 1)));
        let inline = "stage = [{ name = \"a\" }, { name = \"b\", join_positions = { weight = [1] } }]";
        assert_eq!(TextForm::Toml.position(inline, Some("b"), Some("weight")), (1, 59));
    }
}
