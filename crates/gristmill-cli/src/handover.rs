//! Words of commands that need Python -> the same words to the Python package, and its exit code. Parses no option of theirs
//! but `--python`, so that there is one place that knows them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::failure::{Failure, Result};

/// The variable that names the interpreter, where `--python` does not.
const VARIABLE: &str = "GRISTMILL_PYTHON";

/// The variable that says to the Python package that the command has handed the words over, and not the other way about.
const HANDED: &str = "GRISTMILL_HANDED_OVER";

/// The command that puts the Python package under another name.
pub(crate) const INSTALL: &str = "install-lczero";

/// The command that writes metadata and a card of a pack.
pub(crate) const DESCRIBE: &str = "describe";

/// The jobs that Ray makes by shares.
const ON_RAY: [&str; 9] = ["pack", "rescore", "filter", "convert", "split", "verify", "stats", "dedup", "mark"];

/// What `convert --to` makes by way of Python.
const FORMS: [&str; 4] = ["minari-hdf5", "minari-arrow", "parquet", "arrow"];

/// Maximum number of folders between the one that is packed and a Minari data set: namespaces of its name.
const DEPTH: u32 = 6;

/// Commands that take the user's own arrays, whose names `--fields` gives.
const OF_ARRAYS: [&str; 5] = ["convert", "inspect", "verify", "stats", "pack"];

/// Options of `pack` for tables of the user's own games.
const OF_GAMES: [&str; 4] = ["--columns", "--facts", "--identity", "--game"];

/// Endings of files that no reader of the engine has; TFRecord files end in a number instead.
const ARRAYS: [&str; 4] = [".hdf5", ".h5", ".parquet", ".mcap"];

/// Files by which data sets of LeRobot, of `imitation` and of TFDS, and recordings, are known: all in a row are there.
const SETS: [&[&str]; 4] = [
    &["meta/info.json"],
    &["state.json", "dataset_info.json"],
    &["features.json", "dataset_info.json"],
    &["gristmill-recording.json"],
];

/// Arrays in an `.npz` by which it is of no form that the engine reads.
const TELLING: [&str; 7] =
    ["observations", "observation", "actions", "terminals", "timeouts", "episode_starts", "next_observations"];

/// Bytes at the end of an `.npz` in which names of its arrays are looked for.
const TAIL: u64 = 1 << 16;

/// At most this many files of a folder are listed.
const MOST_FILES: usize = 1000;

/// Whether the words, without the program's name, are for Python: random play, jobs on Ray, its own installation, documents of a pack, a form that it writes,
/// or a Minari data set or the user's own arrays to convert, inspect or pack.
pub(crate) fn is_meant(words: &[OsString]) -> bool {
    if let [verb, rest @ ..] = words
        && OF_ARRAYS.iter().any(|known| verb == *known)
        && rest.iter().any(|word| word.to_str().is_some_and(|word| word == "--fields" || word.starts_with("--fields=")))
    {
        return true;
    }
    match words {
        [verb, kind, ..] if verb == "generate" && kind == "random" => true,
        [verb, job, ..] if verb == "ray" && ON_RAY.iter().any(|known| job == *known) => true,
        [verb, ..] if verb == INSTALL || verb == DESCRIBE => true,
        [verb, rest @ ..] if verb == "convert" => {
            let form = |word: &OsStr| FORMS.iter().any(|form| word == *form);
            let to = rest.windows(2).any(|pair| pair[0] == "--to" && form(&pair[1]))
                || rest.iter().filter_map(|word| word.to_str()?.strip_prefix("--to=")).any(|to| FORMS.contains(&to));
            to || rest.iter().any(|word| is_minari(Path::new(word)) || is_arrays(Path::new(word)))
        }
        [verb, rest @ ..] if ["inspect", "verify", "stats"].iter().any(|known| verb == *known) => {
            rest.iter().any(|word| is_minari(Path::new(word)) || is_arrays(Path::new(word)))
        }
        [verb, rest @ ..] if verb == "pack" && rest.iter().any(|word| is_of_games(word)) => true,
        [verb, rest @ ..] if verb == "pack" => {
            let given = rest.windows(2).filter(|pair| pair[0] == "--input").map(|pair| Path::new(&pair[1]));
            let joined = rest.iter().filter_map(|word| word.to_str()?.strip_prefix("--input=")).map(Path::new);
            let mut named = given.chain(joined).peekable();
            let input = if named.peek().is_none() { first_place(rest) } else { None };
            named.chain(input).any(|input| is_rows(input) || is_arrays(input) || holds_minari(input, DEPTH))
        }
        _ => false,
    }
}

