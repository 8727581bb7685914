//! Accepted and refused settings of the section `plugins`.

use super::*;

fn settings(text: &str) -> Result<Vec<PluginSettings>, yaml::Error> {
    yaml::load(text).and_then(|node| read(&node))
}

#[test]
fn all_keys_are_read() {
    let text = "- name: a\n- name: b\n  file: c.wasm\n  order: -3\n  \
                on-fault: reject\n  schedule: 5m\n  config: |\n    x: 1\n    y: 2\n  \
                limits: {memory: 1MiB, time: 2s, output: 3KiB, queue: 4, instances: 5}\n  \
                grants:\n    webhooks: [http://127.0.0.1:9093/x]\n    directory: /\n    \
                writable: true\n";
    let expected = PluginSettings {
        name: "b".into(),
        file: "c.wasm".into(),
        world: None,
        order: -3,
        on_fault: OnFault::Reject,
        config: "x: 1\ny: 2\n".into(),
        schedule: Duration::from_secs(300),
        paths: Vec::new(),
        limits: Limits {
            memory_bytes_max: 1 << 20,
            time: Some(Duration::from_secs(2)),
            output_bytes_max: 3 << 10,
            queue: 4,
            instances: 5,
        },
        grants: Grants {
            webhooks: vec!["http://127.0.0.1:9093/x".into()],
            directory: Some("/".into()),
            is_writable: true,
        },
    };
    assert_eq!(settings(text), Ok(vec![PluginSettings::named("a"), expected]));
    let job = settings("- {name: a, world: job}").map(|all| all[0].world);
    assert_eq!(job, Ok(Some(World::Job)));
    let decoder = "- {name: a, world: decoder, paths: [/write, /api/v2/write]}";
    let paths = settings(decoder).map(|all| all.into_iter().flat_map(|p| p.paths).collect());
    assert_eq!(paths, Ok(vec!["/write".to_owned(), "/api/v2/write".to_owned()]));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, said) in [
        ("a: b\n", "1:1: plugins: expected a list"),
        ("- name: a\n- order: 1\n", "2:3: plugins[1]: name is missing"),
        ("- name: a/b\n", "1:9: plugins[0].name: \"a/b\" is not a plugin name"),
        ("- name: a\n- name: a\n", "2:3: plugins[1].name: a is there already"),
        ("- name: a\n  world: filter\n", "2:10: plugins[0].world: \"filter\" is not a world"),
        ("- name: a\n  ordr: 1\n", "2:3: plugins[0].ordr: there is no such key; there are name, "),
        ("- name: a\n  order: first\n", "2:10: plugins[0].order: expected a whole number"),
        (
            "- name: a\n  on-fault: ignore\n",
            "2:13: plugins[0].on-fault: expected one of pass, reject",
        ),
        (
            "- name: a\n  limits: {memory: much}\n",
            "2:20: plugins[0].limits.memory: \"much\" is not a size",
        ),
        (
            "- name: a\n  limits:\n    time: 5\n",
            "3:11: plugins[0].limits.time: \"5\" is not a duration",
        ),
        (
            "- name: a\n  limits: {queue: 0}\n",
            "2:19: plugins[0].limits.queue: expected a whole number from 1 to 1024",
        ),
        (
            "- name: a\n  limits: {memory: 65535B}\n",
            "2:20: plugins[0].limits.memory: expected at least 64KiB",
        ),
        (
            "- name: a\n  limits: {output: 0B}\n",
            "2:20: plugins[0].limits.output: expected at least 1 byte",
        ),
        ("- name: a\n  limits: {time: 0s}\n", "2:18: plugins[0].limits.time: \"0s\" is zero"),
        (
            "- name: a\n  limits: {time: 100000d}\n",
            "2:18: plugins[0].limits.time: expected a duration from 1ms to 24h",
        ),
        (
            "- name: a\n  schedule: 100000d\n",
            "2:13: plugins[0].schedule: expected a duration from 1s to 366d",
        ),
        (
            "- name: a\n  grants: {directory: /no/such}\n",
            "2:23: plugins[0].grants.directory: the directory \"/no/such\" cannot be granted",
        ),
        (
            "- name: a\n  grants: {directory: /dev/null}\n",
            "2:23: plugins[0].grants.directory: \"/dev/null\" is not a directory",
        ),
        (
            "- name: a\n  grants: {writable: true}\n",
            "2:11: plugins[0].grants: writable: it needs a directory",
        ),
        (
            "- name: a\n  grants: {writable: 'true'}\n",
            "2:22: plugins[0].grants.writable: expected true or false",
        ),
        (
            "- {name: a, world: job, on-fault: reject}\n",
            "1:3: plugins[0]: only transforms have on-fault",
        ),
        ("- {name: a, world: decoder, order: 1}\n", "1:3: plugins[0]: only transforms have order"),
        (
            "- {name: a, world: observer, schedule: 5m}\n",
            "1:3: plugins[0]: only jobs have schedule",
        ),
        ("- {name: a, world: job, limits: {queue: 3}}\n", "1:3: plugins[0]: only observers have"),
        (
            "- {name: a, world: job, limits: {instances: 3}}\n",
            "1:3: plugins[0]: only transforms and decoders",
        ),
        (
            "- {name: a, world: decoder, grants: {webhooks: ['http://x']}}\n",
            "1:3: plugins[0]: only jobs and",
        ),
        (
            "- name: a\n  grants:\n    webhooks: [ftp://secret]\n",
            "3:16: plugins[0].grants.webhooks[0]: expected a URL",
        ),
        (
            "- name: a\n  file: ../x.wasm\n",
            "2:9: plugins[0].file: \"../x.wasm\" is not the name of a .wasm file",
        ),
        ("- name: a\n  schedule: 10ms\n", "2:13: plugins[0].schedule: expected a duration from 1s"),
        (
            "- name: a\n  paths: [write]\n",
            "2:11: plugins[0].paths[0]: \"write\" is not a path such as",
        ),
        (
            "- name: a\n  paths:\n    - /w\n    - /api/v1/write\n",
            "4:7: plugins[0].paths[1]: \"/api/v1/write\" is reserved",
        ),
        ("- name: a\n  paths: [/metrics]\n", "2:11: plugins[0].paths[0]: \"/metrics\" is reserved"),
        (
            "- name: a\n  paths: ['/a b']\n",
            "2:11: plugins[0].paths[0]: \"/a b\" is not a path such as",
        ),
        ("- name: a\n  paths: [/w]\n  world: job\n", "1:3: plugins[0]: only decoders have paths"),
        (
            "- {name: a, paths: [/w]}\n- {name: b, paths: [/v, /w]}\n",
            "2:3: plugins[1].paths: \"/w\" is taken by a",
        ),
    ] {
        let error = settings(text).expect_err(text).to_string();
        assert!(error.starts_with(said) && !error.contains("secret"), "{text:?}: {error}");
    }
}
