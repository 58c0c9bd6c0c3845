package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/localapi/storage/memory"
	"github.com/flyball-dev/flyball/localapi/storage/pebble"
)

// stockroom is one tenant's part of a store, with an API on it.
type stockroom struct {
	objects storage.Storage
	server  *localapi.Server
	config  *rest.Config
	client  client.Client // reads what is stored, without a cache
}

// open opens the store and defines the resources, unless an earlier call has done so.
func (o *options) open(ctx context.Context) (s *stockroom, err error) {
	s = &stockroom{}
	if s.objects, err = openObjects(ctx, o.dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	s.server, err = localapi.New(localapi.Options{Storage: s.objects, Tenant: o.tenant, NoKubernetesService: true})
	if err != nil {
		return s, err
	}
	s.config = s.server.RESTConfig()
	if s.client, err = client.New(s.config, client.Options{Scheme: api.NewScheme()}); err != nil {
		return s, err
	}
	return s, define(ctx, s.client)
}

func openObjects(ctx context.Context, dir string) (storage.Storage, error) {
	if dir == "" {
		return memory.New(), nil
	}
	objects, err := pebble.Open(ctx, dir, pebble.Options{})
	if err != nil {
		return nil, fmt.Errorf("--store %s: %w", dir, err)
	}
	return objects, nil
}

// close closes the store and drops its history, which nobody watches between calls.
func (s *stockroom) close(ctx context.Context) (err error) {
	if s.server != nil {
		err = s.server.Close()
	}
	current, _ := s.objects.Revision()
	return errors.Join(err, s.objects.Compact(context.WithoutCancel(ctx), current), s.objects.Close())
}

// definitionHash is the annotation with a hash of the definition that a resource was made from.
const definitionHash = "stock.flyball.dev/definition"

// define creates the resources, or updates those that an earlier version of the tool created. It writes nothing else.
func define(ctx context.Context, c client.Client) error {
	definitions, err := api.CRDs()
	if err != nil {
		return err
	}
	for _, crd := range definitions {
		text, err := json.Marshal(crd.Object["spec"])
		if err != nil {
			return err
		}
		hash := fmt.Sprintf("%x", sha256.Sum256(text))
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(crd.GroupVersionKind())
		found.SetName(crd.GetName())
		if _, err = controllerutil.CreateOrUpdate(ctx, c, found, func() error {
			if found.GetAnnotations()[definitionHash] == hash {
				return nil
			}
			found.SetAnnotations(map[string]string{definitionHash: hash})
			found.Object["spec"] = crd.Object["spec"]
			return nil
		}); err != nil {
			return fmt.Errorf("define %s: %w", crd.GetName(), err)
		}
	}
	return nil
}

// tenantStock is one tenant's part of a store.
type tenantStock struct {
	name              string
	items, categories int
}

// tenantsOf counts the content of a store, by tenant.
func tenantsOf(ctx context.Context, objects storage.Storage) (found []tenantStock, err error) {
	page, err := objects.List(ctx, "", storage.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, r := range page.Records { // sorted by key, and so by tenant
		key, err := storage.ParseKey(r.Key)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 || found[len(found)-1].name != key.Tenant {
			found = append(found, tenantStock{name: key.Tenant})
		}
		last := &found[len(found)-1]
		switch {
		case key.Group != api.GroupVersion.Group:
		case key.Resource == "items":
			last.items++
		case key.Resource == "categories":
			last.categories++
		}
	}
	return found, nil
}

// fieldManager owns the fields that users set.
const fieldManager = "items"

// readManifests reads Items and Categories from files.
func readManifests(paths []string, in io.Reader) ([]manifest.Object, error) {
	all, err := manifest.ReadFiles(paths, in)
	if err != nil {
		return nil, err
	}
	for _, obj := range all {
		if err := checkManifest(obj); err != nil {
			return nil, fmt.Errorf("%s: %w", obj.From, err)
		}
	}
	// An item that comes before its category has to wait for it. This order avoids most waits.
	slices.SortStableFunc(all, func(a, b manifest.Object) int { return cmp.Compare(a.GetKind(), b.GetKind()) })
	return all, nil
}

// checkManifest returns an error for anything but an Item or a Category, and sets the namespace.
func checkManifest(obj manifest.Object) error {
	kind := obj.GroupVersionKind()
	if kind.GroupVersion() != api.GroupVersion || kind.Kind != "Item" && kind.Kind != "Category" {
		return fmt.Errorf("%s %s is none of the tool's: it keeps Items and Categories of %s", obj.GetAPIVersion(),
			kind.Kind, api.GroupVersion)
	}
	if ns := obj.GetNamespace(); ns != "" && ns != namespace {
		return fmt.Errorf(
			"%s %s is in namespace %s: this tool keeps people apart by --tenant, and all of it in namespace %s",
			kind.Kind, obj.GetName(), ns, namespace,
		)
	}
	obj.SetNamespace(namespace)
	return nil
}

// apply writes all manifests, even if one fails.
func apply(ctx context.Context, c client.Client, all []manifest.Object) error {
	var failed []error
	for _, m := range all {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(m.Unstructured), client.FieldOwner(fieldManager),
			client.ForceOwnership, client.StrictFields)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.From, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}
