package controllerruntime_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// surface lists the parts of controller-runtime that are implemented here: the options that are read, and the
// interfaces. Each field and each method has the test that uses it with the same assertions on controller-runtime's own
// and on ours.
var surface = map[reflect.Type]map[string]string{
	reflect.TypeFor[cache.Options](): {
		"HTTPClient": "TestOptionsOfRequests", "Scheme": "TestOptionsOfRequests", "Mapper": "TestOptionsOfRequests",
		"SyncPeriod":                  "TestResyncEvents",
		"ReaderFailOnMissingInformer": "TestReaderFailOnMissingInformer", "DefaultNamespaces": "TestSelection",
		"DefaultLabelSelector": "TestSelection",
		"DefaultFieldSelector": "TestSelection", "DefaultTransform": "TestSelection",
		"DefaultWatchErrorHandler":     "TestForbidden",
		"DefaultUnsafeDisableDeepCopy": "TestWithoutCopies", "DefaultEnableWatchBookmarks": "TestWithoutBookmarks",
		"ByObject":    "TestSelection",
		"NewInformer": "TestReads",
	},
	reflect.TypeFor[cache.ByObject](): {
		"Namespaces": "TestSelection", "Label": "TestSelection", "Field": "TestSelection", "Transform": "TestSelection",
		"UnsafeDisableDeepCopy": "TestWithoutCopies", "EnableWatchBookmarks": "TestWithoutBookmarks",
		"SyncPeriod": "TestResyncEvents",
	},
	reflect.TypeFor[cache.Config](): {
		"LabelSelector": "TestSelection", "FieldSelector": "TestNamespacesThatAreNotCached",
		"Transform":             "TestSelection",
		"UnsafeDisableDeepCopy": "TestWithoutCopies", "EnableWatchBookmarks": "TestWithoutBookmarks",
		"SyncPeriod": "TestResyncEvents",
	},
	reflect.TypeFor[cache.InformerGetOptions](): {"BlockUntilSynced": "TestHandlersOfAKind"},
	reflect.TypeFor[cache.Cache](): {
		"Get": "TestReads", "List": "TestReads", "GetInformer": "TestHandlers",
		"GetInformerForKind": "TestInformerForKind",
		"RemoveInformer":     "TestRemoveInformer", "Start": "TestReadsAfterTheStop",
		"WaitForCacheSync": "TestHandlers", "IndexField": "TestIndexes",
	},
	reflect.TypeFor[cache.Informer](): {
		"AddEventHandler": "TestHandlers", "AddEventHandlerWithResyncPeriod": "TestResyncEvents",
		"AddEventHandlerWithOptions": "TestResyncEvents",
		"RemoveEventHandler":         "TestHandlers", "AddIndexers": "TestHandlers", "HasSynced": "TestHandlers",
		"HasSyncedChecker": "TestHandlers",
		"IsStopped":        "TestHandlers",
	},
	reflect.TypeFor[client.Options](): {
		"HTTPClient": "TestSeparateClients", "Scheme": "TestSeparateClients", "Mapper": "TestSeparateClients",
		"Cache":  "TestSeparateClients",
		"DryRun": "TestDefaultsOfWrites", "FieldOwner": "TestDefaultsOfWrites",
		"FieldValidation": "TestDefaultsOfWrites", "Log": "TestDefaultsOfWrites",
	},
	reflect.TypeFor[client.CacheOptions](): {
		"Reader": "TestSeparateClients", "DisableFor": "TestUncachedReads",
		"Unstructured":                    "TestReadYourWritesCornerCases",
		"EnableReadYourWritesConsistency": "TestReadYourWritesCornerCases",
	},
	reflect.TypeFor[client.Client](): {
		"Get": "TestWrites", "List": "TestWrites", "Apply": "TestWrites", "Create": "TestWrites",
		"Delete": "TestWrites", "Update": "TestWrites",
		"Patch": "TestWrites", "DeleteAllOf": "TestWrites", "Status": "TestWrites", "SubResource": "TestSubResources",
		"Scheme":     "TestDefaultsOfWrites",
		"RESTMapper": "TestDefaultsOfWrites", "GroupVersionKindFor": "TestWritesOfRepresentations",
		"IsObjectNamespaced": "TestDefaultsOfWrites",
	},
	reflect.TypeFor[client.SubResourceClient](): {
		"Get": "TestSubResources", "Create": "TestSubResources", "Update": "TestSubResources",
		"Patch": "TestSubResources", "Apply": "TestSubResources",
	},
	reflect.TypeFor[client.GetOptions](): {
		"Raw": "TestRawOptions", "UnsafeDisableDeepCopy": "TestSharedReads",
		"DisableReadYourWritesConsistency": "TestLaggingReads",
	},
	reflect.TypeFor[client.ListOptions](): {
		"LabelSelector": "TestSelectors", "FieldSelector": "TestSelectors", "Namespace": "TestSelectors",
		"Limit":    "TestSelectors",
		"Continue": "TestSelectors", "UnsafeDisableDeepCopy": "TestWithoutCopies",
		"DisableReadYourWritesConsistency": "TestLaggingReads",
		"Raw":                              "TestRawOptions",
	},
	reflect.TypeFor[client.DeleteOptions](): {
		"GracePeriodSeconds": "TestWritesOfRepresentations", "Preconditions": "TestWrites",
		"PropagationPolicy": "TestWrites", "DryRun": "TestRawOptions",
		"Raw": "TestRawOptions", "DisableReadYourWritesConsistency": "TestRawOptions",
	},
	reflect.TypeFor[priorityqueue.AddOpts](): {
		"After": "TestQueueDelays", "RateLimited": "TestQueueOrder",
		"Priority": "TestQueueOrder",
	},
	reflect.TypeFor[priorityqueue.PriorityQueue[string]](): {
		"Add": "TestQueueOrder", "AddAfter": "TestQueueDelays", "AddRateLimited": "TestQueueDelays",
		"AddWithOpts": "TestQueueOrder",
		"Get":         "TestQueueOneWorkerForAKey", "GetWithPriority": "TestQueueOrder",
		"Done": "TestQueueOneWorkerForAKey", "Forget": "TestQueueOrder",
		"NumRequeues": "TestQueueOrder", "Len": "TestQueueOrder", "ShutDown": "TestQueueShutDown",
		"ShutDownWithDrain": "TestQueueDrain",
		"ShuttingDown":      "TestQueueShutDown",
	},
	reflect.TypeFor[manager.Manager](): {
		"GetEventRecorderFor": "TestPartsOfAManager", "GetEventRecorder": "TestPartsOfAManager",
		"GetHTTPClient": "TestPartsOfAManager",
		"GetConfig":     "TestPartsOfAManager", "GetCache": "TestPartsOfAManager", "GetScheme": "TestPartsOfAManager",
		"GetClient":       "TestPartsOfAManager",
		"GetFieldIndexer": "TestPartsOfAManager", "GetRESTMapper": "TestPartsOfAManager",
		"GetAPIReader": "TestPartsOfAManager",
		"Start":        "TestPartsOfAManager", "Add": "TestPartsOfAManager", "Elected": "TestPartsOfAManager",
		"GetLogger":            "TestPartsOfAManager",
		"GetControllerOptions": "TestPartsOfAManager", "GetConverterRegistry": "TestPartsOfAManager",
		"AddMetricsServerExtraHandler": "TestServersOfAManager", "AddHealthzCheck": "TestServersOfAManager",
		"AddReadyzCheck": "TestServersOfAManager", "GetWebhookServer": "TestServersOfAManager",
	},
	reflect.TypeFor[manager.Options](): {
		"Scheme": "TestLeases", "MapperProvider": "TestServersOfAManager", "Cache": "TestPriorityOfEvents",
		"Client":    "TestLeases",
		"NewClient": "TestServersOfAManager", "Logger": "TestServersOfAManager", "Metrics": "TestServersOfAManager",
		"HealthProbeBindAddress": "TestServersOfAManager", "ReadinessEndpointName": "TestServersOfAManager",
		"LivenessEndpointName": "TestServersOfAManager", "PprofBindAddress": "TestServersOfAManager",
		"WebhookServer": "TestServersOfAManager",
		"BaseContext":   "TestServersOfAManager", "GracefulShutdownTimeout": "TestLeases",
		"Controller":     "TestPartsOfAManager",
		"LeaderElection": "TestLeases", "LeaderElectionID": "TestLeases", "LeaderElectionNamespace": "TestLeases",
		"LeaderElectionReleaseOnCancel": "TestLeases", "LeaseDuration": "TestLeases", "RenewDeadline": "TestLeases",
		"RetryPeriod": "TestLeases",
		"NewCache":    "TestCachesOfTheCaller", "EventBroadcaster": "TestBroadcasterOfTheCaller",
		"LeaderElectionConfig": "TestLocks",
		"LeaderElectionLabels": "TestLocks", "LeaderElectionResourceLock": "TestLocks",
		"LeaderElectionResourceLockInterface": "TestLocks",
	},
}

