// Package builtin describes Kubernetes' own resource types to the embedded API server: Pods, Deployments, Services and
// the others that controllers and kubectl meet every day.
//
//	localapi (requests, storage, watches) ─asks─▶ resource.Definition ◀─filled in by─ builtin.All
//
// Every type is one function that returns its [resource.Definition]; [All] lists them. To add a type, write such a
// function and add it to that list. Types that share their rules share a file.
//
// The rules are those of kube-apiserver v1.37.2: what it defaults, resets, refuses, prints and lets a client select by.
// Messages of refusals are the real ones, because people and programs read them. Rules are functions of a
// [verify.Field]. Admission plugins that are on by default and change what a controller sees (default tolerations,
// priority, service account and runtime class of a Pod) are [PodAdmission]; those that limit what a namespace has are
// [LimitRanger] and [Quota]. Feature gates have the defaults of v1.37.
//
// A type that is served as several kinds (autoscalers of two versions, events of two groups) is one [resource.Family].
//
// The validation of volume sources, affinity and security contexts covers what breaks a controller, not each of the
// many hundred rules of the real server.
package builtin
