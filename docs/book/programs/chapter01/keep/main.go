// Command keep is the controller at the end of chapter 1 of the book: docs/book/shell/keep.sh in Go, with the mistakes
// corrected that the chapter finds. The other chapters replace it line by line.
package main

import (
	"context"
	"log"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// goal has the names of the Pods that there should be.
var goal = []string{"web-1", "web-2", "web-3"}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	run(context.Background(), kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default"))
}

// run looks and acts, once a second.
func run(ctx context.Context, pods corev1client.PodInterface) {
	for ; ctx.Err() == nil; time.Sleep(time.Second) {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			log.Println("cannot look, so do nothing:", err)
			continue
		}
		cache, queue := map[string]bool{}, slices.Clone(goal)
		for _, pod := range list.Items {
			cache[pod.Name] = true
			queue = append(queue, pod.Name)
		}
		for _, key := range queue {
			if err := sync(ctx, pods, key, cache[key]); err != nil {
				log.Println("try again in a second:", err)
			}
		}
	}
}

// sync creates a Pod that is missing and deletes one that nobody wants.
func sync(ctx context.Context, pods corev1client.PodInterface, key string, exists bool) error {
	switch wanted := slices.Contains(goal, key); {
	case wanted && !exists:
		log.Println("create", key)
		_, err := pods.Create(ctx, podOf(key), metav1.CreateOptions{})
		return err
	case exists && !wanted:
		log.Println("delete", key)
		return pods.Delete(ctx, key, metav1.DeleteOptions{})
	}
	return nil
}

// podOf returns the Pod to create.
func podOf(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:1.28"}}},
	}
}