// harnesses run a test on controller-runtime's own and on ours.
var harnesses = []string{"bothCaches", "bothReaders", "bothClients", "bothQueues", "bothManagers", "managerMakers"}

// TestEveryOptionIsCovered fails when a new version of controller-runtime brings an option or a method, until somebody
// has decided what ours does with it and has tested it on both.
func TestEveryOptionIsCovered(t *testing.T) {
	uses := usesOfTests(t)
	for of, tests := range surface {
		names, how := map[string]bool{}, set
		if of.Kind() == reflect.Interface {
			how = called
			for m := range of.Methods() {
				names[m.Name] = true
			}
		} else {
			for f := range of.Fields() {
				names[f.Name] = f.IsExported()
			}
		}
		maps.DeleteFunc(names, func(_ string, exported bool) bool { return !exported })
		for name := range names {
			test, uses := tests[name], uses[tests[name]]
			switch {
			case test == "":
				t.Errorf("%v.%s is not in surface", of, name)
			case !uses[how+name] && !uses[optionOf[name]]:
				t.Errorf("%v.%s: %s does not use it", of, name, test)
			case !slices.ContainsFunc(harnesses, func(h string) bool { return uses[h] }):
				t.Errorf("%v.%s: %s runs on one make only", of, name, test)
			}
		}
		for name := range tests {
			if !names[name] {
				t.Errorf("%v has no %s any more", of, name)
			}
		}
	}
}

