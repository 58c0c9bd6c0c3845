package registry

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// ListOptions are the options of a list.
type ListOptions struct {
	Selection
	ResourceVersion      string
	ResourceVersionMatch metav1.ResourceVersionMatch
	Limit                int64
	Continue             string
}

// ListResult is a list, or a page of one.
type ListResult struct {
	Objects   []*watchcache.Object
	Revision  int64
	Continue  string
	Remaining *int64
	Shard     string // the selector, if the list is restricted to a shard of the collection
}

// List returns the selected objects.
//
// Source: k8s.io/apiserver pkg/storage/etcd3/store.go GetList, pkg/storage/continue.go, pkg/storage/cacher/cacher.go
// computeListLimit.
func (r *Resource) List(ctx context.Context, o ListOptions) (ListResult, error) {
	if o.ResourceVersion == "0" {
		o.Limit = 0 // a list of any version comes from the watch cache, which has no pages
	}
	revision, start, err := r.listPosition(ctx, o)
	if err != nil {
		return ListResult{}, err
	}
	if revision > 0 && !r.Objects.UnchangedSince(revision) {
		return r.listAt(ctx, o.Selection, revision, start, o.Limit)
	}
	snapshot, current, err := r.Objects.Snapshot()
	if err != nil {
		return ListResult{}, err
	}
	revision = cmp.Or(revision, current)
	prefix := r.key(o.Namespace, "").Prefix()
	if o.Name != "" && o.Namespace != "" {
		prefix += o.Name
	}
	objects, err := r.allInVersion(ctx, snapshot.From(max(prefix, start)), prefix, o)
	if err != nil {
		return ListResult{}, err
	}
	return r.page(objects, prefix, o.Selection, revision, o.Limit), nil
}

