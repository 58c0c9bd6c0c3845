package leader_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager/leader"
)

func ExampleNew() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	c, err1 := client.New(server.RESTConfig(), client.Options{})
	lock, err2 := leader.NewLeaseLock(server.RESTConfig(),
		metav1.ObjectMeta{Namespace: "kube-system", Name: "my-controller"}, "host-1", nil)
	if err := errors.Join(err1, err2); err != nil {
		fmt.Println(err)
		return
	}
	elector, err := leader.New(lock, leader.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	holder := func() string {
		var lease coordinationv1.Lease
		if err := c.Get(context.Background(), client.ObjectKey{Namespace: "kube-system", Name: "my-controller"},
			&lease); err != nil {
			return err.Error()
		}
		return *lease.Spec.HolderIdentity
	}
	err = elector.Run(context.Background(), func(tenure context.Context) error {
		fmt.Printf("leading: %v, holder %q\n", elector.Check() == nil, holder())
		return nil // the work is done; a real program would continue until ctx or the tenure ends
	})
	fmt.Printf("afterwards: %v, holder %q\n", err, holder())
	// Output:
	// leading: true, holder "host-1"
	// afterwards: <nil>, holder ""
}

func ExampleNewLeaseLock() {
	lock, err := leader.NewLeaseLock(&rest.Config{Host: "https://127.0.0.1:6443"},
		metav1.ObjectMeta{Namespace: "kube-system", Name: "my-controller"}, "host-1", nil)
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
