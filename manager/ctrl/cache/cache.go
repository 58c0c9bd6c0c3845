// Package cache has the name of controller-runtime for the caches of a manager.
//
// Source: controller-runtime v0.25.2 pkg/cache.
package cache

import "github.com/flyball-dev/flyball/manager"

// Cache is what GetCache of a manager returns.
type Cache = manager.Cache