/// Whether a word is an option for tables of the user's own games.
fn is_of_games(word: &OsStr) -> bool {
    let name = word.to_str().map(|word| word.split_once('=').map_or(word, |(name, _)| name));
    name.is_some_and(|name| OF_GAMES.contains(&name))
}

/// Whether a path is a table of rows that has no arrays: of JSON, a row in each line, or of Arrow.
fn is_rows(path: &Path) -> bool {
    let name = path.to_string_lossy();
    [".jsonl", ".arrow", ".feather"].iter().any(|end| name.ends_with(end)) && path.is_file()
}

/// The words with the command first: options that every command has may stand before it.
pub(crate) fn verb_first(words: Vec<OsString>) -> Vec<OsString> {
    const VALUED: [&str; 3] = ["--color", "--threads", "-j"];
    let mut verb = 0;
    while words.get(verb).is_some_and(|word| word.to_str().is_some_and(|word| word.starts_with('-') && word != "--")) {
        verb += 1 + usize::from(VALUED.iter().any(|valued| words[verb] == *valued));
    }
    if verb >= words.len() || words.contains(&"--".into()) {
        return words;
    }
    [&words[verb..], &words[..verb]].concat()
}

/// The first of the words of `pack` that is neither an option nor the value of one.
fn first_place(words: &[OsString]) -> Option<&Path> {
    const VALUED: [&str; 13] = [
        "--fields",
        "--output",
        "--threads",
        "-j",
        "--workers",
        "--shard-rows",
        "--layout",
        "--on-error",
        "--weigh",
        "--checkpoint-rows",
        "--color",
        "--python",
        "--input",
    ];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if VALUED.iter().any(|valued| word == *valued) {
            words.next();
        } else if !word.to_string_lossy().starts_with('-') {
            return Some(Path::new(word));
        }
    }
    None
}

/// Runs the Python package with the words, in its stead where the system can.
///
/// Errors: `Usage` for `--python` without a path; `Failed` where there is no such interpreter, or no gristmill in it.
pub(crate) fn run(words: Vec<OsString>) -> Result<ExitCode> {
    let (python, words) = interpreter(words)?;
    has_package(&python)?;
    let mut command = Command::new(&python);
    command.env(HANDED, "1").args(["-m", "gristmill"]).args(words);
    end_as(command).map_err(|e| missing(&python, &e))
}

/// Whether Python reads what lies at `path`, at least a part of it: Minari data sets, or the user's own arrays.
pub(crate) fn is_read_there(path: &Path) -> bool {
    is_arrays(path) || holds_minari(path, DEPTH)
}

/// Has the Python package write what it reads at these paths, each with the number of its side, as shards into `folder`; the text that
/// says of which data sets they are. `fields` are those of the user's own arrays.
///
/// Errors: `Failed` with what Python says, and as [`run`].
pub(crate) fn stand_ins(
    python: Option<&Path>,
    folder: &Path,
    fields: Option<&str>,
    paths: &[(u32, &Path)],
) -> Result<String> {
    let chosen = python.map(|python| vec!["--python".into(), python.into()]).unwrap_or_default();
    let (python, _) = interpreter(chosen)?;
    has_package(&python)?;
    let mut command = Command::new(&python);
    command.env(HANDED, "1").args(["-m", "gristmill.command.stand_ins"]).arg(folder).arg(fields.unwrap_or_default());
    for (side, path) in paths {
        command.arg(side.to_string()).arg(path);
    }
    let made = command.stdin(Stdio::null()).output().map_err(|e| missing(&python, &e))?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr).trim().to_owned();
        return Err(if made.status.code() == Some(2) { Failure::Usage(said) } else { Failure::Failed(said) });
    }
    Ok(String::from_utf8_lossy(&made.stdout).into_owned())
}

/// Errors: `Failed` where there is no such interpreter, or no gristmill in it.
fn has_package(python: &OsStr) -> Result<()> {
    let find = "import importlib.util, sys; sys.exit(importlib.util.find_spec('gristmill') is None)";
    let found = Command::new(python).args(["-c", find]).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let found = found.map_err(|e| missing(python, &e))?;
    if found.success() {
        return Ok(());
    }
    let python = python.display();
    Err(Failure::Failed(format!(
        "this command needs the Python package, and {python} has none (or does not run): pip install gristmill, or choose \
         another interpreter by --python PATH or {VARIABLE}"
    )))
}

