# shellcheck shell=bash
# Runs stages and commands, and counts what they came to. Reads `root` and `target`.
#
# Stages beside each other are processes of their own: what counts is a line in the file `$results`.
#
#   count NAME PASSED FAILED
#   skip NUMBER
#   why NAME REASON                of what failed, what its output says first
#   again KIND NAME …              what failed and may run again (retries.sh)
#   flaky NAME REASON              what passed then
#   suspect NAME REASON

work=$(mktemp -d)
results=$work/results
: >"$results"
trap 'rm -rf "$work"' EXIT

# The stage that runs, whether something of it failed or was left out, and how often it has begun.
stage=
stage_failed=no
stage_complete=yes
attempt=1

record() { # field …
  local IFS=$'\t'
  printf '%s\n' "$*" >>"$results"
}

count() { # name, passed, failed, skipped
  if [ "$3" -gt 0 ]; then
    stage_failed=yes
    # Counted when it has run again.
    if may_run_again; then return; fi
  fi
  record count "$1" "$2" "$3"
  skip "${4:-0}"
}

# Notes why something failed, unless it runs again.
tell_why() { # name, log
  if ! may_run_again; then record why "$1" "$(first_failure "$2")"; fi
}

skip() { # number
  record skip "$1"
}

announce() { # text
  echo "== $1"
  if [ "$is_beside" = yes ]; then echo "== beside: $1" >&"$told"; fi
}

# The longest time of a command of a stage that runs beside others, in seconds. What hangs there would
# hold up the whole run, which does not hear of it.
beside_seconds_max=1800

# Runs a command; beside others, ends it with all that it began when its time is over.
bounded() { # command …
  if [ "$is_beside" = no ]; then
    "$@"
    return
  fi
  local job watch status
  (
    exec </dev/null {told}>&-
    "$@"
  ) &
  job=$!
  (
    exec {told}>&-
    sleep "$beside_seconds_max"
    echo "not ok: ended after $beside_seconds_max s"
    touch "$work/${stage:-none}.ended"
    # shellcheck disable=SC2046 # numbers
    kill -KILL $(descendants "$job") "$job"
  ) &
  watch=$!
  wait "$job"
  status=$?
  # Its sleep would hold the output open. The shell dies first: when only its sleep is gone, it goes on.
  # shellcheck disable=SC2046
  kill -KILL "$watch" $(descendants "$watch") 2>/dev/null
  wait "$watch" 2>/dev/null
  return "$status"
}

# Processes that others began, the youngest first.
descendants() { # process
  local child
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
    descendants "$child"
    echo "$child"
  done
}

# Seconds since the shell began, and CPU seconds of what has ended, also beside: `cutime` and `cstime` of
# proc(5), in hundredths.
time_used() {
  local stat
  read -ra stat <"/proc/$BASHPID/stat"
  used_cpu=$(((stat[15] + stat[16]) / 100)) used=$SECONDS
}
tell_time() { # name, seconds and CPU seconds at the beginning
  time_used
  announce "$1: $((used - $2)) s, $((used_cpu - $3)) s of CPU"
}

# Runs a command that passes or fails as a whole.
whole() { # name, command …
  local name=$1 log said tee status used used_cpu begun begun_cpu
  shift
  log=$(stage_log)
  time_used
  begun=$used begun_cpu=$used_cpu
  announce "$name"
  # No pipeline: the command would be a process of its own, and could neither set a variable nor wait for a job.
  exec {said}> >(exec tee "$log")
  tee=$!
  bounded "$@" >&"$said" 2>&1
  status=$?
  exec {said}>&-
  # What the command left running may hold the pipe open.
  for _ in {1..50}; do
    kill -0 "$tee" 2>/dev/null || break
    sleep 0.1
  done
  kill "$tee" 2>/dev/null
  case $status in
    0) count "$name" 1 0 ;;
    3) # it said why
      skip 1
      stage_complete=no
      ;;
    *)
      count "$name" 0 1
      tell_why "$name" "$log"
      ;;
  esac
  tell_time "$name" "$begun" "$begun_cpu"
  return "$status"
}

