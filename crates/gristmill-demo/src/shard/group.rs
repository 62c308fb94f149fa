//! Members of a tar -> samples: members that follow each other and share the name up to its first dot.
//! Judges names only; a sample that comes in two parts, or has one field twice, is refused with its member.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use gristmill_bytes::container::tar::TarIndex;
use gristmill_bytes::error::{Error, Kind, Result};
use xxhash_rust::xxh3::xxh3_128;

use crate::names::shown;

/// Key of the member that says what a shard is.
pub(super) const METADATA: &str = "_metadata";

/// Maximum number of members of one sample.
const MAX_FIELDS: usize = 4096;

/// Name of the member that says it in a shard without pickles. Other readers pass over names like this one.
pub(super) const PLAIN_METADATA: &str = "__gristmill__";

/// What a member is by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part<'n> {
    /// What the members of its sample share.
    pub(super) key: &'n str,
    /// Name of the field: the suffix up to its first dot.
    pub(super) field: Cow<'n, str>,
    /// What says how to read it: the suffix after the field's name, lower-case; the field's name where there is no more.
    pub(super) suffix: Cow<'n, str>,
    pub(super) role: Role,
}

impl Part<'_> {
    /// Whether the field called `name` is in this member: it is the member's own, or one of several arrays in it.
    pub(super) fn gives(&self, name: &str) -> bool {
        name == self.field || name.strip_prefix(&*self.field).is_some_and(|rest| rest.starts_with('.'))
    }
}

/// Where a member belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It says what the shard is.
    Metadata,
    /// It is the first of a sample.
    Begins,
    /// It belongs to the sample of the member before.
    GoesOn,
}

/// Groups names as they come: remembers the sample that is open, and a hash of the key of each before.
#[derive(Debug, Default)]
pub(super) struct Grouper {
    key: String,
    /// Fields of the open sample, each with the name of its member.
    fields: Vec<(String, String)>,
    seen: HashSet<u128>,
}

impl Grouper {
    /// What the member called `name` is; `None` where it is no data by its name.
    ///
    /// Errors: `Corrupt` for a field that a sample has twice and for a sample whose members do not follow each other.
    pub(super) fn next<'n>(&mut self, name: &'n str) -> Result<Option<Part<'n>>> {
        if name.rsplit('/').next() == Some(PLAIN_METADATA) {
            let field = Cow::Borrowed("meta");
            return Ok(Some(Part { key: name, field, suffix: Cow::Borrowed("json"), role: Role::Metadata }));
        }
        let Some((key, suffix)) = split(name) else { return Ok(None) };
        let part = |role| {
            let (field, rest) = suffix.split_once('.').unwrap_or((suffix, suffix));
            Part { key, field: lower(field), suffix: lower(rest), role }
        };
        if key.rsplit('/').next() == Some(METADATA) {
            return Ok(Some(part(Role::Metadata)));
        }
        let begins = self.fields.is_empty() || self.key != key;
        let part = part(if begins { Role::Begins } else { Role::GoesOn });
        if begins {
            let again = !self.seen.insert(xxh3_128(key.as_bytes()));
            if again {
                let detail = format!(
                    "the sample `{}` continues after others began; its members must follow each other",
                    shown(key)
                );
                return Err(Error::new(Kind::Corrupt, detail));
            }
            self.fields.clear();
            key.clone_into(&mut self.key);
        } else if self.fields.len() == MAX_FIELDS {
            return Err(Error::new(
                Kind::TooLarge,
                format!("the sample `{}` has more than {MAX_FIELDS} members", shown(key)),
            ));
        } else if let Some((_, first)) = self.fields.iter().find(|(field, _)| *field == part.field) {
            let detail = format!(
                "the sample `{}` has its field `{}` twice; first as {}",
                shown(key),
                shown(&part.field),
                shown(first)
            );
            return Err(Error::new(Kind::Corrupt, detail));
        }
        self.fields.push((part.field.clone().into_owned(), name.to_owned()));
        Ok(Some(part))
    }
}

fn lower(text: &str) -> Cow<'_, str> {
    match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(text.to_ascii_lowercase()),
        false => Cow::Borrowed(text),
    }
}

/// One field of a sample: where its bytes lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Name of the member in the tar.
    pub name: String,
    /// Name of the field: the suffix up to its first dot.
    pub field: String,
    /// What says how to read it: the suffix after the field's name, lower-case; the field's name where there is no more.
    pub suffix: String,
    /// Its bytes in the tar.
    pub span: Range<usize>,
}

