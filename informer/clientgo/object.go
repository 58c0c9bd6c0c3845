package clientgo

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
)

// held is an object in the cache of an informer, as client-go sees it: its key alone says which object it is, and of
// its states the one that came last is the newest. The core tells objects by UID and states by resource version; held
// has none to show, so the core takes each state as it comes, and a change of the UID is an update. Only what a list
// brought shows its version: a later list then leaves alone what did not change.
//
// Source: the comment of SharedInformer in k8s.io/client-go/tools/cache v0.37.2: "the ObjectMeta.UID is not part of an
// object's ID".
type held struct {
	informer.Object
	from origin
}

// origin is how an object came into the cache.
type origin uint8

const (
	fromList origin = iota
	fromWatch
	// fromAdded is for what a watch brought as new.
	fromAdded
	// fromWrite is for what a program wrote into the informer's store itself.
	fromWrite
)

// GetUID hides the UID; see held.
func (held) GetUID() types.UID { return "" }

// GetResourceVersion hides most resource versions; see held.
func (h held) GetResourceVersion() string {
	if h.from == fromList {
		return h.Object.GetResourceVersion()
	}
	return ""
}

// listedAgain says that obj repeats old: a list brought a state that had come by a watch. A server has one state for
// each resource version; whoever sends another under the same version in a watch is a client made for tests, and
// means it.
func listedAgain(old, obj held) bool {
	if obj.from != fromList || obj.Object == old.Object { // The same pointer is a resync.
		return false
	}
	version := obj.Object.GetResourceVersion()
	return version != "" && version == old.Object.GetResourceVersion() && obj.Object.GetUID() == old.Object.GetUID()
}

// keyed is an object in a store that is no informer's: anything, under a key that was asked for once.
type keyed struct {
	key string
	obj any
}

func keyOfKeyed(k keyed) (string, error) { return k.key, nil }