// How a test uses something: it sets a field, or calls a method.
const (
	set    = "set "
	called = "call "
)

// optionOf are the functions that set fields of options.
var optionOf = map[string]string{
	"Namespace": "InNamespace", "LabelSelector": "MatchingLabels", "FieldSelector": "MatchingFields",
	"DryRun": "DryRunAll", "Limit": "Limit",
	"Continue": "Continue", "PropagationPolicy": "PropagationPolicy", "Preconditions": "Preconditions",
	"GracePeriodSeconds": "GracePeriodSeconds",
	"BlockUntilSynced":   "BlockUntilSynced", "UnsafeDisableDeepCopy": "UnsafeDisableDeepCopy",
	"DisableReadYourWritesConsistency": "DisableReadYourWritesConsistency",
}

// usesOfTests returns what each test mentions, directly or through the functions and variables of this package.
func usesOfTests(t *testing.T) map[string]map[string]bool {
	t.Helper()
	paths, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	mentions := map[string]map[string]bool{}
	note := func(name string, node ast.Node) {
		if mentions[name] == nil {
			mentions[name] = map[string]bool{}
		}
		ast.Inspect(node, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				mentions[name][n.Name] = true
			case *ast.KeyValueExpr:
				if id, ok := n.Key.(*ast.Ident); ok {
					mentions[name][set+id.Name] = true
				}
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					if field, ok := to.(*ast.SelectorExpr); ok {
						mentions[name][set+field.Sel.Name] = true
					}
				}
			case *ast.CallExpr:
				if method, ok := n.Fun.(*ast.SelectorExpr); ok {
					mentions[name][called+method.Sel.Name] = true
				}
			}
			return true
		})
	}
	for _, path := range paths {
		if path == "complete_test.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				note(d.Name.Name, d.Body)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok && d.Tok == token.VAR {
						note(v.Names[0].Name, v)
					}
				}
			}
		}
	}
	uses := map[string]map[string]bool{}
	for name := range mentions {
		if strings.HasPrefix(name, "Test") {
			uses[name] = map[string]bool{}
			reach(mentions, name, uses[name])
		}
	}
	return uses
}

// reach collects what a declaration mentions, and what that mentions.
func reach(mentions map[string]map[string]bool, name string, into map[string]bool) {
	for other := range mentions[name] {
		if !into[other] {
			into[other] = true
			reach(mentions, other, into)
		}
	}
}