/// Members that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// What their names share.
    pub key: String,
    /// The members, in the order of the tar.
    pub members: Vec<Member>,
}

/// The samples of a shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// The metadata members: none in ordinary shards, one in a shard of demonstrations, more where shards were joined.
    pub metadata: Vec<Member>,
    /// The samples, in the order of the tar.
    pub samples: Vec<Sample>,
    /// Members whose names have no suffix, or say that they are not data.
    pub ignored: usize,
}

/// Groups the members of a tar of `len` bytes.
///
/// Errors, with the member and its byte: `Corrupt` for a field that a sample has twice and for a sample whose members do not
/// follow each other, `Truncated` for a member that reaches beyond the end.
pub fn group(index: &TarIndex, len: usize) -> Result<Groups> {
    let (mut groups, mut grouper) = (Groups::default(), Grouper::default());
    for entry in index.iter() {
        let place = |e: Error| e.in_member(shown(entry.name)).at_byte(entry.offset);
        let Some(part) = grouper.next(entry.name).map_err(place)? else {
            groups.ignored += 1;
            continue;
        };
        let start = usize::try_from(entry.offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(entry.len).unwrap_or(usize::MAX));
        if end > len {
            let detail = format!("a member of {} bytes, the tar ends at {len}", entry.len);
            return Err(place(Error::new(Kind::Truncated, detail)));
        }
        let member = Member {
            name: entry.name.to_owned(),
            field: part.field.into_owned(),
            suffix: part.suffix.into_owned(),
            span: start..end,
        };
        match (part.role, groups.samples.last_mut()) {
            (Role::Metadata, _) => groups.metadata.push(member),
            (Role::GoesOn, Some(sample)) => sample.members.push(member),
            _ => groups.samples.push(Sample { key: part.key.to_owned(), members: vec![member] }),
        }
    }
    Ok(groups)
}

/// Key and suffix of a name, at the first dot of its last part; `None` for names that are not data.
pub(super) fn split(name: &str) -> Option<(&str, &str)> {
    let hidden = |part: &str| part.len() > 4 && part.starts_with("__") && part.ends_with("__");
    if name.split('/').any(hidden) {
        return None;
    }
    let base = name.rfind('/').map_or(0, |slash| slash + 1);
    let dot = base + name[base..].find('.')?;
    (dot > base && dot + 1 < name.len()).then(|| (&name[..dot], &name[dot + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_bytes::container::tar::{TarLimits, TarWriter, walk};

    fn groups(names: &[&str]) -> Result<Groups> {
        let mut tar = TarWriter::new(Vec::new());
        for name in names {
            tar.append(name, b"x").unwrap();
        }
        let tar = tar.finish().unwrap();
        group(&walk(tar.as_slice(), &TarLimits::default()).unwrap(), tar.len())
    }

    #[test]
    fn names_are_cut_at_the_first_dot_of_the_last_part() {
        let found = groups(&[
            "_metadata.meta.pickle",
            "a.b/f_1.Obs.pickle",
            "a.b/f_1.cls",
            "a.b/f_2.obs.npy.gz",
            "none",
            ".x",
            "__s__",
        ]);
        let found = found.unwrap();
        assert_eq!((found.metadata.len(), found.samples.len(), found.ignored), (1, 2, 3));
        let member = |s: usize, m: usize| {
            let member = &found.samples[s].members[m];
            (found.samples[s].key.as_str(), member.field.as_str(), member.suffix.as_str())
        };
        assert_eq!(member(0, 0), ("a.b/f_1", "obs", "pickle"));
        assert_eq!(member(0, 1), ("a.b/f_1", "cls", "cls"));
        assert_eq!(member(1, 0), ("a.b/f_2", "obs", "npy.gz"));
    }

    #[test]
    fn split_groups_and_repeated_fields_are_refused_with_their_member() {
        let e = groups(&["a.x.pickle", "b.x.pickle", "a.y.pickle"]).unwrap_err();
        assert_eq!((e.kind(), e.place().member.as_deref()), (Kind::Corrupt, Some("a.y.pickle")));
        for second in ["a.x.json", "a.X.pickle"] {
            let e = groups(&["a.x.pickle", second]).unwrap_err();
            assert_eq!((e.kind(), e.place().member.as_deref()), (Kind::Corrupt, Some(second)));
        }
    }
}
