//! Configurations that result from command lines.

use super::*;
use tidepool_lifecycle::processors::processors;
use tidepool_query::{QueryConfig, QueryFeatures};

/// Reads a command line without the program's name.
pub fn read(arguments: &[&str]) -> Result<(ServeConfig, Settings), ConfigError> {
    let arguments = ["tidepool"].iter().chain(arguments).map(|text| (*text).into());
    ConfigSource::new(arguments).serve()
}

#[test]
fn the_defaults_and_the_named_command_agree() -> Result<(), ConfigError> {
    let (bare, settings) = read(&[])?;
    let named = read(&["serve"])?;
    assert_eq!(format!("{bare:?} {settings:?}"), format!("{:?} {:?}", named.0, named.1));
    assert_eq!(bare.http.listen.to_string(), "127.0.0.1:9201");
    Ok(())
}

#[test]
fn the_command_line_is_well_formed() {
    source::command::<crate::cli::CliCommand>().debug_assert();
}

#[test]
fn flags_that_need_others_are_named() {
    for (arguments, expected) in [
        (["--tls-cert-file=a", ""], "--tls-cert-file needs --tls-key-file"),
        (["--tls-key-file=a", ""], "--tls-key-file needs --tls-cert-file"),
        (["--tls-client-ca-file=a", ""], "--tls-client-ca-file needs --tls-cert-file"),
        (["--label=a=b", "--label=a=c"], "--external-label sets the label \"a\" twice"),
    ] {
        let arguments: Vec<&str> = arguments.into_iter().filter(|text| !text.is_empty()).collect();
        let error = read(&arguments).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(expected));
    }
}

#[test]
fn limits_without_which_nothing_works_are_refused_with_their_flag() {
    for (flag, least) in [
        ("--memory-limit", "96MiB"),
        ("--head-memory-limit", "8MiB"),
        ("--reads-memory-limit", "8MiB"),
        ("--query-memory-limit", "3MiB"),
        ("--compactor-memory-limit", "8MiB"),
        ("--remote-write-memory-limit", "3MiB"),
        ("--plugins-memory-limit", "1MiB"),
        ("--max-inflight-bytes", "64KiB"),
        ("--max-request-size", "1KiB"),
        ("--wal-buffer-size", "32KiB"),
        ("--read-max-bytes-in-frame", "1KiB"),
    ] {
        let error = read(&[&format!("{flag}=1")]).err().map(|error| error.to_string());
        let error = error.unwrap_or_default();
        assert!(error.contains(flag) && error.contains(least), "{flag}: {error}");
    }
    assert!(read(&["--max-connections=0"]).is_err());
}

#[test]
fn flags_are_shown_as_they_were_given() -> Result<(), ConfigError> {
    for words in [&[][..], &["serve"]] {
        let given = ["--external-label=a=b", "--label=c=d", "--enable-admin-api"];
        let words: Vec<&str> = words.iter().copied().chain(given).collect();
        let (config, _) = read(&words)?;
        let shown = |name: &str| config.http.flags.get(name).map(String::as_str);
        assert_eq!(shown("external-label"), Some("a=b,c=d"));
        assert_eq!(shown("enable-admin-api"), Some("true"));
        assert_eq!(shown("web.enable-admin-api"), Some("true"));
        assert_eq!(shown("block-duration"), Some("2h"));
        assert_eq!(shown("memory-limit"), Some(""));
        assert_eq!((shown("help"), shown("version")), (None, None));
    }
    Ok(())
}

#[test]
fn the_defaults_are_those_of_prometheus() -> Result<(), ConfigError> {
    let expected = QueryConfig {
        threads_max: processors(),
        thread_samples: 500_000,
        running_max: 20,
        timeout: Duration::from_secs(120),
        samples_max: 50_000_000,
        lookback: Duration::from_secs(300),
        subquery_step: Duration::from_secs(60),
        logged_from: Duration::ZERO,
        cache_bytes_max: 16 << 20,
        features: QueryFeatures::default(),
    };
    assert_eq!(read(&[])?.0.queries, expected);
    Ok(())
}

#[test]
fn features_are_lists_and_may_be_repeated() -> Result<(), ConfigError> {
    let (config, settings) = read(&[
        "--enable-feature=promql-experimental-functions,promql-per-step-stats",
        "--enable-feature=promql-delayed-name-removal,type-and-unit-labels",
        "--enable-feature=use-start-timestamps",
        "--enable-feature=exemplar-storage,promql-duration-expr",
    ])?;
    let features = config.queries.features;
    let expected = QueryFeatures {
        experimental_functions: true,
        delayed_name_removal: true,
        type_and_unit_labels: true,
        start_timestamps: true,
        per_step_stats: true,
        ..QueryFeatures::default()
    };
    assert_eq!(features, expected);
    let shown = settings.iter().find(|(name, _)| *name == "enable-feature");
    assert_eq!(shown.map(|(_, values)| values.len()), Some(7));
    let error = read(&["--enable-feature=agent"]).err().map(|error| error.to_string());
    let error = error.unwrap_or_default();
    assert!(error.contains("promql-binop-fill-modifiers"), "{error}");
    assert!(!error.contains("ooo-native-histograms"), "{error}");
    Ok(())
}
