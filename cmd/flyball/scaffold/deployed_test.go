package scaffold

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/deploy/deploytest"
	"github.com/flyball-dev/flyball/internal/kit"
)

// TestDeployed runs a project with all webhooks as its Pod would run: with the command line and the permissions of
// config/default.
func TestDeployed(t *testing.T) {
	kit.Guard(t)
	dir := newProjectDir(t, "v1/Guestbook")
	createWebhook(t, dir, "v1/Guestbook", true, true)
	createAPI(t, dir, "v2/Guestbook")
	createConversion(t, dir, "v1", "Guestbook", "v2")
	goIn(t, dir, "mod", "tidy")
	binary := filepath.Join(dir, "bin/manager")
	goIn(t, dir, "build", "-o", binary, "./cmd")
	checkCommandLine(t, binary)
	program := deploytest.Program{
		Manifests: filepath.Join(dir, "config/default"), Does: live,
		Webhooks: "guestbook-system/guestbook-webhook-service",
		Run: func(ctx context.Context, args []string, stderr io.Writer) error {
			c := exec.CommandContext(ctx, binary, args...)
			c.Stderr = stderr
			c.Cancel = func() error { // It has to end by itself, successfully.
				return errors.Join(c.Process.Signal(syscall.SIGTERM), os.ErrProcessDone)
			}
			return c.Run()
		},
	}
	program.Works(t)
}

// manifestNames is what a program prints beside an unknown flag.
const manifestNames = "In a Pod, the flags come from config/manager/manager.yaml and its patches, such as those in " +
	"config/default."

// checkCommandLine: a command line that is wrong is refused before anything starts.
func checkCommandLine(t *testing.T, binary string) {
	t.Helper()
	for args, want := range map[string]string{
		"--port=0 extra":        `unexpected argument "extra"`,
		"--no-such-flag":        manifestNames + "\nunknown flag: --no-such-flag",
		"--port=65536":          "--port 65536: it must be between 0 and 65535",
		"--webhook-port=65536":  "Options.Webhook.Port is 65536",
		"--config=no-such-file": "--config: open no-such-file",
	} {
		c := exec.Command(binary, append(strings.Fields(args), "--master=http://127.0.0.1:1")...)
		out, err := c.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "Serving") {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}

// live is the life of a Guestbook: the webhooks set its defaults, refuse what is wrong and convert it, and the
// controller makes it ready and cleans up.
func live(t *testing.T, c *deploytest.Cluster) {
	v1 := guestbook("v1", map[string]any{})
	eventually(t, "it is created, with its defaults", func() error { // once the authority is in the configurations
		v1 = guestbook("v1", map[string]any{})
		return c.Admin.Create(t.Context(), v1)
	})
	wrong := v1.DeepCopy()
	wrong.Object["spec"] = map[string]any{"message": " hello"}
	err := c.Admin.Update(t.Context(), wrong)
	if err == nil || !strings.Contains(err.Error(), "it has spaces around it") {
		t.Errorf("against the rule: %v", err)
	}
	v2 := guestbook("v2", nil)
	eventually(t, "it is ready in version v2", func() error {
		if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(v2), v2); err != nil {
			return err
		}
		message, _, _ := unstructured.NestedString(v2.Object, "spec", "message")
		configMap, _, _ := unstructured.NestedString(v2.Object, "status", "configMap")
		if message != "hello" || configMap != "a-guestbook" {
			return errors.New("it is not")
		}
		return nil
	})
	if err := c.Admin.Delete(t.Context(), v2); err != nil {
		t.Error(err)
	}
	eventually(t, "it is gone", func() error {
		if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(v2), v2); err == nil {
			return errors.New("it is there")
		}
		return nil
	})
}

func guestbook(version string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "webapp.example.com/" + version, "kind": "Guestbook",
		"metadata": map[string]any{"namespace": "default", "name": "a"}, "spec": spec,
	}}
}

// eventually calls f until it succeeds.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatalf("a minute without: %s: %v", what, err)
}
