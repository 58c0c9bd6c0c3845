# Requests to the API server of: bin/flyball serve --kubeconfig bin/kubeconfig
#
# In the root of the repository:
#
#   . docs/book/shell/api.sh
#   api GET /version
#
# The address, the token and the certificate come from bin/kubeconfig. What follows the path goes to curl.

api() {
  if [ ! -s bin/kubeconfig ]; then
    echo "there is no bin/kubeconfig here: go to the root of the repository, and start the server first:" >&2
    echo "bin/flyball serve --controllers= --kubeconfig bin/kubeconfig" >&2
    return 1
  fi
  if ! [ bin/ca.pem -nt bin/kubeconfig ]; then
    sed -n 's/.*certificate-authority-data: \([^}]*\)}.*/\1/p' bin/kubeconfig | base64 --decode >"bin/ca.$$" &&
      mv "bin/ca.$$" bin/ca.pem
  fi
  api_token=$(sed -n 's/.*token: "\([^"]*\)".*/\1/p' bin/kubeconfig)
  api_method=$1
  api_url=$(sed -n 's/.*server: "\([^"]*\)".*/\1/p' bin/kubeconfig)$2
  shift 2
  case $api_method in
  PATCH) api_type=application/merge-patch+json ;;
  *) api_type=application/json ;;
  esac
  curl --silent --show-error --no-buffer --cacert bin/ca.pem --request "$api_method" \
    --header "Authorization: Bearer $api_token" --header "Content-Type: $api_type" "$api_url" "$@"
}

# short prints a line for each event of a watch: its type, the name of the object, the version.
short() {
  sed -E -e 's/^\{"type":"([A-Z]+)".*"name":"([^"]+)".*"resourceVersion":"([0-9]+)".*/\1 \2 \3/' \
    -e 's/^\{"type":"BOOKMARK".*"resourceVersion":"([0-9]+)".*/BOOKMARK \1/' \
    -e 's/^\{"type":"ERROR".*"message":"([^"]+)".*"code":([0-9]+).*/ERROR \2 \1/'
}