/// Becomes the command: signals reach it, and its exit code is ours.
#[cfg(unix)]
fn end_as(mut command: Command) -> io::Result<ExitCode> {
    Err(std::os::unix::process::CommandExt::exec(&mut command))
}

#[cfg(not(unix))]
fn end_as(mut command: Command) -> io::Result<ExitCode> {
    let code = command.status()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn missing(python: &OsStr, e: &io::Error) -> Failure {
    let python = python.display();
    Failure::Failed(format!(
        "this command needs Python, and {python} cannot be run: {e}; choose an interpreter by --python PATH or {VARIABLE}"
    ))
}

/// The interpreter in the folder of this program, as wheels install both; else that of the path.
fn beside() -> OsString {
    let near = env::current_exe().ok().and_then(|own| Some(own.parent()?.join("python3")));
    near.filter(|python| python.is_file()).map_or_else(|| "python3".into(), Into::into)
}

/// The interpreter, and the words without it.
fn interpreter(words: Vec<OsString>) -> Result<(OsString, Vec<OsString>)> {
    let mut python = env::var_os(VARIABLE).filter(|path| !path.is_empty()).unwrap_or_else(beside);
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--python" {
            python =
                words.next().ok_or_else(|| Failure::Usage("--python wants the path of an interpreter".to_owned()))?;
        } else if let Some(path) = word.to_str().and_then(|word| word.strip_prefix("--python=")) {
            python = path.into();
        } else {
            kept.push(word);
        }
    }
    Ok((python, kept))
}

/// Whether a Minari data set lies at `path` or in the folders below.
fn holds_minari(path: &Path, depth: u32) -> bool {
    if is_minari(path) {
        return true;
    }
    let below = fs::read_dir(path).into_iter().flatten().flatten();
    let mut folders = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    depth > 0 && folders.any(|folder| holds_minari(&folder.path(), depth - 1))
}

/// Whether a Minari data set lies at `path`, as far as that is seen without reading.
fn is_minari(path: &Path) -> bool {
    path.ends_with("main_data.hdf5") && path.is_file()
        || [path.join("data"), path.to_owned()].iter().any(|data| {
            data.join("main_data.hdf5").is_file()
                || data.join("metadata.json").is_file() && data.join("0").join("part-0.arrow").is_file()
        })
}

/// Whether the user's own arrays lie at `path`, judging by names: a file of them, a folder of such files or of `.npy`, or a data
/// set that files in it tell.
fn is_arrays(path: &Path) -> bool {
    let name = path.to_string_lossy();
    if SETS.iter().any(|names| names.iter().all(|name| path.join(name).is_file())) {
        return true;
    }
    if path.is_dir() {
        let names = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        let names: Vec<_> = names.take(MOST_FILES).collect();
        let array = |path: &Path| {
            let stem = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".npy")).unwrap_or_default();
            ["obs", "acts"].contains(&stem) || TELLING.contains(&stem)
        };
        return !names.iter().any(|name| name.ends_with("metadata.db"))
            && names.iter().any(|name| name.is_file() && (array(name) || is_arrays(name)));
    }
    if name.ends_with(".npz") {
        return tail(path).is_ok_and(|end| {
            TELLING.iter().any(|name| {
                let member = format!("{name}.npy");
                end.windows(member.len()).any(|window| window == member.as_bytes())
            })
        });
    }
    (ARRAYS.iter().any(|end| name.ends_with(end)) || name.contains(".tfrecord") || is_episode(&name)) && path.is_file()
}

