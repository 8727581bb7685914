# shellcheck shell=bash
# The stages of `tests/run`: one function each, `stage_NAME`, which `need NAME` calls once.
# Reads `root`, `target`, `quick`, `full`, `soak` and `is_ci_alone`.

# Tools that the tests run with, and where they come from.
# Later versions of nextest have twice the dependencies for terminals.
nextest_version=0.9.100
wac_version=0.12.0
fuzz_version=0.13.2
deny_version=0.20.2

stage_target() { whole "the wasm32-wasip2 target" install_target; }
stage_prometheus() { whole "Prometheus 2.x" install_prometheus; }
# Other compilers than ours build them: they work beside ours until they are needed.
peers_build=
begin_peers() {
  mkdir -p "$target"
  tests/peers/build >"$target/peers.log" 2>&1 &
  peers_build=$!
}
stage_peers() { whole "other foreign servers and tools" finish_peers; }
finish_peers() {
  [ -n "$peers_build" ] || begin_peers
  wait "$peers_build"
  local status=$?
  cat "$target/peers.log"
  return "$status"
}
stage_opentelemetry() {
  whole "OpenTelemetry's SDK" \
    tests/venv "$target/opentelemetry" tests/opentelemetry/requirements.txt
}
stage_influx() {
  whole "InfluxDB's client" tests/venv "$target/influx" tests/influx/requirements.txt
}
stage_wac() { whole "wac" install_tool wac "$wac_version" wac-cli --no-default-features; }
stage_nextest() {
  whole "nextest" install_tool cargo-nextest "$nextest_version" cargo-nextest \
    --no-default-features
}
stage_faketime() { whole "libfaketime" install_faketime; }
stage_node() { whole "Node.js" check_node; }
stage_chromium() { whole "Chromium" install_chromium; }
stage_firefox() { whole "Firefox" install_firefox; }
stage_component() {
  need target
  whole "component" build_component
}
# As `cargo build-component`, wherever cargo puts what it builds.
build_component() {
  cargo rustc --package tidepool-engine --lib --crate-type cdylib --target wasm32-wasip2 \
    --profile "${TIDEPOOL_COMPONENT_PROFILE:-component}" --target-dir "$target/engine" --locked
}
# As `cargo build-standalone`, of what the tests are made of, too.
stage_composer() {
  whole "composer of components" cargo build --release --workspace --bin tidepool-standalone
}
stage_standalone() {
  need target composer
  whole "standalone components" standalone_components
  whole "checks of its storage" "$target/release/tidepool-standalone" --contract
}
# Without and with PromQL; linking either keeps one processor busy.
standalone_components() {
  local composer=$target/release/tidepool-standalone said job status
  said=$(mktemp)
  "$composer" >"$said" 2>&1 &
  job=$!
  "$composer" --promql
  status=$?
  wait "$job" || status=1
  cat "$said"
  rm -f "$said"
  return "$status"
}
stage_program() {
  need target
  whole "program" cargo build --release
  export TIDEPOOL_BIN=${TIDEPOOL_BIN:-$target/release/tidepool}
}

# With the lowest priority: beside tests that wait for a time, these take what is left.
patiently() ( # command …
  renice -n 19 "$BASHPID" >/dev/null
  "$@"
)

stage_runner() {
  need nextest
  PATH=$target/tools/bin:$PATH whole "tests of tests/run" patiently tests/runner/test
}
stage_formatting() { whole "formatting" cargo fmt --all --check; }
stage_links() { whole "links of the documentation" tests/links; }
stage_comments() { whole "width of comments" tests/comments; }
stage_arrows() { whole "arrows between crates and modules" tests/arrows; }
stage_lints() {
  need target
  whole "lints" patiently cargo clippy --release --workspace --all-targets -- -D warnings
}
stage_documentation() {
  need target
  RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" whole "documentation of the crates" \
    patiently cargo doc --release --no-deps --workspace --document-private-items
}
stage_component_lints() {
  need target
  whole "lints of the components" \
    patiently cargo clippy --release -p tidepool-engine -p tidepool-standalone-storage \
    -p tidepool-standalone-front -p tidepool-contract --target wasm32-wasip2 \
    --features tidepool-standalone-front/promql -- -D warnings
}
stage_plugin_lints() {
  need target
  whole "lints of the plugins" patiently plugin_lints
}
plugin_lints() {
  (cd examples/plugins && cargo fmt --all --check && cargo clippy --release -- -D warnings) &&
    (cd tests/plugins && cargo fmt --all --check && cargo clippy --release -- -D warnings)
}
stage_features() { whole "dependencies that are compiled twice" tests/features; }

