//! Targets that come, change and go, by each kind of discovery.

use super::dns::Resolver;
use super::*;
use crate::config::{DnsConfig, DnsType, FileConfig, HttpConfig, Pattern};
use crate::labels::Labels;
use crate::target::TargetGroup;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tidepool_client::HttpClientConfig;
use tidepool_client::config::ShownUrl;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};
use tokio::time::timeout;
use url::Url;

/// Time between looks, which is short.
const INTERVAL: Duration = Duration::from_millis(20);

/// Timeout that no test reaches.
const TIMEOUT: Duration = Duration::from_secs(60);

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Returns all groups of all lists.
fn flat(groups: &Groups) -> Vec<&TargetGroup> {
    groups.iter().flat_map(|list| list.groups()).collect()
}

/// Returns the addresses of all groups, by source.
fn shown(groups: &Groups) -> Vec<String> {
    let one = |group: &TargetGroup| {
        let addresses: Vec<&str> =
            group.targets.iter().map(|target| target.get("__address__")).collect();
        let source = group.source.rsplit('/').next().unwrap_or_default();
        format!("{source} {}", addresses.join(","))
    };
    flat(groups).into_iter().map(one).collect()
}

/// Waits until the groups are these.
async fn wait_for(groups: &mut watch::Receiver<Groups>, expected: &[&str]) -> Groups {
    let found = timeout(TIMEOUT, groups.wait_for(|groups| shown(groups) == expected)).await;
    if let Ok(Ok(groups)) = &found {
        return Groups::clone(groups);
    }
    drop(found);
    panic!("{:?} are not {expected:?}", shown(&groups.borrow()));
}

