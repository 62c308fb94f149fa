//! Metadata, then frames -> the tar of a shard, front to back. Names, order and pickles are those that older readers expect, unless
//! there are to be none: then arrays are `.npy`, and everything else is JSON.
//! Members are plain ustar without owner or time, so that the same frames give the same bytes.

use std::borrow::Cow;
use std::io::Write;

use gristmill_bytes::container::npy::{Header, Spelling};
use gristmill_bytes::container::pickle::{Id, Node, Pickle, PickleLimits, PickleWriter, parse};
use gristmill_bytes::container::tar::TarWriter;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Order};

use super::group::PLAIN_METADATA;
use super::to_json::{metadata_to_json, to_json};
use crate::value::{Extra, Value};

/// Maximum number of bytes of one pickled value.
const MAX_VALUE: usize = 1 << 30;

/// How deep spaces may lie within spaces.
const MAX_SPACES: usize = 16;

/// Modules and names of the classes of spaces.
pub(super) const SPACES: [(&str, &str); 7] = [
    ("gym.spaces.box", "Box"),
    ("gym.spaces.discrete", "Discrete"),
    ("gym.spaces.multi_discrete", "MultiDiscrete"),
    ("gym.spaces.multi_binary", "MultiBinary"),
    ("gym.spaces.text", "Text"),
    ("gym.spaces.dict", "Dict"),
    ("gym.spaces.tuple", "Tuple"),
];

/// How the values of frames are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Members {
    /// As pickles, which older readers of demonstrations expect.
    #[default]
    Pickle,
    /// Arrays and numbers as `.npy`, bytes as `.bin`, everything else as `.json`: no pickle is in the shard.
    Npy,
}

impl Members {
    /// By its name, `pickle` or `npy`.
    pub fn named(name: &str) -> Option<Members> {
        match name {
            "pickle" => Some(Members::Pickle),
            "npy" => Some(Members::Npy),
            _ => None,
        }
    }
}

/// A shard that is being written.
#[derive(Debug)]
pub struct ShardWriter<W: Write> {
    tar: TarWriter<W>,
    members: Members,
    frames: u64,
}

impl<W: Write> ShardWriter<W> {
    /// A shard with this metadata, a pickle.
    ///
    /// Errors: `Io`; for [`Members::Npy`] `Unsupported` for metadata that is no plain data.
    pub fn new(to: W, metadata: &[u8], members: Members) -> Result<Self> {
        let mut tar = TarWriter::new(to);
        match members {
            Members::Pickle => {
                tar.append("_metadata.meta.pickle", metadata)?;
            }
            Members::Npy => {
                let json = metadata_to_json(&parse(metadata, &PickleLimits::default())?)?;
                tar.append(PLAIN_METADATA, json.as_bytes())?;
            }
        }
        Ok(ShardWriter { tar, members, frames: 0 })
    }

    /// Adds a frame: name of each field, and its value as a pickle. The number of the frame is added as `frame`.
    ///
    /// Errors: `OutOfRange` for a name that no reader would give back, or one that is there twice; `Io`; for [`Members::Npy`]
    /// `Unsupported` for what is no plain data, naming the field.
    pub fn frame(&mut self, fields: &[(String, Vec<u8>)]) -> Result<()> {
        let mut number = PickleWriter::new(MAX_VALUE);
        number.int(i64::try_from(self.frames).unwrap_or(i64::MAX));
        let number = number.finish();
        let own = fields.iter().map(|(name, value)| (name.as_str(), value.as_slice()));
        let mut members: Vec<(&str, &[u8])> = own.chain([("frame", number.as_slice())]).collect();
        members.sort_unstable_by_key(|(name, _)| *name);
        for (i, (name, _)) in members.iter().enumerate() {
            let plain = !name.is_empty() && !name.contains(|c: char| c == '.' || c == '/' || c.is_uppercase());
            if !plain || members.get(i + 1).is_some_and(|(next, _)| next == name) {
                let detail = format!(
                    "a field cannot be called `{name}`: expected lower case without dots and slashes, each once, \
                     none called `frame`"
                );
                return Err(Error::new(Kind::OutOfRange, detail));
            }
        }
        let frame = self.frames;
        for (name, value) in members {
            let (suffix, value) = match self.members {
                Members::Pickle => ("pickle", Cow::Borrowed(value)),
                Members::Npy => {
                    let named = |e: Error| Error::new(e.kind(), format!("field `{name}`: {}", e.detail()));
                    plain_member(value).map_err(named)?
                }
            };
            self.tar.append(&format!("frame_{frame:03}.{name}.{suffix}"), &value)?;
        }
        self.frames += 1;
        Ok(())
    }

    /// How many frames there are so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Ends the tar and gives back what it was written to.
    ///
    /// Errors: `Io`.
    pub fn finish(self) -> Result<W> {
        self.tar.finish()
    }
}