stage_dependencies() {
  whole "cargo-deny" patiently install_tool cargo-deny "$deny_version" cargo-deny --no-default-features
  PATH=$target/tools/bin:$PATH whole "licences and vulnerabilities" tests/deny
  whole "notices of third parties" third_party_notices
}
third_party_notices() { tests/notices >"$target/third-party-notices.txt"; }

# All that they run.
stage_rust_build() {
  need nextest faketime component program composer
  if [ "$quick" = no ]; then need "${foreign[@]}"; fi
  # Linking a component leaves a processor idle. A whole run has begun with it.
  [ -n "$beside_job" ] || beside standalone
  whole "build of the Rust tests" nextest --workspace --no-run
  join
}
# What groups of tests are made of is there.
stage_groups() {
  need rust-build
  whole "groups of the Rust tests" groups_are_complete
}
groups_are_complete() {
  PATH=$target/tools/bin:$PATH cargo nextest list --cargo-quiet --release --workspace --message-format json |
    PYTHONDONTWRITEBYTECODE=1 tests/runner/groups.py
}
# Memory, disk and time: they run alone (.config/nextest.toml).
are_measured="binary(measured) & test(/^alone::/)"
# Counts of instructions are those of the component that nodes run.
need_the_component_of_nodes="package(wasm-run) & binary(instructions)"
stage_rust() {
  need rust-build
  local left_out="none()" package paths inputs
  local -A changed=()
  if [ ! -w /sys/fs/cgroup ]; then
    echo "tests/run: no control group can be made without root; one test is left out" >&2
    left_out="test(the_limit_of_a_control_group_is_the_default)"
  fi
  if [ "$full" = no ]; then left_out+=" | ($need_the_component_of_nodes)"; fi
  if [ "$is_ci_alone" = yes ]; then
    echo "== Rust tests with $foreign_by_hand: skipped; they run with --all"
    left_out+=" | ($tests_by_hand)"
  fi
  while IFS=$'\t' read -r package _ paths; do
    read -ra paths <<<"$paths"
    inputs=$(hash_of "${paths[@]}")
    if has_passed "rust-$package" "$inputs"; then
      left_out+=" | package(=$package)"
    else
      changed[$package]=$inputs
    fi
  done < <(tests/runner/packages.py)
  if [ ${#changed[@]} -eq 0 ]; then
    echo "== Rust tests: skipped, because nothing of them changed since they passed"
    skip 1
    return
  fi
  echo "== packages that changed since their tests passed: ${!changed[*]}"
  count_rust_tests "Rust tests" nextest --workspace -E "not (($are_measured) | $left_out)"
  # Those that are ignored or left out by the profile and the filter.
  skip "$not_run"
  # Nothing was tested if it did not compile, and not all of each package if some tests are left to others.
  if [ "$ran" -eq 0 ] || [ "$is_ci_alone" = yes ]; then return; fi
  while read -r package; do
    remember "rust-$package" "${changed[$package]}"
  done < <(tests/runner/junit.py passed "${!changed[@]}" -- "$target/nextest/rust.xml")
}
stage_measured() {
  need rust-build
  count_rust_tests "measured Rust tests" nextest --workspace -E "$are_measured"
  # To the other run they are skipped.
  skip -"$ran"
}
# What holds pages against the code.
stage_pages() {
  need rust-build
  tests "Rust tests that read pages" nextest --workspace -E "(binary(process) & test(/^(quick_start|wit_reference)::/)) |
    (package(tidepool-engine) & test(/::worked_bytes::/)) | (package(embed-rust) & binary(readme))"
}
nextest() {
  local profile=default
  if [ "$quick" = yes ]; then profile=quick; fi
  PATH=$target/tools/bin:$PATH cargo nextest run --cargo-quiet --release --profile "$profile" "$@"
}
stage_plugins() {
  need target program
  if [ "$quick" = no ]; then need peers; fi
  tests "tests of the plugins" plugin_tests
}
plugin_tests() {
  if [ "$quick" = yes ]; then examples/plugins/test; else examples/plugins/test --peers; fi
}
# In the same runtime as the store.
stage_wasm() {
  need target
  tests "engine tests as wasm" engine_tests_as_wasm
}
engine_tests_as_wasm() {
  cargo build --release --workspace --bin wasm-run || return
  export CARGO_TARGET_WASM32_WASIP2_RUNNER=$target/release/wasm-run
  cargo test --release -p tidepool-engine --lib --target wasm32-wasip2 || return
  if [ "$quick" = yes ]; then return 0; fi
  # Prometheus' scripts, from the module that the peers are built of.
  local scripts module=github.com/prometheus/prometheus
  scripts=$(cd tests/peers && go mod download "$module" && go list -m -f '{{.Dir}}' "$module") || return
  scripts+=/promql/promqltest/testdata
  TIDEPOOL_PROMQL_SCRIPTS=$scripts WASM_RUN_READ_DIR=$scripts \
    cargo test --release -p tidepool-promql --test upstream --target wasm32-wasip2
}
stage_python() {
  need standalone
  tests "Python tests" examples/embed-python/run
}
stage_openapi() {
  need program
  whole "OpenAPI description" tests/openapi/run
}
stage_js() {
  need target node program
  if [ "$quick" = no ]; then need prometheus; fi
  tests "JavaScript tests" js_tests
}
js_tests() { tests/npm js && (cd js && npm test); }
stage_ui() {
  need node
  tests "tests of the page" ui_tests
}
ui_tests() { tests/npm js/ui && (cd js/ui && npm test); }
stage_ui_browser() {
  need chromium ui program
  tests "tests of the page in a browser" ui_browser_tests
}
ui_browser_tests() { (cd js/ui && npm run test:browser); }
stage_viewer() {
  need chromium js ui program
  tests "tests of the viewer" viewer_tests
}
viewer_tests() { (cd js/ui && npm run test:viewer); }
stage_ui_firefox() {
  need firefox ui program
  tests "tests of the page in Firefox" ui_firefox_tests
}
ui_firefox_tests() { (cd js/ui && npm run test:firefox); }
stage_browser() {
  need chromium js
  tests "browser tests" browser_tests
}
browser_tests() { (cd js && npm run test:browser); }
stage_browser_tests() {
  need chromium js
  tests "example of browser tests" node_example browser-tests
}
stage_browser_demo() {
  need chromium js
  tests "example of a demo page" node_example browser-demo
}
stage_embed_node() {
  need js
  tests "example of a Node program" node_example embed-node
}
node_example() { # name
  tests/npm "examples/$1" && (cd "examples/$1" && npm test)
}
stage_wasi_node() {
  need standalone node
  tests "the standalone component in Node.js" wasi_in_node_tests
}
wasi_in_node_tests() {
  tests/npm examples/embed-wasi/node && (cd examples/embed-wasi/node && npm test)
}
stage_wasi_command() {
  need standalone
  whole "the standalone component in wasmtime's command line" examples/embed-wasi/run
}
stage_lookup_py() { whole "the plugin in Python" python_plugin; }
python_plugin() {
  (cd examples/plugins/lookup-py && ./build && PYTHONDONTWRITEBYTECODE=1 python3 -m unittest)
}
stage_tag_js() {
  need node program
  tests "the plugin in JavaScript" javascript_plugin
}
javascript_plugin() {
  tests/npm examples/plugins/tag-js || return
  (cd examples/plugins/tag-js && npm run build && npm test) || return
  local config
  config=$(mktemp) && echo site=north >"$config"
  "$TIDEPOOL_BIN" plugin check examples/plugins/tag-js/tag_js.wasm --world transform --config "$config"
}

# Each profile has every crate built again.
stage_dist() {
  need target
  whole "the program of packages" tests/built-as dist
}
stage_small() {
  need target
  whole "the small program" tests/built-as small
}
# The whole programs' tests begin at other times between two cuts of blocks.
stage_phases() {
  need nextest faketime component standalone program
  local phase
  for phase in 21 43 82 107; do
    TIDEPOOL_TEST_PHASE=$phase tests "whole programs, $phase minutes later" nextest -p tidepool-tests \
      -E 'binary(process)'
  done
}
# Random worlds on a disk with faults, other ones than in each run of the tests. Each part ends before a test takes
# too long.
stage_faults() {
  need nextest component program
  local first
  for first in {1000..1280..40}; do
    TIDEPOOL_FAULT_SEEDS=$first..$((first + 40)) tests "faults of the disk, from seed $first" nextest \
      -p tidepool-tests -E 'binary(process) & test(/^(faults)::/)'
  done
}
# As many cases as natively.
stage_wasm_properties() {
  need target
  PROPTEST_CASES=256 tests "properties as wasm" engine_tests_as_wasm
}
stage_fuzz() {
  whole "cargo-fuzz" install_tool cargo-fuzz "$fuzz_version" cargo-fuzz
  PATH=$target/tools/bin:$PATH whole "fuzzing" engine/fuzz/run 600
  PATH=$target/tools/bin:$PATH whole "fuzzing of the plugins" examples/plugins/fuzz/run 600
}
