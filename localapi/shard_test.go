package localapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
)

const (
	lowHalf  = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	highHalf = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
)

// TestShardSelector: two halves of a collection are the whole, in lists, in pages of lists and in watches.
//
// Source: KEP-5866.
func TestShardSelector(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		const objects = 20
		for i := range objects {
			mustCreate(t, maps, configMap(fmt.Sprintf("m%02d", i)))
		}
		seen := map[string]int{}
		for _, half := range []string{lowHalf, highHalf} {
			all, list := names(t, maps, metav1.ListOptions{ShardSelector: half})
			if list.ShardInfo == nil || list.ShardInfo.Selector != half {
				t.Errorf("shard info %v, want %s", list.ShardInfo, half)
			}
			var paged []string
			for o := (metav1.ListOptions{ShardSelector: half, Limit: 3}); ; {
				page, list := names(t, maps, o)
				if paged = append(paged, page...); list.Continue == "" {
					break
				}
				o.Continue = list.Continue
			}
			if fmt.Sprint(paged) != fmt.Sprint(all) || len(all) == 0 {
				t.Errorf("shard %s in pages: %v, at once: %v", half, paged, all)
			}
			var events []string
			for _, name := range all {
				seen[name]++
				events = append(events, "ADDED "+name)
			}
			wantEvents(t, watchMaps(t, maps, metav1.ListOptions{ShardSelector: half, ResourceVersion: "0"}), events...)
		}
		if len(seen) != objects {
			t.Errorf("both shards have %d objects, want each of %d once: %v", len(seen), objects, seen)
		}
		if both, _ := names(t, maps,
			metav1.ListOptions{ShardSelector: lowHalf + " || " + highHalf}); len(both) != objects {
			t.Errorf("both ranges in one selector: %d objects, want %d", len(both), objects)
		}
	})
}

// TestShardSelectorErrors: what is wrong with a selector is said in the words of the real server.
//
// Source: k8s.io/apiserver v0.37.2 pkg/sharding/parser.go.
func TestShardSelectorErrors(t *testing.T) {
	_, config := start(t, localapi.Options{})
	for selector, want := range map[string]string{
		" ": "empty shard selector is not allowed",
		"shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')": "unsupported field path",
		"shardRange(object.metadata.uid, '0', '0x8000000000000000')": "hexStart must have '0x' " +
			"prefix",
		"shardRange(object.metadata.uid, '0x', '0x8000000000000000')":                   "hex value is required",
		"shardRange(object.metadata.uid, '0x0', '0x8000000000000000')":                  "did you mean",
		"shardRange(object.metadata.uid, '0x000000000000000g', '0x8000000000000000')":   "invalid hex character",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x20000000000000000')":  "17-digit hex value must be",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x000000000000000000')": "too long",
		"shardRange(object.metadata.uid, '0x8000000000000000', '0x0000000000000000')":   "must be less than end",
		lowHalf + " || " +
			strings.Replace(highHalf, "uid", "namespace", 1): "all shard ranges must use the same field",
		lowHalf + " && " + highHalf: "only shardRange() and || are allowed",
	} {
		code, body := answer(t, config, request{path: "/api/v1/configmaps?shardSelector=" + url.QueryEscape(selector)})
		if status := statusOf(t, body); code != 400 || !strings.Contains(status.Message, want) ||
			!strings.HasPrefix(status.Message, "invalid shard selector: ") {
			t.Errorf("%s: %d %q, want %q", selector, code, status.Message, want)
		}
	}
}

// TestPagesOfASelection: a page that is full says that there may be more, whether or not anything more is selected.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/cacher/cacher.go GetList.
func TestPagesOfASelection(t *testing.T) {
	_, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	for _, name := range []string{"a", "b", "c"} {
		cm := configMap(name)
		cm.Labels = map[string]string{"even": fmt.Sprint(name == "b")}
		mustCreate(t, maps, cm)
	}
	selected := metav1.ListOptions{LabelSelector: "even=true", Limit: 1}
	first, list := names(t, maps, selected)
	if fmt.Sprint(first) != "[b]" || list.Continue == "" || list.RemainingItemCount != nil {
		t.Fatalf("first page %v, continue %q, remaining %v", first, list.Continue, list.RemainingItemCount)
	}
	selected.Continue = list.Continue
	if rest, list := names(t, maps, selected); len(rest) != 0 || list.Continue != "" {
		t.Errorf("second page %v, continue %q, want the end", rest, list.Continue)
	}
}

// TestReadsWaitForAVersion: a read that asks for a version that is not reached waits three seconds for it.
func TestReadsWaitForAVersion(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		a := mustCreate(t, maps, configMap("a"))
		next := fmt.Sprint(parseVersion(t, a.ResourceVersion) + 1)
		done := make(chan error, 1)
		go func() {
			_, err := maps.Get(t.Context(), "a", metav1.GetOptions{ResourceVersion: next})
			done <- err
		}()
		mustCreate(t, client.CoreV1().ConfigMaps("kube-system"), configMap("elsewhere"))
		if err := <-done; err != nil {
			t.Errorf("get at the next version: %v", err)
		}
		_, err := maps.List(t.Context(), metav1.ListOptions{ResourceVersion: "1000"})
		if !apierrors.IsTimeout(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			t.Errorf("list at a version that does not come: %v", err)
		}
	})
}
