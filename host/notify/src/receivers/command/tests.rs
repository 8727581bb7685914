//! Real programs, which do what they should, and what they should not.

use super::*;
use crate::notification::NotifiedAlert;
use crate::notification::tests::{alert, notification};
use std::path::Path;
use std::time::Duration;

fn shell(script: &str, timeout_ms: u64) -> CommandReceiver {
    CommandReceiver::new(CommandConfig {
        path: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into(), "name".into(), "one two".into()],
        timeout: Duration::from_millis(timeout_ms),
    })
}

const LONG_MS: u64 = 60_000;

fn two() -> Notification {
    let annotations = [("summary", "a\0b")];
    let firing = alert(&[("alertname", "A"), ("severity", "page"), ("job", "x")], &annotations);
    let resolved = NotifiedAlert {
        change: Change::Resolved,
        ..alert(&[("alertname", "A"), ("severity", "page"), ("job", "y")], &annotations)
    };
    notification(vec![firing, resolved])
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}

/// Waits for a process to end or for a file to appear, which has no other signal.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process runs; one that is dead but not reaped by its parent does not.
fn runs(id: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{}/stat", id.trim()));
    state.is_ok_and(|state| !state.rsplit(')').next().unwrap_or("").trim().starts_with('Z'))
}

#[tokio::test]
async fn a_program_has_the_message_and_variables() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        "cd {} && cat >input && env >variables && echo \"$1\" \"$#\" && echo wrong >&2",
        folder.path().display()
    );
    let answered = shell(&script, LONG_MS).deliver(&two()).await.expect("exit status 0");
    assert_eq!(answered.summary, "exit status: 0: one two 1 wrong");
    assert_eq!(text(&folder.path().join("input")).as_bytes(), two().excerpt(0).json());
    let variables = text(&folder.path().join("variables"));
    let mut variables: Vec<&str> = variables.lines().collect();
    // What the shell sets itself.
    variables.retain(|line| {
        !["PWD=", "OLDPWD=", "SHLVL=", "_="].iter().any(|set| line.starts_with(set))
    });
    variables.sort_unstable();
    let path = format!("PATH={}", std::env::var("PATH").expect("a path"));
    assert_eq!(
        variables,
        [
            path.as_str(),
            "TIDEPOOL_ALERTNAME=A",
            "TIDEPOOL_ALERTS=2",
            "TIDEPOOL_EXTERNAL_URL=http://node",
            "TIDEPOOL_FIRING=1",
            "TIDEPOOL_GROUP_KEY={}:{alertname=\"A\"}",
            "TIDEPOOL_REASON=first notification",
            "TIDEPOOL_RECEIVER=phone",
            "TIDEPOOL_RESOLVED=1",
            "TIDEPOOL_SEVERITY=page",
            "TIDEPOOL_STATUS=firing",
            "TIDEPOOL_SUMMARY=a\u{fffd}b",
        ]
    );
}

#[tokio::test]
async fn other_ends_are_failures() {
    for (script, expected) in [
        ("cat >/dev/null; echo no; exit 3", "/bin/sh: exit status: 3: no"),
        ("kill -9 $$", "/bin/sh: signal: 9 (SIGKILL)"),
    ] {
        let error = shell(script, LONG_MS).deliver(&two()).await.expect_err(script);
        assert_eq!(error, DeliveryError::failed(expected));
        assert!(!error.is_refusal());
    }
    let config = CommandConfig {
        path: "/nonexistent/program".into(),
        arguments: vec![],
        timeout: Duration::from_millis(LONG_MS),
    };
    let error = CommandReceiver::new(config).deliver(&two()).await.expect_err("no program");
    let expected = "cannot run /nonexistent/program: No such file or directory (os error 2)";
    assert_eq!(error, DeliveryError::failed(expected));
}

/// More input than a pipe holds, which is not read, and more output than is kept.
#[tokio::test]
async fn input_and_output_hold_nothing_up() {
    let long = "x".repeat(500_000);
    let large = notification(vec![alert(&[("alertname", "A")], &[("runbook", long.as_str())])]);
    let answered = shell("exec <&-; echo done", LONG_MS).deliver(&large).await;
    assert_eq!(answered.expect("exit status 0").summary, "exit status: 0: done");
    let answered = shell("exec sleep 0.1", LONG_MS).deliver(&large).await;
    assert_eq!(answered.expect("exit status 0").summary, "exit status: 0");
    let script = "cat >/dev/null; head -c 1000000 /dev/zero | tr '\\0' y";
    let answered = shell(script, LONG_MS).deliver(&large).await.expect("exit status 0");
    assert_eq!(answered.summary.len(), ANSWER_BYTES_MAX);
    assert!(answered.summary.ends_with("yy"));
}

#[tokio::test]
async fn the_whole_group_is_killed_at_the_deadline() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        "cd {}; sleep 1000 & echo $! >grandchild; echo $$ >child; echo begin; wait",
        folder.path().display()
    );
    let receiver = shell(&script, 500);
    let error = receiver.deliver(&two()).await.expect_err("a deadline");
    let expected = "/bin/sh was killed, since it ran longer than 0.5 s: begin";
    assert_eq!(error, DeliveryError::failed(expected));
    let child = text(&folder.path().join("child"));
    assert!(!Path::new(&format!("/proc/{}", child.trim())).exists(), "it is reaped");
    let grandchild = text(&folder.path().join("grandchild"));
    until(|| !runs(&grandchild)).await;
}

/// The grandchild has the output and would end only after the test.
#[tokio::test]
async fn what_a_program_leaves_running_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!("sleep 1000 & echo $! >{}/left; echo done", folder.path().display());
    let answered = shell(&script, LONG_MS).deliver(&two()).await.expect("exit status 0");
    assert_eq!(answered.summary, "exit status: 0: done");
    let left = text(&folder.path().join("left"));
    until(|| !runs(&left)).await;
}

#[tokio::test]
async fn a_delivery_that_is_dropped_kills_its_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("child");
    let receiver = shell(&format!("echo $$ >{}; exec sleep 1000", file.display()), LONG_MS);
    let notification = two();
    {
        let delivery = receiver.deliver(&notification);
        let started =
            until(|| std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')));
        tokio::select! {
            answered = delivery => panic!("{answered:?}"),
            () = started => {}
        }
    }
    let child = text(&file);
    until(|| !runs(&child)).await;
    // The turn is free again.
    let again = tokio::time::timeout(Duration::from_secs(30), receiver.turn.lock()).await;
    assert!(again.is_ok());
}

#[tokio::test]
async fn one_process_runs_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    // Fails if it finds the directory of another.
    let script = format!(
        "mkdir {0}/lock && sleep 0.05 && echo >>{0}/count && rmdir {0}/lock",
        folder.path().display()
    );
    let receiver = shell(&script, LONG_MS);
    let notification = two();
    let (first, second, third) = tokio::join!(
        receiver.deliver(&notification),
        receiver.deliver(&notification),
        receiver.deliver(&notification)
    );
    for answered in [first, second, third] {
        assert!(answered.is_ok(), "{answered:?}");
    }
    assert_eq!(text(&folder.path().join("count")).len(), 3);
    let turn = receiver.turn.clone().lock_owned().await;
    let other = CommandReceiver { turn: receiver.turn.clone(), ..shell("true", 10) };
    let error = other.deliver(&notification).await.expect_err("a process runs");
    assert_eq!(error, DeliveryError::failed("the process of an earlier notification still runs"));
    drop(turn);
}
