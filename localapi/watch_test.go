package localapi_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
)

// inBubble runs test in a bubble of virtual time, with a server of its own.
func inBubble(t *testing.T, o localapi.Options,
	test func(t *testing.T, s *localapi.Server, client kubernetes.Interface),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, config := start(t, o)
		test(t, server, clientset(t, config))
	})
}

func watchMaps(t *testing.T, maps corev1client.ConfigMapInterface, o metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := maps.Watch(t.Context(), o)
	if err != nil {
		t.Fatalf("watch %+v: %v", o, err)
	}
	t.Cleanup(w.Stop)
	return w
}

// events returns what a watch has sent by the time that everything is idle, as "TYPE name"; bookmarks as "BOOKMARK".
func events(t *testing.T, w watch.Interface) []string {
	t.Helper()
	got := []string{}
	for {
		synctest.Wait()
		select {
		case e, open := <-w.ResultChan():
			if !open {
				return append(got, "closed")
			}
			if s, ok := e.Object.(*metav1.Status); ok {
				got = append(got, fmt.Sprintf("ERROR %d %s", s.Code, s.Reason))
				continue
			}
			m, err := meta.Accessor(e.Object)
			if err != nil {
				t.Fatalf("watch event %s with %T", e.Type, e.Object)
			}
			line := string(e.Type)
			if m.GetName() != "" {
				line += " " + m.GetName()
			}
			if m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
				line += " initial-events-end"
			}
			got = append(got, line)
		default:
			return got
		}
	}
}

func wantEvents(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, events(t, w)); diff != "" {
		t.Fatalf("watch events (-want +got):\n%s", diff)
	}
}

func mustCreate(t *testing.T, maps corev1client.ConfigMapInterface, cm *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	created, err := maps.Create(t.Context(), cm, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create %s: %v", cm.Name, err)
	}
	return created
}

func mustUpdate(t *testing.T, maps corev1client.ConfigMapInterface, cm *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	updated, err := maps.Update(t.Context(), cm, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("update %s: %v", cm.Name, err)
	}
	return updated
}

func mustDelete(t *testing.T, maps corev1client.ConfigMapInterface, name string) {
	t.Helper()
	if err := maps.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete %s: %v", name, err)
	}
}

func TestWatchStartsWithThePresentUnlessAVersionIsGiven(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		a := mustCreate(t, maps, configMap("a"))
		mustCreate(t, maps, configMap("b"))
		unset, zero := watchMaps(t, maps, metav1.ListOptions{}),
			watchMaps(t, maps, metav1.ListOptions{ResourceVersion: "0"})
		since := watchMaps(t, maps, metav1.ListOptions{ResourceVersion: a.ResourceVersion})
		wantEvents(t, unset, "ADDED a", "ADDED b")
		wantEvents(t, zero, "ADDED a", "ADDED b")
		wantEvents(t, since, "ADDED b")
		mustDelete(t, maps, "a")
		for _, w := range []watch.Interface{unset, zero, since} {
			wantEvents(t, w, "DELETED a")
		}
	})
}

func TestWatchIsOfItsNamespaceAndResource(t *testing.T) {
	inBubble(t, localapi.Options{Namespaces: []string{"def"}},
		func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
			one, all := watchMaps(t, client.CoreV1().ConfigMaps("def"), metav1.ListOptions{}),
				watchMaps(t, client.CoreV1().ConfigMaps(""), metav1.ListOptions{})
			mustCreate(t, client.CoreV1().ConfigMaps("default"), configMap("a"))
			mustCreate(t, client.CoreV1().ConfigMaps("def"), configMap("b"))
			if _, err := client.CoreV1().Secrets("def").Create(t.Context(),
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}); err != nil {
				t.Fatalf("create secret: %v", err)
			}
			wantEvents(t, one, "ADDED b")
			wantEvents(t, all, "ADDED a", "ADDED b")
		})
}

