# shellcheck shell=bash
# `tests/run NAME`: the Rust tests whose name contains NAME.

# Rust tests by a part of their name: only the packages that have some, and what these need.
rust_tests_named() { # part of a name
  local part=$1 packages=() files
  # A name as nextest prints it has the modules before it, which are folders and files.
  files=$(grep -rlE "^ *(pub )?(async )?fn [a-z0-9_]*${part##*::}" --include=*.rs \
    engine/src engine/*/src engine/*/tests host/src host/tests host/*/src host/*/tests tests/*/src \
    tests/*/tests tests/tests examples/*/src examples/*/tests 2>/dev/null
    find engine/src engine/*/src engine/*/tests host/src host/tests host/*/src host/*/tests tests/*/tests tests/tests \
      -path "*${part//:://}*" -name '*.rs' 2>/dev/null)
  [ -n "$files" ] || {
    echo "no stage and no Rust test has the name $part" >&2
    exit 2
  }
  local filter="test(${part})"
  # nextest refuses the name of a test program that there is not.
  if grep -qE "/tests/${part}(\.rs|/main\.rs)$" <<<"$files"; then filter+=" | binary(=${part})"; fi
  # Only what measures speed needs the component of nodes.
  if grep -qE '^tests/(tests/measured|wasm-run)' <<<"$files"; then
    build_as_for_nodes
  else
    export CARGO_INCREMENTAL=1
  fi
  local package folder
  while IFS=$'\t' read -r package folder _; do
    if ! grep -q "^$folder/" <<<"$files"; then continue; fi
    if grep -qE "^tests/(bench/)?tests/peers" <<<"$files"; then need "${foreign[@]}"; fi
    packages+=(-p "$package")
    files=$(grep -v "^$folder/" <<<"$files")
    case $folder in
      tests | tests/bench) need program faketime ;;
      tests/* | examples/*) need component standalone ;;
    esac
  done < <(tests/runner/packages.py)
  need nextest
  tests "Rust tests named $part" nextest "${packages[@]}" -E "$filter"
}
