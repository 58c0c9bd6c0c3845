package integration

import (
	"os"
	"os/exec"
	"testing"
)

var served = suite{
	folders:  []string{"apiserver", "apiserver/apply", "apiserver/cel"},
	document: "../../docs/localapi.md",
}

// TestLocalapi runs Kubernetes' tests of its API server against localapi.
func TestLocalapi(t *testing.T) {
	if os.Getenv("FLYBALL_INTEGRATION") == "" {
		t.Skip("make test-integration runs it")
	}
	b := newBuild(t, servedEdits, nil)
	served.run(t, func(t *testing.T, folder string) *exec.Cmd { return b.test(t, folder, "-timeout", "20m") })
}

// servedEdits have all functions that start an API server start localapi.
var servedEdits = []edit{
	importing("test/integration/apiserver/apiserver_test.go", "served"),
	{
		"test/integration/apiserver/apiserver_test.go",
		`(?s)\ttearDown, config, _, err := fixtures\.StartDefaultServer.{30,90}?defer tearDown\(\)\n` +
			`(\s+ctx, \w+, kubeConfig, tearDownFn := setup\(t\)\n)`,
		"${1}\tconfig, err := served.Definitions(ctx, kubeConfig)\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n",
	},
	{"test/integration/apiserver/watchcache_test.go", `(?m)^func multiEtcdSetup\(.*\{\n`, `${0}
	t.Skip("localapi has no etcd")
`},
	importing("cmd/kube-apiserver/app/testing/testserver.go", "served"),
	{"cmd/kube-apiserver/app/testing/testserver.go", `(?m)^func StartTestServer\(.*\{\n`, `${0}
	{
		config, stop := served.Start(t, customFlags)
		etcdClient, _, err := GetEtcdClients(storageConfig.Transport) // of an etcd that localapi does not use
		return TestServer{
			ClientConfig: config, EtcdClient: etcdClient, EtcdStoragePrefix: storageConfig.Prefix,
			TearDownFn: func() { stop(); etcdClient.Close() },
		}, err
	}
`},
	importing("test/integration/framework/test_server.go", "served"),
	{"test/integration/framework/test_server.go", `(?m)^func StartTestServer\(.*\{\n`, `${0}
	{
		opts := options.NewServerRunOptions()
		prefix := opts.Etcd.StorageConfig.Prefix
		if setup.ModifyServerRunOptions != nil {
			setup.ModifyServerRunOptions(opts)
		}
		if modes := strings.Join(opts.Authorization.Modes, ","); opts.Etcd.StorageConfig.Prefix != prefix ||
			strings.Contains(modes, "Webhook") {
			t.Skip("localapi has no flags of kube-apiserver: those of its storage and its authorization")
		}
		config, stop := served.Start(t, nil)
		return client.NewForConfigOrDie(config), config, stop
	}
`},
}
