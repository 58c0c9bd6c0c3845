package clientgo

import (
	peer "k8s.io/client-go/tools/cache"
)

// The interfaces of client-go that this package implements.
type (
	Store                            = peer.Store
	Indexer                          = peer.Indexer
	TransactionStore                 = peer.TransactionStore
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
	KeyError                   = peer.KeyError
	ExplicitKey                = peer.ExplicitKey
	ObjectName                 = peer.ObjectName
	Transaction                = peer.Transaction
	TransactionType            = peer.TransactionType
	TransactionError           = peer.TransactionError
	TransformFunc              = peer.TransformFunc
	InformerSynced             = peer.InformerSynced
	SyncResult                 = peer.SyncResult
	HandlerOptions             = peer.HandlerOptions
	InformerOptions            = peer.InformerOptions
	SharedIndexInformerOptions = peer.SharedIndexInformerOptions
	DeletedFinalStateUnknown   = peer.DeletedFinalStateUnknown
	AppendFunc                 = peer.AppendFunc
	GenericLister              = peer.GenericLister
	GenericNamespaceLister     = peer.GenericNamespaceLister
)

// What lists and watches.
type (
	Lister                   = peer.Lister
	ListerWithContext        = peer.ListerWithContext
	Watcher                  = peer.Watcher
	WatcherWithContext       = peer.WatcherWithContext
	ListerWatcher            = peer.ListerWatcher
	ListerWatcherWithContext = peer.ListerWatcherWithContext
	ListWatch                = peer.ListWatch
	//lint:ignore SA1019 Deprecated, but in programs that exist.
	ListFunc            = peer.ListFunc
	ListWithContextFunc = peer.ListWithContextFunc
	//lint:ignore SA1019 Deprecated, but in programs that exist.
	WatchFunc                    = peer.WatchFunc
	WatchFuncWithContext         = peer.WatchFuncWithContext
	Getter                       = peer.Getter
	WatchErrorHandler            = peer.WatchErrorHandler
	WatchErrorHandlerWithContext = peer.WatchErrorHandlerWithContext
	// Reflector is what watch error handlers are given. Those of this package never run: see [StoreReflector].
	Reflector = peer.Reflector
)

// What a [StoreReflector] is made of.
type (
	ReflectorOptions       = peer.ReflectorOptions
	ReflectorStore         = peer.ReflectorStore
	ReflectorBookmarkStore = peer.ReflectorBookmarkStore
	ResourceVersionUpdater = peer.ResourceVersionUpdater
)

// What expires in a store, and what is laid over one.
type (
	ExpirationPolicy          = peer.ExpirationPolicy
	TimestampedEntry          = peer.TimestampedEntry
	TTLPolicy                 = peer.TTLPolicy
	MutationCache             = peer.MutationCache
	MutationCacheOptions      = peer.MutationCacheOptions
	MutationDetector          = peer.MutationDetector
	ResourceVersionComparator = peer.ResourceVersionComparator
)

// The handlers of client-go.
type (
	ResourceEventHandler              = peer.ResourceEventHandler
	ResourceEventHandlerFuncs         = peer.ResourceEventHandlerFuncs
	ResourceEventHandlerDetailedFuncs = peer.ResourceEventHandlerDetailedFuncs
	FilteringResourceEventHandler     = peer.FilteringResourceEventHandler
)

// The type-safe forms of client-go.
type (
	Object                                           = peer.Object
	DeletedObject[T Object]                          = peer.DeletedObject[T]
	TypedResourceEventHandler[T Object]              = peer.TypedResourceEventHandler[T]
	TypedResourceEventHandlerFuncs[T Object]         = peer.TypedResourceEventHandlerFuncs[T]
	TypedResourceEventHandlerDetailedFuncs[T Object] = peer.TypedResourceEventHandlerDetailedFuncs[T]
	TypedFilteringResourceEventHandler[T Object]     = peer.TypedFilteringResourceEventHandler[T]
	TypedSharedIndexInformer[T Object]               = peer.TypedSharedIndexInformer[T]
	TypedIndexFunc[T any]                            = peer.TypedIndexFunc[T]
	TypedIndexers[T any]                             = peer.TypedIndexers[T]
	TypedIndexer[T any]                              = peer.TypedIndexer[T]
)

// NamespaceIndex is the name of the index by namespace.
const NamespaceIndex = peer.NamespaceIndex

// The types of transactions.
const (
	TransactionTypeAdd    = peer.TransactionTypeAdd
	TransactionTypeUpdate = peer.TransactionTypeUpdate
	TransactionTypeDelete = peer.TransactionTypeDelete
)
