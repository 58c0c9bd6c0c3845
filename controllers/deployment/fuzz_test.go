package deployment

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/conditions"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/rollout"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// world is a Deployment and its ReplicaSets as a server holds them, changed by plans, by a ReplicaSet controller with
// its pods, and by a user. It checks at every step what must never happen.
type world struct {
	t    *testing.T
	rand *rand.Rand
	d    *appsv1.Deployment
	sets map[string]*appsv1.ReplicaSet
	born int      // how many ReplicaSets there ever were
	log  []string // what happened, for a failure's message
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), d: web(5), sets: map[string]*appsv1.ReplicaSet{}}
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(w.log, "\n"))
}

func (w *world) list() []*appsv1.ReplicaSet {
	var list []*appsv1.ReplicaSet
	for _, name := range slices.Sorted(maps.Keys(w.sets)) {
		list = append(list, w.sets[name])
	}
	return list
}

// sync plans once, and does what the plan says as apply does. It reports whether there was anything to do.
func (w *world) sync() bool {
	w.t.Helper()
	plan := planOf(w.t, Observed{Deployment: w.d, ReplicaSets: w.list(), Now: epoch})
	if len(plan.steps) == 0 {
		return false
	}
	w.log = append(w.log, plan.String())
	before, reserve := replicasets.TotalSize(w.list()), w.surelyAvailable()
	if w.d.Spec.Paused || plannerFor(w.t, w.d, w.list()...).sizeChanged() {
		reserve = 0 // scaling takes pods away whether they are available or not
	}
	written := false
	for _, step := range plan.steps {
		if written && writesDeployment(step) {
			break
		}
		switch s := step.(type) {
		case createReplicaSet:
			w.create(s.ReplicaSet)
		case editReplicaSet:
			w.edit(s)
		case deleteReplicaSet:
			if rs := w.sets[s.ReplicaSet.Name]; replicasets.Size(rs) > 0 || rs.Status.Replicas > 0 {
				w.fail("deletes %s, which has pods", rs.Name)
			}
			delete(w.sets, s.ReplicaSet.Name)
		case updateStatus:
			w.d = w.d.DeepCopy()
			w.d.Status, written = s.Status, true
			if s.Revision != "" {
				metav1.SetMetaDataAnnotation(&w.d.ObjectMeta, replicasets.RevisionAnnotation, s.Revision)
			}
		case rollBack:
			w.d = w.d.DeepCopy()
			w.d.Annotations, written = s.Annotations, true
			if s.Template != nil {
				w.d.Spec.Template = *s.Template
			}
			w.d.Generation++
		}
	}
	w.check(before, reserve)
	return true
}

func (w *world) create(rs *appsv1.ReplicaSet) {
	if w.sets[rs.Name] != nil {
		w.fail("creates %s again", rs.Name)
	}
	w.born++
	rs = rs.DeepCopy()
	rs.UID = types.UID(strconv.Itoa(w.born))
	rs.Generation = 1
	rs.CreationTimestamp = metav1.NewTime(w.d.CreationTimestamp.Add(1e9 * 1))
	w.sets[rs.Name] = rs
}

func (w *world) edit(s editReplicaSet) {
	was := w.sets[s.ReplicaSet.Name]
	rs := s.result(was)
	if equality.Semantic.DeepEqual(was, rs) {
		w.fail("writes %s although nothing changes", rs.Name)
	}
	if !equality.Semantic.DeepEqual(was.Spec, rs.Spec) {
		rs.Generation++
	}
	if s.Replicas == nil != (s.Event == event{}) {
		w.fail("event of %s does not fit", s)
	}
	w.sets[rs.Name] = rs
}

// surelyAvailable is how many pods stay available whatever the ReplicaSets do now: those that are available beyond
// what a ReplicaSet asks for are about to go.
func (w *world) surelyAvailable() int32 {
	return replicasets.Sum(w.list(), staying)
}

// check tells whether a sync kept to the limits. What a user's change put beyond them it may leave there.
func (w *world) check(sizeBefore, reserveBefore int32) {
	w.t.Helper()
	l, err := rollout.LimitsOf(w.d)
	if err != nil {
		w.t.Fatal(err)
	}
	if total := replicasets.TotalSize(w.list()); total > sizeBefore && total > l.MaxReplicas() {
		w.fail("asks for %d pods, more than %d, after %d", total, l.MaxReplicas(), sizeBefore)
	}
	if reserve := w.surelyAvailable(); rollout.IsRolling(w.d) && reserve < reserveBefore && reserve < l.MinAvailable() {
		w.fail("leaves %d pods available, fewer than %d, of %d", reserve, l.MinAvailable(), reserveBefore)
	}
	for _, rs := range w.list() {
		if replicasets.Size(rs) < 0 {
			w.fail("%s has the size %d", rs.Name, replicasets.Size(rs))
		}
	}
	for _, rs := range w.list() {
		a := rs.Annotations[replicasets.RevisionAnnotation]
		for _, other := range w.list() {
			if b := other.Annotations[replicasets.RevisionAnnotation]; rs != other && a == b {
				w.fail("%s and %s are both of revision %s", rs.Name, other.Name, a)
			}
		}
	}
}

// settle syncs until there is nothing to do.
func (w *world) settle() {
	w.t.Helper()
	for range 50 {
		if !w.sync() {
			return
		}
	}
	w.fail("never settles")
}

