# Keeps three Pods whose label app is web. Ctrl-C ends it.
. docs/book/shell/api.sh
pods=/api/v1/namespaces/default/pods

while sleep "${PAUSE:-1}"; do
  set -- $(api GET "$pods?labelSelector=app=web" | sed -n 's/^ *"name": "\(web-[^"]*\)".*/\1/p')
  if [ $# -lt 3 ]; then
    echo "have $#, want 3: create one"
    api POST $pods -d @docs/book/shell/pod.json >/dev/null
  elif [ $# -gt 3 ]; then
    echo "have $#, want 3: delete $1"
    api DELETE $pods/$1 >/dev/null
  fi
done
