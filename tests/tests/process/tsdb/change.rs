//! `compact` and `import` want the directory to themselves.

use tidepool_tests::busy::busy_store;
use tidepool_tests::{arguments, cli};

#[test]
fn a_running_server_keeps_others_out() {
    let (store, _) = busy_store(98);
    let data_dir = store.config.data_dir();
    for arguments in [
        &arguments!["compact", data_dir][..],
        arguments!["snapshot", data_dir],
        arguments!["import", "-", data_dir],
    ] {
        let output = cli::run(arguments, "# EOF\n");
        assert_eq!(output.code, Some(1));
        assert!(output.stderr.contains("in use by another process"), "{}", output.stderr);
    }
}