/// Waits until a counter has grown twice, so that the discovery has looked again in between.
async fn wait_for_failures(options: &DiscoveryOptions, at: usize) {
    let count = || options.figures.counters()[at].2;
    let before = count();
    let grows = async {
        while count() < before + 2 {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    timeout(TIMEOUT, grows).await.expect("failures");
}

fn start(config: DiscoveryConfig, options: &DiscoveryOptions) -> Discovery {
    Discovery::start(&[config], options).expect("it starts")
}

#[tokio::test]
async fn static_lists_are_there_at_once() {
    let group = TargetGroup {
        source: "0".into(),
        targets: vec![labels(&[("__address__", "a:1")])],
        labels: labels(&[("rack", "7")]),
    };
    let discovery =
        start(DiscoveryConfig::Static(Arc::new(vec![group.clone()])), &DiscoveryOptions::default());
    assert_eq!(flat(&discovery.groups().borrow()), [&group]);
}

fn files(folder: &Path, patterns: &[&str]) -> DiscoveryConfig {
    let pattern = |text: &&str| {
        let mut pattern = Pattern::parse(text).expect("a pattern");
        pattern.set_directory(folder);
        pattern
    };
    let files = patterns.iter().map(pattern).collect();
    DiscoveryConfig::File(FileConfig { files, refresh_interval: INTERVAL })
}

#[tokio::test]
async fn files_are_read_again_and_a_bad_one_keeps_its_targets() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write(
        "a.json",
        r#"[{"targets": ["a:1", "a:2"], "labels": {"x": "y"}}, {"targets": ["b:1"]}]"#,
    )?;
    write("one.yml", "- targets: ['c:1']\n  labels: {n: 1}\n")?;
    let options = DiscoveryOptions::default();
    let discovery = start(files(folder.path(), &["*.json", "one.yml"]), &options);
    let mut groups = discovery.groups();
    let found = wait_for(&mut groups, &["a.json:0 a:1,a:2", "a.json:1 b:1", "one.yml:0 c:1"]).await;
    let path = folder.path().join("a.json").display().to_string();
    assert_eq!(flat(&found)[0].source, format!("{path}:0"));
    assert_eq!(flat(&found)[0].labels, labels(&[("x", "y"), ("__meta_filepath", &path)]));
    assert_eq!(flat(&found)[2].labels.get("n"), "1");
    // One that cannot be read stays as it was, whatever is wrong with it.
    for wrong in ["[{", "[null]", "{}", "[{\"target\": []}]", "[{\"labels\": {\"\": \"a\"}}]"] {
        write("a.json", wrong)?;
        write("b.json", r#"[{"targets": ["d:1"]}]"#)?;
        wait_for(
            &mut groups,
            &["a.json:0 a:1,a:2", "a.json:1 b:1", "b.json:0 d:1", "one.yml:0 c:1"],
        )
        .await;
        std::fs::remove_file(folder.path().join("b.json"))?;
        wait_for(&mut groups, &["a.json:0 a:1,a:2", "a.json:1 b:1", "one.yml:0 c:1"]).await;
    }
    assert!(options.figures.counters()[0].2 >= 5);
    // Fewer groups, none, and no file.
    write("a.json", r#"[{"targets": ["a:3"]}]"#)?;
    wait_for(&mut groups, &["a.json:0 a:3", "one.yml:0 c:1"]).await;
    write("a.json", "[]")?;
    wait_for(&mut groups, &["one.yml:0 c:1"]).await;
    std::fs::remove_file(folder.path().join("one.yml"))?;
    wait_for(&mut groups, &[]).await;
    Ok(())
}

/// Changes files as mounted configuration does: the link of the directory above is swapped, and no
/// file in it changes.
#[tokio::test]
async fn a_swapped_link_is_seen() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    for (version, text) in [("v1", "- targets: [a]\n"), ("v2", "- targets: [b]\n")] {
        std::fs::create_dir(path(version))?;
        std::fs::write(path(version).join("list.yml"), text)?;
    }
    std::os::unix::fs::symlink("v1", path("now"))?;
    std::os::unix::fs::symlink("now/list.yml", path("list.yml"))?;
    let discovery = start(files(folder.path(), &["list.yml"]), &DiscoveryOptions::default());
    let mut groups = discovery.groups();
    wait_for(&mut groups, &["list.yml:0 a"]).await;
    std::os::unix::fs::symlink("v2", path("next"))?;
    std::fs::rename(path("next"), path("now"))?;
    wait_for(&mut groups, &["list.yml:0 b"]).await;
    Ok(())
}

/// A server that answers each request with a head and a body that a test may change.
struct Lists {
    answer: Arc<Mutex<(String, String)>>,
    heads: Arc<Mutex<Vec<String>>>,
    url: String,
}

const GOOD: &str = "200 OK\r\ncontent-type: application/json; charset=utf-8";

impl Lists {
    async fn start(body: &str) -> Lists {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/list?a=b", listener.local_addr().expect("an address"));
        let answer = Arc::new(Mutex::new((GOOD.to_owned(), body.to_owned())));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let lists = Lists { answer: Arc::clone(&answer), heads: Arc::clone(&heads), url };
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { break };
                    head.push(byte);
                }
                heads.lock().expect("a lock").push(String::from_utf8_lossy(&head).into_owned());
                let (head, body) = answer.lock().expect("a lock").clone();
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        lists
    }

    fn answers(&self, head: &str, body: &str) {
        *self.answer.lock().expect("a lock") = (head.to_owned(), body.to_owned());
    }
}

fn http(url: &str, refresh_interval: Duration) -> DiscoveryConfig {
    DiscoveryConfig::Http(Box::new(HttpConfig {
        url: ShownUrl(Url::parse(url).expect("a URL")),
        url_text: url.to_owned(),
        refresh_interval,
        client: HttpClientConfig::default(),
    }))
}

#[tokio::test]
async fn a_server_lists_targets_and_its_last_list_survives_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = DiscoveryOptions {
        saved_dir: Some(folder.path().join("sd")),
        ..DiscoveryOptions::default()
    };
    let lists = Lists::start(r#"[{"targets": ["a:1"], "labels": {"x": "y"}}]"#).await;
    let discovery = start(http(&lists.url, INTERVAL), &options);
    let mut groups = discovery.groups();
    let found = wait_for(&mut groups, &["list?a=xxxxx:0 a:1"]).await;
    assert_eq!(flat(&found)[0].labels, labels(&[("x", "y"), ("__meta_url", &lists.url)]));
    let head = lists.heads.lock().expect("a lock")[0].to_ascii_lowercase();
    assert!(head.starts_with("get /list?a=b "), "{head}");
    assert!(head.contains("\r\nx-prometheus-refresh-interval-seconds: 0.02\r\n"), "{head}");
    assert!(head.contains("\r\naccept: application/json\r\n"), "{head}");
    for (head, body) in [
        ("500 Internal Server Error\r\ncontent-type: application/json", "[]"),
        ("200 OK\r\ncontent-type: text/plain", "[]"),
        (GOOD, "[null]"),
        (GOOD, "[{\"targets\": [1]}]"),
        (GOOD, "[{\"targets\": [], \"other\": 1}]"),
        (GOOD, "[]]"),
    ] {
        lists.answers(head, body);
        wait_for_failures(&options, 1).await;
        assert_eq!(shown(&groups.borrow()), ["list?a=xxxxx:0 a:1"], "{head} {body}");
    }
    lists.answers(GOOD, r#"[{"targets": ["b:1"]}, {"targets": []}, {"targets": ["c:1"]}]"#);
    wait_for(&mut groups, &["list?a=xxxxx:0 b:1", "list?a=xxxxx:2 c:1"]).await;
    drop(discovery);

    // The next start knows them before the server answers, and keeps them while it does not.
    lists.answers("503 Service Unavailable", "");
    let discovery = start(http(&lists.url, INTERVAL), &options);
    let mut groups = discovery.groups();
    let known = ["list?a=xxxxx:0 b:1", "list?a=xxxxx:2 c:1"];
    assert_eq!(shown(&groups.borrow()), known);
    wait_for_failures(&options, 1).await;
    assert_eq!(shown(&groups.borrow()), known);
    lists.answers(GOOD, "[]");
    wait_for(&mut groups, &[]).await;
    drop(discovery);

    // One that is damaged is as none, and that of another URL is another one.
    lists.answers(GOOD, r#"[{"targets": ["c:1"]}]"#);
    for entry in std::fs::read_dir(folder.path().join("sd")).expect("a folder") {
        std::fs::write(entry.expect("an entry").path(), "[{\"targets\": [\"").expect("a file");
    }
    let discovery = start(http(&lists.url, INTERVAL), &options);
    assert_eq!(shown(&discovery.groups().borrow()), [""; 0]);
    wait_for(&mut discovery.groups(), &["list?a=xxxxx:0 c:1"]).await;
    let other = start(http("http://127.0.0.1:1/", TIMEOUT), &options);
    assert_eq!(shown(&other.groups().borrow()), [""; 0]);
}

/// Each target of the long list takes 200 bytes and more; one list may take half of the memory.
#[tokio::test]
async fn a_list_without_room_leaves_the_targets_that_there_were() -> std::io::Result<()> {
    const BYTES_MAX: u64 = 1 << 20;
    let long = format!("[{}]", vec![r#"{"targets":["a:1"]}"#; 5000].join(","));
    let lists = Lists::start(r#"[{"targets": ["a:1"]}]"#).await;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("list.json");
    std::fs::write(&file, r#"[{"targets": ["b:1"]}]"#)?;
    let options =
        DiscoveryOptions { memory: MemoryBound::new(BYTES_MAX), ..DiscoveryOptions::default() };
    let configs = [http(&lists.url, INTERVAL), files(folder.path(), &["list.json"])];
    let discovery = Discovery::start(&configs, &options).expect("it starts");
    let mut groups = discovery.groups();
    let known = ["list?a=xxxxx:0 a:1", "list.json:0 b:1"];
    wait_for(&mut groups, &known).await;
    lists.answers(GOOD, &long);
    std::fs::write(&file, &long)?;
    wait_for_failures(&options, 1).await;
    // It is tried again: there may be room next time.
    wait_for_failures(&options, 0).await;
    assert_eq!(shown(&groups.borrow()), known);
    assert!(options.memory.refused() >= 4);
    lists.answers(GOOD, "[]");
    std::fs::write(&file, r#"[{"targets": ["c:1"]}]"#)?;
    wait_for(&mut groups, &["list.json:0 c:1"]).await;
    // One list as it is, and all else was given back.
    let held = async {
        while options.memory.held_bytes() > 400 {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    timeout(TIMEOUT, held).await.expect("what was refused takes nothing");
    drop((discovery, groups));
    let group = |at: usize| TargetGroup {
        source: at.to_string(),
        targets: vec![labels(&[("__address__", "a:1")])],
        ..TargetGroup::default()
    };
    let listed = DiscoveryConfig::Static(Arc::new((0..5000).map(group).collect()));
    let refused = Discovery::start(&[listed], &options).expect_err("no room");
    let start = "static_configs: no memory left for this list of targets: ";
    assert!(refused.to_string().starts_with(start), "{refused}");
    Ok(())
}

/// A DNS server that answers by UDP and TCP as a test says: a code, and a host by its first label.
struct Dns {
    port: u16,
    code: Arc<AtomicUsize>,
}

/// Truncated by UDP, and whole by TCP.
const TRUNCATED: usize = 0x0200;

impl Dns {
    async fn start() -> Dns {
        let code = Arc::new(AtomicUsize::new(0));
        // The same port for both; one that is taken is tried again.
        let (udp, tcp, port) = loop {
            let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let port = tcp.local_addr().expect("an address").port();
            if let Ok(udp) = UdpSocket::bind(("127.0.0.1", port)).await {
                break (udp, tcp, port);
            }
        };
        let by_udp = Arc::clone(&code);
        tokio::spawn(async move {
            let mut buffer = [0; 1500];
            while let Ok((bytes, from)) = udp.recv_from(&mut buffer).await {
                let code = by_udp.load(Relaxed);
                // An answer with another id comes first.
                let mut other = reply(&buffer[..bytes], 0);
                other[0] ^= 0xff;
                let _ = udp.send_to(&other, from).await;
                let _ = udp.send_to(&reply(&buffer[..bytes], code), from).await;
            }
        });
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = tcp.accept().await {
                let Ok(length) = stream.read_u16().await else { continue };
                let mut question = vec![0; usize::from(length)];
                if stream.read_exact(&mut question).await.is_err() {
                    continue;
                }
                let reply = reply(&question, 0);
                let _ = stream.write_u16(reply.len() as u16).await;
                let _ = stream.write_all(&reply).await;
            }
        });
        Dns { port, code }
    }

    fn answers(&self, code: usize) {
        self.code.store(code, Relaxed);
    }
}

/// Makes the answer to a question: a service at the port 9100 of `node.` and the rest of the name.
fn reply(question: &[u8], code: usize) -> Vec<u8> {
    let end = 12 + question[12..].iter().position(|byte| *byte == 0).expect("a name") + 5;
    let mut reply = question[..end].to_vec();
    let flags = 0x8180 | code as u16;
    reply.splice(2..4, flags.to_be_bytes());
    reply.splice(8..12, [0; 4]);
    if code == 0 {
        reply.splice(6..8, [0, 1]);
        let rest = 12 + 1 + usize::from(question[12]);
        reply.extend([0xc0, 12, 0, 33, 0, 1, 0, 0, 0, 9, 0, 13, 0, 1, 0, 2]);
        reply.extend(9100u16.to_be_bytes());
        reply.extend(b"\x04node\xc0");
        reply.push(rest as u8);
    }
    reply
}

fn dns(names: &[&str], kind: DnsType) -> DiscoveryConfig {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    DiscoveryConfig::Dns(DnsConfig { names, refresh_interval: INTERVAL, kind })
}

#[tokio::test]
async fn services_are_looked_up() {
    let server = Dns::start().await;
    let settings = "nameserver 127.0.0.1\nsearch inside.example\noptions timeout:1 attempts:1\n";
    let resolver = Some(Resolver::parse(settings, server.port));
    let options = DiscoveryOptions { resolver, ..DiscoveryOptions::default() };
    let discovery = start(dns(&["_web.a.example.", "_web"], DnsType::Srv), &options);
    let mut groups = discovery.groups();
    let known = ["_web node.inside.example:9100", "_web.a.example. node.a.example:9100"];
    let found = wait_for(&mut groups, &known).await;
    let expected = labels(&[
        ("__address__", "node.a.example:9100"),
        ("__meta_dns_name", "_web.a.example."),
        ("__meta_dns_srv_record_port", "9100"),
        ("__meta_dns_srv_record_target", "node.a.example."),
    ]);
    assert_eq!(flat(&found)[1].targets, [expected]);
    // The servers fail; nothing changes.
    server.answers(2);
    wait_for_failures(&options, 3).await;
    assert_eq!(shown(&groups.borrow()), known);
    // All know that there is no such name.
    server.answers(3);
    wait_for(&mut groups, &["_web ", "_web.a.example. "]).await;
    // What does not fit comes by TCP.
    server.answers(TRUNCATED);
    wait_for(&mut groups, &known).await;
    let odd = start(dns(&["a..b"], DnsType::Srv), &options);
    wait_for_failures(&options, 3).await;
    assert_eq!(shown(&odd.groups().borrow()), [""; 0]);
}

#[tokio::test]
async fn addresses_are_those_of_the_system() {
    let options = DiscoveryOptions::default();
    let discovery = start(dns(&["localhost"], DnsType::A(9100)), &options);
    let found = wait_for(&mut discovery.groups(), &["localhost 127.0.0.1:9100"]).await;
    assert_eq!(flat(&found)[0].targets[0].get("__meta_dns_name"), "localhost");
}

/// Regression: a node that started without its uplink could not look up the names of its targets,
/// so it scraped none of them.
#[tokio::test]
async fn answers_of_the_dns_survive_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Dns::start().await;
    let settings = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n";
    let options = DiscoveryOptions {
        resolver: Some(Resolver::parse(settings, server.port)),
        saved_dir: Some(folder.path().join("sd")),
        ..DiscoveryOptions::default()
    };
    let discovery = start(dns(&["_web.a.example."], DnsType::Srv), &options);
    let known = ["_web.a.example. node.a.example:9100"];
    let found = wait_for(&mut discovery.groups(), &known).await;
    drop(discovery);

    server.answers(2);
    let discovery = start(dns(&["_web.a.example."], DnsType::Srv), &options);
    assert_eq!(flat(&discovery.groups().borrow()), flat(&found), "before the first answer");
    assert!(*discovery.has_answered().borrow());
    wait_for_failures(&options, 3).await;
    assert_eq!(shown(&discovery.groups().borrow()), known);
    drop(discovery);

    let both = start(dns(&["_web.a.example.", "_web.b.example."], DnsType::Srv), &options);
    assert_eq!(shown(&both.groups().borrow()), known);
    assert!(!*both.has_answered().borrow(), "one name is new");
    server.answers(0);
    let mut has_answered = both.has_answered();
    let answered = timeout(TIMEOUT, has_answered.wait_for(|answered| *answered)).await;
    assert!(answered.is_ok_and(|answered| answered.is_ok()));
    assert_eq!(both.groups().borrow().len(), 2, "the groups are there first");
}

#[tokio::test]
async fn files_have_answered_once_all_were_read() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("a.json"), r#"[{"targets": ["a:1"]}]"#)?;
    std::fs::write(folder.path().join("b.json"), "[{")?;
    let options = DiscoveryOptions::default();
    let discovery = start(files(folder.path(), &["*.json"]), &options);
    wait_for(&mut discovery.groups(), &["a.json:0 a:1"]).await;
    // It is read again, and is still wrong.
    std::fs::write(folder.path().join("b.json"), "[[")?;
    let read_again = async {
        while options.figures.counters()[0].2 < 2 {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    timeout(TIMEOUT, read_again).await.expect("a second failure");
    let mut has_answered = discovery.has_answered();
    assert!(!*has_answered.borrow(), "one cannot be read");
    std::fs::write(folder.path().join("b.json"), "[]")?;
    let answered = timeout(TIMEOUT, has_answered.wait_for(|answered| *answered)).await;
    assert!(answered.is_ok_and(|answered| answered.is_ok()));
    Ok(())
}