// listPosition returns the revision to list (0: the present) and the key to start from.
func (r *Resource) listPosition(ctx context.Context, o ListOptions) (revision int64, start string, err error) {
	if o.Continue != "" {
		revision, start, err = decodeContinue(o.Continue, r.key(o.Namespace, "").Prefix())
		if v := o.ResourceVersion; err == nil && v != "" && v != "0" {
			return 0, "", apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		if current, _ := r.env.Store.Revision(); revision > current {
			err = apierrors.NewResourceExpired("The provided continue parameter is of a resourceVersion that this " +
				"server has not reached: it is from another server, or from before a backup was put back. Start a " +
				"new list without it.")
		}
		return revision, start, err
	}
	if err := r.reached(ctx, o.ResourceVersion); err != nil {
		return 0, "", err
	}
	version, err := ParseResourceVersion(o.ResourceVersion)
	if err != nil {
		return 0, "", err
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact || o.ResourceVersionMatch == "" && o.Limit > 0
	if exact {
		return version, "", nil
	}
	return 0, "", nil
}

// listAt lists a past state from the store.
func (r *Resource) listAt(ctx context.Context, s Selection, revision int64, start string,
	limit int64,
) (ListResult, error) {
	prefix := r.key(s.Namespace, "").Prefix()
	o := storage.ListOptions{Start: start, Revision: revision}
	if s.all() {
		o.Limit = int(limit) // otherwise the selection decides how many records fill a page
	}
	page, err := r.env.Store.List(ctx, prefix, o)
	if errors.Is(err, storage.ErrCompacted) {
		return ListResult{}, expiredList(start, prefix)
	}
	if err != nil {
		return ListResult{}, err
	}
	var failed error
	past := func(yield func(string, *watchcache.Object) bool) {
		for _, record := range page.Records {
			o, err := r.past(record)
			if err != nil {
				failed = err
				return
			}
			if !yield(record.Key, o) {
				return
			}
		}
	}
	objects, err := r.allInVersion(ctx, past, prefix, ListOptions{Selection: s, Limit: limit})
	if err != nil {
		return ListResult{}, err
	}
	result := r.page(objects, prefix, s, revision, limit)
	if failed == nil && page.Remaining > 0 {
		result.Continue = encodeContinue(result.Objects[len(result.Objects)-1].Key+"\x00", prefix, revision)
		result.Remaining = &page.Remaining
	}
	return result, failed
}

// allInVersion returns the objects whose keys begin with prefix, in the version of the resource. Those after a full
// page, which are only counted, are not converted.
func (r *Resource) allInVersion(ctx context.Context, objects iter.Seq2[string, *watchcache.Object],
	prefix string, o ListOptions,
) (iter.Seq2[string, *watchcache.Object], error) {
	if r.Definition.Convert == nil {
		return objects, nil
	}
	var all []*watchcache.Object
	for key, o := range objects {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		all = append(all, o)
	}
	page := len(all)
	if o.Limit > 0 && o.all() {
		page = min(page, int(o.Limit))
	}
	converted, err := r.inVersion(ctx, all[:page])
	if err != nil {
		return nil, err
	}
	return func(yield func(string, *watchcache.Object) bool) {
		for _, o := range append(converted, all[page:]...) {
			if !yield(o.Key, o) {
				return
			}
		}
	}, nil
}

// past decodes a past state from the store. A state that needs the webhook and is still current is that of the
// collection, because it may have been converted already.
func (r *Resource) past(record storage.Record) (*watchcache.Object, error) {
	if r.Definition.Convert != nil {
		if o, ok, err := r.Objects.Get(record.Key); err != nil || ok && o.Revision == record.Revision {
			return o, err
		}
	}
	obj, err := r.decode(record)
	if err != nil {
		return nil, err
	}
	o := r.object(obj, record.Key, record.Revision)
	o.Value = record.Value
	return o, nil
}

// page collects up to limit selected objects from objects, whose keys must begin with prefix.
func (r *Resource) page(objects iter.Seq2[string, *watchcache.Object], prefix string, s Selection,
	revision, limit int64,
) ListResult {
	result := ListResult{Revision: revision}
	if s.Shard != nil {
		result.Shard = s.Shard.String()
	}
	scope := r.key(s.Namespace, "").Prefix()
	var remaining int64
	last := ""
	for key, o := range objects {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		full := limit > 0 && int64(len(result.Objects)) == limit
		switch {
		case full && s.all():
			remaining++
		case full: // as in a real server, whether or not any later object is selected
			result.Continue = encodeContinue(last+"\x00", scope, revision)
			return result
		case !s.matches(r.Definition, o):
		default:
			result.Objects = append(result.Objects, o)
			last = key
		}
	}
	if remaining > 0 {
		result.Continue, result.Remaining = encodeContinue(last+"\x00", scope, revision), &remaining
	}
	return result
}

// continueToken is the position after a page, in the form that a kube-apiserver uses.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/continue.go.
type continueToken struct {
	APIVersion      string `json:"v"`
	ResourceVersion int64  `json:"rv"`    // -1: the present, whatever it is
	StartKey        string `json:"start"` // below the prefix of the list: a token says nothing about tenants
}

const continueVersion = "meta.k8s.io/v1"

// encodeContinue returns the token to continue at key, in a list of the keys that begin with prefix.
func encodeContinue(key, prefix string, revision int64) string {
	b, err := json.Marshal(
		continueToken{
			APIVersion: continueVersion, ResourceVersion: revision,
			StartKey: strings.TrimPrefix(key, prefix),
		},
	)
	if err != nil {
		panic(err) // cannot fail: two strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeContinue returns the revision to list (0: the present) and the key to start at. Errors: BadRequest.
func decodeContinue(token, prefix string) (revision int64, start string, err error) {
	invalid := func(format string, args ...any) (int64, string, error) {
		return 0, "",
			apierrors.NewBadRequest("invalid continue token: continue key is not valid: " +
				fmt.Sprintf(format, args...))
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return invalid("%v", err)
	}
	var t continueToken
	if err := json.Unmarshal(b, &t); err != nil {
		return invalid("%v", err)
	}
	key := "/" + strings.TrimPrefix(t.StartKey, "/")
	switch {
	case t.APIVersion != continueVersion:
		return invalid("server does not recognize this encoded version %v", t.APIVersion)
	case t.ResourceVersion == 0:
		return invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	case t.StartKey == "":
		return invalid("encoded start key empty (version meta.k8s.io/v1)")
	case path.Clean(key) != key: // the key must not leave the prefix
		return invalid("%v", t.StartKey)
	}
	return max(t.ResourceVersion, 0), prefix + key[1:], nil
}

// expiredList returns the error for a list whose revision is compacted. If the list was being continued, the error has
// a token to continue from the present state, for clients that prefer that to starting over.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/etcd3/errors.go.
func expiredList(start, prefix string) error {
	if start == "" {
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list " +
		"result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to " +
		"retrieve " +
		"the remainder of the results. Continuing with the provided token results in an inconsistent list - objects " +
		"that " +
		"were created, modified, or deleted between the time the first chunk was returned and now may show up in the " +
		"list.")
	err.ErrStatus.ListMeta.Continue = encodeContinue(start, prefix, -1)
	return err
}
