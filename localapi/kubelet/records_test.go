package kubelet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestPodRecords(t *testing.T) {
	l, err := newPodRecords([]string{"10.0.0.0/24", "fd00::/64"})
	if err != nil {
		t.Fatal(err)
	}
	numbered := func(i int) *corev1.Pod {
		return with(pod("a"),
			func(p *corev1.Pod) { p.Name, p.UID, p.Spec.NodeName = fmt.Sprint(i), types.UID(fmt.Sprint(i)), "" })
	}
	nodes := func() []candidate {
		return []candidate{
			{node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, capacity: 1},
			{node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, capacity: 1},
		}
	}
	for i, want := range []string{"a", "b", ""} {
		if node, before, _ := l.place(numbered(i), nodes()); node != want || before {
			t.Errorf("pod %d on %q", i, node)
		}
	}
	if node, before, _ := l.place(numbered(0), nodes()); node != "a" || !before {
		t.Errorf("again: %q, %v", node, before)
	}
	ips, err := l.addresses("0")
	if again, _ := l.addresses("0"); err != nil || strings.Join(ips, " ") != "10.0.0.1 fd00::1" ||
		!cmp.Equal(ips, again) {
		t.Errorf("addresses %v, then %v, %v", ips, again, err)
	}
	// A pod keeps the address that it had before a restart, and no other pod gets it.
	old := with(pod("a"), func(p *corev1.Pod) {
		p.UID = "old"
		p.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.2"}, {IP: "192.0.2.1"}}
	})
	l.adopt(old)
	if ips, _ := l.addresses("1"); ips[0] != "10.0.0.3" {
		t.Errorf("addresses %v", ips)
	}
	if woken := l.forget(numbered(0)); len(woken) != 1 || woken[0].Name != "2" {
		t.Errorf("woken %v", woken)
	}
	if node, _, _ := l.place(numbered(2), nodes()); node != "a" || len(l.waiting()) != 0 {
		t.Errorf("pod 2 on %q, waiting %v", node, l.waiting())
	}
	for _, p := range []*corev1.Pod{numbered(1), numbered(2), old} {
		l.forget(p)
	}
	if n := l.addressesInUse(); n != 0 || len(l.load) != 0 || len(l.entries) != 0 {
		t.Errorf("left: %d addresses, %v, %v", n, l.load, l.entries)
	}
}

func TestPodRecordsOfWrites(t *testing.T) {
	l, _ := newPodRecords(nil)
	p := with(pod("a"), func(p *corev1.Pod) { p.ResourceVersion = "9" })
	if l.overtaken(p) {
		t.Error("overtaken by nothing")
	}
	l.wrote(p.UID, "10")
	if !l.overtaken(p) {
		t.Error("not overtaken")
	}
	p.ResourceVersion = "10"
	if l.overtaken(p) {
		t.Error("overtaken by itself")
	}
}
