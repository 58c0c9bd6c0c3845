package clientgo

import (
	peer "k8s.io/client-go/tools/cache"
)

// The interfaces of client-go that this package implements.
type (
	Store                            = peer.Store
	Indexer                          = peer.Indexer
	SharedInformer                   = peer.SharedInformer
	SharedIndexInformer              = peer.SharedIndexInformer
	Controller                       = peer.Controller
	ResourceEventHandlerRegistration = peer.ResourceEventHandlerRegistration
	DoneChecker                      = peer.DoneChecker
)

// The types of client-go that go into them and come out.
type (
	Indexers                   = peer.Indexers
	IndexFunc                  = peer.IndexFunc
	KeyFunc                    = peer.KeyFunc
	ExplicitKey                = peer.ExplicitKey
	ObjectName                 = peer.ObjectName
	TransformFunc              = peer.TransformFunc
	InformerSynced             = peer.InformerSynced
	HandlerOptions             = peer.HandlerOptions
	InformerOptions            = peer.InformerOptions
	SharedIndexInformerOptions = peer.SharedIndexInformerOptions
	DeletedFinalStateUnknown   = peer.DeletedFinalStateUnknown
	GenericLister              = peer.GenericLister
	GenericNamespaceLister     = peer.GenericNamespaceLister
)

// What lists and watches.
type (
	ListerWatcher    = peer.ListerWatcher
	ListWatch        = peer.ListWatch
	ReflectorOptions = peer.ReflectorOptions
	// Reflector is what watch error handlers are given. Those of this package never run: see [StoreReflector].
	Reflector = peer.Reflector
)

// The handlers of client-go.
type (
	ResourceEventHandler              = peer.ResourceEventHandler
	ResourceEventHandlerFuncs         = peer.ResourceEventHandlerFuncs
	ResourceEventHandlerDetailedFuncs = peer.ResourceEventHandlerDetailedFuncs
	FilteringResourceEventHandler     = peer.FilteringResourceEventHandler
)

// NamespaceIndex is the name of the index by namespace.
const NamespaceIndex = peer.NamespaceIndex
