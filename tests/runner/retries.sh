# shellcheck shell=bash
# Failures that may pass when they are run again. With CI=true a failed test runs again after all
# others and alone, at most twice, with the same environment and so with the same seeds. One that
# passes then is flaky: the run names it, and does not fail. Its cause is to be mended.
#
# Which Rust tests run again, and which of them are suspect when they pass, is in junit.py. Other
# stages run again as a whole. Reads `target` and `results`.

# Stages that run again.
retried_stages=(python openapi js ui ui-browser viewer ui-firefox browser browser-tests browser-demo
  embed-node wasi-node wasi-command lookup-py tag-js)
attempts_max=1
if [ "${CI:-}" = true ]; then attempts_max=3; fi
# More of them fail the run.
flaky_max=5
suspects_max=1

flaky_dir=$target/flaky
flaky_list=$target/flaky.txt

begin_retries() {
  rm -rf "$flaky_dir" "$flaky_list"
  mkdir -p "$flaky_dir"
}

# Whether the stage that runs now runs again if it fails. One that hung takes too long for that.
may_run_again() {
  is_in "${stage:-none}" "${retried_stages[@]}" && [ "$attempt" -lt "$attempts_max" ] &&
    [ ! -e "$work/$stage.ended" ]
}

# Where the output of the stage that runs goes.
stage_log() {
  if is_in "${stage:-none}" "${retried_stages[@]}"; then
    echo "$work/$stage.$attempt.log"
  else
    mktemp -p "$work"
  fi
}

# The first failure that a log names, without tabs.
first_failure() { # log
  {
    sed -E 's/\x1b\[[0-9;]*m//g' "$1" |
      grep -m1 -E '^ *(not ok|✖|FAILED|FAIL|E  |_{3,} .* _{3,}$)|[Ee]rror|panicked at' ||
      grep -v '^[[:space:]]*$' "$1" | tail -n1
  } | tr '\t' ' '
}

# Rust tests of a run of nextest. Those that may run again are not yet counted. Sets `$ran` and
# `$not_run`, the numbers of tests that the filter has and has not.
count_rust_tests() { # name, command …
  local name=$1 log ok bad left_out waiting=0
  log=$(mktemp -p "$work")
  rm -f "$target"/nextest/*/junit.xml
  run_tests "$@"
  ran=$(sum_of 's/^ *Summary .* ([0-9]+) tests? run: .*/\1/p')
  not_run=$(sum_of 's/^ *Summary .*[ ,]([0-9]+) skipped.*/\1/p')
  # The next run writes to the same file.
  rm -f "$target/nextest/$stage.xml"
  cp "$target"/nextest/*/junit.xml "$target/nextest/$stage.xml" 2>/dev/null
  if [ "$bad" -gt 0 ] && [ -e "$target/nextest/$stage.xml" ]; then
    tests/runner/junit.py failed "$attempts_max" "$flaky_dir" "$target/nextest/$stage.xml" >"$work/failed"
    waiting=$(grep -c '^again' "$work/failed")
    cat "$work/failed" >>"$results"
  elif [ "$bad" -gt 0 ]; then
    tell_why "$name" "$log"
  fi
  if [ "$waiting" -gt 0 ]; then stage_failed=yes; fi
  count "$name" "$ok" $((bad - waiting))
}

# A stage that failed and may run again is known by its log.
note_failed_stage() {
  if may_run_again; then
    cp "$(stage_log)" "$flaky_dir"
    record again stage "$stage" flaky "$(first_failure "$(stage_log)")"
  fi
}

# Runs again what failed, one after the other.
run_failed_again() {
  local word kind id verdict reason
  # What fails here is not waited for once more.
  grep -P '^again\t' "$results" >"$work/again" || return 0
  while IFS=$'\t' read -r word kind id verdict reason <&3; do
    echo "== again: $id"
    if passes_again "$kind" "$id"; then
      record "$verdict" "$id" "$reason"
    else
      echo "== again: $id failed $attempts_max times"
      # A stage told it in its last run.
      if [ "$kind" = test ]; then record why "$id" "$reason"; fi
    fi
  done 3<"$work/again"
}

passes_again() { # kind, id
  local attempt last
  for attempt in $(seq 2 "$attempts_max"); do
    last=no
    if [ "$attempt" -eq "$attempts_max" ]; then last=yes; fi
    if "again_$1" "$2" "$last"; then return 0; fi
  done
  return 1
}

again_stage() { # stage
  local stage=$1 stage_failed=no
  "stage_${stage//-/_}"
  [ "$stage_failed" = no ]
}

again_test() { # binary and name, whether it is the last try
  local binary=${1%% *} name=${1#* } log
  log=$flaky_dir/${1//[^A-Za-z0-9_-]/_}.$attempt.log
  if nextest --workspace -E "binary_id(=$binary) & test(=$name)" --no-tests=fail 2>&1 | tee "$log"; then
    count "$1" 1 0
    return 0
  fi
  if [ "$2" = yes ]; then count "$1" 0 1; fi
  return 1
}

# Lists what passed only when it ran again, and fails the run if that is too much.
judge_flaky() {
  awk -F '\t' '$1 == "flaky" || $1 == "suspect" { print $1 ": " $2 ": " $3 }' "$results" >"$flaky_list"
  if [ "$(flaky_count)" -gt "$flaky_max" ]; then count "more than $flaky_max flaky tests" 0 1; fi
  if [ "$(flaky_count suspect)" -gt "$suspects_max" ]; then
    count "more than $suspects_max suspect tests" 0 1
  fi
}

flaky_count() { # verdict, or all
  grep -c "^${1:-}" "$flaky_list"
}

name_flaky() {
  if [ "$attempts_max" -eq 1 ]; then return; fi
  cat "$flaky_list"
  if [ "$(flaky_count suspect)" -gt 0 ]; then
    echo "suspect: a test of what is kept or delivered; find its cause first (its log: $flaky_dir)"
  fi
  echo "$(flaky_count) flaky"
}
