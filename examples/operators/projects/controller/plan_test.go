package controller

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/api/infrastructure"
	"github.com/flyball-dev/flyball/examples/operators/projects/purge"
)

func TestReadiness(t *testing.T) {
	p := &api.Project{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	plane := func(uid, ready string) *infrastructure.ProjectControlPlane {
		c := &infrastructure.ProjectControlPlane{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{api.ProjectUIDLabel: uid}},
		}
		if ready != "" {
			c.Status.Conditions = []metav1.Condition{
				{Type: infrastructure.ControlPlaneReady, Status: metav1.ConditionStatus(ready)},
			}
		}
		return c
	}
	going := plane("1", "True")
	going.DeletionTimestamp = &metav1.Time{}
	for _, c := range []struct {
		what     string
		plane    *infrastructure.ProjectControlPlane
		prepared error
		want     string
	}{
		{"nobody has said anything", plane("1", ""), nil, "False Provisioning"},
		{"not ready", plane("1", "False"), nil, "False Provisioning"},
		{"ready and prepared", plane("1", "True"), nil, "True Ready"},
		{"ready and silent", plane("1", "True"), context.DeadlineExceeded, "False Provisioning"},
		{"being deleted", going, nil, "False Provisioning"},
		{"an earlier project's", plane("0", "True"), nil, "False ProjectNameConflict"},
		{"nobody's", plane("", "True"), nil, "False ProjectNameConflict"},
	} {
		got := readiness(p, c.plane, c.prepared)
		if s := string(got.Status) + " " + got.Reason; s != c.want || got.Type != api.Ready || got.Message == "" {
			t.Errorf("%s: %s (%s), want %s", c.what, s, got.Message, c.want)
		}
	}
}

func TestCleanup(t *testing.T) {
	const started, awaiting = api.ReasonCleanupStarted, api.ReasonCleanupAwaiting
	some, silent, refused := purge.Left{Objects: 1, Example: "Secret team/s"}, context.DeadlineExceeded,
		error(syscall.ECONNREFUSED)
	for _, c := range []struct {
		what, reason string
		s            sight
		want, says   string
		wait         bool
	}{
		{"it begins", "", sight{promised: true}, "True CleanupStarted", "are told to go", false},
		{"it begins without a control plane", "", sight{none: true}, "True CleanupStarted", "", false},
		{"there is none", started, sight{none: true}, "False CleanupComplete", "no control plane", false},
		{
			"first pass", started,
			sight{promised: true, left: some},
			"True CleanupAwaitingCompletion", "were told to go",
			false,
		},
		{
			"first pass over nothing", started,
			sight{promised: true},
			"True CleanupAwaitingCompletion",
			"were told to go", false,
		},
		{
			"something is left", awaiting,
			sight{promised: true, left: some},
			"True CleanupAwaitingCompletion",
			"1 objects, like Secret team/s", true,
		},
		{"nothing is left", awaiting, sight{promised: true}, "False CleanupComplete", "Nothing is left", false},
		{
			"nothing is left, late", awaiting,
			sight{promised: true, since: time.Hour},
			"False CleanupComplete",
			"Nothing is left", false,
		},
		{
			"silent at first", started,
			sight{promised: true, err: silent},
			"True CleanupStarted", "does not answer",
			true,
		},
		{
			"silent later", awaiting,
			sight{promised: true, err: silent},
			"True CleanupAwaitingCompletion",
			"does not answer", true,
		},
		{
			"refused, but promised: it restarts", awaiting,
			sight{promised: true, err: refused},
			"True CleanupAwaitingCompletion", "does not answer", true,
		},
		{
			"refused, and nobody promises: it is gone", awaiting,
			sight{err: refused},
			"False CleanupComplete", "is gone",
			false,
		},
		{
			"silent for too long", started,
			sight{promised: true, err: silent, since: time.Minute},
			"False CleanupComplete", "Given up after 1m0s: the control plane does not answer", false,
		},
		{
			"refused for too long", started,
			sight{promised: true, err: refused, since: time.Minute},
			"False CleanupComplete", "Given up", false,
		},
		{
			"held for too long", awaiting,
			sight{promised: true, left: some, since: time.Minute},
			"False CleanupComplete",
			"there are still 0 namespaces and 1 objects", false,
		},
	} {
		got, wait := cleanup(c.reason, c.s, time.Minute)
		if s := string(got.Status) + " " + got.Reason; s != c.want || wait != c.wait ||
			!strings.Contains(got.Message, c.says) {
			t.Errorf("%s: %s (%s), wait %t; want %s (%s), %t", c.what, s, got.Message, wait, c.want, c.says, c.wait)
		}
	}
	// The same sight twice is the same message: it is not written again.
	one, _ := cleanup(awaiting, sight{promised: true, err: errors.New("port 1234")}, time.Minute)
	two, _ := cleanup(awaiting, sight{promised: true, err: errors.New("port 5678"), since: time.Second}, time.Minute)
	if one != two {
		t.Errorf("%v and %v differ", one, two)
	}
}
