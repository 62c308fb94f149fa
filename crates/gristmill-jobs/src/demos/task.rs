//! The groups `env_cfg` and `env_data`, from TOML and single options -> how files are read, where they lie, what a shard says
//! of its environment. The keys and defaults are those of the Python package; unknown ones are refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gristmill_engine::config::parse;
use gristmill_engine::error::{Error, Result};
use gristmill_format::demo::form::ReadOptions;
use gristmill_format::demo::native::{Magical, Semantics};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// What `benchmark_name` may be.
pub const BENCHMARKS: [&str; 6] = ["atari", "dm_control", "gymnasium", "magical", "minecraft", "procgen"];

/// Which environment demonstrations are of, by the user's options. An option overrides a file.
#[derive(Debug, Clone, Default)]
pub struct TaskOptions {
    /// A TOML file with the tables `env_cfg` and `env_data`.
    pub config: Option<PathBuf>,
    /// `benchmark_name`.
    pub benchmark: Option<String>,
    /// `task_name`.
    pub task: Option<String>,
    /// `magical_preproc`.
    pub magical_preproc: Option<String>,
    /// `magical_remove_null_actions`.
    pub remove_null_actions: bool,
    /// The stack of the benchmark.
    pub frame_stack: Option<u64>,
}

impl TaskOptions {
    /// Whether no option is set.
    pub fn is_empty(&self) -> bool {
        let TaskOptions { config, benchmark, task, magical_preproc, remove_null_actions, frame_stack } = self;
        config.is_none()
            && benchmark.is_none()
            && task.is_none()
            && magical_preproc.is_none()
            && !remove_null_actions
            && frame_stack.is_none()
    }
}

/// The group `env_cfg`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnvCfg {
    pub(super) benchmark_name: String,
    pub(super) task_name: String,
    magical_preproc: String,
    magical_remove_null_actions: bool,
    dm_control_frame_stack: u32,
    dm_control_full_env_names: BTreeMap<String, String>,
    minecraft_max_env_steps: Option<u32>,
    procgen_frame_stack: u32,
    gymnasium_frame_stack: u32,
    gymnasium_kwargs: BTreeMap<String, serde_json::Value>,
}

/// The group `env_data`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvData {
    data_root: String,
    wds_n_trajs: Option<u64>,
    wds_n_trans: Option<u64>,
    magical_demo_dirs: BTreeMap<String, String>,
    dm_control_demo_patterns: BTreeMap<String, String>,
    atari_demo_paths: BTreeMap<String, String>,
    procgen_demo_paths: BTreeMap<String, String>,
}

/// Both groups.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) env_cfg: EnvCfg,
    env_data: EnvData,
    /// Whether benchmark and task were said, and not merely left at their defaults.
    pub(super) benchmark_said: bool,
    pub(super) task_said: bool,
}

