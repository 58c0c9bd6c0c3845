package localapi_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/flyball-dev/flyball/localapi"
)

// names returns the names in a list, which must succeed, and the list.
func names(t *testing.T, maps corev1client.ConfigMapInterface, o metav1.ListOptions) ([]string, *corev1.ConfigMapList) {
	t.Helper()
	list, err := maps.List(t.Context(), o)
	if err != nil {
		t.Fatalf("list %+v: %v", o, err)
	}
	got := []string{}
	for i := range list.Items {
		got = append(got, list.Items[i].Name)
	}
	return got, list
}

func wantNames(t *testing.T, got []string, want ...string) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("listed names (-want +got):\n%s", diff)
	}
}

func TestListPagesAreOfOneVersion(t *testing.T) {
	_, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	for i := range 5 {
		mustCreate(t, maps, configMap(fmt.Sprintf("m%d", i)))
	}
	got, first := names(t, maps, metav1.ListOptions{Limit: 2})
	wantNames(t, got, "m0", "m1")
	if first.RemainingItemCount == nil || *first.RemainingItemCount != 3 {
		t.Errorf("remaining items are %v, want 3", first.RemainingItemCount)
	}
	mustDelete(t, maps, "m3")
	mustCreate(t, maps, configMap("m2x"))

	got, second := names(t, maps, metav1.ListOptions{Limit: 2, Continue: first.Continue})
	wantNames(t, got, "m2", "m3")
	if second.ResourceVersion != first.ResourceVersion {
		t.Errorf("second page is of version %s, the first of %s", second.ResourceVersion, first.ResourceVersion)
	}
	got, last := names(t, maps, metav1.ListOptions{Continue: second.Continue})
	wantNames(t, got, "m4")
	if last.Continue != "" || last.RemainingItemCount != nil {
		t.Errorf("last page continues with %q, %v items remaining", last.Continue, last.RemainingItemCount)
	}
	got, _ = names(t, maps, metav1.ListOptions{})
	wantNames(t, got, "m0", "m1", "m2", "m2x", "m4")
}

func TestListPagesWithASelectorSayNothingOfWhatRemains(t *testing.T) {
	_, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	for i := range 6 {
		cm := configMap(fmt.Sprintf("m%d", i))
		cm.Labels = map[string]string{"even": fmt.Sprint(i%2 == 0)}
		mustCreate(t, maps, cm)
	}
	o := metav1.ListOptions{LabelSelector: "even=true", Limit: 2}
	got, first := names(t, maps, o)
	wantNames(t, got, "m0", "m2")
	if first.RemainingItemCount != nil || first.Continue == "" {
		t.Errorf("page continues with %q and %v items remaining, want a token and no count", first.Continue,
			first.RemainingItemCount)
	}
	o.Continue = first.Continue
	got, last := names(t, maps, o)
	wantNames(t, got, "m4")
	if last.Continue != "" {
		t.Errorf("last page continues with %q", last.Continue)
	}
}

func TestListContinuedAfterCompactionExpiresWithAWayOn(t *testing.T) {
	server, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	for i := range 4 {
		mustCreate(t, maps, configMap(fmt.Sprintf("m%d", i)))
	}
	_, first := names(t, maps, metav1.ListOptions{Limit: 2})
	mustDelete(t, maps, "m3")
	mustCreate(t, maps, configMap("m5"))
	if err := server.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := maps.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.Continue})
	if !apierrors.IsResourceExpired(err) {
		t.Fatalf("continued list: %v, want Expired", err)
	}
	token := err.(apierrors.APIStatus).Status().Continue
	got, list := names(t, maps, metav1.ListOptions{Continue: token})
	wantNames(t, got, "m2", "m5")
	if list.ResourceVersion == first.ResourceVersion {
		t.Errorf("an inconsistent rest of the list has the first page's version %s", list.ResourceVersion)
	}
}

// TestListContinuedFromTheFuture: a token of a server that is ahead is refused. It has no token to go on with.
func TestListContinuedFromTheFuture(t *testing.T) {
	_, ahead := start(t, localapi.Options{})
	_, behind := start(t, localapi.Options{})
	for i := range 4 {
		mustCreate(t, clientset(t, ahead).CoreV1().ConfigMaps("default"), configMap(fmt.Sprintf("m%d", i)))
	}
	_, first := names(t, clientset(t, ahead).CoreV1().ConfigMaps("default"), metav1.ListOptions{Limit: 2})
	_, err := clientset(t, behind).CoreV1().ConfigMaps("default").List(t.Context(),
		metav1.ListOptions{Limit: 2, Continue: first.Continue})
	if !apierrors.IsResourceExpired(err) || err.(apierrors.APIStatus).Status().Continue != "" {
		t.Errorf("a list continued from the future: %v, want Expired without a token", err)
	}
}

