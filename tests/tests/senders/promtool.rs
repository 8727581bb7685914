//! `promtool push metrics`: pages as text, sent once.

use super::of_job;
use std::process::Stdio;
use tidepool_tests::checksum::assert_same;
use tidepool_tests::peers::Release;
use tidepool_tests::promtool;
use tidepool_tests::target;
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait::now_ms;

#[test]
fn what_promtool_pushes_arrives() {
    let store = Store::start().expect("tidepool starts");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("page.txt");
    for (job, message) in
        [("first", "prometheus.WriteRequest"), ("second", "io.prometheus.write.v2.Request")]
    {
        std::fs::write(&file, target::page(5)).expect("the page is written");
        let start_ms = now_ms();
        let url = store.server.url();
        let (message, label) =
            (format!("--protobuf_message={message}"), format!("--label=job={job}"));
        let path = file.to_string_lossy();
        let arguments = ["push", "metrics", &message, &label, &url, &path];
        let output = promtool::run(Release::V3, arguments, Stdio::null()).expect("promtool runs");
        assert!(output.success, "{}{}", output.stdout, output.stderr);

        let found = of_job(&store, job);
        let counter = super::samples_of(&found, target::COUNTER);
        assert_eq!(counter.len(), 1, "{found:?}");
        // The page says no time, so it is that of the push.
        assert!((start_ms..=now_ms()).contains(&counter[0].timestamp_ms), "{counter:?}");
        assert_same(job, &target::expected(&[("job", job)], &counter), &found);
    }
}