// pods lets the ReplicaSet controller act: every ReplicaSet gets the pods it asks for, of which some are not available.
func (w *world) pods(missing func() int32) {
	for name, rs := range w.sets {
		rs = running(rs.DeepCopy())
		rs.Status.AvailableReplicas = max(0, replicasets.Size(rs)-missing())
		rs.Status.ReadyReplicas = rs.Status.AvailableReplicas
		w.sets[name] = rs
	}
}

// user makes one change.
func (w *world) user() {
	d, before := w.d.DeepCopy(), w.d
	var what string
	switch w.rand.IntN(8) {
	case 0, 1:
		d.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("v%d", w.rand.IntN(5))
		what = "image " + d.Spec.Template.Spec.Containers[0].Image
	case 2, 3:
		d.Spec.Replicas = ptr.To(w.rand.Int32N(20))
		what = fmt.Sprint("replicas ", *d.Spec.Replicas)
	case 4:
		d.Spec.Paused = !d.Spec.Paused
		what = fmt.Sprint("paused ", d.Spec.Paused)
	case 5:
		surge, unavailable := fmt.Sprintf("%d%%", w.rand.IntN(101)), fmt.Sprintf("%d%%", w.rand.IntN(101))
		rolling(surge, unavailable)(d)
		what = fmt.Sprint("rolling ", surge, " ", unavailable)
	case 6:
		keeping(w.rand.Int32N(4))(d)
		what = fmt.Sprint("history ", *d.Spec.RevisionHistoryLimit)
	case 7:
		annotate(appsv1.DeprecatedRollbackTo, strconv.Itoa(w.rand.IntN(6)))(d)
		what = "roll back to " + d.Annotations[appsv1.DeprecatedRollbackTo]
	}
	if !equality.Semantic.DeepEqual(d, before) {
		d.Generation++
	}
	w.d = d
	w.log = append(w.log, "user: "+what)
}

// FuzzRollout lets a user do anything, while pods come up or do not, and checks the limits after every sync; in the
// end, when all pods come up, the Deployment is complete and nothing is written any more.
func FuzzRollout(f *testing.F) {
	for seed := range uint64(100) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := newWorld(t, seed)
		for range 30 {
			switch w.rand.IntN(3) {
			case 0:
				w.user()
			case 1:
				w.pods(func() int32 { return w.rand.Int32N(4) })
			case 2:
				w.sync()
			}
		}
		w.d.Spec.Paused = false
		w.settle()
		for range 60 {
			w.pods(func() int32 { return 0 })
			if !w.sync() {
				break
			}
		}
		s := &w.d.Status
		if !(rollout.Limits{Replicas: *w.d.Spec.Replicas}).Complete(w.d, s) {
			w.fail("not complete: %s", updateStatus{Status: *s})
		}
		if c := conditions.Find(s, appsv1.DeploymentProgressing); c == nil || c.Status != corev1.ConditionTrue {
			w.fail("progress: %v", c)
		}
		if limit := int(*w.d.Spec.RevisionHistoryLimit); len(w.sets) > limit+1 {
			w.fail("%d replica sets, limit %d", len(w.sets), limit)
		}
	})
}

// FuzzPlan plans for states that no cluster gets into by itself: nothing may panic, sizes stay sane, and what the
// plan wants is wanted only once.
func FuzzPlan(f *testing.F) {
	for seed := range uint64(100) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := newWorld(t, seed)
		for range 5 {
			w.user()
		}
		if w.rand.IntN(4) == 0 {
			recreate(w.d)
		}
		for i := range w.rand.IntN(5) {
			rs := set(w.d, int64(i), fmt.Sprintf("v%d", i), w.rand.Int32N(12),
				scaledFor(strconv.Itoa(w.rand.IntN(15)), strconv.Itoa(w.rand.IntN(20))), availableOf(w.rand.Int32N(15)))
			rs.Status.Replicas = w.rand.Int32N(15)
			w.sets[rs.Name] = rs
		}
		for range 50 {
			plan := planOf(t, Observed{Deployment: w.d, ReplicaSets: w.list(), Now: epoch})
			if len(plan.steps) == 0 {
				return
			}
			w.log = append(w.log, plan.String())
			for _, step := range plan.steps {
				w.do(step)
			}
		}
		w.fail("never settles")
	})
}

// do does one step without a check of the limits: the state it starts from may be beyond them.
func (w *world) do(step step) {
	switch s := step.(type) {
	case createReplicaSet:
		w.create(s.ReplicaSet)
	case editReplicaSet:
		w.edit(s)
		if replicasets.Size(w.sets[s.ReplicaSet.Name]) < 0 {
			w.fail("negative size")
		}
	case deleteReplicaSet:
		delete(w.sets, s.ReplicaSet.Name)
	case updateStatus:
		w.d = w.d.DeepCopy()
		w.d.Status = s.Status
		if s.Revision != "" {
			metav1.SetMetaDataAnnotation(&w.d.ObjectMeta, replicasets.RevisionAnnotation, s.Revision)
		}
	case rollBack:
		w.d = w.d.DeepCopy()
		w.d.Annotations = s.Annotations
		if s.Template != nil {
			w.d.Spec.Template = *s.Template
		}
	}
}
