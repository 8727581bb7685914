//! Pagination of long lists, and the node's reports about its blocks and its configuration.

use crate::configuration::{reload, start};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tidepool_tests::arguments;
use tidepool_tests::cli::run_command;
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::http::{Client, Response};
use tidepool_tests::process::Server;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;

const TIMEOUT: Duration = Duration::from_secs(30);

fn get(store: &Store, path: &str) -> Response {
    Client::default().get(&format!("{}/api/v1/{path}", store.server.url())).expect("an answer")
}

fn answer(store: &Store, path: &str) -> Value {
    serde_json::from_slice(&get(store, path).body).expect("JSON")
}

#[test]
fn names_and_values_are_searched_and_given_by_parts() {
    let store = Store::start().expect("tidepool starts");
    let time_ms = now_ms();
    let lines =
        (0..500).map(|n| format!("Load_{n}_total{{n=\"{n}\",\"L.{n}\"=\"x\"}} 1 {time_ms}\n"));
    let url = store.server.url() + "/api/v1/import/prometheus";
    let body: String = lines.collect();
    let imported = Client::default().post(&url, &[], body.as_bytes()).expect("an answer");
    assert_eq!(imported.status, 204, "{}", imported.text());

    for path in ["labels", "label/__name__/values", "label/n/values"] {
        let all = answer(&store, path);
        assert!(all.get("total").is_none(), "{all}");
        let all: Vec<String> = serde_json::from_value(all["data"].clone()).expect("texts");
        assert!(all.len() >= 500, "{path}");
        for (search, words) in [("", vec![]), ("l 4 2", vec!["l", "4", "2"]), ("9", vec!["9"])] {
            let found: Vec<&String> = all.iter().filter(|text| has(text, &words)).collect();
            for (offset, limit) in [(0, 0), (0, 7), (3, 20), (10_000, 5)] {
                let search = search.replace(' ', "+");
                let part = answer(
                    &store,
                    &format!("{path}?search={search}&offset={offset}&limit={limit}"),
                );
                let end = if limit == 0 { found.len() } else { found.len().min(offset + limit) };
                let expected = found.get(offset..end).unwrap_or_default();
                let context = format!("{path} {search} {offset} {limit}");
                assert_eq!(part["data"], json!(expected), "{context}");
                assert_eq!(part["total"], json!(found.len()), "{context}");
                let is_cut_off = limit > 0 && found.len() > offset + limit;
                assert_eq!(part.get("warnings").is_some(), is_cut_off, "{context}");
            }
        }
        // A limit without an offset is upstream's.
        let first = answer(&store, &format!("{path}?limit=2"));
        assert_eq!((first["data"].clone(), first.get("total")), (json!(&all[..2]), None));
        assert_eq!(get(&store, &format!("{path}?offset=-1")).status, 400);
    }
}

/// Returns whether a text contains all words, in this order, in any case.
fn has(text: &str, words: &[&str]) -> bool {
    let mut rest = text.to_lowercase();
    words.iter().all(|word| match rest.split_once(word) {
        Some((_, behind)) => {
            rest = behind.to_owned();
            true
        }
        None => false,
    })
}

