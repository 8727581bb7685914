//! Runs commands of tidepool, such as `tidepool tsdb`, as a user does.

use crate::tidepool::command as tidepool;
use std::ffi::OsStr;
use std::io::Write as _;
use std::process::Stdio;

#[derive(Clone, Debug)]
pub struct Output {
    /// Exit code; `None` if a signal ended the command.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `tidepool tsdb` with these arguments and this input.
#[track_caller]
pub fn run(arguments: &[&OsStr], input: &str) -> Output {
    run_command("tsdb", arguments, input)
}

/// Runs a command with these arguments and this input.
#[track_caller]
pub fn run_command(command: &str, arguments: &[&OsStr], input: &str) -> Output {
    let mut child = tidepool()
        .arg(command)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tidepool runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    // A command that does not read its input closes the pipe.
    let feeder = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().expect("tidepool ends");
    feeder.join().expect("the input is written");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Output {
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

/// Runs a command that must succeed, and returns its output.
#[track_caller]
pub fn tsdb(arguments: &[&OsStr]) -> String {
    let output = run(arguments, "");
    assert_eq!(output.code, Some(0), "{arguments:?}: {}{}", output.stdout, output.stderr);
    output.stdout
}

/// Makes a list of arguments from texts and paths alike.
#[macro_export]
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => { &[$(::std::ffi::OsStr::new($argument)),*] };
}
