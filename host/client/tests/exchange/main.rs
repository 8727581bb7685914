//! Requests over real sockets: redirects, credentials, limits, connections that end.

mod proxied;
mod secure;
mod server;
mod tokens;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, StatusCode};
use server::{Server, answer};
use std::net::SocketAddr;
use std::time::Duration;
use tidepool_client::{Ask, Client, ClientError, ConnectLimits, HttpClientConfig, StreamedBody};
use tidepool_settings::yaml;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use url::Url;

/// Longer than any test takes.
const TIMEOUT: Duration = Duration::from_secs(60);

fn config(text: &str) -> HttpClientConfig {
    let read = yaml::load(text).and_then(|node| yaml::read("", &node));
    read.unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn client(text: &str) -> Client {
    Client::open(&config(text)).expect("a client")
}

fn get(url: &str) -> Ask {
    Ask { timeout: Some(TIMEOUT), ..Ask::get(Url::parse(url).expect("a URL")) }
}

fn post(url: &str, body: &str) -> Ask {
    let mut ask = Ask { method: Method::POST, body: Bytes::from(body.to_owned()), ..get(url) };
    ask.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    ask
}

/// Sends a request; returns status and text.
async fn sent(client: &Client, ask: Ask) -> Result<(u16, String), ClientError> {
    let answer = client.send(ask).await?;
    let status = answer.status.as_u16();
    Ok((status, String::from_utf8_lossy(&answer.bytes().await?).into_owned()))
}

fn ok(text: &str) -> Result<(u16, String), ClientError> {
    Ok((200, text.to_owned()))
}

/// A server of bytes: hands each connection to a function.
async fn raw<F, R>(serve: F) -> SocketAddr
where
    F: Fn(usize, TcpStream) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let mut number = 0;
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(number, stream));
            number += 1;
        }
    });
    address
}

/// Reads the head of a request.
async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

#[tokio::test]
async fn redirects_keep_the_request_or_make_it_a_get() {
    let server = Server::start(|seen| match seen.uri.path() {
        "/found" => answer(302, &[("location", "/end")], ""),
        "/same" => answer(307, &[("location", "end?x=1")], ""),
        "/loop" => answer(301, &[("location", "/loop")], ""),
        _ => answer(200, &[], "end"),
    })
    .await;
    let url = |path: &str| format!("http://{}/{path}", server.address);
    let following = client("");
    assert_eq!(sent(&following, post(&url("found"), "body")).await, ok("end"));
    let last = server.log.last();
    assert_eq!((last.method, last.body.as_ref()), (Method::GET, &b""[..]));
    assert_eq!(last.headers.get(CONTENT_TYPE), None);
    assert_eq!(sent(&following, post(&url("same"), "body")).await, ok("end"));
    let last = server.log.last();
    assert_eq!((last.method, last.body.as_ref()), (Method::POST, &b"body"[..]));
    assert_eq!(last.uri.to_string(), "/end?x=1");
    let answer = following.send(get(&url("found"))).await.expect("an answer");
    assert_eq!(answer.url.path(), "/end");

    let before = server.log.all().len();
    let failed = sent(&following, get(&url("loop"))).await;
    assert_eq!(failed, Err(ClientError::Redirects(10)));
    assert_eq!(server.log.all().len() - before, 10);
    let staying = client("follow_redirects: false");
    assert_eq!(sent(&staying, get(&url("found"))).await, Ok((302, String::new())));
}

/// Upstream's `TestCrossHostRedirect…`: secrets go neither to another host, nor back from there.
#[tokio::test]
async fn secrets_are_not_sent_to_another_host() {
    let server = Server::start(|seen| {
        let port = seen.header("host").and_then(|host| host.split_once(':')).map(|(_, port)| port);
        let port = port.unwrap_or_default();
        match seen.uri.path() {
            "/near" => answer(307, &[("location", "/end")], ""),
            "/far" => answer(307, &[("location", &format!("http://localhost:{port}/back"))], ""),
            "/back" => answer(307, &[("location", &format!("http://127.0.0.1:{port}/end"))], ""),
            _ => answer(200, &[], "end"),
        }
    })
    .await;
    let client = client(
        "authorization: {credentials: hunter2}\n\
         http_headers: {X-Key: {secrets: [hunter2]}, X-Plain: {values: [a]}, Cookie: {values: [b]}}",
    );
    let url = |path: &str| format!("http://{}/{path}", server.address);
    let of_last = || {
        let last = server.log.last();
        let names = ["authorization", "x-key", "cookie", "x-plain"];
        names.map(|name| last.headers.contains_key(name))
    };
    assert_eq!(sent(&client, get(&url("near"))).await, ok("end"));
    assert_eq!(of_last(), [true; 4]);
    assert_eq!(sent(&client, get(&url("far"))).await, ok("end"));
    assert_eq!(server.log.all().len(), 5);
    assert_eq!(of_last(), [false, false, false, true]);
}

