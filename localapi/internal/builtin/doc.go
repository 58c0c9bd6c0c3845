// Package builtin describes Kubernetes' own resource types to the embedded API server: Pods, Deployments, Services and
// the others that controllers and kubectl meet every day.
//
//	localapi (requests, storage, watches) ──asks──▶ resource.Definition ◀──filled in by── builtin.All
//
// Every type is one function that returns its [resource.Definition]; [All] lists them. To add a type, write such a
// function and add it to that list. Types that share their rules share a file.
//
// The rules are those of kube-apiserver v1.37.1: what it defaults, resets, refuses, prints and lets a client select by.
// Messages of refusals are the real ones, because people and programs read them. Admission plugins that are on by
// default and change what a controller sees (default tolerations, priority and service account of a Pod) are part of
// the types here. Feature gates have the defaults of v1.37.
//
// A type that is served as several kinds (autoscalers of two versions, events of two groups) is one [resource.Family].
//
// Not copied, because they need other objects or a network: what quotas, limit ranges, priority classes and runtime
// classes do to pods (they are stored), projected service account tokens. The validation of volume sources, affinity
// and security contexts covers what breaks a controller, not each of the real server's many hundred rules.
package builtin
