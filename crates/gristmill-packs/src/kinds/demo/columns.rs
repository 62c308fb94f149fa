//! A trajectory -> what a pack says of it in SQL. A column more is a line in `COLUMNS`.
//! Reads rewards and the file's own metadata; a value that is unknown is NULL.

use gristmill_format::demo::budget::MAX_BYTES;
use gristmill_format::demo::pack::About;
use gristmill_format::demo::shard::ShardMeta;
use gristmill_format::demo::trajectory::End;
use gristmill_format::layout::{DType, Field};
use gristmill_runtime::sql::SqlValue;

use crate::chunks::codec::{Column, names, values};

/// The columns of trajectories, after those of every pack.
const COLUMNS: [Column<Facts>; 6] = [
    Column { name: "form", sql: "TEXT NOT NULL", value: |one| one.form.clone().into() },
    Column { name: "environment", sql: "TEXT", value: |one| one.environment.clone().into() },
    Column { name: "terminated", sql: "INT NOT NULL", value: |one| one.terminated.into() },
    Column { name: "total_reward", sql: "REAL", value: |one| one.total_reward.into() },
    Column { name: "obs_dtype", sql: "TEXT", value: |one| one.obs.as_ref().map(dtype).into() },
    Column { name: "obs_shape", sql: "TEXT", value: |one| one.obs.as_ref().map(shape).into() },
];

/// Names and SQL types of the columns.
pub fn columns() -> Vec<(&'static str, &'static str)> {
    names(&COLUMNS)
}

/// What is known of a trajectory.
struct Facts {
    form: String,
    environment: Option<String>,
    /// Whether the environment said that it was over.
    terminated: bool,
    /// The sum of its rewards, where they are single numbers.
    total_reward: Option<f64>,
    /// The field of its observations.
    obs: Option<Field>,
}

/// What goes into the columns for a trajectory.
pub fn facts(about: &About, records: &[u8], end: End) -> Vec<SqlValue> {
    let facts = Facts {
        form: about.form.clone(),
        environment: environment(about),
        terminated: end == End::Terminated,
        total_reward: total_reward(about, records),
        obs: about.layout.field("obs").cloned(),
    };
    values(&COLUMNS, &facts)
}

/// The task that a shard names, or the environment that a native file names.
fn environment(about: &About) -> Option<String> {
    let named = about.facts.iter().find(|(name, _)| name == "env_name").map(|(_, value)| value.clone());
    let meta = about.metadata.as_ref().and_then(|pickle| ShardMeta::parse(pickle, MAX_BYTES).ok());
    let config = meta.and_then(|meta| serde_json::from_str::<serde_json::Value>(&meta.env_cfg).ok());
    named.or_else(|| Some(config?.get("task_name")?.as_str()?.to_owned()))
}

/// The sum of single rewards.
fn total_reward(about: &About, records: &[u8]) -> Option<f64> {
    let layout = &about.layout;
    let field = layout.field("rews").filter(|field| field.count() == 1)?;
    let DType::Scalar(scalar, _) = field.dtype else { return None };
    let rewards = records.chunks_exact(layout.size());
    rewards.map(|record| scalar.number(&record[field.offset..][..field.bytes()])).sum()
}

fn dtype(field: &Field) -> String {
    match &field.dtype {
        DType::Scalar(scalar, order) => scalar.type_str(*order),
        DType::Record(inner) => inner.to_descr(),
    }
}

/// As `4x84x84`; of a single number empty.
fn shape(field: &Field) -> String {
    let sides: Vec<String> = field.shape.iter().map(usize::to_string).collect();
    sides.join("x")
}
