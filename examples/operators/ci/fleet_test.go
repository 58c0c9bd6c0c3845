package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ciconfig"
	"github.com/flyball-dev/flyball/examples/operators/ci/distributor"
	"github.com/flyball-dev/flyball/examples/operators/ci/ensure"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/examples/operators/ci/importcleaner"
	"github.com/flyball-dev/flyball/examples/operators/ci/standin"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// add puts a controller into the cluster's manager that watches ImageStreams.
func add(w *World, c *fleet.Cluster) {
	streams, err := informer.For[*api.ImageStream](c.Manager.Informers())
	w.Must(err)
	seen := reconcile.New("seen",
		reconcile.Func[reconcile.Request](func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}), reconcile.Options[reconcile.Request]{})
	w.Must(seen.Watch(source.Kind(streams, handler.EnqueueObject[*api.ImageStream]())))
	w.Must(c.Manager.Add(seen))
}

// Two processes, two clusters: the one that does not lead asks nothing of the build cluster until the leader is gone.
func TestBuildClustersBeginWithTheLease(t *testing.T) {
	In(t, func(w *World) {
		candidate := func(process string) *fleet.Fleet {
			f := w.Candidate(process)
			add(w, f.Builds[0])
			return f
		}
		stopFirst := w.Go(candidate("first").Run)
		time.Sleep(time.Minute)
		stopSecond := w.Go(candidate("second").Run)
		time.Sleep(10 * time.Minute)
		if first, second := w.Requests("first", Build01), w.Requests("second", Build01); first == 0 ||
			second != 0 {
			t.Errorf("while the first leads: %d and %d requests", first, second)
		}
		stopFirst()
		time.Sleep(time.Minute)
		if w.Requests("second", Build01) == 0 {
			t.Error("the second leads and does not look at the build cluster")
		}
		stopSecond()
	}, Hub, Build01)
}

// The leader is killed at each of its writes to the build cluster in turn, before the write took effect or after. The
// next process takes the lease when it has run out, asks the build cluster for nothing before that, and goes on where
// the dead one stopped: in the end everything is there, and was written once.
func TestLeaderIsKilled(t *testing.T) {
	In(t, func(w *World) {
		r := newRelay(w)
		r.next()
		for n, survived := 1, false; !survived; n++ {
			for _, applied := range []bool{false, true} {
				leader := r.leader
				r.next()
				w.DieAt(leader, Build01, n, applied)
				tag := r.retag()
				time.Sleep(9 * time.Second)
				if survived = !w.IsDead(leader); survived {
					break
				}
				if asked := w.Requests(r.leader, Build01); asked != 0 {
					t.Errorf("the lease has not run out, and the next one has asked the build cluster for %d things",
						asked)
				}
				time.Sleep(time.Minute)
				if stream := (&api.ImageStream{}); !w.Exists(Build01, tag.Namespace, tag.Stream, stream) ||
					stream.Tag(tag.Tag) == nil {
					t.Errorf("killed at write %d (applied: %t), the leader has no heir that brings %v", n, applied, tag)
				}
			}
		}
		r.stop()
		// namespace, role, binding, stream, secret, import, and the import's end
		if killed := len(r.ends) - 2; killed < 2*6 {
			t.Errorf("only %d leaders were killed", killed)
		}
		written := map[string]int{}
		for _, e := range w.Clusters[Build01].Audit().Writes() {
			if e.Code < 300 && strings.HasPrefix(e.UserAgent, relayed) {
				written[fmt.Sprint(e.Verb, " ", e.Resource, " ", e.Namespace, "/", e.Name)]++
			}
		}
		for what, n := range written {
			if n != 1 {
				t.Errorf("%d times: %s", n, what)
			}
		}
	}, Hub, Build01)
}

// relayed is what the names of the processes of a relay begin with.
const relayed = "process-"

// relay is processes that take the lease from each other, and bring images to the build cluster.
type relay struct {
	*World
	agent *ciconfig.Agent
	o     distributor.Options
	// leader is the last process that has begun: it leads when those before it are dead.
	leader       string
	tags         int
	ends         []func() error
	stopImporter func()
}

func newRelay(w *World) *relay {
	w.Helper()
	agent, err := ciconfig.New("", "", ciconfig.Options{})
	w.Must(err)
	r := &relay{World: w, agent: agent, o: distributor.Options{Streams: map[string]bool{}}}
	for n := range 100 {
		r.o.Streams[fmt.Sprint("project-", n, "/stream")] = true
	}
	w.Create(Build01,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: ensure.PullSecretNamespace, Name: ensure.PullSecretName},
		})
	f := w.Fleet()
	w.Must(standin.AddImporter(f.Builds[0], standin.ImporterOptions{}))
	r.stopImporter = w.Go(f.Run)
	return r
}

// next begins another process.
func (r *relay) next() {
	r.Helper()
	r.leader = fmt.Sprint(relayed, len(r.ends))
	f := r.Candidate(r.leader, distributor.Caches()...)
	r.Must(distributor.Add(f, r.agent, r.o))
	r.Must(importcleaner.Add(f.Builds[0]))
	ctx, stop := context.WithCancel(r.Ctx)
	ended := make(chan error, 1) // what came of it
	go func() { ended <- f.Run(ctx) }()
	r.ends = append(r.ends, func() error {
		stop()
		return <-ended
	})
	time.Sleep(time.Minute)
}

// retag makes a tag of the hub point at an image, in a namespace that the build cluster does not have.
func (r *relay) retag() imagestreamtag.Ref {
	r.Helper()
	tag := imagestreamtag.Ref{Namespace: fmt.Sprint("project-", r.tags), Stream: "stream", Tag: "tag"}
	r.tags++
	s := &api.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: tag.Namespace, Name: tag.Stream}}
	s.Point(tag.Tag, api.TagEvent{Created: metav1.Now(), Image: "sha256:1"})
	r.Create(Hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tag.Namespace}}, s)
	return tag
}

// stop ends all processes: only those that were killed end with an error, that of a lease that was lost.
func (r *relay) stop() {
	r.Helper()
	for n, end := range r.ends {
		if err := end(); (err != nil) != r.IsDead(fmt.Sprint(relayed, n)) {
			r.Errorf("process %d ended with %v", n, err)
		}
	}
	r.stopImporter()
}

func TestNoHub(t *testing.T) {
	_, err := fleet.New(map[string]*rest.Config{"a": {}}, fleet.Options{Hub: "app.ci"})
	if err == nil || err.Error() != `there is no cluster "app.ci" among ["a"]` {
		t.Error(err)
	}
}