#[tokio::test]
async fn secrets_are_read_for_each_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    let server = Server::start(|seen| {
        answer(200, &[], &format!("{:?} {:?}", seen.header("authorization"), seen.header("x-key")))
    })
    .await;
    let url = format!("http://{}/", server.address);
    std::fs::write(&path, " one\n").expect("a file");
    let shown = path.display();
    let by_name = client(&format!(
        "basic_auth: {{username_file: {shown}, password: b}}\nhttp_headers: {{X-Key: {{files: [{shown}]}}}}"
    ));
    assert_eq!(sent(&by_name, get(&url)).await, ok("Some(\"Basic b25lOmI=\") Some(\"one\")"));
    std::fs::write(&path, "two\n").expect("a file");
    assert_eq!(sent(&by_name, get(&url)).await, ok("Some(\"Basic dHdvOmI=\") Some(\"two\")"));
    std::fs::write(&path, "a\nb\n").expect("a file");
    let error = sent(&by_name, get(&url)).await.map_err(|error| error.to_string());
    assert_eq!(
        error,
        Err("http_headers.files has characters that cannot be sent in a header".into())
    );
    std::fs::remove_file(&path).expect("it goes");
    let opened = Client::open(&config(&format!("authorization: {{credentials_file: {shown}}}")));
    let said = format!("authorization.credentials_file {shown}: No such file");
    assert!(opened.is_err_and(|error| error.to_string().starts_with(&said)));

    let plain = client("");
    let with_user = url.replace("http://", "http://me:p%40ss@");
    assert_eq!(sent(&plain, get(&with_user)).await, ok("Some(\"Basic bWU6cEBzcw==\") None"));
}

#[tokio::test]
async fn an_answer_has_a_bound() {
    let server = Server::start(|_| answer(200, &[], &"x".repeat(100_000))).await;
    let ask = || get(&format!("http://{}/", server.address));
    let client = client("");
    let whole = Ask { answer_bytes_max: 100_000, ..ask() };
    assert_eq!(sent(&client, whole).await.map(|(_, text)| text.len()), Ok(100_000));
    let bounded = Ask { answer_bytes_max: 99_999, ..ask() };
    let too_large = ClientError::TooLarge { bytes_max: 99_999 };
    assert_eq!(sent(&client, bounded).await, Err(too_large));
    // However the body is cut on its way, all that is allowed comes first.
    for bytes_max in [0, 1, 4096, 99_999] {
        let bounded = Ask { answer_bytes_max: bytes_max, ..ask() };
        let mut answer = client.send(bounded).await.expect("an answer");
        let mut bytes = 0;
        let error = loop {
            match answer.chunk().await {
                Ok(Some(data)) => bytes += data.len() as u64,
                Ok(None) => panic!("it ends within {bytes_max} bytes"),
                Err(error) => break error,
            }
        };
        assert_eq!((bytes, error), (bytes_max, ClientError::TooLarge { bytes_max }));
    }
}

/// The body counts as well: a server that never ends it does not block the client.
#[tokio::test]
async fn a_timeout_is_that_of_the_whole_exchange() {
    let address = raw(async |_, mut stream| {
        let Some(head) = read_head(&mut stream).await else { return };
        if head.starts_with("GET /head") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfive.").await;
        }
        // Until the client goes.
        while read_head(&mut stream).await.is_some() {}
    })
    .await;
    let client = client("");
    let timeout = Duration::from_millis(300);
    let ask =
        |path: &str| Ask { timeout: Some(timeout), ..get(&format!("http://{address}{path}")) };
    let failed = client.send(ask("/silent")).await.map(drop);
    assert_eq!(failed, Err(ClientError::Timeout(timeout)));
    // On a busy machine the beginning of an answer may take longer than that, too.
    let begun = async {
        loop {
            let mut answer = match client.send(ask("/head")).await {
                Err(ClientError::Timeout(_)) => continue,
                answer => answer.expect("a head"),
            };
            assert_eq!(answer.status, StatusCode::OK);
            match answer.chunk().await {
                Err(ClientError::Timeout(_)) => {}
                chunk => break (answer, chunk),
            }
        }
    };
    let (mut answer, chunk) = tokio::time::timeout(TIMEOUT, begun).await.expect("an answer");
    assert_eq!(chunk, Ok(Some(Bytes::from("five."))));
    assert_eq!(answer.chunk().await, Err(ClientError::Timeout(timeout)));
    assert_eq!(ClientError::Timeout(timeout).to_string(), "no answer within 0.3 s");
}

