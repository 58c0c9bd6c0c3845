package flags_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/flyball-dev/flyball/manager/flags"
)

func ExampleFlags_AddConfigField() {
	file := filepath.Join(os.TempDir(), "my-operator.yaml")
	defer os.Remove(file)
	err := os.WriteFile(file, []byte(`
apiVersion: flyball.dev/v1alpha1
kind: ManagerConfiguration
leaderElection: {leaseDuration: 30s}
port: 8081
imageController: {concurrentImageSyncs: 8}
`), 0o600)
	if err != nil {
		fmt.Println(err)
	}
	f, set := flags.New("my-operator"), pflag.NewFlagSet("my-operator", pflag.ContinueOnError)
	f.AddFlags(set)
	workers := set.Int("concurrent-image-syncs", 1, "the number of images that are synced at once")
	f.AddConfigField("imageController.concurrentImageSyncs", "concurrent-image-syncs")
	if err := set.Parse([]string{"--config=" + file, "--port=9090"}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(f.Validate(), f.LeaderElection.LeaseDuration, f.Port, *workers)
	// Output: <nil> 30s 9090 8
}

const heading = "apiVersion: flyball.dev/v1alpha1\nkind: ManagerConfiguration\n"

// withConfig parses a command line and a configuration file, as a program does that has a few flags of its own.
func withConfig(t *testing.T, config string, args ...string) (*flags.Flags, *pflag.FlagSet, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	f, set := flags.New("test"), pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.AddFlags(set)
	set.StringSlice("controllers", []string{"*"}, "")
	set.StringToString("feature-gates", nil, "")
	set.StringArray("words", nil, "")
	f.AddConfigField("words", "words")
	f.AddConfigField("controllers", "controllers")
	f.AddConfigField("bindAddress", "bind-address")
	if err := set.Parse(append(args, "--config="+file)); err != nil {
		t.Fatal(err)
	}
	err := f.Validate()
	return f, set, err
}

// TestConfigFile sets every flag that a field is for.
func TestConfigFile(t *testing.T) {
	f, set, err := withConfig(t, heading+`
clientConnection: {kubeconfig: k, contentType: application/json, qps: 2.5, burst: 1000000}
leaderElection:
  leaderElect: false
  leaseDuration: 30s
  renewDeadline: 20s
  retryPeriod: 1s
  resourceName: lease
  resourceNamespace: ns
bindAddress: 0.0.0.0
port: 1
tlsCertFile: c
tlsPrivateKeyFile: k
insecureServing: true
enableProfiling: true
controllerShutdownTimeout: 1m
logging: {format: json, verbosity: 0}
controllers: [a, "-b,c"]
words: ["x,y", z]
featureGates: {Fast: true, Old: false}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"kubeconfig": "k", "kube-api-content-type": "application/json", "kube-api-qps": "2.5",
		"kube-api-burst": "1000000", "leader-elect": "false", "leader-elect-lease-duration": "30s",
		"leader-elect-renew-deadline": "20s", "leader-elect-retry-period": "1s", "leader-elect-resource-name": "lease",
		"leader-elect-resource-namespace": "ns", "bind-address": "0.0.0.0", "port": "1", "secure-port": "1",
		"tls-cert-file": "c", "tls-private-key-file": "k", "insecure-serving": "true", "profiling": "true",
		"controller-shutdown-timeout": "1m0s", "logging-format": "json", "v": "0", "controllers": `[a,"-b,c"]`, "words": `["x,y",z]`,
		"feature-gates": "[Fast=true,Old=false]",
	}
	set.VisitAll(func(flag *pflag.Flag) {
		switch text := flag.Value.String(); {
		case flag.Name == "config" || flag.Name == "context" || flag.Name == "master" || flag.Name == "vmodule":
		case text != want[flag.Name]:
			t.Errorf("--%s is %s, want %s", flag.Name, text, want[flag.Name])
		}
	})
	if err := f.Validate(); err != nil { // Once more: values do not add up.
		t.Error(err)
	}
	if words, _ := set.GetStringArray("words"); len(words) != 2 {
		t.Errorf("words %q", words)
	}
	if f.LeaderElection.LeaseDuration != 30*time.Second || f.Port != 1 {
		t.Errorf("flags %+v", f)
	}
}

func TestCommandLineWinsOverTheConfigFile(t *testing.T) {
	f, set, err := withConfig(t, heading+"port: 1\ncontrollers: [a]\nlogging: {verbosity: 3}", "--secure-port=2",
		"--controllers=b")
	if controllers, _ := set.GetStringSlice("controllers"); err != nil || f.Port != 2 ||
		fmt.Sprint(controllers) != "[b]" {
		t.Errorf("port %d, controllers %v: %v", f.Port, controllers, err)
	}
	if text := set.Lookup("v").Value.String(); text != "3" {
		t.Errorf("-v is %s, want 3", text)
	}
	_ = set.Lookup("v").Value.Set("0") // klog has one for the process.
}

func TestMistakesInTheConfigFile(t *testing.T) {
	for config, want := range map[string][]string{
		"port: 1":                      {"apiVersion: flyball.dev/v1alpha1", "<nil>"},
		"apiVersion: v1\nkind: Secret": {"kind: ManagerConfiguration", "v1 and Secret"},
		"":                             {"apiVersion"},
		"[]":                           {"cannot unmarshal array"},
		heading + "prt: 1\nleaderElection: {x: 1, leaseDuration: soon}\nlogging: 3": {
			"unknown field prt", "unknown field leaderElection.x; known: ", "leaderElection.leaseDuration, ",
			`leaderElection.leaseDuration: "soon": `, "unknown field logging; ",
		},
		heading + "port: 1\nport: 2":                          {"already set"},
		heading + "---\nport: 1":                              {"more than one document"},
		heading + "port:":                                     {"port: it has no value"},
		heading + "port: 1.5":                                 {`port: "1.5": `},
		heading + "port: 70000":                               {"--port 70000"},
		heading + "leaderElection: {leaseDuration: 30}":       {`leaseDuration: "30": `, "missing unit"},
		heading + "enableProfiling: {a: 1}":                   {`enableProfiling: "a=1": `},
		heading + "controllers: [null]":                       {"controllers: it has no value"},
		heading + "clientConnection: {acceptContentTypes: x}": {"unknown field clientConnection.acceptContentTypes"},
	} {
		_, _, err := withConfig(t, config)
		for _, text := range want {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%q: error %v, want %q in it", config, err, text)
			}
		}
	}
	if _, _, err := withConfig(t, "---\n"+heading+"leaderElection:\n"); err != nil {
		t.Errorf("an empty section: %v", err)
	}
	f, set := flags.New("test"), pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Config = "nonesuch.yaml"
	if err := f.Validate(); err == nil || !strings.Contains(err.Error(), "without AddFlags") {
		t.Errorf("a file without flags: %v", err)
	}
	f.AddFlags(set)
	f.Config = "nonesuch.yaml"
	if err := f.Validate(); err == nil || !strings.Contains(err.Error(), "--config: open nonesuch.yaml") {
		t.Errorf("a file that does not exist: %v", err)
	}
}
