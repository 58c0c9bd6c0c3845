package leader_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/flyball-dev/flyball/manager/leader"
)

func ExampleNew() {
	client := fake.NewClientset()
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: "my-controller"},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "host-1"},
	}
	elector, err := leader.New(lock, leader.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	holder := func() string {
		lease, _ := client.CoordinationV1().Leases("kube-system").Get(context.Background(), "my-controller",
			metav1.GetOptions{})
		return *lease.Spec.HolderIdentity
	}
	err = elector.Run(context.Background(), func(tenure context.Context) error {
		fmt.Printf("leading: %v, holder %q\n", elector.Check() == nil, holder())
		return nil // the work is done; a real one would go on until it is stopped or the tenure ends
	})
	fmt.Printf("afterwards: %v, holder %q\n", err, holder())
	// Output:
	// leading: true, holder "host-1"
	// afterwards: <nil>, holder ""
}

func ExampleNewLeaseLock() {
	lock, err := leader.NewLeaseLock(&rest.Config{Host: "https://127.0.0.1:6443"}, "kube-system", "my-controller",
		resourcelock.ResourceLockConfig{Identity: "host-1"})
	fmt.Println(lock.Describe(), lock.Identity(), err)
	// Output: kube-system/my-controller host-1 <nil>
}

func ExampleWithFence() {
	lost := errors.New("leader lease lost")
	client := &http.Client{Transport: leader.Fence(http.DefaultTransport)}
	ctx := leader.WithFence(context.Background(), func() error { return lost })
	r, _ := http.NewRequestWithContext(ctx, http.MethodDelete, "http://127.0.0.1:1/api/v1/namespaces/default/pods/web",
		nil)
	_, err := client.Do(r)
	fmt.Println(errors.Is(err, lost))
	// Output: true
}
