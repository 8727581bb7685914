# shellcheck shell=bash
# What `tests/run` installs. Reads `root` and `target`.

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# A package of Debian and Ubuntu, without what it recommends.
apt_install() { # package, what to do where there is no apt-get
  if ! command -v apt-get >/dev/null; then
    echo "$2" >&2
    return 1
  fi
  as_root apt-get update -q &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$1"
}

install_target() {
  rustup target list --installed 2>/dev/null | grep -qx wasm32-wasip2 ||
    rustup target add wasm32-wasip2
}

# Debian's Prometheus: the binaries only. The package starts a service unless policy-rc.d says no.
install_prometheus() {
  if command -v prometheus >/dev/null && command -v promtool >/dev/null; then return 0; fi
  local policy=/usr/sbin/policy-rc.d ours=no status
  if command -v apt-get >/dev/null && [ ! -e "$policy" ]; then
    ours=yes
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod +x "$policy"
  fi
  apt_install prometheus \
    "Prometheus 2.x is missing: put prometheus and promtool of a 2.x release into /usr/bin"
  status=$?
  if [ "$ours" = yes ]; then as_root rm -f "$policy"; fi
  return $status
}

# Clocks that tests set.
install_faketime() {
  if compgen -G '/usr/lib/*/faketime/libfaketime.so.1' >/dev/null; then return 0; fi
  apt_install faketime "libfaketime is missing: install the package faketime or libfaketime"
}

install_chromium() {
  # The only fonts that the tests let it have.
  if [ ! -e /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf ]; then
    apt_install fonts-dejavu-core \
      "DejaVu's fonts are missing: put them into /usr/share/fonts/truetype/dejavu" || return 1
  fi
  if [ -n "${CHROMIUM:-}" ] || command -v chromium >/dev/null; then return 0; fi
  apt_install chromium "Chromium is missing: install it, or set CHROMIUM to its path"
}

install_firefox() {
  if [ -n "${FIREFOX:-}" ] || command -v firefox-esr >/dev/null; then return 0; fi
  apt_install firefox-esr "Firefox ESR is missing: install it, or set FIREFOX to its path"
}

check_node() {
  if command -v node >/dev/null && command -v npm >/dev/null; then return 0; fi
  echo "Node.js is missing: install nodejs and npm, for example with apt-get" >&2
  return 1
}

# A tool in Rust, of one version, in target/tools/bin. Built without optimization and without what
# debuggers need, which takes a third of the time, and in one folder with the other tools, which share
# dependencies.
install_tool() { # program, version, package, flags of cargo install …
  local program=$1 version=$2 package=$3
  shift 3
  local stamp="$target/tools/$program-$version"
  if [ -e "$stamp" ] && [ -x "$target/tools/bin/$program" ]; then return 0; fi
  CARGO_TARGET_DIR=$target/tools/build CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false \
    cargo install --quiet --locked --debug --force \
    --root "$target/tools" --version "$version" "$@" "$package" && touch "$stamp"
}
