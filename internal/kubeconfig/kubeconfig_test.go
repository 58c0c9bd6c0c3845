package kubeconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/internal/kubeconfig"
)

const form = `apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: dev, user: joe}}, {name: there, context: {cluster: dev}}, {name: lost, context: {cluster: gone}}]
clusters: [{name: dev, cluster: {server: "https://127.0.0.1:1"CLUSTER}}]
users: [{name: joe, user: {USER}}]
`

// Whatever is wrong with a kubeconfig, the error is one line that names the file and the field.
func TestErrorsNameFileAndField(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("KUBECONFIG", "")
	path := filepath.Join(dir, "config")
	garbage := filepath.Join(dir, "garbage.pem")
	if err := os.WriteFile(garbage, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	const data = "Z2FyYmFnZQ==" // garbage, in base64
	prefix := "kubeconfig " + path + ": "
	for name, c := range map[string]struct{ text, cluster, user, context, says string }{
		"good":            {},
		"another context": {context: "there"},
		"no context of that name": {context: "her", says: prefix +
			`there is no context "her": it has here, lost, there`},
		"a context to nowhere": {context: "lost", says: prefix +
			`contexts[lost].context.cluster: there is no cluster "gone"`},
		"client certificate": {user: "client-certificate-data: " + data, says: prefix +
			"users[joe].client-certificate-data: it has no PEM block of type CERTIFICATE (7 bytes)"},
		"client key": {user: "client-key-data: " + data, says: prefix +
			"users[joe].client-key-data: it has no PEM block of type PRIVATE KEY"},
		"authority": {cluster: ", certificate-authority-data: " + data, says: prefix +
			"clusters[dev].certificate-authority-data: it has no PEM block of type CERTIFICATE"},
		"authority in a file": {cluster: ", certificate-authority: garbage.pem", says: prefix +
			"clusters[dev].certificate-authority " + garbage + ": it has no PEM block"},
		"authority in no file": {cluster: ", certificate-authority: none.pem", says: prefix +
			"clusters[dev].certificate-authority " + filepath.Join(dir, "none.pem") + ": no such file or directory"},
		"token in no file": {user: "tokenFile: none", says: prefix + "users[joe].tokenFile: open " +
			filepath.Join(dir, "none")},
		"no plugin": {
			user: `exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: no-such-login, installHint: "get it\n there"}`,
			says: prefix +
				`users[joe].exec.command "no-such-login" cannot be run, and it tells who the user is: it is not in $PATH: get it there`,
		},
		"no YAML": {text: "{", says: path},
		"empty":   {text: "\n", says: "--kubeconfig: " + path + " names no cluster"},
		"no current context": {text: strings.Replace(form, "current-context: here\n", "", 1), says: prefix +
			"it has no current-context: choose one of here, lost, there"},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.text
			if text == "" {
				text = form
			}
			text = strings.NewReplacer("CLUSTER", c.cluster, "USER", c.user).Replace(text)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			config, err := kubeconfig.Load(&clientcmd.ClientConfigLoadingRules{ExplicitPath: path},
				&clientcmd.ConfigOverrides{CurrentContext: c.context}, "--kubeconfig")
			switch {
			case c.says == "" && (err != nil || config.Host != "https://127.0.0.1:1"):
				t.Errorf("%v, %v", config, err)
			case c.says != "" &&
				(err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n")):
				t.Errorf("said %v, want %s", err, c.says)
			}
		})
	}
}

func TestNoKubeconfig(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	_, err := kubeconfig.Load(clientcmd.NewDefaultClientConfigLoadingRules(), nil, "")
	if err == nil || err.Error() != "there is no kubeconfig, and this is no Pod: name one by $KUBECONFIG" {
		t.Errorf("said %v", err)
	}
	_, err = kubeconfig.Load(&clientcmd.ClientConfigLoadingRules{ExplicitPath: "/none"}, nil, "--kubeconfig")
	if err == nil || err.Error() != "--kubeconfig: stat /none: no such file or directory" {
		t.Errorf("said %v", err)
	}
}