/// A pickled value in a form that is none: the suffix of its member, and its bytes.
fn plain_member(pickled: &[u8]) -> Result<(&'static str, Cow<'static, [u8]>)> {
    let pickle = parse(pickled, &PickleLimits::default())?;
    Ok(match Value::of_pickle(&pickle, pickle.root(), pickled)? {
        Value::Array { scalar, shape, bytes } => {
            let shape: Vec<u64> = shape.iter().map(|dim| *dim as u64).collect();
            let mut file = Header::write(&DType::Scalar(scalar, Order::Little), &shape, Spelling::NumPy)?;
            file.extend_from_slice(&bytes);
            ("npy", file.into())
        }
        Value::Extra(Extra::Bytes(bytes)) => ("bin", bytes.into()),
        Value::Extra(_) => ("json", to_json(&pickle, pickle.root())?.into_bytes().into()),
    })
}

/// A pickle of plain values, rewritten: protocol 3 and names that NumPy 1 and 2 both know.
///
/// Errors: what the unpickler says; `Unsupported` for what is not plain data.
pub fn plain_pickle(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut writer = PickleWriter::new(MAX_VALUE);
    copy(bytes, &mut writer)?;
    Ok(writer.finish())
}

/// The pickled metadata of a shard, in the form that older readers know. `env_cfg` is a pickled dictionary; each space is
/// the name of its class and a pickled dictionary of what it is made with. What `Dict` and `Tuple` are made with, `spaces`,
/// are a dictionary and a sequence of pairs: such a name, such a dictionary.
///
/// Errors: as [`plain_pickle`]; `Unsupported` for other spaces.
pub fn metadata(
    env_cfg: &[u8],
    action_space: (&str, &[u8]),
    observation_space: (&str, &[u8]),
    color_space: &str,
) -> Result<Vec<u8>> {
    let mut writer = PickleWriter::new(MAX_VALUE);
    writer.dict();
    writer.mark();
    writer.text("env_cfg")?;
    copy(env_cfg, &mut writer)?;
    for (name, (kind, made_with)) in [("action_space", action_space), ("observation_space", observation_space)] {
        writer.text(name)?;
        let pickle = parse(made_with, &PickleLimits::default())?;
        space(&mut writer, &pickle, name, (kind, pickle.root()), 0)?;
    }
    writer.text("color_space")?;
    writer.global("imitation.augment.color", "ColorSpace");
    writer.mark();
    writer.text(color_space)?;
    writer.tuple();
    writer.reduce();
    writer.set_items();
    Ok(writer.finish())
}

/// A space: its class, and what it is made with.
fn space(
    writer: &mut PickleWriter,
    pickle: &Pickle<'_>,
    name: &str,
    (kind, made_with): (&str, Id),
    depth: usize,
) -> Result<()> {
    let unsupported = |what: &str| Error::new(Kind::Unsupported, format!("`{name}` is {what}"));
    if depth > MAX_SPACES {
        return Err(unsupported(&format!("a space nested deeper than {MAX_SPACES}")));
    }
    let Some((module, _)) = SPACES.iter().find(|(_, known)| *known == kind) else {
        let known: Vec<_> = SPACES.iter().map(|(_, known)| *known).collect();
        return Err(unsupported(&format!("a {kind}; shards can hold spaces of the kinds {}", known.join(", "))));
    };
    writer.global("il_representations.envs.utils", "_inflate_object");
    writer.mark();
    writer.global(module, kind);
    if matches!(kind, "Dict" | "Tuple") {
        let spaces = pickle.get(made_with, "spaces").ok_or_else(|| unsupported("made without `spaces`"))?;
        let part = |writer: &mut PickleWriter, id: Id| match pickle.items(id) {
            Some(&[kind, made_with]) => {
                let kind = pickle.text(kind).ok_or_else(|| unsupported("made of parts without a class"))?;
                space(writer, pickle, name, (kind, made_with), depth + 1)
            }
            _ => Err(unsupported("made of what is no space")),
        };
        writer.dict();
        writer.mark();
        writer.text("spaces")?;
        if let Node::Dict(_, pairs) = pickle.node(spaces) {
            writer.dict();
            writer.mark();
            for (key, value) in pairs {
                writer.value(pickle, *key)?;
                part(writer, *value)?;
            }
            writer.set_items();
        } else {
            writer.mark();
            for item in pickle.items(spaces).ok_or_else(|| unsupported("made without `spaces`"))? {
                part(writer, *item)?;
            }
            writer.tuple();
        }
        writer.set_items();
    } else {
        writer.value(pickle, made_with)?;
    }
    writer.tuple();
    writer.reduce();
    Ok(())
}

fn copy(bytes: &[u8], writer: &mut PickleWriter) -> Result<()> {
    let pickle = parse(bytes, &PickleLimits::default())?;
    writer.value(&pickle, pickle.root())
}

#[cfg(test)]
mod tests {
    use super::super::Shard;
    use super::*;
    use crate::space::Space;

