package kubelet

import (
	"strings"
	"testing"
	"time"
)

func TestPullable(t *testing.T) {
	for image, want := range map[string]bool{
		"nginx": true, "nginx:1.27": true, "badger:2": true, "registry:5000/a/b:v1": true,
		"host:404/nginx": true, "webserver:404": false, "foo:non-existent": false,
		"nginx:bad": false, "nginx:broken": false, "does-not-exist:1": false, "x/does-not-exist": false,
	} {
		if pullable(image) != want {
			t.Errorf("%s: %v", image, !want)
		}
	}
}

func TestDelay(t *testing.T) {
	k := &fake{options: Options{Delay: time.Second, Spread: time.Second, Seed: 1}}
	a, b := k.delay(pod("a"), "start"), k.delay(pod("a"), "stop")
	if a < time.Second || a >= 2*time.Second || a == b || a != k.delay(pod("a"), "start") {
		t.Errorf("delays %v, %v", a, b)
	}
	k.options.Seed = 2
	if k.delay(pod("a"), "start") == a {
		t.Error("the seed makes no difference")
	}
}

func TestStatusPatch(t *testing.T) {
	p := live(pod("nginx"), creating)
	status := live(p.DeepCopy(), pulling).Status
	body, err := statusPatch(p, status)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"uid":"uid-p"`, `"phase":"Running"`, `"$setElementOrder/conditions"`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if strings.Contains(string(body), "hostIP") {
		t.Errorf("what did not change is in %s", body)
	}
}
