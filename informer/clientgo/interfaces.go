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
	ListerWatcher                = peer.ListerWatcher
	ListerWatcherWithContext     = peer.ListerWatcherWithContext
	ListWatch                    = peer.ListWatch
	Indexers                     = peer.Indexers
	IndexFunc                    = peer.IndexFunc
	KeyFunc                      = peer.KeyFunc
	KeyError                     = peer.KeyError
	ExplicitKey                  = peer.ExplicitKey
	ObjectName                   = peer.ObjectName
	TransformFunc                = peer.TransformFunc
	InformerSynced               = peer.InformerSynced
	HandlerOptions               = peer.HandlerOptions
	InformerOptions              = peer.InformerOptions
	SharedIndexInformerOptions   = peer.SharedIndexInformerOptions
	WatchErrorHandler            = peer.WatchErrorHandler
	WatchErrorHandlerWithContext = peer.WatchErrorHandlerWithContext
	DeletedFinalStateUnknown     = peer.DeletedFinalStateUnknown
	GenericLister                = peer.GenericLister
	GenericNamespaceLister       = peer.GenericNamespaceLister
	AppendFunc                   = peer.AppendFunc
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