impl Task {
    /// The defaults, updated by the file and then by the options.
    ///
    /// Errors: `Path` for a file that cannot be read; `Config` for no TOML, an unknown key (with the nearest known one), a
    /// value of another type or out of range, an option that the benchmark has not.
    pub(super) fn new(options: &TaskOptions) -> Result<Task> {
        let mut said = Table::new();
        if let Some(path) = &options.config {
            let text = std::fs::read_to_string(path).map_err(|e| Error::path(path, &e))?;
            let refused = |e: toml::de::Error| Error::config("config", format!("{}: {e}", path.display()));
            said = text.parse::<Table>().map_err(refused)?;
        }
        let known = ["env_cfg", "env_data", "venv_opts"];
        if let Some(other) = said.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(Error::config(
                "config",
                format!("no group is called `{other}`; there are {}", known.join(", ")),
            ));
        }
        let mut cfg = table(&mut said, "env_cfg")?;
        let mut set = |key: &str, value: Option<Value>| value.map(|value| cfg.insert(key.to_owned(), value));
        set("benchmark_name", options.benchmark.clone().map(Value::String));
        set("task_name", options.task.clone().map(Value::String));
        set("magical_preproc", options.magical_preproc.clone().map(Value::String));
        set("magical_remove_null_actions", options.remove_null_actions.then_some(Value::Boolean(true)));
        if let Some(frames) = options.frame_stack {
            let benchmark = cfg.get("benchmark_name").and_then(Value::as_str).unwrap_or("dm_control").to_owned();
            if !["dm_control", "procgen", "gymnasium"].contains(&benchmark.as_str()) {
                let detail = format!("`{benchmark}` has no stack to be chosen; dm_control, procgen and gymnasium have");
                return Err(Error::config("frame_stack", detail));
            }
            let frames = Value::Integer(i64::try_from(frames).unwrap_or(i64::MAX));
            cfg.insert(format!("{benchmark}_frame_stack"), frames);
        }
        let (benchmark_said, task_said) = (cfg.contains_key("benchmark_name"), cfg.contains_key("task_name"));
        let env_cfg: EnvCfg = group("env_cfg", env_cfg_defaults(), cfg)?;
        let env_data: EnvData = group("env_data", env_data_defaults(), table(&mut said, "env_data")?)?;
        if !BENCHMARKS.contains(&env_cfg.benchmark_name.as_str()) {
            let detail = format!("`{}` is none; there are {}", env_cfg.benchmark_name, BENCHMARKS.join(", "));
            return Err(Error::config("benchmark_name", detail));
        }
        if env_cfg.task_name.is_empty() {
            return Err(Error::config("task_name", "expected the name of a task, got none"));
        }
        if [env_cfg.dm_control_frame_stack, env_cfg.procgen_frame_stack, env_cfg.gymnasium_frame_stack].contains(&0) {
            return Err(Error::config("frame_stack", "expected at least one frame, got 0"));
        }
        Ok(Task { env_cfg, env_data, benchmark_said, task_said })
    }

    /// How its files are read.
    ///
    /// Errors: `Format` of kind `Missing` for a preprocessor that does not exist.
    pub(super) fn reading(&self, semantics: Semantics) -> Result<ReadOptions> {
        let cfg = &self.env_cfg;
        let frame_stack = match cfg.benchmark_name.as_str() {
            "dm_control" => cfg.dm_control_frame_stack,
            "procgen" => cfg.procgen_frame_stack,
            "gymnasium" => cfg.gymnasium_frame_stack,
            _ => 1,
        };
        Ok(ReadOptions {
            semantics,
            magical: Magical::parse(&cfg.magical_preproc)?,
            remove_null_actions: cfg.magical_remove_null_actions,
            frame_stack: frame_stack as usize,
            ..ReadOptions::default()
        })
    }

    /// The forms that files of this benchmark may have; a dictionary of arrays may be of any.
    pub(super) fn forms(&self) -> &'static [&'static str] {
        match self.env_cfg.benchmark_name.as_str() {
            "atari" => &["demo.atari", "demo.dictionary"],
            "dm_control" => &["demo.dm_control", "demo.imitation", "demo.dictionary"],
            "magical" => &["demo.magical", "demo.dictionary"],
            "minecraft" => &["demo.minecraft", "demo.dictionary"],
            "procgen" => &["demo.procgen", "demo.dictionary"],
            _ => &["demo.imitation", "demo.imitation_npz", "demo.dm_control", "demo.dictionary"],
        }
    }

    /// What a shard says of the environment: `env_cfg` without the keys of other benchmarks.
    pub(super) fn stored(&self) -> serde_json::Value {
        let mut all = serde_json::to_value(&self.env_cfg).unwrap_or_default();
        if let Some(all) = all.as_object_mut() {
            all.retain(|key, _| {
                !BENCHMARKS.iter().any(|other| *other != self.env_cfg.benchmark_name && key.starts_with(other))
            });
        }
        all
    }

    /// Colours of a frame: `RGB`, three channels each, or `GRAY`.
    pub(super) fn color_space(&self) -> &'static str {
        if self.env_cfg.benchmark_name == "atari" { "GRAY" } else { "RGB" }
    }

    /// The pattern of the files of the task below `root`.
    ///
    /// Errors: `Config` where `env_data` says nothing of the task.
    pub(super) fn pattern(&self, root: &Path) -> Result<String> {
        let (task, data) = (&self.env_cfg.task_name, &self.env_data);
        let below = |path: &str| root.join(path).to_string_lossy().into_owned();
        let (key, known) = match self.env_cfg.benchmark_name.as_str() {
            "magical" => ("magical_demo_dirs", &data.magical_demo_dirs),
            "dm_control" => ("dm_control_demo_patterns", &data.dm_control_demo_patterns),
            "atari" => ("atari_demo_paths", &data.atari_demo_paths),
            "procgen" => ("procgen_demo_paths", &data.procgen_demo_paths),
            "minecraft" => return Ok(below(&format!("data/minecraft/MineRL{task}-v0/*/rendered.npz"))),
            other => {
                let detail = format!("`{other}` has no place of its own for demonstrations; name a file");
                return Err(Error::config("benchmark_name", detail));
            }
        };
        let Some(found) = known.get(task) else {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let detail = format!("it says nothing of the task `{task}`; there are {}", names.join(", "));
            return Err(Error::config(key, detail));
        };
        Ok(if key == "magical_demo_dirs" {
            below(&format!("{}/*.pkl.gz", found.trim_end_matches('/')))
        } else {
            below(found)
        })
    }
}

fn table(said: &mut Table, name: &str) -> Result<Table> {
    match said.remove(name) {
        None => Ok(Table::new()),
        Some(Value::Table(table)) => Ok(table),
        Some(_) => Err(Error::config(name, "expected a table")),
    }
}

/// The defaults, updated key by key at every depth.
fn group<T: serde::de::DeserializeOwned>(name: &str, mut defaults: Table, said: Table) -> Result<T> {
    merge(&mut defaults, said);
    let text = serde_json::to_string(&defaults).map_err(|e| Error::config(name, e.to_string()))?;
    parse::from_json(&text).map_err(|e| match e {
        // The place is in a generated text, which the user never saw.
        Error::Config { field, message, .. } => Error::Config { at: None, stage: Some(name.into()), field, message },
        other => other,
    })
}

