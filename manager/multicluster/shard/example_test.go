package shard_test

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager/multicluster"
	"github.com/flyball-dev/flyball/manager/multicluster/shard"
)

// A fleet is given an owner in its options; this is what it does with it.
func ExampleNew() {
	hub, err := localapi.New(localapi.Options{})
	if err != nil {
		panic(err)
	}
	defer hub.Close()
	owner, err := shard.New(hub.RESTConfig(), shard.Options{Identity: "replica-0", Settle: -1})
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
