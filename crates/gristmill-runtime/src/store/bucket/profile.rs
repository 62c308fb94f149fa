//! The files in which the tools of AWS keep settings by the name of a profile -> one profile's settings.
//! Reads two small files; what is not there is nothing.

use std::path::{Path, PathBuf};

/// Longest file that is read.
const LONGEST: u64 = 1 << 20;

/// What a profile says, as far as it is used here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) access_key_id: Option<String>,
    pub(super) secret_access_key: Option<String>,
    pub(super) session_token: Option<String>,
    pub(super) region: Option<String>,
    pub(super) endpoint_url: Option<String>,
}

impl Profile {
    /// The profile that `AWS_PROFILE` names, else `default`.
    pub(super) fn of_environment() -> Self {
        let home = std::env::home_dir().map(|home| home.join(".aws"));
        let file = |variable: &str, name: &str| {
            std::env::var_os(variable).map(PathBuf::from).or_else(|| home.as_ref().map(|home| home.join(name)))
        };
        let name = std::env::var("AWS_PROFILE").unwrap_or_else(|_| "default".to_owned());
        let text = |path: Option<PathBuf>| path.and_then(|path| read(&path)).unwrap_or_default();
        let credentials = text(file("AWS_SHARED_CREDENTIALS_FILE", "credentials"));
        let config = text(file("AWS_CONFIG_FILE", "config"));
        Profile::of(&name, &credentials, &config)
    }

    /// What both files say of a profile; credentials win.
    fn of(name: &str, credentials: &str, config: &str) -> Self {
        let mut profile = Profile::default();
        let in_config = if name == "default" { name.to_owned() } else { format!("profile {name}") };
        profile.add(config, &in_config);
        profile.add(credentials, name);
        profile
    }

    fn add(&mut self, text: &str, section: &str) {
        let mut within = false;
        for line in text.lines() {
            // Settings of a setting are indented.
            if line.starts_with([' ', '\t', '#', ';']) {
                continue;
            }
            if let Some(head) = line.strip_prefix('[') {
                within = head.split(']').next().is_some_and(|head| head.trim() == section);
                continue;
            }
            let Some((key, value)) = line.split_once('=').filter(|_| within) else { continue };
            let slot = match key.trim() {
                "aws_access_key_id" => &mut self.access_key_id,
                "aws_secret_access_key" => &mut self.secret_access_key,
                "aws_session_token" => &mut self.session_token,
                "region" => &mut self.region,
                "endpoint_url" => &mut self.endpoint_url,
                _ => continue,
            };
            *slot = Some(value.trim().to_owned());
        }
    }
}

fn read(path: &Path) -> Option<String> {
    let is_small = std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= LONGEST);
    if is_small { std::fs::read_to_string(path).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_from_both_files() {
        let credentials = "[default]\naws_access_key_id = A\naws_secret_access_key=S\n# aws_session_token = T\n\n[work]\naws_access_key_id=B\naws_secret_access_key = a=b\naws_session_token = T\n";
        let config = "[default]\nregion = eu-west-1\ns3 =\n  endpoint_url = no\n[profile work]\nregion=us-west-2\nendpoint_url = http://127.0.0.1:9\n";
        let default = Profile::of("default", credentials, config);
        assert_eq!((default.access_key_id.as_deref(), default.region.as_deref()), (Some("A"), Some("eu-west-1")));
        assert_eq!((default.session_token, default.endpoint_url), (None, None));
        let work = Profile::of("work", credentials, config);
        assert_eq!(work.secret_access_key.as_deref(), Some("a=b"));
        assert_eq!((work.session_token.as_deref(), work.region.as_deref()), (Some("T"), Some("us-west-2")));
        assert_eq!(work.endpoint_url.as_deref(), Some("http://127.0.0.1:9"));
        assert_eq!(Profile::of("none", credentials, config), Profile::default());
    }
}
