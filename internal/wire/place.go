package wire

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Place is what the path of a request says about its object.
type Place struct {
	Resource schema.GroupResource
	// Key names the object; its name is empty for a collection.
	Key         types.NamespacedName
	Subresource string
	// Collection is the path of the object's collection.
	Collection string
}

// PlaceAt reads a path. A path below a subresource (a proxy, another server's API) names no object of this server.
func PlaceAt(path string) (p Place, isObject bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
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
	p.Collection = "/" + strings.Join(parts[:at+1], "/")
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