func TestWatchSelectorsTurnTransitionsIntoAddedAndDeleted(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		byLabel := watchMaps(t, maps, metav1.ListOptions{LabelSelector: "app=web"})
		byName := watchMaps(t, maps, metav1.ListOptions{FieldSelector: "metadata.name=a"})
		a := mustCreate(t, maps, configMap("a"))
		mustCreate(t, maps, configMap("other"))
		wantEvents(t, byLabel)
		wantEvents(t, byName, "ADDED a")

		a.Labels = map[string]string{"app": "web"}
		a = mustUpdate(t, maps, a)
		wantEvents(t, byLabel, "ADDED a")
		a.Data = map[string]string{"k": "v"}
		a = mustUpdate(t, maps, a)
		wantEvents(t, byLabel, "MODIFIED a")
		a.Labels["app"] = "db"
		a = mustUpdate(t, maps, a)
		e := <-byLabel.ResultChan()
		if got := e.Object.(*corev1.ConfigMap); e.Type != watch.Deleted || got.Labels["app"] != "web" ||
			got.ResourceVersion != a.ResourceVersion {
			t.Errorf("leaving the selection is %s with labels %v at %s, want DELETED with the state before at version "+
				"%s",
				e.Type, got.Labels, got.ResourceVersion, a.ResourceVersion)
		}
		mustDelete(t, maps, "a")
		wantEvents(t, byLabel)
		wantEvents(t, byName, "MODIFIED a", "MODIFIED a", "MODIFIED a", "DELETED a")
	})
}

func TestWatchDeletedEventCarriesTheVersionOfTheDeletion(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		a := mustCreate(t, maps, configMap("a", "k", "v"))
		w := watchMaps(t, maps, metav1.ListOptions{ResourceVersion: a.ResourceVersion})
		mustDelete(t, maps, "a")
		e := <-w.ResultChan()
		got := e.Object.(*corev1.ConfigMap)
		if got.ResourceVersion == a.ResourceVersion || got.Data["k"] != "v" {
			t.Errorf("deleted event at version %s with data %v, want the last state at a version after %s",
				got.ResourceVersion, got.Data, a.ResourceVersion)
		}
		list, err := maps.List(t.Context(), metav1.ListOptions{})
		if err != nil || list.ResourceVersion != got.ResourceVersion {
			t.Errorf("list at version %s (%v), want %s: that of the deletion", list.ResourceVersion, err,
				got.ResourceVersion)
		}
	})
}

func TestWatchBookmarks(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		list, err := maps.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		with := watchMaps(t, maps, metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
		without := watchMaps(t, maps, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		mustCreate(t, client.CoreV1().ConfigMaps("kube-system"), configMap("elsewhere"))
		time.Sleep(localapi.DefaultBookmarkInterval)
		wantEvents(t, with, "BOOKMARK")
		wantEvents(t, without)
		time.Sleep(localapi.DefaultBookmarkInterval)
		wantEvents(t, with) // no news
	})
}

func TestWatchEndsAtItsTimeout(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		seconds := int64(30)
		w := watchMaps(t, maps, metav1.ListOptions{TimeoutSeconds: &seconds, AllowWatchBookmarks: true})
		mustCreate(t, client.CoreV1().ConfigMaps("kube-system"), configMap("elsewhere"))
		wantEvents(t, w, "BOOKMARK initial-events-end")
		time.Sleep(27 * time.Second)
		wantEvents(t, w)
		time.Sleep(time.Second)
		wantEvents(t, w, "BOOKMARK") // two seconds before the end, as a real server
		time.Sleep(2 * time.Second)
		wantEvents(t, w, "closed")
	})
}

func TestWatchListSendsInitialEventsAndTheirEnd(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		mustCreate(t, maps, configMap("a"))
		mustCreate(t, maps, configMap("b"))
		yes, no := true, false
		streamed := metav1.ListOptions{
			SendInitialEvents: &yes, AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}
		w := watchMaps(t, maps, streamed)
		none := watchMaps(t, maps,
			metav1.ListOptions{SendInitialEvents: &no, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		wantEvents(t, w, "ADDED a", "ADDED b", "BOOKMARK initial-events-end")
		mustCreate(t, maps, configMap("c"))
		wantEvents(t, w, "ADDED c")
		wantEvents(t, none, "ADDED c")

		streamed.ResourceVersionMatch = ""
		if _, err := maps.Watch(t.Context(), streamed); !apierrors.IsInvalid(err) {
			t.Errorf("sendInitialEvents without a version match: %v, want Invalid", err)
		}
		streamed.ResourceVersionMatch, streamed.ResourceVersion = metav1.ResourceVersionMatchNotOlderThan, "1000"
		wantEvents(t, watchMaps(t, maps, streamed), "ERROR 504 Timeout", "closed")
	})
}

