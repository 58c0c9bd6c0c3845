// Package capstone is chapter 13: the parts that you have built, put together into a controller that keeps Endpoints
// right. It imports them from the folders of their tasks:
//
//	informer.go    02a client, 03a reflector, 04a log, 05a index, 06a fan-out
//	queue.go       07a queue, 07b delays
//	controller.go  08a loop, 09a ledger, 10a the plan of the Endpoints
//	decode.go      from JSON to the types of package kube, and back
//
// make learn CAPSTONE=1 says which of them are yours, takes the others from the solutions, and runs it.
package capstone

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	client "github.com/flyball-dev/flyball/exercises/02a-client"
	loop "github.com/flyball-dev/flyball/exercises/08a-loop"
	ledger "github.com/flyball-dev/flyball/exercises/09a-ledger"
	endpoints "github.com/flyball-dev/flyball/exercises/10a-endpoints"
	"github.com/flyball-dev/flyball/exercises/kube"
)

// The label with which the controller marks the Endpoints that it has created.
const (
	managedBy = "endpoints.kubernetes.io/managed-by"
	name      = "flyball-capstone"
)

// Controller keeps the Endpoints of a server right.
type Controller struct {
	// Log is called for each write, and for each sync that fails. It may be nil.
	Log func(line string)
	// Random returns numbers in [0,1), which spread the retries of the reflectors.
	Random func() float64

	http      *http.Client
	host      string
	pods      *informer[*kube.Pod]
	services  *informer[*kube.Service]
	endpoints *informer[*kube.Endpoints]
	// ledger overlays the store of endpoints with the writes of this program. The mutex of that informer guards it.
	ledger *ledger.Ledger
	queue  *workQueue
	plan   *endpoints.Controller
}

// New returns the controller of the server at host, such as http://127.0.0.1:8001.
func New(h *http.Client, host string) *Controller {
	of := func(resource string) *client.Client {
		return &client.Client{HTTP: h, URL: host + "/api/v1/" + resource, Limit: 500}
	}
	c := &Controller{
		http: h, host: host, queue: newQueue(),
		pods:      newInformer(of("pods"), decodePod),
		services:  newInformer(of("services"), decodeService),
		endpoints: newInformer(of("endpoints"), decodeEndpoints),
	}
	c.ledger = ledger.New(c.endpoints.store)
	c.plan = &endpoints.Controller{Cache: cache{c}, Writer: writer{c}, Queue: c.queue}
	return c
}

// Run keeps Endpoints right until ctx is done.
func (c *Controller) Run(ctx context.Context) {
	c.pods.fanout.Add(func(change kube.Change) { c.plan.OnPod(podOf(change.Old), podOf(change.New)) })
	c.services.fanout.Add(func(change kube.Change) { c.queue.Add(newest(change).Key()) })
	c.endpoints.fanout.Add(func(change kube.Change) {
		// Somebody may have changed them. Those without a Service are deleted, if they are ours.
		if o := newest(change); o.Labels[managedBy] == name {
			c.queue.Add(o.Key())
		}
	})
	var informers sync.WaitGroup
	informers.Go(func() { c.pods.run(ctx, c.Random) })
	informers.Go(func() { c.services.run(ctx, c.Random) })
	informers.Go(func() { c.endpoints.run(ctx, c.Random) })
	for _, synced := range []chan struct{}{c.pods.synced, c.services.synced, c.endpoints.synced} {
		select {
		case <-synced:
		case <-ctx.Done():
		}
	}
	l := &loop.Loop{Queue: c.queue, Workers: 2, Reconcile: func(_ context.Context, key string) (kube.Result, error) {
		err := c.plan.Sync(key)
		if err != nil {
			c.logf("%v; it is tried again", err)
		}
		return kube.Result{}, err
	}}
	l.Run(ctx)
	informers.Wait()
}

func (c *Controller) logf(format string, args ...any) {
	if c.Log != nil {
		c.Log(fmt.Sprintf(format, args...))
	}
}

// newest returns the last state of an object that a change tells.
func newest(change kube.Change) *kube.Object {
	if change.New != nil {
		return change.New
	}
	return change.Old
}

// podOf decodes a Pod; nil stays nil.
func podOf(o *kube.Object) *kube.Pod {
	if o == nil {
		return nil
	}
	p, err := decodePod(o)
	if err != nil {
		return &kube.Pod{Object: *o} // It has no address.
	}
	return p
}

// cache is the Cache of task 10a.
type cache struct{ c *Controller }

func (w cache) Service(key string) (*kube.Service, bool) { return w.c.services.get(key) }

func (w cache) Services(namespace string) []*kube.Service {
	return w.c.services.objects.ByValue(namespace)
}

func (w cache) Pods(namespace string) []*kube.Pod { return w.c.pods.objects.ByValue(namespace) }

// Endpoints returns what this program has written, unless the cache is as new.
func (w cache) Endpoints(key string) (*kube.Endpoints, bool) {
	w.c.endpoints.mu.Lock()
	defer w.c.endpoints.mu.Unlock()
	o, ok := w.c.ledger.Get(key)
	if !ok {
		return nil, false
	}
	e, err := decodeEndpoints(o)
	return e, err == nil
}

// writer is the Writer of task 10a.
type writer struct{ c *Controller }

func (w writer) Create(e *kube.Endpoints) error {
	return w.write(http.MethodPost, w.path(e.Namespace, ""), e)
}

func (w writer) Update(e *kube.Endpoints) error {
	return w.write(http.MethodPut, w.path(e.Namespace, e.Name), e)
}

func (w writer) Delete(key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	// The cache of Services may be older than that of Endpoints. A delete cannot be taken back, so ask the server.
	_, err := w.c.request(http.MethodGet, "/api/v1/namespaces/"+namespace+"/services/"+name, nil)
	if err == nil {
		return errors.New("the Service exists, and the cache does not have it yet")
	}
	if !errors.Is(err, kube.ErrNotFound) {
		return err
	}
	_, err = w.c.request(http.MethodDelete, w.path(namespace, name), nil)
	if errors.Is(err, kube.ErrNotFound) {
		return nil
	}
	if err == nil {
		w.c.logf("delete %s", key)
	}
	return err
}

func (w writer) path(namespace, name string) string {
	return strings.TrimSuffix("/api/v1/namespaces/"+namespace+"/endpoints/"+name, "/")
}

// write sends Endpoints, and records the answer.
func (w writer) write(method, path string, e *kube.Endpoints) error {
	body, err := encodeEndpoints(e)
	if err != nil {
		return err
	}
	answer, err := w.c.request(method, path, body)
	if err != nil {
		return err
	}
	stored := &kube.Object{}
	if err := json.Unmarshal(answer, stored); err != nil {
		return err
	}
	w.c.endpoints.mu.Lock()
	w.c.ledger.Wrote(stored)
	w.c.endpoints.mu.Unlock()
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update"}[method]
	w.c.logf("%s %s: ready %v, not ready %v", verb, e.Key(), e.Ready, e.NotReady)
	return nil
}

// request sends a request, and returns the body of the answer.
//
// Errors: that of a [kube.Status], such as kube.ErrConflict; those of connections.
func (c *Controller) request(method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil {
		return nil, err
	}
	if answer.StatusCode < 300 {
		return text.Bytes(), nil
	}
	status := kube.Status{Code: answer.StatusCode}
	if err := json.Unmarshal(text.Bytes(), &status); err != nil {
		return nil, err
	}
	return nil, status.Err()
}
