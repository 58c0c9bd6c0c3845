package endpoints

// Service asks for the addresses of all Pods that its Selector matches. A Service whose Selector is nil is none of this
// controller's business: somebody else writes its Endpoints.
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
	// Ready: it can answer requests. Ended: it has stopped for good. Deleting: it has been asked to stop.
	Ready, Ended, Deleting bool
	// Note is of interest to nobody here. It stands for the many fields of a real Pod that change all the time.
	Note string
}

// Endpoints are the addresses behind the Service of the same name, each list in order.
type Endpoints struct {
	Name            string
	Ready, NotReady []string
}

// Cache has what the informers know. The objects are shared: do not change them.
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
	// Delete deletes the Endpoints. It is no error if there are none.
	Delete(name string) error
}

// Queue takes the names of Services to be synced. An add of a name that waits changes nothing.
type Queue interface{ Add(service string) }
