#!/bin/sh
# Brings this checkout to where its commands work: .venv with the locked dependencies, Headrace itself, and the named system programs.
#
#   scripts/setup.sh [java] [postgres] [redis] [strace] ...
#
# Quick when nothing changed. What is missing is said in one sentence on stderr, with the exit code 1.
# PYTHON=/path/to/python chooses the interpreter of a new .venv.
set -eu
cd "$(dirname "$0")/.."

venv=.venv
stamp=$venv/setup-stamp
record=$venv/setup.log
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

stop() {
    echo "headrace: $*" >&2
    exit 1
}

# --- system programs: a new one needs a line in each of the three functions ---------------------------------------------------------

present() {
    case $1 in
    java) [ "$(java_version)" -ge 17 ] ;;
    postgres) command -v postgres >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 ;;
    redis) command -v redis-server >/dev/null 2>&1 ;;
    chromium) command -v chromium >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1 ;;
    node) command -v npm >/dev/null 2>&1 ;;
    strace) [ "$(uname -s)" != Linux ] || command -v strace >/dev/null 2>&1 ;; # only Linux has it; elsewhere its tests skip
    *) stop "scripts/setup.sh does not know the program '$1'." ;;
    esac
}

# Debian's names, best first: releases differ in the Java they carry.
packages_of() {
    case $1 in
    java) echo openjdk-17-jre-headless default-jre-headless ;;
    postgres) echo postgresql ;;
    redis) echo redis-server ;;
    chromium) echo chromium-driver ;; # brings the browser along
    node) echo npm ;;
    strace) echo strace ;;
    esac
}

lacking() {
    case $1 in
    java)
        advice="install a Java 17 or newer (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)"
        found=$(java_version)
        if [ "$found" -gt 0 ] && [ -n "${JAVA_HOME:-}" ]; then
            echo "Spark needs Java 17 or newer and JAVA_HOME points to Java $found: $advice and set JAVA_HOME to it."
        elif [ "$found" -gt 0 ]; then
            echo "Spark needs Java 17 or newer and the java on your PATH is Java $found: $advice."
        elif [ -n "${JAVA_HOME:-}" ]; then
            echo "Spark needs Java 17 or newer and JAVA_HOME=$JAVA_HOME has no working bin/java: unset JAVA_HOME, or $advice and set JAVA_HOME to it."
        else
            echo "Spark needs Java 17 or newer and there is none: $advice."
        fi
        ;;
    postgres) echo "the tests of the PostgreSQL sink need its server: install it (Debian and Ubuntu: apt-get install postgresql; macOS: brew install postgresql)." ;;
    redis) echo "the tests of the Redis sink need its server: install it (Debian and Ubuntu: apt-get install redis-server; macOS: brew install redis)." ;;
    chromium) echo "the tests of the page need a browser: install it (Debian and Ubuntu: apt-get install chromium chromium-driver; macOS: brew install chromium chromedriver)." ;;
    node) echo "the page, and what tests it, come by npm: install Node (Debian and Ubuntu: apt-get install npm; macOS: brew install node)." ;;
    strace) echo "the crash tests need strace: install it (Debian and Ubuntu: apt-get install strace)." ;;
    esac
}

# The major version of the Java that Spark would start, 0 when there is none. "1.8.0_392" is Java 8.
java_version() {
    java=java
    [ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
    major=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | sed -n 1p) || true
    echo "${major:-0}"
}

need() {
    present "$1" && return
    # A JAVA_HOME that points elsewhere is the user's choice: a package would not change it.
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && { [ "$1" != java ] || [ -z "${JAVA_HOME:-}" ]; }; then
        for package in $(packages_of "$1"); do
            echo "installing the system package $package ..."
            apt_install "$package" && present "$1" && return
        done
    fi
    stop "$(lacking "$1")"
}

apt_install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null 2>&1 && return
    # The package lists of a fresh container are empty or old.
    apt-get update -qq >/dev/null 2>&1 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null 2>&1
}

# --- the virtual environment --------------------------------------------------------------------------------------------------------

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        new_enough "$PYTHON" || stop "PYTHON=$PYTHON is not a Python 3.11 or newer: point PYTHON to one, or leave it unset to search your PATH."
        echo "$PYTHON"
        return
    fi
    for candidate in python3.11 python3.12 python3.13 python3.14 python3 python; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    stop "Headrace needs Python 3.11 or newer and none is on your PATH: install one (Debian and Ubuntu: apt-get install python3 python3-venv; macOS: brew install python@3.11) or name it, as in make setup PYTHON=/path/to/python3.11."
}

make_venv() {
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && apt_install python3-venv || true
        "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
            stop "$python has no venv module: install it (Debian and Ubuntu: apt-get install python3-venv) or name another Python, as in make setup PYTHON=/path/to/python3.11."
    fi
    "$python" -m venv --clear $venv || stop "$python could not make $venv: its reason is printed above."
}

pip_install() {
    "$venv/bin/python" -m pip install --quiet "$@" >>$record 2>&1 && return
    if grep -qE 'hashes are required|DO NOT MATCH THE HASHES' $record; then
        stop "a downloaded package differs from its hash in requirements/: do not trust this package index until you know why (details: $record)."
    fi
    if grep -qE 'NewConnectionError|Failed to establish|Connection(Refused|Reset)?Error|Connect(ion)?TimeoutError|ReadTimeoutError|ProxyError|SSLError|name resolution|Network is unreachable|Could not fetch URL|Read timed out|from versions: none' $record; then
        stop "the Python package index cannot be reached: check the network, or set PIP_INDEX_URL or PIP_PROXY to the way out of yours, then run this again (details: $record)."
    fi
    stop "pip could not install the locked dependencies: the reason is at the end of $record."
}

# The sum of everything that decides what is installed, and where: an editable install knows its checkout by path.
wanted() { { pwd; cat requirements/build.txt requirements/lock.txt pyproject.toml scripts/setup.sh; } | cksum; }

# What makes Spark start in half the time; it works without.
archive=$venv/share/headrace/spark.jsa
prepare() {
    case " $* " in *" java "*) ;; *) return ;; esac
    [ ! -e $archive ] || return 0
    echo "running Spark once, so that it starts quicker from now on (about a minute) ..."
    $venv/bin/python -m headrace prepare >>$record 2>&1 || echo "headrace: that did not work, so Spark keeps its usual start (details: $record)." >&2
}

# ------------------------------------------------------------------------------------------------------------------------------------

for program in "$@"; do
    need "$program"
done
if [ -f $stamp ] && [ "$(cat $stamp)" = "$(wanted)" ] && new_enough $venv/bin/python; then
    prepare "$@"
    exit 0
fi
new_enough $venv/bin/python || make_venv
echo "installing the locked dependencies into $venv (a few minutes the first time, most of it for Spark) ..."
: >$record
pip_install --require-hashes -r requirements/build.txt
# Building with the tools just locked, not with whatever the index has today.
pip_install --require-hashes --no-build-isolation -r requirements/lock.txt
pip_install --no-deps --no-build-isolation --no-index -e .
rm -f $archive
wanted >$stamp
echo "$venv is ready"
prepare "$@"
