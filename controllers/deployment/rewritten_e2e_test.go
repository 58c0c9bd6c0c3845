package deployment_test

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/localapi"
)

// A webhook changes the image of each ReplicaSet that is created. After three of them the controller waits, for longer
// each time, says which field differs, and leaves the pods alone. When the webhook is gone, the rollout goes on.
func TestWebhookRewritesReplicaSets(t *testing.T) {
	var on atomic.Bool
	rewrite := func(method, path string, body []byte) []byte {
		if !on.Load() || method != "POST" || !strings.HasSuffix(path, "/replicasets") {
			return body
		}
		return bytes.Replace(body, []byte(`"image":"web:2"`), []byte(`"image":"mirror/web:2"`), 1)
	}
	runRewriting(t, localapi.Options{}, rewrite, func(c *cluster) {
		c.create(3)
		c.settle()
		on.Store(true)
		c.edit(image("2"))
		c.pass(15 * time.Second)
		equal(t, "replica sets after 15 s", len(c.sets()), 1+3)
		available := c.web().Status.AvailableReplicas
		if available < 3 {
			t.Errorf("%d pods are available, want 3", available)
		}
		const what = "spec.template.spec.containers[0].image"
		if got := c.conditions(); !strings.Contains(got, "Progressing=False/ReplicaSetRewritten") {
			t.Errorf("conditions %s", got)
		}
		var said []string
		for _, e := range c.events() {
			if strings.Contains(e, "ReplicaSetRewritten") {
				said = append(said, e)
			}
		}
		if len(said) != 1 || !strings.Contains(said[0], what) {
			t.Errorf("events %q, want one that names %s", said, what)
		}
		c.pass(time.Minute) // the first delay
		equal(t, "replica sets after a minute", len(c.sets()), 1+4)
		c.pass(2 * time.Minute)
		equal(t, "after three", len(c.sets()), 1+5)
		c.pass(24 * time.Hour)
		if n := len(c.sets()); n > 1+5+30 {
			t.Errorf("%d replica sets after a day", n)
		}

		on.Store(false)
		c.pass(2 * time.Hour)
		equal(t, "counts", c.counts(), "replicas=3 updated=3 ready=3 available=3 unavailable=0")
		if got := c.conditions(); !strings.Contains(got, "Progressing=True/NewReplicaSetAvailable") {
			t.Errorf("conditions %s", got)
		}
	})
}
