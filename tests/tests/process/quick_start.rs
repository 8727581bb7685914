//! The quick start of the README, literally: its commands show the described results.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tidepool_tests::clock;
use tidepool_tests::process::free_address;
use tidepool_tests::tidepool::binary;
use tidepool_tests::wait;

/// The README promises results in this time.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The program's path and address in the README.
const PROGRAM: &str = "./target/release/tidepool";
const ADDRESS: &str = "127.0.0.1:9201";

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the first block of commands below the heading.
fn commands() -> Vec<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let text = std::fs::read_to_string(readme).expect("the README");
    let (_, section) = text.split_once("\n## Quick start\n").expect("the section");
    let (_, block) = section.split_once("```sh\n").expect("a block of commands");
    let (block, _) = block.split_once("```").expect("its end");
    block.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn shell(directory: &Path, line: &str) -> Output {
    let mut command = Command::new("sh");
    let command = clock::moved(&mut command).arg("-c").arg(line).current_dir(directory);
    command.output().expect("a shell")
}

#[test]
fn the_quick_start_of_the_readme_shows_numbers() {
    let lines = commands();
    let [build, serve, pause, first, second] = lines.as_slice() else {
        panic!("other commands: {lines:#?}");
    };
    assert_eq!(build, "cargo build --release");
    assert!(pause.starts_with("sleep "), "{pause}");
    let directory = tempfile::tempdir().expect("a directory");
    let address = free_address().expect("a free port");
    let adapted = |line: &str| {
        assert!(line.contains(PROGRAM) || line.contains(ADDRESS), "{line}");
        let program = binary().display().to_string();
        line.replace(PROGRAM, &program).replace(ADDRESS, &address.to_string())
    };

    // In the background as in the README, but as a process that can be ended.
    let serve = adapted(serve.strip_suffix(" &").expect("it runs in the background"));
    let mut words = serve.split_whitespace();
    let mut server = Command::new(words.next().expect("a program"));
    let server = clock::moved(&mut server).args(words).args(["--listen", &address.to_string()]);
    let log = std::fs::File::create(directory.path().join("log")).expect("a file");
    let server = server.current_dir(directory.path()).stdout(Stdio::null()).stderr(log);
    let _server = Running(server.spawn().expect("tidepool starts"));

    for (line, sign) in [(first, "node_memory_MemAvailable_bytes{"), (second, "\"node_load1\"")] {
        let line = adapted(line);
        let shown = wait::until("one series", TIMEOUT, || {
            let output = shell(directory.path(), &line);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            (output.status.success() && text.contains(sign)).then_some(text)
        });
        let shown = shown.unwrap_or_else(|error| {
            let log = std::fs::read_to_string(directory.path().join("log")).unwrap_or_default();
            panic!("{line}: {error}\n{:?}\n{log}", shell(directory.path(), &line))
        });
        assert_eq!(
            (shown.trim_end().lines().count(), shown.matches(sign).count()),
            (1, 1),
            "{shown}"
        );
    }
    assert!(directory.path().join("quick").is_dir(), "the data is where it is removed");
}
