package shard_test

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/shard"
)

// A fleet gets an owner in its options, and uses it as shown here.
func ExampleNew() {
	local, err := localapi.New(localapi.Options{})
	if err != nil {
		panic(err)
	}
	defer local.Close()
	owner, err := shard.New(local.RESTConfig(), shard.Options{Identity: "replica-0", Settle: -1})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	ended := make(chan error, 1)
	go func() { ended <- owner.Run(ctx) }()

	tenure, err := owner.Acquire(ctx, multicluster.ClusterInfo{Name: "eu/shop"}, func(string) {})
	if err != nil {
		panic(err)
	}
	fmt.Println("may write:", tenure.Check() == nil)
	tenure.Release(ctx, nil)
	fmt.Println("may write:", tenure.Check() == nil)
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// may write: true
	// may write: false
	// ended: <nil>
}