/// A connection is used again, and one that was closed while it waited is no error. One that closes
/// at a request may have closed just before: what changes nothing is asked again.
#[tokio::test]
async fn connections_that_waited_may_be_closed() {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let address = raw(async |number, mut stream| {
        // The first two of each connection; then the next request meets a closing server.
        for _ in 0..2 {
            if read_head(&mut stream).await.is_none() {
                return;
            }
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
        read_head(&mut stream).await;
    })
    .await;
    let url = format!("http://{address}/");
    let asking = client("");
    let mut numbers = String::new();
    for _ in 0..6 {
        numbers += &sent(&asking, get(&url)).await.expect("an answer").1;
    }
    assert_eq!(numbers, "001122");
    // The next would be the third of its connection.
    let empty = Ask { method: Method::POST, ..get(&url) };
    let failed = sent(&asking, empty).await.map_err(|error| error.to_string());
    assert!(failed.is_err_and(|error| error.contains("connection closed before message")));

    let address = raw(async |_, mut stream| {
        if read_head(&mut stream).await.is_some() {
            let _ = stream.write_all(ANSWER).await;
        }
    })
    .await;
    let asking = client("");
    for _ in 0..20 {
        let empty = Ask { method: Method::POST, ..get(&format!("http://{address}/")) };
        assert_eq!(sent(&asking, get(&format!("http://{address}/"))).await, ok("ok"));
        // The end of the connection is seen before the next request, or else it is no failure of
        // ours.
        tokio::time::timeout(TIMEOUT, async {
            while sent(&asking, empty.clone()).await.is_err() {}
        })
        .await
        .expect("an answer");
    }
}

#[tokio::test]
async fn a_unix_socket_stands_for_all_hosts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let log = Server::on_unix_socket(listener, |_| answer(200, &[], "here"));
    let client =
        Client::open_unix(&config("proxy_url: http://127.0.0.1:1"), &path).expect("a client");
    assert_eq!(sent(&client, get("http://node.example:9100/metrics")).await, ok("here"));
    let last = log.last();
    assert_eq!((last.header("host"), last.uri.path()), (Some("node.example:9100"), "/metrics"));
    let nobody = Client::open_unix(&config(""), &folder.path().join("none")).expect("a client");
    let error = sent(&nobody, get("http://a/")).await.map_err(|error| error.to_string());
    assert_eq!(error, Err("No such file or directory (os error 2)".into()));
}

#[tokio::test]
async fn what_can_never_be_sent_is_known_before() {
    let client = client("");
    for (url, said) in [("ftp://a/", "no http or https URL"), ("data:x", "no http or https URL")] {
        let error = client.check(&get(url)).map_err(|error| error.to_string());
        assert!(error.is_err_and(|error| error.contains(said)), "{url}");
    }
    assert_eq!(client.check(&get("http://a/b?c#d")), Ok(()));
    // In a task, as those who send have it.
    let task = tokio::spawn(async move { sent(&client, get("http://127.0.0.1:1/")).await });
    let refused = task.await.expect("no panic");
    let refused = refused.map_err(|error| error.to_string());
    assert_eq!(refused, Err("Connection refused (os error 111)".into()));
}

/// As Go's client: the zone says on which link the host is, and is not sent to it.
#[tokio::test]
async fn hosts_may_have_zones() {
    let listener = TcpListener::bind("[::1]:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let head = read_head(&mut stream).await.expect("a request");
            let host = head.lines().find_map(|line| line.strip_prefix("host: "));
            let host = host.expect("a host").to_owned();
            let location = format!("http://127.0.0.1:{port}/");
            let answer = match head.starts_with("GET /away") {
                true => format!("302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"),
                false => format!("200 OK\r\ncontent-length: {}\r\n\r\n{host}", host.len()),
            };
            let answer = format!("HTTP/1.1 {answer}");
            stream.write_all(answer.as_bytes()).await.expect("it is sent");
        }
    });
    let get = |path: &str| {
        // The first interface is the loopback.
        let url = format!("http://[::1%251]:{port}/{path}");
        let ask = Ask::get_text(&url).expect("a URL");
        assert_eq!(ask.url_text(), url);
        Ask { timeout: Some(TIMEOUT), ..ask }
    };
    let client = client("");
    assert_eq!(sent(&client, get("")).await, ok(&format!("[::1]:{port}")));
    // Another host has no zone: nothing listens there.
    let failed = sent(&client, get("away")).await.expect_err("nobody listens there");
    assert!(failed.to_string().contains("refused"), "{failed}");

    for wrong in
        ["http://[::1%25]/", "http://[::1%eth0]/", "http://[::1%25a%25b]/", "http://a%25b/"]
    {
        assert!(Ask::get_text(wrong).is_err(), "{wrong}");
    }
    let plain = Ask::get_text("http://a/[b%25c]").expect("a URL");
    assert_eq!((plain.url.path(), plain.zone), ("/[b%25c]", None));
}

