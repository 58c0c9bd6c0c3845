package endpoints

import "github.com/flyball-dev/flyball/exercises/kube"

// Cache has the caches of the informers. The objects are shared, so do not change them.
type Cache interface {
	Service(key string) (*kube.Service, bool)
	Endpoints(key string) (*kube.Endpoints, bool)
	// Services and Pods return those of a namespace.
	Services(namespace string) []*kube.Service
	Pods(namespace string) []*kube.Pod
}

// Writer writes Endpoints.
type Writer interface {
	Create(e *kube.Endpoints) error
	Update(e *kube.Endpoints) error
	// Delete deletes the Endpoints. It is no error if they do not exist.
	Delete(key string) error
}
