#!/usr/bin/env bash
# The story that make run tells. ITEMS is the tool. Every line that it promises is checked: the story ends with an error where the tool
# does something else.
set -eu -o pipefail
cd "$(dirname "$0")"
items=$(command -v "${ITEMS:-bin/items}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
store=$dir/stock

say() { printf '\n== %s\n' "$*"; }

# call WANTED ARGS…: what the tool prints must have WANTED in it.
call() {
  local wanted=$1
  shift
  printf '$ items %s\n' "$*"
  "$items" "$@" --store "$store" >"$dir/out" 2>&1 && code=0 || code=$?
  cat "$dir/out"
  grep -qF -- "$wanted" "$dir/out" || { echo "the story is not true: there is no \"$wanted\"" >&2; exit 1; }
}

say "Two categories and five items come into an empty store. Each item takes three steps; nobody has a shelf for paint."
call 'Stalled (there is no category paint)' apply -f stock.yaml --tenant north

say "The same again: it is all there."
call 'Nothing changed.' apply -f stock.yaml --tenant north

say "A category for paint: what waited for it goes on by itself."
cat >"$dir/paint.yaml" <<'YAML'
apiVersion: stock.flyball.dev/v1
kind: Category
metadata: {name: paint}
spec: {prefix: PT, shelf: C2}
YAML
call 'PT-0001' apply -f "$dir/paint.yaml" --tenant north

say "Another tenant of the same store. Its label printer takes a second for a label, and somebody presses Ctrl-C."
printf '$ items apply -f stock.yaml --tenant south --print-delay 1s --workers 2 --progress\n'
"$items" apply -f stock.yaml --tenant south --print-delay 1s --workers 2 --progress --store "$store" >"$dir/out" 2>&1 &
tool=$!
for _ in $(seq 300); do
  grep -q '^printed' "$dir/out" && break
  sleep 0.1
done
kill -INT "$tool"
wait "$tool" && code=0 || code=$?
cat "$dir/out"
[ "$code" = 1 ] && grep -q 'stopped by interrupt' "$dir/out" || { echo "the story is not true: it was not stopped (exit code $code)" >&2; exit 1; }

say "What was in flight was finished and noted. The next call does what was left."
call 'Ready' run --tenant south

say "Neither tenant sees the other."
call 'south' tenants
call '1 configmaps, 1 items' delete item hammer --tenant south
call 'hammer' list --tenant north

say "And now there is nothing to do."
call 'Nothing changed.' run --tenant north
call 'Nothing changed.' run --tenant south

printf '\nShown: three steps in one call, what waits and goes on, Ctrl-C that loses nothing, two tenants in one store on disk, and calls that change nothing when nothing is to be done.\n'