/// Upstream's client bounds the bytes of a head, not the number of its headers.
#[tokio::test]
async fn many_headers_are_taken() {
    let address = raw(|_, mut stream| async move {
        read_head(&mut stream).await;
        let headers: String = (0..500).map(|number| format!("x-{number}: y\r\n")).collect();
        let answer = format!("HTTP/1.1 200 OK\r\n{headers}content-length: 3\r\n\r\nend");
        let _ = stream.write_all(answer.as_bytes()).await;
    })
    .await;
    assert_eq!(sent(&client(""), get(&format!("http://{address}/"))).await, ok("end"));
}

/// As Go's client, which quotes what came.
#[tokio::test]
async fn what_is_no_http_is_quoted() {
    let banner = "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n";
    for (said, quoted) in
        [(banner, "\"SSH-2.0-OpenSSH_9.2p1 Debian-2\""), ("\u{15}\u{3}\u{1}", "\"\\u{15}")]
    {
        let address = raw(move |_, mut stream| async move {
            let _ = stream.write_all(said.as_bytes()).await;
            read_head(&mut stream).await;
        })
        .await;
        let failed = sent(&client(""), get(&format!("http://{address}/"))).await;
        let what = failed.expect_err("it is none").to_string();
        let is_quoted = what.contains(quoted) || what.contains("sends before it is asked");
        assert!(what.contains("does not speak HTTP") && is_quoted, "{what}");
    }
}

/// Bodies that are passed on come as streams, within the deadline of the request.
#[tokio::test]
async fn bodies_are_streamed_both_ways() {
    let server = Server::start(|seen| match seen.uri.path() {
        "/moved" => answer(307, &[("location", "/end")], ""),
        _ => answer(200, &[], &String::from_utf8_lossy(&seen.body)),
    })
    .await;
    let client = client("");
    let body = |text: &'static str| StreamedBody::new(Full::from(text).map_err(Into::into));
    let send = async |path: &str| {
        let ask = post(&format!("http://{}{path}", server.address), "");
        let answer = client.send_stream(&ask, body("a stream")).await.expect("an answer");
        let status = answer.status.as_u16();
        (status, answer.into_body().collect().await.expect("a body").to_bytes())
    };
    assert_eq!(send("/").await, (200, Bytes::from("a stream")));
    assert_eq!(server.log.last().header("content-length"), Some("8"));
    // It cannot be sent again.
    assert_eq!(send("/moved").await, (307, Bytes::new()));

    let address = raw(|_, mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await;
        std::future::pending().await
    })
    .await;
    let timeout = Duration::from_millis(200);
    let ask = Ask { timeout: Some(timeout), ..get(&format!("http://{address}/")) };
    let answer = client.send_stream(&ask, body("")).await.expect("the head of an answer");
    let cut = answer.into_body().collect().await.map(|_| ());
    assert_eq!(cut, Err(ClientError::Timeout(timeout)));
}

/// So that a request is known not to have reached anyone.
#[tokio::test]
async fn connections_that_cannot_be_made_are_told_from_those_that_break() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let nobody = listener.local_addr().expect("an address");
    drop(listener);
    let sent_to = async |url: String| sent(&client(""), get(&url)).await;
    let refused = sent_to(format!("http://{nobody}/")).await;
    assert!(matches!(&refused, Err(ClientError::Unreachable(_))), "{refused:?}");
    let address = raw(|_, mut stream| async move {
        read_head(&mut stream).await;
    })
    .await;
    let broken = sent_to(format!("http://{address}/")).await;
    assert!(matches!(&broken, Err(ClientError::Connection(_))), "{broken:?}");

    // A server that does not go on with TLS has the time that a connection has.
    let silent = raw(|_, stream| async move {
        let _open = stream;
        std::future::pending().await
    })
    .await;
    let connect = Duration::from_millis(200);
    let limits = ConnectLimits { connect: Some(connect), unacknowledged: Some(TIMEOUT) };
    let config = config("tls_config: {insecure_skip_verify: true}");
    let bounded = Client::open_bounded(&config, limits).expect("a client");
    let late = sent(&bounded, get(&format!("https://{silent}/"))).await;
    assert_eq!(late, Err(ClientError::Timeout(connect)));
}
