// Package chapter01 has the programs of the chapter about the control loop: the loop of docs/book/shell/keep.sh in Go,
// and what goes wrong with it.
package chapter01

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// A loop keeps want Pods whose label app is web, as keep.sh does.
type loop struct {
	pods corev1client.PodInterface
	want int
	// numbered gives the Pods the names web-1, web-2 and so on. Otherwise the server invents names.
	numbered bool
}

// look returns the names of the Pods that there are, in order.
func (l loop) look(ctx context.Context) ([]string, error) {
	list, err := l.pods.List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names, nil
}

// act makes one step towards the goal, and says which.
func (l loop) act(ctx context.Context, have []string) (did string, err error) {
	switch {
	case len(have) < l.want:
		pod := l.next(have)
		created, err := l.pods.Create(ctx, pod, metav1.CreateOptions{})
		return "creates " + cmp.Or(pod.Name, created.Name), err
	case len(have) > l.want:
		return "deletes " + have[0], l.pods.Delete(ctx, have[0], metav1.DeleteOptions{})
	}
	return "", nil
}

// next returns the Pod to create.
func (l loop) next(have []string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:1.28"}}},
	}
	if !l.numbered {
		pod.GenerateName = "web-"
		return pod
	}
	for n := 1; pod.Name == "" || slices.Contains(have, pod.Name); n++ {
		pod.Name = fmt.Sprintf("web-%d", n)
	}
	return pod
}