#[test]
fn blocks_are_listed_with_their_size() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let hour_ms = 3_600_000;
    let line =
        |n: i64| format!("old{{n=\"{}\"}} {n} {}\n", n % 5, now_ms() - (20 - n / 10) * hour_ms);
    let text: String = (0..100).map(line).collect();
    let import = arguments!["import", "--format=prometheus", "-", &data];
    let imported = run_command("tsdb", import, &text);
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    let unmerged = "--max-block-duration=2h";
    let store = Store::start_with(|config| config.data_in(&data).flag(unmerged));
    let store = store.expect("tidepool starts");

    let listed = answer(&store, "status/tsdb/blocks")["data"]["blocks"].clone();
    let mut expected = data_dir::blocks(&data).expect("blocks");
    assert!(expected.len() > 1, "{expected:?}");
    expected.sort_by_key(|block| block.min_ms);
    let found: Vec<Value> = listed.as_array().expect("blocks").clone();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        let folder = data.join(&expected.ulid);
        let meta = fs::read(folder.join("meta.json")).expect("a file");
        let mut meta: Value = serde_json::from_slice(&meta).expect("JSON");
        assert_eq!(meta["ulid"], json!(expected.ulid));
        meta["size"] = json!(bytes_of(&folder));
        assert_eq!(*found, meta);
    }

    let damaged = &expected[0].ulid;
    fs::write(data.join(damaged).join("meta.json"), "{").expect("it is written");
    let listed = answer(&store, "status/tsdb/blocks")["data"]["blocks"].clone();
    let found = listed.as_array().expect("blocks").iter().find(|one| one["ulid"] == json!(damaged));
    let error = found.expect("the block")["error"].to_string();
    assert!(error.contains("meta.json is damaged"), "{error}");

    // A read reports a block that it leaves out.
    let damaged = &expected[1];
    fs::write(data.join(&damaged.ulid).join("index"), "").expect("it is written");
    let range = format!("start={}&end={}", damaged.min_ms / 1000, damaged.min_ms / 1000 + 3_600);
    let reads = [
        format!("query_range?query=old&step=600&{range}"),
        format!("query?query=count_over_time(old[1d])&time={}", now_ms() / 1000),
        format!("series?match[]=old&{range}"),
        format!("labels?{range}"),
        format!("label/n/values?{range}"),
    ];
    for read in &reads {
        let warnings = answer(&store, read)["warnings"].to_string();
        let is_named = warnings.contains(&format!("block {} is damaged", damaged.ulid));
        assert!(is_named && warnings.contains("index"), "{read}: {warnings}");
    }
    let elsewhere = format!("query?query=old&time={}", now_ms() / 1000);
    assert!(!answer(&store, &elsewhere).to_string().contains(&damaged.ulid));
    assert!(store.metric("tidepool_blocks_damaged_total") >= Some(1.0));
    let listed = answer(&store, "status/tsdb/blocks")["data"]["blocks"].to_string();
    assert!(listed.contains("\"error\":\"index: "), "{listed}");

    // Without a read, both are found at the start. They used to be counted as if they were served.
    let store = store.restart(Server::terminate).expect("tidepool starts again");
    let served = (expected.len() - 2) as f64;
    let counted = || (store.metric("prometheus_tsdb_blocks_loaded") == Some(served)).then_some(());
    wait::until("them to be counted as not served", TIMEOUT, counted)
        .unwrap_or_else(|error| panic!("{error}\n{}", store.server.log()));
}

fn bytes_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let bytes = entries.map(|entry| match entry.metadata().expect("it is there") {
        found if found.is_dir() => bytes_of(&entry.path()),
        found => found.len(),
    });
    bytes.sum()
}

