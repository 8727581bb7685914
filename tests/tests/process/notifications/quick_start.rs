//! The quick start of the page about notifications, as it is pasted.

use super::*;
use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use tidepool_tests::clock;
use tidepool_tests::http::Client;
use tidepool_tests::process::free_address;
use tidepool_tests::tidepool::binary;

/// Times of the page are its promises, beside which a busy machine has some more.
const PROMISED: Duration = Duration::from_secs(60);

/// A shell with all that it has started, which ends with the test.
struct Shell(Child);

impl Shell {
    /// Runs commands in a terminal of their own, with programs and output below `root`.
    fn start(root: &Path, directory: &Path, commands: &str, output: &str) -> Shell {
        let output = File::create(root.join(output)).expect("a file");
        let errors = output.try_clone().expect("a file");
        let mut command = Command::new("sh");
        let path = std::env::var("PATH").unwrap_or_default();
        clock::moved(&mut command)
            .args(["-c", &format!("{commands}\nwait")])
            .current_dir(directory)
            .env("PATH", format!("{}:{path}", root.join("bin").display()))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0);
        Shell(command.spawn().expect("a shell"))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let group = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            // It may have ended by itself.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// The blocks of commands below the heading.
fn blocks() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/docs/notifying.md");
    let text = fs::read_to_string(page).expect("the page");
    let (_, section) = text.split_once("\n## Quick start\n").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("its end");
    let blocks = section.split("```sh\n").skip(1);
    blocks.map(|block| block.split_once("```").expect("an end").0.to_owned()).collect()
}

/// A program `tidepool` that listens elsewhere, and asks there. A changed file is read soon.
fn install(directory: &Path, address: &str) {
    let (program, tidepool) = (directory.join("bin/tidepool"), binary());
    fs::create_dir(directory.join("bin")).expect("a directory");
    let tidepool = tidepool.display();
    let text = format!(
        "#!/bin/sh\ncase \"$1 $2\" in\n'alerts test') exec {tidepool} \"$@\" \
         --server=http://{address} ;;\n'alerts log') exec {tidepool} \"$@\" ;;\nesac\n\
         exec {tidepool} \"$@\" --listen={address} --config-auto-reload-interval=1s\n"
    );
    fs::write(&program, text).expect("a script");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("permissions");
}

#[test]
fn the_quick_start_of_the_page_tells_of_an_alert() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let (address, receiver) = (free_address().expect("a port"), free_address().expect("a port"));
    install(here, &address.to_string());
    let port = receiver.port().to_string();
    let adapted: Vec<String> = blocks().iter().map(|block| block.replace("9094", &port)).collect();
    let [print, serve, look] = adapted.as_slice() else { panic!("other blocks: {adapted:#?}") };
    assert!(print.contains(&port) && serve.contains(&port), "{adapted:#?}");

    let read = |name: &str| fs::read_to_string(here.join(name)).unwrap_or_default();
    let wait = |what: &str, found: &dyn Fn() -> bool| {
        wait::until(what, PROMISED, || found().then_some(())).unwrap_or_else(|error| {
            panic!("{error}: {}\n{}\n{}", read("printed"), read("served"), read("looked"))
        });
    };
    let printer = Shell::start(here, here, print, "printed");
    let _server = Shell::start(here, here, serve, "served");
    let alerts = |output: &str| -> Vec<Value> {
        let text = read(output);
        let bodies = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        bodies.flat_map(|body| body["alerts"].as_array().expect("alerts").clone()).collect()
    };
    let is_told = |output: &str, name: &str, status: &str| {
        let alerts = alerts(output);
        alerts.iter().any(|one| one["labels"]["alertname"] == name && one["status"] == status)
    };
    wait("the notification", &|| is_told("printed", "Try", "firing"));

    // What the comments show, but for the time.
    let looking = Shell::start(here, &here.join("try"), look, "looked");
    let expected: Vec<&str> =
        look.lines().filter_map(|line| Some(line.split_once("# ")?.1)).collect();
    let [accepted, event] = expected.as_slice() else { panic!("other lines: {look}") };
    let without_time = |line: &str| -> Vec<String> {
        let words = line.split_whitespace();
        words.enumerate().filter(|(at, _)| *at != 1).map(|(_, word)| word.to_owned()).collect()
    };
    wait("two lines", &|| read("looked").trim_end().lines().count() >= 2);
    drop(looking);
    let looked = read("looked");
    let lines: Vec<&str> = looked.trim_end().lines().collect();
    assert_eq!(lines[0].trim_end(), *accepted, "{looked}");
    assert_eq!(without_time(lines[1]), without_time(event), "{looked}");
    assert_eq!(lines.len(), 2, "{looked}");
    assert!(is_told("printed", "TidepoolTest", "firing"), "{}", read("printed"));

    // The end of the alert arrives once the receiver is back.
    drop(printer);
    let rules = here.join("try/rules.yml");
    let text = fs::read_to_string(&rules).expect("the rules");
    fs::write(&rules, text.replace("vector(1)", "vector(1) > 1")).expect("a file");
    wait("the end", &|| {
        let url = format!("http://{address}/api/v1/alerts");
        let answer = Client::default().get(&url).map(|answer| answer.text());
        // Alerts that ship may fire, too.
        answer.is_ok_and(|text| !text.contains("\"alertname\":\"Try\""))
    });
    let _printer = Shell::start(here, here, print, "printed-again");
    wait("the end of the alert", &|| is_told("printed-again", "Try", "resolved"));
}