func TestListAtVersions(t *testing.T) {
	// client-go waits and tries again where the version is too large
	inBubble(t, localapi.Options{}, testListAtVersions)
}

func testListAtVersions(t *testing.T, server *localapi.Server, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps("default")
	a := mustCreate(t, maps, configMap("a"))
	b := mustCreate(t, maps, configMap("b"))
	at := func(version string, match metav1.ResourceVersionMatch, limit int64) metav1.ListOptions {
		return metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: match, Limit: limit}
	}
	for _, c := range []struct {
		name string
		o    metav1.ListOptions
		want []string
	}{
		{"exact", at(a.ResourceVersion, metav1.ResourceVersionMatchExact, 0), []string{"a"}},
		{"not older than", at(a.ResourceVersion, metav1.ResourceVersionMatchNotOlderThan, 0), []string{"a", "b"}},
		{"no match", at(a.ResourceVersion, "", 0), []string{"a", "b"}},
		{"no match, with a limit: exact", at(a.ResourceVersion, "", 10), []string{"a"}},
		{"any", at("0", "", 0), []string{"a", "b"}},
		{"any, with a limit, which is ignored", at("0", "", 1), []string{"a", "b"}},
	} {
		got, list := names(t, maps, c.o)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: listed names (-want +got):\n%s", c.name, diff)
		}
		if len(c.want) == 1 && list.ResourceVersion != a.ResourceVersion {
			t.Errorf("%s: list is of version %s, want %s", c.name, list.ResourceVersion, a.ResourceVersion)
		}
	}
	if _, err := maps.List(t.Context(), at("1000", "", 0)); !apierrors.HasStatusCause(err,
		metav1.CauseTypeResourceVersionTooLarge) {
		t.Errorf("list from the future: %v, want a version that is too large", err)
	}
	if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{ResourceVersion: "1000"}); !apierrors.IsTimeout(err) {
		t.Errorf("get from the future: %v, want a timeout", err)
	}
	for _, o := range []metav1.ListOptions{
		at("", metav1.ResourceVersionMatchExact, 0), at("0", metav1.ResourceVersionMatchExact, 0),
		at("1", "Nonsense", 0),
	} {
		if _, err := maps.List(t.Context(), o); !apierrors.IsInvalid(err) {
			t.Errorf("list %+v: %v, want Invalid", o, err)
		}
	}
	if _, err := maps.List(t.Context(), at("x", "", 0)); !apierrors.IsBadRequest(err) {
		t.Errorf("list at version x: %v, want a bad request", err)
	}
	mustDelete(t, maps, "b")
	if err := server.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.List(t.Context(),
		at(b.ResourceVersion, metav1.ResourceVersionMatchExact, 0)); !apierrors.IsResourceExpired(err) {
		t.Errorf("list at a compacted version: %v, want Expired", err)
	}
}

func TestListSelectors(t *testing.T) {
	_, config := start(t, localapi.Options{})
	client := clientset(t, config)
	maps := client.CoreV1().ConfigMaps("default")
	for _, name := range []string{"a", "b", "c"} {
		cm := configMap(name)
		cm.Labels = map[string]string{"name": name}
		mustCreate(t, maps, cm)
	}
	got, _ := names(t, maps, metav1.ListOptions{LabelSelector: "name in (a,c)"})
	wantNames(t, got, "a", "c")
	got, _ = names(t, maps, metav1.ListOptions{FieldSelector: "metadata.name=b"})
	wantNames(t, got, "b")
	got, _ = names(t, maps, metav1.ListOptions{FieldSelector: "metadata.name!=b"})
	wantNames(t, got, "a", "c")
	got, _ = names(t, client.CoreV1().ConfigMaps(""),
		metav1.ListOptions{FieldSelector: "metadata.namespace=default,metadata.name=c"})
	wantNames(t, got, "c")
	for selector, want := range map[string]string{
		"spec.x=1": `"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"`,
	} {
		_, err := maps.List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if !apierrors.IsBadRequest(err) || err.Error() != want {
			t.Errorf("selector %s: %v, want a bad request: %s", selector, err, want)
		}
	}
	_, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.x=1"})
	if !apierrors.IsBadRequest(err) || err.Error() != "field label not supported: spec.x" {
		t.Errorf("selector of pods by spec.x: %v", err)
	}
	if _, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: "=,"}); !apierrors.IsBadRequest(err) {
		t.Errorf("malformed label selector: %v, want a bad request", err)
	}
}
