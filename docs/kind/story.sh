#!/usr/bin/env bash
# make kind: a kind cluster in which flyball manager runs in the place of five of kube-controller-manager's controllers,
# and the demo's story on it. KEEP=1 leaves the cluster. CLUSTER is the file that describes it, if not cluster.yaml, and
# IMAGES are the two images of the story, if not those of nginx.
set -euo pipefail
cd "$(dirname "$0")/../.."

say() { printf '\n== %s\n' "$*"; }
missing=""
docker version >/dev/null 2>&1 || missing+=" a docker engine (docker version fails);"
for program in kind kubectl; do
  command -v "$program" >/dev/null || missing+=" $program;"
done
if [ -n "$missing" ]; then
  echo "make kind needs:$missing make node does without kind and without a registry" >&2
  exit 1
fi

name=flyball
if kind get clusters 2>/dev/null | grep -qx "$name"; then
  echo "there is a cluster $name already: kind delete cluster --name $name ends it" >&2
  exit 1
fi
image=flyball:$(sed -n 's/.*&version \([^ }]*\).*/\1/p' deploy/version/kustomization.yaml)
work=$(mktemp -d)
export KUBECONFIG=$work/kubeconfig
outside=""
finish() {
  [ -z "$outside" ] || kill "$outside" 2>/dev/null || true
  if [ -n "${KEEP:-}" ]; then
    say "the cluster stays: export KUBECONFIG=$KUBECONFIG; kind delete cluster --name $name ends it"
    return
  fi
  say "delete the cluster"
  kind delete cluster --name "$name"
  rm -rf "$work"
}

say "build flyball, and its image"
make --silent build
make --silent image ONLY=flyball

say "create the cluster"
trap finish EXIT
kind create cluster --name "$name" --config "${CLUSTER:-docs/kind/cluster.yaml}" --kubeconfig "$KUBECONFIG" --wait 3m
kind load docker-image "$image" --name "$name"

say "run a manager outside, and deploy the one that takes its place"
bin/flyball manager --port=0 --controllers=deployment,replicaset,endpoint,endpointslice,endpointslicemirroring \
    2>"$work/manager.log" &
outside=$!
kubectl apply -k deploy
kubectl -n kube-system rollout status deployment/flyball-manager --timeout=3m
kill "$outside"
wait "$outside"
outside=""
kubectl -n kube-system get pods --selector app=flyball-manager --output wide

say "play the story"
bin/flyball demo --kubeconfig "$KUBECONFIG" --timeout 5m ${IMAGES:+--images "$IMAGES"}
