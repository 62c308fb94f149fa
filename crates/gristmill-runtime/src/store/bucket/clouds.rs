//! The scheme and the host of a URL, and what the user's environment says -> a client of that store.
//! Credentials come from where the tools of each cloud look for them; none are kept here, none are printed.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredentialProvider};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{HttpClient, HttpConnector, ReqwestConnector};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, Result, RetryConfig};

use super::Options;
use super::profile::Profile;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// A client, and the same client as one that writes in parts; none of a web server.
pub(super) type Client = (Arc<dyn ObjectStore>, Option<Arc<dyn MultipartStore>>);

/// A client of the store of a scheme, at a host or of a bucket.
///
/// Errors: those of the client: a name that is no bucket, a setting that is none.
pub(super) fn client(scheme: &str, host: &str, options: &Options) -> Result<Client> {
    secure();
    let retry = no_retry();
    let endpoint = options.endpoint.as_deref();
    Ok(match scheme {
        "s3" | "s3a" => both(s3(host, options)?.with_retry(retry).build()?),
        "gs" | "gcs" => {
            let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(host);
            if let Some(endpoint) = endpoint {
                builder = builder.with_base_url(endpoint);
            }
            if options.anonymous {
                builder = builder.with_skip_signature(true);
            }
            for (name, value) in &options.settings {
                builder = builder.with_config(name.parse()?, value);
            }
            both(builder.with_client_options(http(options, endpoint)).with_retry(retry).build()?)
        }
        "az" | "abfs" | "abfss" => {
            let mut builder = MicrosoftAzureBuilder::from_env().with_url(format!("{scheme}://{host}"));
            if let Some(endpoint) = endpoint {
                builder = builder.with_endpoint(endpoint.to_owned());
            }
            if options.anonymous {
                builder = builder.with_skip_signature(true);
            }
            for (name, value) in &options.settings {
                builder = builder.with_config(name.parse()?, value);
            }
            both(builder.with_client_options(http(options, endpoint)).with_retry(retry).build()?)
        }
        _ => {
            let url = format!("{scheme}://{host}");
            let client = http(options, Some(&url)).with_allow_http(true);
            (Arc::new(HttpBuilder::new().with_url(url).with_client_options(client).with_retry(retry).build()?), None)
        }
    })
}

/// How to reach a service of AWS beside S3.
pub(super) struct Account {
    pub(super) region: String,
    /// The URL of the service.
    pub(super) endpoint: String,
    /// None where requests are not signed.
    pub(super) credentials: Option<AwsCredentialProvider>,
    pub(super) client: HttpClient,
}

/// The account that a bucket is read with, for another service of AWS by the name that its hosts have.
///
/// Errors: as [`client`].
pub(super) fn account(service: &str, bucket: &str, options: &Options) -> Result<Account> {
    use AmazonS3ConfigKey::{Endpoint, Region, SkipSignature};
    secure();
    let builder = s3(bucket, options)?.with_retry(no_retry());
    let region = builder.get_config_value(&Region).unwrap_or_else(|| "us-east-1".to_owned());
    let of_service = std::env::var(format!("AWS_ENDPOINT_URL_{}", service.to_ascii_uppercase())).ok();
    let named = options.endpoint.clone().or(of_service).or_else(|| builder.get_config_value(&Endpoint));
    let endpoint = named.unwrap_or_else(|| {
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        format!("https://{service}.{region}.{domain}")
    });
    let is_signed = builder.get_config_value(&SkipSignature).is_none_or(|skips| skips != "true");
    let credentials = is_signed.then(|| builder.build().map(|client| Arc::clone(client.credentials()))).transpose()?;
    let client = ReqwestConnector::default().connect(&http(options, Some(&endpoint)))?;
    Ok(Account { region, endpoint, credentials, client })
}

/// Chooses what encrypts. A program that chose something else before keeps it.
fn secure() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Retries are ours.
fn no_retry() -> RetryConfig {
    RetryConfig { max_retries: 0, retry_timeout: Duration::ZERO, backoff: BackoffConfig::default() }
}

fn both<C: ObjectStore + MultipartStore>(client: C) -> Client {
    let client = Arc::new(client);
    (Arc::clone(&client) as Arc<dyn ObjectStore>, Some(client))
}

fn s3(bucket: &str, options: &Options) -> Result<AmazonS3Builder> {
    use AmazonS3ConfigKey::{AccessKeyId, Endpoint, Region, S3Endpoint, SecretAccessKey, SkipSignature, Token};
    let mut builder = AmazonS3Builder::from_env();
    let profile = Profile::of_environment();
    let has = |builder: &AmazonS3Builder, key| builder.get_config_value(&key).is_some();
    if !has(&builder, AccessKeyId)
        && let (Some(id), Some(secret)) = (&profile.access_key_id, &profile.secret_access_key)
    {
        builder = builder.with_config(AccessKeyId, id).with_config(SecretAccessKey, secret);
        if let Some(token) = &profile.session_token {
            builder = builder.with_config(Token, token);
        }
    }
    if let (false, Some(region)) = (has(&builder, Region), &profile.region) {
        builder = builder.with_config(Region, region);
    }
    if let (false, false, Some(endpoint)) = (has(&builder, Endpoint), has(&builder, S3Endpoint), &profile.endpoint_url)
    {
        builder = builder.with_config(Endpoint, endpoint);
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_config(S3Endpoint, endpoint);
    }
    if options.anonymous {
        builder = builder.with_config(SkipSignature, "true");
    }
    for (name, value) in &options.settings {
        builder = builder.with_config(name.parse()?, value);
    }
    let endpoint = builder.get_config_value(&S3Endpoint).or_else(|| builder.get_config_value(&Endpoint));
    Ok(builder.with_bucket_name(bucket).with_client_options(http(options, endpoint.as_deref())))
}

/// How requests are made. Without encryption only to this machine, or where the user says so.
fn http(options: &Options, endpoint: Option<&str>) -> ClientOptions {
    let local = endpoint.is_some_and(is_of_this_machine);
    // Who names such an endpoint here and now means it.
    let named = options.endpoint.as_deref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    let wished = ["AWS_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP", "AZURE_ALLOW_HTTP"].iter().any(|name| {
        std::env::var(name).is_ok_and(|value| ["1", "true"].contains(&value.to_ascii_lowercase().as_str()))
    });
    let client = ClientOptions::new()
        .with_allow_http(options.allow_http || local || named || wished)
        .with_connect_timeout(CONNECT)
        .with_timeout_disabled();
    if local { client.with_proxy_excludes("127.0.0.1,localhost,::1") } else { client }
}

fn is_of_this_machine(endpoint: &str) -> bool {
    let host = endpoint.split_once("://").map_or(endpoint, |(_, host)| host);
    ["127.0.0.1", "localhost", "[::1]"]
        .iter()
        .any(|own| host.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/'])))
}