/// Whether a file is called as Gymnasium's RecordVideo calls the video of an episode: `rl-video-episode-0.mp4`.
fn is_episode(name: &str) -> bool {
    let Some((before, number)) = name.strip_suffix(".mp4").and_then(|name| name.rsplit_once('-')) else { return false };
    let known = before.ends_with("-episode") || before.ends_with("-step");
    known && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The last bytes of a file, where an archive lists its members.
fn tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL)))?;
    let mut end = Vec::new();
    file.take(TAIL).read_to_end(&mut end)?;
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_is_for_python() {
        let root = tempfile::tempdir().unwrap();
        let (set, empty) = (root.path().join("pong-v0"), root.path().join("empty"));
        fs::create_dir_all(set.join("data/0")).unwrap();
        fs::create_dir(&empty).unwrap();
        for name in ["metadata.json", "0/part-0.arrow"] {
            fs::write(set.join("data").join(name), b"").unwrap();
        }
        let (mine, other) = (root.path().join("mine.npz"), root.path().join("other.npz"));
        fs::write(&mine, b"PK observations.npy").unwrap();
        fs::write(&other, b"PK obs.npy").unwrap();
        let robot = root.path().join("so100");
        fs::create_dir_all(robot.join("meta")).unwrap();
        fs::write(robot.join("meta/info.json"), b"{}").unwrap();
        let robot = robot.display();
        for name in
            ["door.hdf5", "run.mcap", "rl-video-episode-12.mp4", "recording.mp4", "frames.arrow", "frames.feather"]
        {
            fs::write(root.path().join(name), b"").unwrap();
        }
        let (mine, other, root_of) = (mine.display(), other.display(), root.path().display());
        let (set, empty) = (set.display(), empty.display());
        for text in [
            "generate random".to_owned(),
            "install-lczero venv --undo".to_owned(),
            "install-lczero".to_owned(),
            "describe pack --parquet".to_owned(),
            "ray pack games out --shares 4".to_owned(),
            "ray mark pack late --rule x".to_owned(),
            "pack rows.npz a --game match".to_owned(),
            "pack rows.npz a --columns=result=last:value".to_owned(),
            "convert a b --to minari-hdf5".to_owned(),
            "convert --to=parquet a b".to_owned(),
            format!("convert {set} a.tar"),
            format!("convert {set}/data a.tar --json"),
            format!("inspect {set} --json"),
            format!("verify {empty} {set}"),
            format!("inspect {mine}"),
            format!("verify {robot}"),
            format!("pack {robot} a"),
            format!("pack --input {root_of}/door.hdf5 --output a"),
            format!("stats {root_of}/door.hdf5"),
            format!("inspect {root_of}/run.mcap"),
            format!("verify {root_of}/rl-video-episode-12.mp4"),
            format!("pack {root_of}/frames.arrow a"),
            format!("pack --input={root_of}/frames.feather --output a"),
            format!("inspect {other} --fields obs=x"),
            format!("pack --input={other} --fields=obs=x --output a"),
            format!("pack --output a --input {set}"),
            format!("pack --input={root} --output a", root = root.path().display()),
            format!("pack --threads 2 {set} a --json"),
        ] {
            assert!(is_meant(&words(&text)), "{text}");
        }
        for text in [
            "generate chess",
            "random",
            "ray",
            "ray --help",
            "convert a b --to exponents",
            "inspect",
            "stats minari-hdf5",
            "convert --to",
        ] {
            assert!(!is_meant(&words(text)), "{text}");
        }
        for text in [
            format!("convert {empty} a.tar"),
            format!("inspect {other}"),
            format!("inspect {root_of}/none.hdf5"),
            format!("inspect {root_of}/recording.mp4"),
            format!("feed {mine} --fields x"),
            format!("pack --input {empty} --output {set}"),
            format!("pack {empty} {set} --append"),
            format!("pack --abandon --color {set} {empty}"),
            "pack --input".to_owned(),
        ] {
            assert!(!is_meant(&words(&text)), "{text}");
        }
    }

    #[test]
    fn shared_options_may_stand_before_the_command() {
        for (said, means) in [
            ("--json -q feed x --seed 1", "feed x --seed 1 --json -q"),
            ("-j 2 --color never generate random x", "generate random x -j 2 --color never"),
            ("feed --json", "feed --json"),
            ("--help", "--help"),
            ("--json", "--json"),
            ("--color", "--color"),
            ("--json feed -- --odd", "--json feed -- --odd"),
        ] {
            assert_eq!(verb_first(words(said)), words(means), "{said}");
        }
    }

    #[test]
    fn the_interpreter_is_taken_out_of_the_words() {
        let (python, kept) = interpreter(words("generate random --python py --env X --python=/bin/other out")).unwrap();
        assert_eq!((python, kept), ("/bin/other".into(), words("generate random --env X out")));
        assert!(matches!(interpreter(words("convert --python")), Err(Failure::Usage(_))));
    }
}