#[test]
fn targets_are_searched_and_given_by_parts() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let targets = |from: u16, to: u16| {
        let all: Vec<String> = (from..to).map(|n| format!("'127.0.0.2:{n}'")).collect();
        all.join(", ")
    };
    let config = format!(
        "scrape_configs:\n- job_name: down\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  \
         static_configs: [{{targets: [{}], labels: {{site: North}}}}]\n\
         - job_name: waiting\n  scrape_interval: 1h\n  \
         static_configs: [{{targets: [{}]}}]\n  relabel_configs:\n  \
         - {{source_labels: [__address__], regex: '.*9', action: drop}}\n",
        targets(1, 21),
        targets(101, 141),
    );
    let (store, _) = start(directory.path(), &config, &[]);
    let of = |query: &str| answer(&store, &format!("targets?{query}"));
    let urls = |answer: &Value| -> Vec<String> {
        let all = answer["data"]["activeTargets"].as_array().expect("targets");
        all.iter().map(|one| one["scrapeUrl"].as_str().expect("a text").to_owned()).collect()
    };
    // Nothing listens on these ports. On a busy machine a scrape may time out before it is refused.
    let total = |query: &str| of(query)["total"].clone();
    let are_down = || (total("health=down&scrapePool=down&offset=0") == json!(20)).then_some(());
    wait::until("scrapes", TIMEOUT, are_down).unwrap_or_else(|error| panic!("{error}"));
    let refused = "state=active&search=connection+refused&offset=0";
    let are_refused = || (total(refused) == json!(20)).then_some(());
    wait::until("refusals", TIMEOUT, are_refused)
        .unwrap_or_else(|error| panic!("{error}: {}", of(refused)));

    let all = of("state=active");
    assert!(all.get("total").is_none());
    assert_eq!(urls(&all).len(), 56);
    let part = of("state=active&search=north+127.0.0.2:1&limit=5&offset=3");
    // The ports 1 to 20 in the order of their texts: 1, 10, 11, …
    assert_eq!(part["total"], json!(11));
    assert_eq!(part["warnings"], json!(["results truncated due to limit"]));
    let whole = urls(&of("state=active&search=north+127.0.0.2:1&offset=0"));
    assert_eq!((whole.len(), urls(&part)), (11, whole[3..8].to_vec()));
    // Targets that are down come first, whatever their name.
    let first = urls(&of("state=active&offset=0&limit=20"));
    assert!(first.iter().all(|url| url.len() <= "http://127.0.0.2:20/metrics".len()), "{first:?}");
    assert_eq!(of("health=sick")["data"]["activeTargets"], json!([]));

    let dropped = of("state=dropped&search=waiting&offset=1&limit=2");
    assert_eq!(dropped["total"], json!(4));
    assert_eq!(dropped["data"]["droppedTargets"].as_array().map(Vec::len), Some(2));
    assert_eq!(dropped["data"]["droppedTargetCounts"]["waiting"], json!(4));
    for wrong in ["offset=x", "offset=-1", "limit=-1"] {
        assert_eq!(get(&store, &format!("targets?{wrong}")).status, 400, "{wrong}");
    }
}

#[test]
fn the_configuration_is_shown_without_secrets_and_as_it_was_reloaded() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let with = |interval: &str| {
        format!(
            "global:\n  scrape_interval: {interval}\n  external_labels: {{site: north}}\n\
             retention-time: 30d\nscrape_configs:\n- job_name: a\n  \
             basic_auth: {{username: anna, password: hunter2}}\n  \
             static_configs: [{{targets: ['127.0.0.1:1']}}]\n\
             remote_write:\n- url: http://127.0.0.1:1/w?token=hunter2\n  \
             headers: {{X-Key: hunter2}}\n",
        )
    };
    let expected = |interval: &str| {
        format!(
            "global:\n  scrape_interval: {interval}\n  external_labels:\n    \"site\": \"north\"\n\
             retention-time: 30d\nscrape_configs:\n- job_name: a\n  basic_auth:\n    \
             username: anna\n    password: <secret>\n  static_configs:\n  - targets:\n    \
             - \"127.0.0.1:1\"\nremote_write:\n- url: \"http://127.0.0.1:1/w?token=xxxxx\"\n  \
             headers:\n    X-Key: <secret>\n",
        )
    };
    let (store, path) = start(directory.path(), &with("30s"), &["--enable-lifecycle"]);
    let shown = || answer(&store, "status/config")["data"]["yaml"].clone();
    assert_eq!(shown(), json!(expected("30s")));
    fs::write(&path, with("45s")).expect("a file");
    assert_eq!(reload(&store).0, 200);
    assert_eq!(shown(), json!(expected("45s")));
    // An invalid file changes nothing.
    fs::write(&path, with("soon")).expect("a file");
    assert_ne!(reload(&store).0, 200);
    assert_eq!(shown(), json!(expected("45s")));

    // The shown text is a valid configuration, except for the secrets.
    let again = directory.path().join("again.yml");
    fs::write(&again, expected("45s")).expect("a file");
    let checked = run_command("check", arguments!["config", &again], "");
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
}
