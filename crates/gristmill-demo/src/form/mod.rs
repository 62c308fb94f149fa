//! A name and the bytes of a file -> which form of demonstrations it is, and its trajectories in that form's way.
//! Looks at what is inside: `.pkl.gz`, `.pkl` and `.npz` are each the name of several forms.

mod apart;
mod file;
mod placed;
pub mod whole;

use gristmill_bytes::container::npz::{self, Npz};
use gristmill_bytes::container::pickle::{Class, Id, Node, Object, Pickle, PickleLimits, parse};
use gristmill_bytes::container::tar::{begins, set_in};
use gristmill_bytes::error::{Error, Kind, Result};

use crate::budget::MAX_BYTES;
use crate::frames::Frames;
use crate::names::shown;
use crate::native::{
    Magical, Semantics, atari, dictionary, dm_control, imitation, imitation_npz, magical, minecraft, procgen,
};
use crate::shard::{Packing, Shard, Unpacked, unpack};

pub use file::DemoFile;

/// Names of files that may hold demonstrations, apart from plain tars; those of shards first.
pub const EXTENSIONS: [&str; 13] = [
    ".tar.zst",
    ".tar.zstd",
    ".tzst",
    ".tar.gz",
    ".tgz",
    ".tar.xz",
    ".txz",
    ".tar.bz2",
    ".tbz2",
    ".pkl.gz",
    ".pkl",
    ".pickle",
    ".npz",
];

/// First bytes of packings that are known and not read, with the program that unpacks each.
const PACKINGS: [(&[u8], &str, &str); 4] = [
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\x04\x22\x4d\x18", "LZ4", "lz4 -dc"),
    (b"\x1f\x9d", "compress", "uncompress -c"),
];

/// A form in which demonstrations are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// A WebDataset shard.
    Shard,
    /// One demonstration of MAGICAL.
    Magical,
    /// A pickled list of trajectories, packed by gzip: dm_control.
    DmControl,
    /// An `.npz` of pickled Atari fragments.
    Atari,
    /// A pickled dictionary of lists: Procgen.
    Procgen,
    /// A MineRL `rendered.npz`, whose pictures are in the video beside it.
    Minecraft,
    /// A pickled list of trajectories of the imitation library.
    Imitation,
    /// The same as an `.npz`.
    ImitationNpz,
    /// An `.npz` of whole arrays, all steps one after another.
    Dictionary,
}

impl Form {
    /// Short name, such as `demo.magical`.
    pub fn name(self) -> &'static str {
        match self {
            Form::Shard => "demo.shard",
            Form::Magical => "demo.magical",
            Form::DmControl => "demo.dm_control",
            Form::Atari => "demo.atari",
            Form::Procgen => "demo.procgen",
            Form::Minecraft => "demo.minecraft",
            Form::Imitation => "demo.imitation",
            Form::ImitationNpz => "demo.imitation_npz",
            Form::Dictionary => "demo.dictionary",
        }
    }
}

/// How native demonstrations are read; shards hold what was made of them already.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// How ends of episodes are understood.
    pub semantics: Semantics,
    /// What is made of MAGICAL's two views.
    pub magical: Magical,
    /// Whether steps of MAGICAL whose action is 0 are left out.
    pub remove_null_actions: bool,
    /// Frames in a stack of dm_control and Procgen.
    pub frame_stack: usize,
    /// The frames of a MineRL video.
    pub pov: Option<Frames>,
    /// Most bytes, unpacked or as frames.
    pub max_bytes: usize,
    /// Whether what follows the end of a tar, or of the stream that packs it, is refused. Else it is passed over, as all
    /// readers of tars do, and noted as a fault of the file.
    pub strict: bool,
}

impl Default for ReadOptions {
    /// What is in the file, frame by frame.
    fn default() -> Self {
        ReadOptions {
            semantics: Semantics::Strict,
            magical: Magical::Raw,
            remove_null_actions: false,
            frame_stack: 1,
            pov: None,
            max_bytes: MAX_BYTES,
            strict: true,
        }
    }
}

/// Reads a file of demonstrations; `key` is its name without directory.
///
/// Errors: `UnknownFormat` for what is no form of them, `Empty` for nothing; else what the form's reader says.
pub fn read(key: &str, bytes: &[u8], options: &ReadOptions) -> Result<DemoFile> {
    let max = options.max_bytes;
    let mut scratch = Vec::new();
    if is_npz(bytes) {
        return read_npz(key, bytes, options);
    }
    refuse_packing(bytes)?;
    let packed = Packing::of(bytes) != Packing::Tar;
    let Unpacked { plain, behind } = unpack(bytes, max, &mut scratch)?;
    let behind = options.judged(behind)?;
    Ok(read_plain(key, &plain, packed, options)?.noting(behind))
}

/// Whether bytes are an `.npz`.
fn is_npz(bytes: &[u8]) -> bool {
    npz::MAGICS.iter().any(|magic| bytes.starts_with(magic))
}

/// Reads the bytes of an `.npz`.
///
/// Errors: as [`read`].
fn read_npz(key: &str, bytes: &[u8], options: &ReadOptions) -> Result<DemoFile> {
    let (form, max) = (of_npz(bytes)?, options.max_bytes);
    let all = match form {
        Form::Minecraft => minecraft(bytes, options.pov.as_ref(), options.semantics, max)?,
        Form::ImitationNpz => imitation_npz(bytes, options.semantics, max)?,
        Form::Dictionary => dictionary(bytes, max)?,
        _ => atari(bytes, options.semantics, max)?,
    };
    Ok(DemoFile::new(key, form, all))
}