# Runs a command that prints how many tests passed and failed: nextest, `cargo test` per test binary,
# or node's or Python's runner at its end.
tests() { # name, command …
  local name=$1 log
  log=$(stage_log)
  run_tests "$@"
  count "$name" "$ok" "$bad" "$left_out"
  if [ "$bad" -gt 0 ]; then tell_why "$name" "$log"; fi
}
# The same without counting: `$ok`, `$bad` and `$left_out` are the numbers then. Writes to `$log`.
run_tests() { # name, command …
  local name=$1 status used used_cpu begun begun_cpu
  shift
  time_used
  begun=$used begun_cpu=$used_cpu
  announce "$name"
  bounded "$@" 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  ok=$(sum_of 's/^test result: .* ([0-9]+) passed; .*/\1/p; s/^(#|ℹ) pass ([0-9]+)$/\2/p; s/^([0-9]+ failed, )?([0-9]+) passed.* in .*/\2/p; s/^ *Summary .* run: ([0-9]+) passed.*/\1/p')
  bad=$(sum_of 's/^test result: .* ([0-9]+) failed; .*/\1/p; s/^(#|ℹ) fail ([0-9]+)$/\2/p; s/^([0-9]+) failed.* in .*/\1/p; s/^ *Summary .*[ ,]([0-9]+) failed.*/\1/p; s/^ *Summary .*[ ,]([0-9]+) timed out.*/\1/p')
  left_out=$(sum_of 's/^test result: .* ([0-9]+) ignored; .*/\1/p; s/^(#|ℹ) skipped ([0-9]+)$/\2/p')
  # Nothing compiled, or a process died without a word: that is a failure, too.
  if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
  if [ "$status" -eq 0 ] && [ "$ok" -eq 0 ]; then bad=1; fi
  tell_time "$name" "$begun" "$begun_cpu"
}

sum_of() { # sed program; reads `$log`
  sed -E 's/\x1b\[[0-9;]*m//g' "$log" | sed -nE "$1" | awk '{ sum += $1 } END { print sum + 0 }'
}

# Runs stages, each once. One whose inputs are those with which it passed is skipped (stamps.sh).
declare -A done_already
need() { # stage …
  local name
  for name in "$@"; do
    if [ -n "${done_already[$name]:-}" ]; then continue; fi
    done_already[$name]=yes
    run_stage "$name"
  done
}
run_stage() { # stage
  local stage=$1 stage_failed=no stage_complete=yes inputs
  inputs=$(inputs_of "$stage")
  if has_passed "$stage" "$inputs"; then
    echo "== $stage: skipped, because nothing of it changed since it passed"
    skip 1
    return
  fi
  "stage_${stage//-/_}"
  if [ "$stage_failed" = yes ]; then
    note_failed_stage
  elif [ "$stage_complete" = yes ]; then
    remember "$stage" "$inputs"
  fi
}

# Runs stages beside others, one after another; `join` prints what they said. When each begins and
# ends is printed at once: a run that is ended from outside tells where it was.
beside_job=
is_beside=no
beside() { # stage …
  local name
  beside_said=$(mktemp -p "$work")
  (
    # Only here, and not for what runs: a process that is left over would hold the output open.
    exec {told}>&1 >"$beside_said" 2>&1
    is_beside=yes
    need "$@"
  ) &
  beside_job=$!
  for name in "$@"; do done_already[$name]=yes; done
}
join() {
  local status
  wait "$beside_job"
  status=$?
  beside_job=
  cat "$beside_said"
  if [ "$status" -gt 1 ]; then count "what ran beside others" 0 1; fi
}

is_in() { # word, words …
  local word=$1
  shift
  [[ " $* " == *" $word "* ]]
}

# Prints the sums, and what failed. The last line is what a runner of continuous integration reads.
conclude() {
  local passed failed skipped
  judge_flaky
  awk -F '\t' '$1 == "why" { print "failed: " $2 ": " $3 }' "$results"
  awk -F '\t' '$1 == "count" && $4 > 0 { print $2 ": " $4 " failed" }' "$results"
  read -r passed failed skipped < <(awk -F '\t' '
    $1 == "count" { passed += $3; failed += $4 }
    $1 == "skip" { skipped += $2 }
    END { print passed + 0, failed + 0, skipped + 0 }' "$results")
  if [ "$skipped" -gt 0 ]; then echo "$skipped skipped"; fi
  name_flaky
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
