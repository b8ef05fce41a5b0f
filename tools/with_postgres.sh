#!/usr/bin/env bash
# Run a command with a PostgreSQL server to test against:  tools/with_postgres.sh COMMAND [ARGUMENT...]
#
# If HELDOUT_TEST_POSTGRES is set, that server is used. Otherwise a throw-away cluster is made on a
# free loopback port, and removed afterwards whatever happens. Without any server the command runs
# all the same, and the tests that need one say that they were skipped.
set -u

if [ "$#" -eq 0 ]; then
  echo "usage: $0 COMMAND [ARGUMENT...]" >&2
  exit 2
fi
if [ -n "${HELDOUT_TEST_POSTGRES:-}" ]; then
  exec "$@"
fi

binaries() {
  local found
  found=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
  if [ -n "$found" ] && [ -x "$found/initdb" ]; then
    echo "$found"
  elif command -v initdb >/dev/null 2>&1 && command -v pg_ctl >/dev/null 2>&1; then
    dirname "$(command -v initdb)"
  fi
}

bin=$(binaries)
if [ -z "$bin" ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "with_postgres: installing PostgreSQL from the distribution's packages" >&2
  # No cluster of its own: this one would listen on 5432 for ever.
  mkdir -p /etc/postgresql-common
  [ -e /etc/postgresql-common/createcluster.conf ] ||
    echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql; } >&2
  bin=$(binaries)
fi
if [ -z "$bin" ]; then
  echo "with_postgres: no PostgreSQL server here; the tests that need one will be skipped" >&2
  exec "$@"
fi

# initdb refuses to run as root, and a server's directory must belong to its user.
as_server() { "$@"; }
if [ "$(id -u)" -eq 0 ]; then
  if ! id postgres >/dev/null 2>&1; then
    useradd --system --no-create-home --shell /bin/sh postgres
  fi
  if command -v runuser >/dev/null 2>&1; then
    as_server() { runuser -u postgres -- "$@"; }
  else
    as_server() { su postgres -s /bin/sh -c "$(printf '%q ' "$@")"; }
  fi
fi

directory=$(mktemp -d /tmp/heldout-postgres.XXXXXX)
finish() {
  # The server's user may not see the caller's directory.
  (cd / && as_server "$bin/pg_ctl" -D "$directory/data" -m immediate -w stop) >/dev/null 2>&1
  rm -rf "$directory"
}
trap finish EXIT
# Each of these would otherwise end the shell without its EXIT trap (PIPE: when the reader of our
# messages was ended first).
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM
if [ "$(id -u)" -eq 0 ]; then chown postgres "$directory"; fi

# What a crash of the machine would take goes with the tests anyway.
volatile="-c fsync=off -c synchronous_commit=off -c full_page_writes=off"
start() {
  port=$((20000 + (RANDOM * 32768 + RANDOM) % 40000))
  (
    cd / && as_server "$bin/pg_ctl" -D "$directory/data" -w -t 60 -l "$directory/log" -o \
      "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$directory -c max_connections=200 $volatile" \
      start
  ) >/dev/null 2>&1
}

if ! (cd / && as_server "$bin/initdb" -D "$directory/data" -U heldout -A trust -E UTF8 --no-locale) \
  >"$directory/initdb.log" 2>&1; then
  cat "$directory/initdb.log" >&2
  echo "with_postgres: initdb failed" >&2
  exit 1
fi
started=no
for _ in 1 2 3 4 5; do
  if start; then
    started=yes
    break
  fi
done
if [ "$started" = no ]; then
  cat "$directory/log" >&2
  echo "with_postgres: the server did not start" >&2
  exit 1
fi

export HELDOUT_TEST_POSTGRES="postgresql+psycopg://heldout@127.0.0.1:$port/postgres"
"$@"
exit $?
