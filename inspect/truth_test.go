package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
)

// TestTimelinesAreTrue compares what timelines say with the audit log and the journal of the server, and with what the
// reconciler was called with, after random scenarios: nothing is invented, and nothing is missing. In every second
// scenario requests fail, answers are lost and watches end.
func TestTimelinesAreTrue(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { truth(t, seed, seed%2 == 1) })
		})
	}
}

const (
	program = "program"
	objects = 4
)

func truth(t *testing.T, seed uint64, faults bool) {
	s := &scenario{
		random: rand.New(rand.NewPCG(seed, 0)), faults: faults, log: &audit.Log{}, runs: map[string][]string{},
	}
	api := localapi.NewTestWith(t, localapi.Options{Audit: s.log, Gate: s.gate()})
	i := inspect.New(inspect.Options{Subjects: 1000, Steps: 1000})
	mgr, err := manager.New(api.RESTConfigFor(auth.User{Name: program, Groups: []string{"system:masters"}}),
		manager.Options{Inspect: i})
	if err != nil {
		t.Fatal(err)
	}
	s.client = mgr.GetClient()
	if err := builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(
		reconcile.Func[reconcile.Request](s.reconcile)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.NewKlogr().V(9)))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	time.Sleep(time.Minute)
	s.script(t, kubernetes.NewForConfigOrDie(api.RESTConfig()))
	s.calm()
	time.Sleep(30 * time.Minute)

	journal := changesOf(t, api)
	for n := range objects {
		name := fmt.Sprint("object-", n)
		config := i.Timeline(inspect.Ref{Resource: "configmaps", Namespace: "default", Name: name})
		secret := i.Timeline(inspect.Ref{Resource: "secrets", Namespace: "default", Name: name})
		s.compareWrites(t, config, name)
		s.compareWrites(t, secret, name)
		s.compareRuns(t, config, name)
		for _, stage := range []string{"event", "cache"} {
			compareChanges(t, config, stage, journal["configmaps default/"+name], faults)
			compareChanges(t, secret, stage, journal["secrets default/"+name], faults)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// scenario is one run of users and a program.
type scenario struct {
	random *rand.Rand // of the script
	log    *audit.Log
	client client.Client

	mu     sync.Mutex
	faults bool
	// chance decides about faults.
	chance int
	// runs are the reconciles as the reconciler saw them, by name.
	runs map[string][]string
}

// gate makes one of ten requests and events of the program fail.
func (s *scenario) gate() gate.Gate {
	fault := func(r *gate.Request, verdicts ...gate.Verdict) gate.Verdict {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.chance++; !s.faults || r.User != program || s.chance%10 != 0 {
			return gate.Verdict{}
		}
		return verdicts[s.chance/10%len(verdicts)]
	}
	conflict := gate.FailWith(
		apierrors.NewConflict(schema.GroupResource{Resource: "tests"}, "it", errors.New("a test")))
	return gate.Funcs{
		OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
			if !r.Mutates() || r.Verb == "create" { // The audit log would not have its name.
				return gate.Verdict{}
			}
			return fault(r, conflict)
		},
		OnAnswer: func(_ context.Context, r *gate.Request, _ gate.Answer) gate.Verdict {
			if !r.Mutates() {
				return gate.Verdict{}
			}
			return fault(r, gate.Verdict{Action: gate.Drop})
		},
		OnFrame: func(_ context.Context, r *gate.Request, _ gate.Frame) gate.Verdict {
			return fault(r, gate.Verdict{Action: gate.Close})
		},
	}
}

func (s *scenario) calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = false
}

// script creates, changes and deletes ConfigMaps.
func (s *scenario) script(t *testing.T, user kubernetes.Interface) {
	maps := user.CoreV1().ConfigMaps("default")
	for range 40 {
		name := fmt.Sprint("object-", s.random.IntN(objects))
		config := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Data:       map[string]string{"value": fmt.Sprint(s.random.IntN(5))},
		}
		var err error
		switch s.random.IntN(4) {
		case 0:
			err = maps.Delete(t.Context(), name, metav1.DeleteOptions{})
		case 1:
			_, err = maps.Create(t.Context(), config, metav1.CreateOptions{})
		default:
			_, err = maps.Update(t.Context(), config, metav1.UpdateOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(s.random.IntN(3000)) * time.Millisecond)
	}
}

var errOdd = errors.New("an odd value")

