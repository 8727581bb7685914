# shellcheck shell=bash
# Which component the tests run. Reads nothing; sets `full` and what cargo reads.
#
# Link-time optimisation of the component takes minutes, and an edit of the engine needs several
# components. A usual run builds them without it; one with CI=true builds what nodes run with it, and one
# with --all also what is sent to others: what JavaScript and other WASI hosts run.

full=no

build_quickly() {
  full=no
  export TIDEPOOL_COMPONENT_PROFILE=component-quick
}

build_as_for_nodes() {
  full=yes
  unset TIDEPOOL_COMPONENT_PROFILE "${!CARGO_PROFILE_COMPONENT_SMALL@}"
}

# What is composed and transpiled is made with these two, and lies where the full ones lie.
build_small_quickly() {
  local profile
  for profile in COMPONENT_SMALL COMPONENT_SMALL_PROMQL; do
    export "CARGO_PROFILE_${profile}_LTO=off"
    export "CARGO_PROFILE_${profile}_CODEGEN_UNITS=16"
    export "CARGO_PROFILE_${profile}_OPT_LEVEL=1"
  done
}