func TestWatchFromACompactedVersionExpires(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, s *localapi.Server, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		a := mustCreate(t, maps, configMap("a"))
		b := mustCreate(t, maps, configMap("b"))
		if err := s.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantEvents(t, watchMaps(t, maps, metav1.ListOptions{ResourceVersion: a.ResourceVersion}), "ERROR 410 Expired",
			"closed")
		wantEvents(t, watchMaps(t, maps, metav1.ListOptions{ResourceVersion: b.ResourceVersion}))
	})
}

// TestOpenWatchOutlivesCompaction: a watch with bookmarks of a resource that does not change misses nothing when the
// history of others is compacted, so it goes on.
func TestOpenWatchOutlivesCompaction(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, s *localapi.Server, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		a := mustCreate(t, maps, configMap("a"))
		w := watchMaps(t, maps, metav1.ListOptions{ResourceVersion: a.ResourceVersion, AllowWatchBookmarks: true})
		secrets := client.CoreV1().Secrets("default")
		for n := range 5 {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("secret-", n)}}
			if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantEvents(t, watchMaps(t, maps, metav1.ListOptions{ResourceVersion: a.ResourceVersion}), "ERROR 410 Expired",
			"closed")
		mustCreate(t, maps, configMap("b"))
		wantEvents(t, w, "ADDED b")
	})
}

func TestHistoryIsBounded(t *testing.T) {
	inBubble(t, localapi.Options{HistoryLimit: 10},
		func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
			maps := client.CoreV1().ConfigMaps("default")
			first := mustCreate(t, maps, configMap("a", "n", "0"))
			idle, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			secrets, err := client.CoreV1().Secrets("").Watch(t.Context(),
				metav1.ListOptions{ResourceVersion: idle.ResourceVersion})
			if err != nil {
				t.Fatal(err)
			}
			defer secrets.Stop()
			last := first
			for i := range 50 {
				last.Data["n"] = fmt.Sprint(i + 1)
				last = mustUpdate(t, maps, last)
			}
			wantEvents(t, watchMaps(t, maps, metav1.ListOptions{ResourceVersion: first.ResourceVersion}),
				"ERROR 410 Expired", "closed")
			last.Data["n"] = "again"
			w := watchMaps(t, maps, metav1.ListOptions{ResourceVersion: last.ResourceVersion})
			mustUpdate(t, maps, last)
			wantEvents(t, w, "MODIFIED a")
			wantEvents(t, secrets) // an idle watch does not expire
		})
}

// TestSlowWatcherBlocksNobody opens a raw watch that nobody reads and writes far more than any buffer holds.
func TestSlowWatcherBlocksNobody(t *testing.T) {
	inBubble(t, localapi.Options{HistoryLimit: 100},
		func(t *testing.T, s *localapi.Server, client kubernetes.Interface) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			response := send(t, s.RESTConfig(), request{ctx: ctx, path: "/api/v1/configmaps?watch=true"})
			defer response.Body.Close()
			maps := client.CoreV1().ConfigMaps("default")
			big := make([]byte, 10_000)
			for i := range big {
				big[i] = 'x'
			}
			for i := range 500 {
				mustCreate(t, maps, configMap(fmt.Sprintf("m%03d", i), "big", string(big)))
			}
			seen := 0
			for e := range frames(t, response.Body) {
				if e.Type == string(watch.Error) {
					if seen == 0 || seen == 500 {
						t.Errorf("the slow watcher saw %d events before it was told that it is too slow", seen)
					}
					return
				}
				seen++
			}
			t.Errorf("the slow watcher saw %d events and no error", seen)
		})
}

func TestCancelledWatchEndsAtOnce(t *testing.T) {
	log := &audit.Log{}
	inBubble(t, localapi.Options{Audit: log}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		ctx, cancel := context.WithCancel(t.Context())
		w, err := client.CoreV1().ConfigMaps("").Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		// client-go reports the cancellation first
		if got := events(t, w); len(got) == 0 || got[len(got)-1] != "closed" {
			t.Errorf("after its cancellation the watch sent %v, want it closed", got)
		}
		stopped, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stopped.Stop()
		wantEvents(t, stopped, "closed")
		if got := len(log.Entries(func(e audit.Entry) bool { return e.Verb == "watch" })); got != 2 {
			t.Errorf("the audit log has %d watches, want 2", got)
		}
	})
}