    #[test]
    fn what_is_written_reads_back() {
        let six = b"(dVn\nI6\ns.";
        let meta = metadata(b"(dVtask_name\nVpong\ns.", ("Discrete", six), ("Discrete", six), "RGB").unwrap();
        let mut writer = ShardWriter::new(Vec::new(), &meta, Members::Pickle).unwrap();
        for t in 0..1001 {
            let done = if t == 600 { b"I01\n.".to_vec() } else { b"I00\n.".to_vec() };
            writer.frame(&[("obs".into(), format!("I{t}\n.").into_bytes()), ("dones".into(), done)]).unwrap();
        }
        assert_eq!(writer.frames(), 1001);
        let tar = writer.finish().unwrap();
        let shard = Shard::read(&tar, 1 << 24).unwrap();
        assert_eq!((shard.trajectories.frames(), shard.trajectories.ends().len(), shard.shuffled), (1001, 2, false));
        assert_eq!(shard.trajectories.field(1000, "frame"), Some(&1000i64.to_le_bytes()[..]));
        let meta = shard.meta.unwrap();
        assert_eq!((meta.color_space.as_str(), meta.action_space), ("RGB", Space::Discrete { n: 6, start: 0 }));
    }

    #[test]
    fn without_pickles_the_same_reads_back() {
        let (six, info) = (b"(dVn\nI6\ns.", b"(dVa\n(I1\nFnan\ntsVb\nVx\ns.");
        let meta = metadata(b"(dVtask_name\nVpong\ns.", ("Discrete", six), ("Discrete", six), "GRAY").unwrap();
        let both: Vec<Shard> = [Members::Pickle, Members::Npy]
            .into_iter()
            .map(|members| {
                let mut writer = ShardWriter::new(Vec::new(), &meta, members).unwrap();
                for t in 0..12 {
                    let done = if t == 5 { b"I01\n.".to_vec() } else { b"I00\n.".to_vec() };
                    let obs = format!("F{t}.25\n.").into_bytes();
                    let own = [
                        ("obs", obs),
                        ("dones", done),
                        ("infos", plain_pickle(info).unwrap()),
                        ("note", b"Vy\n.".to_vec()),
                    ];
                    writer.frame(&own.map(|(name, value)| (name.to_owned(), value))).unwrap();
                }
                let tar = writer.finish().unwrap();
                assert_eq!(memchr::memmem::find(&tar, b"pickle").is_some(), members == Members::Pickle);
                Shard::read(&tar, 1 << 24).unwrap()
            })
            .collect();
        let [pickled, plain] = both.as_slice() else { panic!("two shards") };
        assert_eq!(plain.meta, pickled.meta, "to the byte of its pickle");
        assert_eq!(plain.trajectories.records(), pickled.trajectories.records());
        assert_eq!(plain.trajectories.ends(), pickled.trajectories.ends());
        assert_eq!(plain.trajectories.extras(), pickled.trajectories.extras());
        let mut writer = ShardWriter::new(Vec::new(), &meta, Members::Npy).unwrap();
        let record = b"cdatetime\ndate\n.".to_vec();
        assert!(writer.frame(&[("when".to_owned(), record)]).unwrap_err().detail().contains("`when`"));
    }

    #[test]
    fn spaces_within_spaces_read_back() {
        let six = b"(dVn\nI6\ns.";
        let both = b"(dVspaces\n(dVa\n(VDiscrete\n(dVn\nI6\nstsVb\n(VTuple\n(dVspaces\n((VDiscrete\n(dVn\nI6\nsttstss.";
        let meta = metadata(b"(d.", ("Discrete", six), ("Dict", both), "RGB").unwrap();
        let mut tar = ShardWriter::new(Vec::new(), &meta, Members::Pickle).unwrap();
        tar.frame(&[("dones".into(), b"I01\n.".to_vec())]).unwrap();
        let meta = Shard::read(&tar.finish().unwrap(), 1 << 24).unwrap().meta.unwrap();
        let one = Space::Discrete { n: 6, start: 0 };
        let parts = [("a".to_owned(), one.clone()), ("b".to_owned(), Space::Tuple(vec![one]))];
        assert_eq!(meta.observation_space, Space::Dict(parts.to_vec()));
    }

    #[test]
    fn names_that_would_not_come_back_are_refused() {
        let mut writer = ShardWriter::new(Vec::new(), b"N.", Members::Pickle).unwrap();
        for names in [&["a.b"][..], &["frame"], &[""], &["A"], &["x", "x"], &["a/b"]] {
            let fields: Vec<_> = names.iter().map(|name| ((*name).to_owned(), b"N.".to_vec())).collect();
            assert_eq!(writer.frame(&fields).unwrap_err().kind(), Kind::OutOfRange, "{names:?}");
        }
        assert_eq!(writer.frames(), 0);
        for kind in ["Dict", "Graph"] {
            assert_eq!(metadata(b"}.", (kind, b"}."), ("Box", b"}."), "RGB").unwrap_err().kind(), Kind::Unsupported);
        }
        assert_eq!(plain_pickle(b"cgym.spaces.box\nBox\n.").unwrap_err().kind(), Kind::Unsupported);
    }
}
