package providers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// text returns a kubeconfig with one context, c, whose cluster and user have these lines.
func text(cluster, user string) []byte {
	return []byte(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u, namespace: somewhere}}]
clusters: [{name: k, cluster: {` + cluster + `}}]
users: [{name: u, user: {` + user + `}}]
`)
}

func TestUntrustedKubeconfigs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	const server = "server: https://x"
	for _, c := range []struct{ cluster, user, want string }{
		{server, "token: t", ""},
		{
			server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}",
			"runs a command",
		},
		{server, "auth-provider: {name: oidc}", "runs a command"},
		{server, "tokenFile: " + file, "tokenFile"},
		{server, "client-certificate: " + file + ", client-key: " + file, "client-certificate-data"},
		{server + ", certificate-authority: " + file, "token: t", "certificate-authority-data"},
	} {
		k, err := readKubeconfig(text(c.cluster, c.user), "", true)
		if err != nil || len(k.contexts) != 1 {
			t.Fatalf("%s: %v, %v", c.user, k, err)
		}
		err = k.contexts[0].err
		if (err == nil) != (c.want == "") || err != nil &&
			(!strings.Contains(err.Error(), c.want) || k.contexts[0].config != nil) {
			t.Errorf("%s; %s: %v, want %q", c.cluster, c.user, err, c.want)
		}
	}
	trusted, err := readKubeconfig(text(server, "tokenFile: token"), filepath.Join(filepath.Dir(file), "config"), false)
	if err != nil || trusted.contexts[0].err != nil || trusted.contexts[0].config.BearerTokenFile != file {
		t.Errorf("a file beside a trusted one: %+v, %v", trusted, err)
	}
}

func TestIdentity(t *testing.T) {
	identity := func(data []byte) string {
		t.Helper()
		k, err := readKubeconfig(data, "", false)
		if err != nil || k.contexts[0].err != nil {
			t.Fatal(k, err)
		}
		return k.contexts[0].identity
	}
	base := string(text("server: https://x", "token: t"))
	for change, same := range map[[2]string]bool{
		{"namespace: somewhere", "namespace: elsewhere"}: true,
		{"token: t", "token: other"}:                     false,
		{"https://x", "https://y"}:                       false,
		{"server:", "proxy-url: http://p, server:"}:      false,
	} {
		if now := identity(
			[]byte(strings.Replace(base, change[0], change[1], 1)),
		); (now == identity([]byte(base))) != same {
			t.Errorf("%q: the identity is the same: %t, want %t", change, !same, same)
		}
	}
}

func TestInvalidKubeconfigs(t *testing.T) {
	for in, want := range map[string]string{
		"": "empty", " \n": "empty", "a: [": "not a kubeconfig", "kind: Pod\napiVersion: v1\n": "not a kubeconfig",
	} {
		if _, err := readKubeconfig([]byte(in), "", false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
	nobody := strings.Replace(string(text("server: https://x", "token: t")), "user: u,", "user: nobody,", 1)
	k, err := readKubeconfig([]byte(nobody), "", false)
	if err != nil || k.current != "c" || len(k.contexts) != 1 || k.contexts[0].err == nil ||
		!strings.Contains(k.contexts[0].err.Error(), `context "c": `) {
		t.Errorf("a context without a user: %+v, %v", k, err)
	}
}

func TestClusterName(t *testing.T) {
	for in, want := range map[string]string{
		"eu":                                "eu",
		"kubernetes-admin@kind-1":           "kubernetes-admin-kind-1",
		"default/api-x.example:6443/kube:A": "default/api-x.example-6443/kube-a",
		"arn:aws:eks:eu-1:12:cluster/Shop":  "arn-aws-eks-eu-1-12-cluster/shop",
		"_/@/":                              "", "": "",
	} {
		if got := clusterName(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
