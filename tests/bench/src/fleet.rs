//! Scrape targets: many exposers in this process, whose work is not counted.
//!
//! All pages are made and compressed before the clock starts. The number of a target's scrapes
//! selects its page, so that values change from scrape to scrape.

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::{Builder, JoinHandle};
use tidepool_tests::series::fleet::{self, Values};
use tidepool_tests::series::{Labels, Shape, Texture};

/// Small, because thousands of threads wait for one connection each.
const STACK_BYTES: usize = 128 << 10;
/// Labels that the scraper adds for a target, or a site when it forwards.
const LABELS_OF_TARGETS: [&str; 6] =
    ["cluster", "environment", "instance", "job", "node", "service"];
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
                    Content-Encoding: gzip\r\n";

/// Number of targets and size of their pages.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub targets: usize,
    /// Number of series of each target.
    pub series: usize,
    /// Number of different pages of each target.
    pub pages: usize,
}

pub type Pages = Arc<Vec<Vec<Vec<u8>>>>;

/// Targets that answer until they are dropped.
pub struct Fleet {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    pages: Pages,
    /// Number of requests by target.
    asked: Vec<AtomicU64>,
    ends: AtomicBool,
}

/// Makes the pages of all targets: five labels and a name for each series.
pub fn pages(size: Size, seed: u64) -> io::Result<Pages> {
    let Size { targets, series, pages } = size;
    let texture = Texture::Regular;
    let shape = Shape { seed, series, scrapes: pages, start_ms: 0, interval_ms: 15_000, texture };
    let of_target = |target: usize| -> io::Result<Vec<Vec<u8>>> {
        let numbers = target * series..(target + 1) * series;
        let mut all: Vec<(Labels, Values)> =
            numbers.map(|number| fleet::start(&shape, number)).collect();
        // The format wants the series of a family together.
        all.sort_by(|a, b| a.0.value("__name__").cmp(b.0.value("__name__")));
        (0..pages).map(|_| compressed(&page(&mut all))).collect()
    };
    Ok(Arc::new((0..targets).map(of_target).collect::<io::Result<_>>()?))
}

/// Returns the next page of a target.
fn page(all: &mut [(Labels, Values)]) -> String {
    let (mut page, mut last) = (String::new(), "");
    for (labels, values) in all {
        let name = labels.value("__name__");
        // Writing to a string does not fail, here and below.
        if name != last {
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            let _ =
                write!(page, "# HELP {name} What it is, in some words.\n# TYPE {name} {kind}\n");
            last = name;
        }
        let is_own = |(name, _): &&(String, String)| {
            name != "__name__" && !LABELS_OF_TARGETS.contains(&name.as_str())
        };
        let pairs = labels.pairs().iter().filter(is_own);
        let pairs = pairs.map(|(name, value)| format!("{name}=\"{value}\""));
        let pairs = pairs.collect::<Vec<_>>().join(",");
        let _ = writeln!(page, "{name}{{{pairs}}} {}", values.step());
    }
    page
}

fn compressed(page: &str) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(page.as_bytes())?;
    encoder.finish()
}

impl Fleet {
    /// Starts all targets, each on a port of its own.
    pub fn start(pages: &Pages) -> io::Result<Fleet> {
        raise_file_limit()?;
        let asked = pages.iter().map(|_| AtomicU64::new(0)).collect();
        let ends = AtomicBool::new(false);
        let shared = Arc::new(Shared { pages: Arc::clone(pages), asked, ends });
        let (addresses, threads) = (Vec::new(), Vec::new());
        let mut fleet = Fleet { addresses, shared, threads };
        for target in 0..pages.len() {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            fleet.addresses.push(listener.local_addr()?);
            let shared = Arc::clone(&fleet.shared);
            let listen = move || listen(&listener, target, &shared);
            fleet.threads.push(Builder::new().stack_size(STACK_BYTES).spawn(listen)?);
        }
        Ok(fleet)
    }

    /// Returns the addresses of the targets.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the smallest number of requests to one target.
    pub fn least_asked(&self) -> u64 {
        self.shared.asked.iter().map(|asked| asked.load(SeqCst)).min().unwrap_or(0)
    }

    /// Returns the number of requests to all targets.
    pub fn asked(&self) -> u64 {
        self.shared.asked.iter().map(|asked| asked.load(SeqCst)).sum()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.shared.ends.store(true, SeqCst);
        for address in &self.addresses {
            drop(TcpStream::connect(address));
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn listen(listener: &TcpListener, target: usize, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.ends.load(SeqCst) {
            break;
        }
        let shared = Arc::clone(shared);
        // A scraper that is disconnected sends its request again.
        let serve = move || drop(stream.and_then(|stream| serve(stream, target, &shared)));
        drop(Builder::new().stack_size(STACK_BYTES).spawn(serve));
    }
}

/// Answers requests until the scraper closes the connection.
fn serve(stream: TcpStream, target: usize, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::with_capacity(1 << 10, stream);
    let mut line = String::new();
    loop {
        let mut lines = 0;
        loop {
            line.clear();
            match reader.read_line(&mut line)? {
                0 => return Ok(()),
                1 | 2 if lines > 0 => break,
                _ => lines += 1,
            }
        }
        let number = shared.asked[target].fetch_add(1, SeqCst) as usize;
        let pages = &shared.pages[target];
        let page = &pages[number.min(pages.len() - 1)];
        let mut answer = format!("{HEAD}Content-Length: {}\r\n\r\n", page.len()).into_bytes();
        answer.extend(page);
        writer.write_all(&answer)?;
    }
}

/// Raises the limit of open files, because each target has a listener and a connection. The servers
/// inherit the limit.
fn raise_file_limit() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn pages_follow_each_other() {
        let pages = pages(Size { targets: 2, series: 120, pages: 3 }, 1).expect("memory");
        let text = |target: usize, number: usize| {
            let mut text = String::new();
            let page = pages[target][number].as_slice();
            flate2::read::GzDecoder::new(page).read_to_string(&mut text).expect("gzip");
            text
        };
        let series = |text: &str| {
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            let series = lines.map(|line| line.rsplit_once(' ').expect("a value").0.to_owned());
            series.collect::<std::collections::BTreeSet<_>>()
        };
        let (first, second) = (text(0, 0), text(0, 1));
        assert_eq!(series(&first).len(), 120);
        assert_eq!(series(&first), series(&second));
        assert_ne!(first, second);
        let types = |text: &str| text.matches("# TYPE ").count();
        assert_eq!(types(&first), 9);
        assert!(first.len() / 120 > 90, "{}", first.len() / 120);

        let fleet = Fleet::start(&pages).expect("it starts");
        let mut stream = TcpStream::connect(fleet.addresses()[0]).expect("it listens");
        for number in 0..2 {
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
            let wanted = &pages[0][number];
            let mut answer =
                vec![0; HEAD.len() + format!("Content-Length: {}\r\n\r\n", wanted.len()).len()];
            stream.read_exact(&mut answer).expect("a head");
            let mut body = vec![0; wanted.len()];
            stream.read_exact(&mut body).expect("a body");
            assert_eq!(&body, wanted);
        }
        assert_eq!((fleet.asked(), fleet.least_asked()), (2, 0));
    }
}
