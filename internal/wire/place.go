package wire

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Place is the target of a request, as the path names it.
type Place struct {
	Resource schema.GroupResource
	// Key names the object; its name is empty for a collection.
	Key         types.NamespacedName
	Subresource string
	// Collection is the path of the object's collection.
	Collection string
}

// PlaceAt parses a path. isObject is false for a path that is not in the API, and for one below a subresource: behind a
// proxy, it belongs to another server.
func PlaceAt(path string) (p Place, isObject bool) {
	path = strings.Trim(path, "/")
	var all [9]string // One more than the path of a subresource has at most.
	parts := all[:0]
	for part := range strings.SplitSeq(path, "/") {
		if len(parts) == len(all) {
			break
		}
		parts = append(parts, part)
	}
	at := 2
	switch {
	case len(parts) >= 3 && parts[0] == "api":
	case len(parts) >= 4 && parts[0] == "apis":
		p.Resource.Group = parts[1]
		at = 3
	default:
		return p, false
	}
	if rest := parts[at:]; len(rest) >= 3 && rest[0] == "namespaces" && rest[2] != "status" && rest[2] != "finalize" {
		p.Key.Namespace = rest[1]
		at += 2
	}
	end := at // That many slashes are between the parts.
	for _, part := range parts[:at+1] {
		end += len(part)
	}
	p.Collection = "/" + path[:end]
	p.Resource.Resource = parts[at]
	rest := parts[at+1:]
	if len(rest) > 0 {
		p.Key.Name = rest[0]
	}
	if len(rest) > 1 {
		p.Subresource = rest[1]
	}
	return p, len(rest) <= len([]string{"name", "subresource"}) && p.Subresource != "proxy"
}
