package endpoints

// Service asks for the addresses of all Pods that its Selector matches. If the Selector is nil, this controller must
// not touch the Endpoints, because something else writes them.
type Service struct {
	Name     string
	Selector map[string]string
}

// Pod is a copy of a program.
type Pod struct {
	Name   string
	Labels map[string]string
	// IP is empty until the Pod has an address.
	IP string
	// A Ready Pod can answer requests. An Ended one has stopped forever, and a Deleting one has been asked to stop.
	Ready, Ended, Deleting bool
	// Note does not matter to this controller. It stands for the many fields of a real Pod that change all the time.
	Note string
}

// Endpoints has the addresses of the Pods of the Service of the same name. Both lists are sorted.
type Endpoints struct {
	Name            string
	Ready, NotReady []string
}

// Cache has the caches of the informers. The objects are shared, so do not change them.
type Cache interface {
	Service(name string) (*Service, bool)
	Services() []*Service
	Pods() []*Pod
	Endpoints(name string) (*Endpoints, bool)
}

// Writer writes Endpoints.
type Writer interface {
	Create(e *Endpoints) error
	Update(e *Endpoints) error
	// Delete deletes the Endpoints. It is no error if they do not exist.
	Delete(name string) error
}

// Queue takes the names of the Services to sync. Adding a name that already waits changes nothing.
type Queue interface{ Add(service string) }