// reconcile copies a ConfigMap to a Secret, and deletes the Secret of a ConfigMap that is gone.
func (s *scenario) reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		text := fmt.Sprint(len(reconcile.Causes(ctx)))
		if err != nil {
			text += " " + err.Error()
		}
		s.runs[req.Name] = append(s.runs[req.Name], text)
	}()
	var config corev1.ConfigMap
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	if err := s.client.Get(ctx, req.NamespacedName, &config); err != nil {
		if apierrors.IsNotFound(err) {
			return result, client.IgnoreNotFound(s.client.Delete(ctx, secret))
		}
		return result, err
	}
	_, err = controllerutil.CreateOrUpdate(ctx, s.client, secret, func() error {
		secret.StringData = nil
		secret.Data = map[string][]byte{"value": []byte(config.Data["value"])}
		return controllerutil.SetControllerReference(&config, secret, s.client.Scheme())
	})
	if err == nil && config.Data["value"] == "3" {
		return result, errOdd
	}
	return result, err
}

// compareWrites compares the writes in a timeline with the audit log.
func (s *scenario) compareWrites(t *testing.T, timeline inspect.Timeline, name string) {
	t.Helper()
	var want, got []string
	for _, e := range s.log.Entries(func(e audit.Entry) bool {
		return e.User == program && e.Name == name && (e.Verb == "create" || e.Verb == "update" || e.Verb == "delete")
	}) {
		outcome := fmt.Sprint(e.Code)
		if e.Lost {
			outcome = "no"
		}
		want = append(want, fmt.Sprintf("%s %s %s/%s: %s", e.Verb, e.Resource, e.Namespace, e.Name, outcome))
	}
	for _, e := range timeline.Steps {
		if e.Stage == "write" {
			got = append(got, strings.Join(strings.Fields(e.Text)[:4], " ")) // verb, resource, name, outcome
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: writes (-audit log +timeline):\n%s", timeline.Object, diff)
	}
}

// compareRuns compares the reconciles in a timeline with what the reconciler was called with and returned.
func (s *scenario) compareRuns(t *testing.T, timeline inspect.Timeline, name string) {
	t.Helper()
	var got []string
	for _, e := range timeline.Steps {
		if e.Stage == "reconcile" {
			_, failure, _ := strings.Cut(e.Text, ": ")
			failure, _, _ = strings.Cut(failure, " (attempt")
			got = append(got, strings.TrimSpace(fmt.Sprint(len(e.Details), " ", failure)))
		}
	}
	if diff := cmp.Diff(s.runs[name], got); diff != "" {
		t.Errorf("%s: reconciles (-reconciler +timeline):\n%s", timeline.Object, diff)
	}
}

// compareChanges compares the events of watches, or the changes of the cache, in a timeline with the journal. If
// watches have ended, some of the changes have not been seen.
func compareChanges(t *testing.T, timeline inspect.Timeline, stage string, journal []string, missed bool) {
	t.Helper()
	words := strings.NewReplacer(
		", by the first list", "", "ADDED", "added", "MODIFIED", "updated", "DELETED", "deleted")
	var got []string
	for _, e := range timeline.Steps {
		if e.Stage == stage {
			got = append(got, words.Replace(e.Text))
		}
	}
	if !missed {
		if diff := cmp.Diff(journal, got); diff != "" {
			t.Errorf("%s: %s (-journal +timeline):\n%s", timeline.Object, stage, diff)
		}
		return
	}
	version := func(text string) int {
		n, err := strconv.Atoi(text[strings.LastIndex(text, " ")+1:])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	last := 0
	for _, text := range got {
		known := slices.ContainsFunc(journal, func(j string) bool { return version(j) == version(text) })
		if !known || version(text) < last {
			t.Errorf("%s: the timeline has %q, after version %d; the journal has %q", timeline.Object, text, last,
				journal)
		}
		last = version(text)
	}
	gone := func(texts []string) bool {
		return len(texts) == 0 || strings.HasPrefix(texts[len(texts)-1], "deleted")
	}
	if gone(got) != gone(journal) || !gone(got) && version(got[len(got)-1]) != version(journal[len(journal)-1]) {
		t.Errorf("%s: the timeline ends with %q, the journal with %q", timeline.Object, got, journal)
	}
}

// changesOf returns the committed writes of each object, in the words of a timeline.
func changesOf(t *testing.T, api *localapi.Test) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for revision := int64(0); ; {
		var changes []localapi.Change
		var err error
		changes, revision, err = api.Changes(revision)
		if err != nil {
			t.Fatal(err)
		}
		if len(changes) == 0 {
			return all
		}
		for _, c := range changes {
			event := "updated"
			switch {
			case c.Object == nil:
				event = "deleted"
			case c.Previous == nil:
				event = "added"
			}
			key := fmt.Sprintf("%s %s/%s", c.Resource.Resource, c.Namespace, c.Name)
			all[key] = append(all[key], fmt.Sprintf("%s: version %d", event, c.Revision))
		}
	}
}