fn merge(into: &mut Table, said: Table) {
    for (key, value) in said {
        match (into.get_mut(&key), value) {
            // Texts that other programs write beside the options.
            (_, Value::String(_)) if key == "__doc__" => {}
            (Some(Value::Table(old)), Value::Table(new)) => merge(old, new),
            (_, value) => _ = into.insert(key, value),
        }
    }
}

fn env_cfg_defaults() -> Table {
    toml::toml! {
        benchmark_name = "dm_control"
        task_name = "finger-spin"
        magical_preproc = "LoResCHW4E"
        magical_remove_null_actions = false
        dm_control_frame_stack = 3
        procgen_frame_stack = 4
        gymnasium_frame_stack = 1
        [dm_control_full_env_names]
        finger-spin = "DMC-Finger-Spin-v0"
        cheetah-run = "DMC-Cheetah-Run-v0"
        walker-walk = "DMC-Walker-Walk-v0"
        cartpole-swingup = "DMC-Cartpole-Swingup-v0"
        reacher-easy = "DMC-Reacher-Easy-v0"
        ball-in-cup-catch = "DMC-Ball-In-Cup-Catch-v0"
        [gymnasium_kwargs]
    }
}

fn env_data_defaults() -> Table {
    toml::toml! {
        data_root = "."
        [magical_demo_dirs]
        MoveToCorner-Demo-v0 = "data/magical/move-to-corner/"
        MoveToRegion-Demo-v0 = "data/magical/move-to-region/"
        MatchRegions-Demo-v0 = "data/magical/match-regions/"
        MakeLine-Demo-v0 = "data/magical/make-line/"
        FixColour-Demo-v0 = "data/magical/fix-colour/"
        FindDupe-Demo-v0 = "data/magical/find-dupe/"
        ClusterColour-Demo-v0 = "data/magical/cluster-colour/"
        ClusterShape-Demo-v0 = "data/magical/cluster-shape/"
        [dm_control_demo_patterns]
        finger-spin = "data/dm_control/finger-spin-*.pkl.gz"
        cheetah-run = "data/dm_control/cheetah-run-*.pkl.gz"
        walker-walk = "data/dm_control/walker-walk-*.pkl.gz"
        cartpole-swingup = "data/dm_control/cartpole-swingup-*.pkl.gz"
        reacher-easy = "data/dm_control/reacher-easy-*.pkl.gz"
        ball-in-cup-catch = "data/dm_control/ball-in-cup-catch-*.pkl.gz"
        [atari_demo_paths]
        BreakoutNoFrameskip-v4 = "data/atari/BreakoutNoFrameskip-v4_rollouts_500_ts_100_traj.npz"
        PongNoFrameskip-v4 = "data/atari/PongNoFrameskip-v4_rollouts_500_ts_100_traj.npz"
        [procgen_demo_paths]
        coinrun = "procgen/demo_coinrun.pickle"
        fruitbot = "procgen/demo_fruitbot.pickle"
        ninja = "procgen/demo_ninja.pickle"
        jumper = "procgen/demo_jumper.pickle"
        miner = "procgen/demo_miner.pickle"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_updated_key_by_key_and_unknown_keys_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("demos.toml");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write("[env_cfg]\nbenchmark_name = \"magical\"\n[env_data.magical_demo_dirs]\nMine-v0 = \"mine\"");
        let options =
            TaskOptions { config: Some(path.clone()), task: Some("Mine-v0".into()), ..TaskOptions::default() };
        let task = Task::new(&options).unwrap();
        assert_eq!(task.pattern(Path::new("/d")).unwrap(), "/d/mine/*.pkl.gz");
        let stored = task.stored();
        let keys: Vec<&String> = stored.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["benchmark_name", "magical_preproc", "magical_remove_null_actions", "task_name"]);
        for (text, says) in [
            ("[env_cfg]\ntask = \"x\"", "`task_name`"),
            ("[env_data]\ndataroot = \"x\"", "did you mean `data_root`"),
            ("[env_cfgs]\n", "env_cfgs"),
            ("[env_cfg]\ndm_control_frame_stack = 0", "frame_stack"),
            ("[env_cfg]\nbenchmark_name = \"mujoco\"", "procgen"),
            ("env_cfg = 3", "table"),
        ] {
            write(text);
            let e = Task::new(&TaskOptions { config: Some(path.clone()), ..TaskOptions::default() }).unwrap_err();
            assert!(matches!(e, Error::Config { .. }) && e.to_string().contains(says), "{text}: {e}");
        }
        let stack = TaskOptions { benchmark: Some("magical".into()), frame_stack: Some(2), ..TaskOptions::default() };
        assert!(Task::new(&stack).unwrap_err().to_string().contains("no stack"));
    }
}
