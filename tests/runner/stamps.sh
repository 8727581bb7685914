# shellcheck shell=bash
# Stages whose inputs did not change since they passed are skipped. A stamp is a file in
# `$target/stamps`: a hash of what git lists of a stage's inputs, as it is on disk, and of the versions
# of the programs that the stage runs. Reads `root`, `target`, `all` and `chosen`.

# What all stages depend on.
everywhere=(tests/run tests/runner rust-toolchain.toml .cargo Cargo.toml Cargo.lock)
# What the component is made of, alone and composed.
component_inputs=(engine wit proto host/standalone host/disk host/wasm-target)
# What the program is made of, and what its tests run.
program_inputs=(engine host wit proto js)
rust_inputs=("${program_inputs[@]}" tests examples)

# Folders and files of the repository. Pages count only where they are named.
inputs_paths() { # stage
  case $1 in
    runner) echo tests/runner ;;
    documentation) echo "${rust_inputs[@]}" ;;
    dependencies) echo ':(glob)**/Cargo.toml' tests/deny tests/notices ;;
    plugin-lints) echo examples/plugins tests/plugins wit engine/relabel ;;
    plugins) echo examples/plugins wit engine/relabel tests/peers ;;
    python) echo "${component_inputs[@]}" tests/venv examples/embed-python ;;
    openapi) echo "${program_inputs[@]}" tests/venv tests/openapi ;;
    js) echo "${program_inputs[@]}" js/README.md tests/npm tests/contract ;;
    ui) echo js tests/npm ;;
    ui-browser | ui-firefox | viewer) echo "${program_inputs[@]}" tests/npm ;;
    browser) echo "${component_inputs[@]}" js tests/npm tests/contract ;;
    browser-tests | browser-demo | embed-node)
      echo "${component_inputs[@]}" js tests/npm "examples/$1" "examples/$1/README.md"
      ;;
    wasi-node | wasi-command)
      echo "${component_inputs[@]}" tests/npm tests/venv examples/embed-wasi examples/embed-wasi/README.md
      ;;
    lookup-py) echo wit examples/plugins/lookup-py ;;
    tag-js) echo "${program_inputs[@]}" tests/npm examples/plugins/tag-js ;;
    measured) echo "${rust_inputs[@]}" ;;
    pages) echo ':(glob)**/*.md' "${rust_inputs[@]}" ;;
  esac
}

# What other stages read of a stage that was skipped.
output_of() { # stage
  case $1 in
    js) echo js/dist/src/index.js ;;
    lookup-py) echo examples/plugins/lookup-py/lookup_py.wasm ;;
  esac
}

# Nothing for a stage that always runs, and outside of a git repository.
inputs_of() { # stage
  local paths
  read -ra paths <<<"$(inputs_paths "$1")"
  if [ ${#paths[@]} -gt 0 ]; then hash_of "${paths[@]}"; fi
}

hash_of() { # folders and files of the repository
  local path pages=() rest=()
  git rev-parse --is-inside-work-tree >/dev/null 2>&1 || return 0
  for path in "${everywhere[@]}" "$@"; do
    if [[ $path == *.md ]]; then pages+=("$path"); else rest+=("$path"); fi
  done
  {
    git ls-files -z -co --exclude-standard -- "${rest[@]}" ':(exclude,glob)**/*.md'
    if [ ${#pages[@]} -gt 0 ]; then git ls-files -z -co --exclude-standard -- "${pages[@]}"; fi
  } | LC_ALL=C sort -z | xargs -0 sha256sum 2>/dev/null | cat - <(versions) | sha256sum | cut -d' ' -f1
}

# Of the programs that stages run and that the repository does not pin.
versions() {
  local program
  for program in node npm python3 go chromium firefox-esr; do
    if command -v "$program" >/dev/null; then
      stat -L -c '%n %s %Y' "$(command -v "$program")"
    fi
  done
}

has_passed() { # stage, hash of its inputs
  local output
  if [ "$all" = yes ] || [ -z "$2" ] || [ "$1" = "$chosen" ]; then return 1; fi
  output=$(output_of "$1")
  if [ -n "$output" ] && [ ! -e "$output" ]; then return 1; fi
  [ "$(cat "$target/stamps/$1" 2>/dev/null)" = "$2" ]
}

remember() { # stage, hash of its inputs
  if [ -z "$2" ]; then return; fi
  mkdir -p "$target/stamps"
  echo "$2" >"$target/stamps/$1"
}