/// Reads the unpacked bytes of a file; `packed` says whether they were packed.
///
/// Errors: as [`read`].
fn read_plain(key: &str, plain: &[u8], packed: bool, options: &ReadOptions) -> Result<DemoFile> {
    refuse_nothing(plain)?;
    if !is_tar(plain) {
        return read_pickle(key, plain, packed, options);
    }
    let shard = Shard::of_tar(plain, options.max_bytes).map_err(|e| if packed { or_games(e) } else { e })?;
    let behind = options.judged(shard.behind.clone())?;
    Ok(DemoFile::of_shard(key, shard).noting(behind))
}

impl ReadOptions {
    /// The fault of what follows the end of a file, where it is only to be noted.
    ///
    /// Errors: the fault itself, with advice, where it is to be refused.
    pub fn judged(&self, behind: Option<Error>) -> Result<Option<Error>> {
        match behind {
            Some(fault) if self.strict => {
                let detail = format!("{} (strict=False reads what lies before it)", fault.detail());
                Err(Error::new(fault.kind(), detail).at_byte(fault.place().offset.unwrap_or(0)))
            }
            behind => Ok(behind),
        }
    }
}

/// Whether unpacked bytes are a tar.
pub fn is_tar(plain: &[u8]) -> bool {
    begins(plain)
}

/// Refuses what is packed in a way that is not read here; `bytes` are all of a file, or its first.
///
/// Errors: `Unsupported`, with what to do; `Empty` for no bytes.
pub fn refuse_packing(bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        return Err(Error::new(Kind::Empty, "a file of no bytes"));
    }
    match PACKINGS.iter().find(|(magic, ..)| bytes.starts_with(magic)) {
        None => Ok(()),
        Some((_, name, program)) => {
            let detail = format!(
                "packed by {name}, which is not read here; pack it again, once: `{program} FILE | zstd -o FILE.tar.zst` (games: \
                 store them as a plain .tar)"
            );
            Err(Error::new(Kind::Unsupported, detail).at_byte(0))
        }
    }
}

/// Refuses a file that holds nothing once it is unpacked.
///
/// Errors: `Empty`.
pub fn refuse_nothing(plain: &[u8]) -> Result<()> {
    let detail = match plain.len() {
        0 => "it unpacks to nothing: an empty stream, which is not even an empty tar",
        512.. if set_in(plain).is_none() => "a tar without members: nothing but its end mark",
        _ => return Ok(()),
    };
    Err(Error::new(Kind::Empty, detail).at_byte(0))
}

/// Reads the unpacked bytes of a file that is no archive; `packed` says whether they were packed.
///
/// Errors: as [`read`].
pub fn read_pickle(key: &str, plain: &[u8], packed: bool, options: &ReadOptions) -> Result<DemoFile> {
    let max = options.max_bytes;
    let form = of_pickle(&parse(plain, &PickleLimits { max_bytes: max })?, packed)?;
    match form {
        Form::Magical => {
            let (all, about) = magical(plain, options.magical, options.remove_null_actions, options.semantics, max)?;
            Ok(DemoFile::new(key, form, all).with("env_name", about.env_name).with("score", about.score.to_string()))
        }
        Form::Procgen => {
            procgen(plain, options.frame_stack, options.semantics, max).map(|all| DemoFile::new(key, form, all))
        }
        Form::DmControl => {
            dm_control(plain, options.frame_stack, options.semantics, max).map(|all| DemoFile::new(key, form, all))
        }
        _ => imitation(plain, options.semantics, max).map(|all| DemoFile::new(key, form, all)),
    }
}

/// The refusal of a compressed tar, with advice where its members could be games.
pub fn or_games(e: Error) -> Error {
    let place = e.place().clone();
    let Some(member) = place.member.filter(|name| name.ends_with(".gz")) else { return e };
    let advice = "if these are games: a compressed tar is solid; unpack it, or store it as a plain .tar";
    Error::new(e.kind(), format!("{}; {advice}", e.detail())).in_member(member).at_byte(place.offset.unwrap_or(0))
}

fn of_npz(bytes: &[u8]) -> Result<Form> {
    let npz = Npz::open(bytes)?;
    let has = |name: &str| npz.names().iter().any(|known| known == name);
    if has("action$vector") {
        Ok(Form::Minecraft)
    } else if has("obs") && has("acts") && has("indices") {
        Ok(Form::ImitationNpz)
    } else if has("dones")
        && npz.names().len() > 1
        && !["observations", "observation", "actions"].iter().any(|name| has(name))
    {
        Ok(Form::Dictionary)
    } else if npz.names().len() == 1 {
        Ok(Form::Atari)
    } else {
        let names = npz.names().iter().take(20).map(|name| shown(name)).collect::<Vec<_>>().join("`, `");
        let detail = format!("an .npz of `{names}` is no form of demonstrations known here");
        Err(Error::new(Kind::UnknownFormat, detail))
    }
}

fn of_pickle(pickle: &Pickle<'_>, packed: bool) -> Result<Form> {
    let root = pickle.root();
    let trajectory = |id: &Id| matches!(pickle.node(*id), Node::Object(Object { class: Class::Trajectory, .. }));
    match pickle.items(root) {
        Some([]) => return Err(Error::new(Kind::Empty, "a list of no trajectories")),
        Some(items) if items.iter().all(trajectory) => {
            return Ok(if packed { Form::DmControl } else { Form::Imitation });
        }
        _ => {}
    }
    let has = |name: &str| pickle.get(root, name).is_some();
    if has("trajectory") {
        Ok(Form::Magical)
    } else if has("obs") && has("acts") {
        Ok(Form::Procgen)
    } else {
        let detail = format!("a pickled {} that is no form of demonstrations known here", pickle.type_name(root));
        Err(Error::new(Kind::UnknownFormat, detail))
    }
}
