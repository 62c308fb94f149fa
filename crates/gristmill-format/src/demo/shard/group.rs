//! Members of a tar -> samples: members that follow each other and share the name up to its first dot.
//! Judges names only; a sample that comes in two parts, or has one field twice, is refused with its member.

use std::collections::HashSet;
use std::ops::Range;

use crate::container::tar::TarIndex;
use crate::error::{Error, Kind, Result};

/// Key of the member that says what a shard is.
const METADATA: &str = "_metadata";

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
    let mut groups = Groups::default();
    let mut seen = HashSet::new();
    for entry in index.iter() {
        let place = |e: Error| e.in_member(entry.name).at_byte(entry.offset);
        let Some((key, suffix)) = split(entry.name) else {
            groups.ignored += 1;
            continue;
        };
        let start = usize::try_from(entry.offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(entry.len).unwrap_or(usize::MAX));
        if end > len {
            let detail = format!("a member of {} bytes, the tar ends at {len}", entry.len);
            return Err(place(Error::new(Kind::Truncated, detail)));
        }
        let suffix = suffix.to_ascii_lowercase();
        let (field, rest) = suffix.split_once('.').unwrap_or((&suffix, &suffix));
        let member =
            Member { name: entry.name.to_owned(), field: field.to_owned(), suffix: rest.to_owned(), span: start..end };
        if key.rsplit('/').next() == Some(METADATA) {
            groups.metadata.push(member);
            continue;
        }
        match groups.samples.last_mut().filter(|sample| sample.key == key) {
            Some(sample) => {
                if let Some(twice) = sample.members.iter().find(|other| other.field == member.field) {
                    let detail = format!("the sample `{key}` has its field `{field}` twice; first as {}", twice.name);
                    return Err(place(Error::new(Kind::Corrupt, detail)));
                }
                sample.members.push(member);
            }
            None => {
                let again = !seen.insert(key.to_owned());
                if again {
                    let detail =
                        format!("the sample `{key}` goes on after others began; its members must follow each other");
                    return Err(place(Error::new(Kind::Corrupt, detail)));
                }
                groups.samples.push(Sample { key: key.to_owned(), members: vec![member] });
            }
        }
    }
    Ok(groups)
}

/// Key and suffix of a name, at the first dot of its last part; `None` for names that are not data.
fn split(name: &str) -> Option<(&str, &str)> {
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
    use crate::container::tar::{TarLimits, TarWriter, walk};

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
